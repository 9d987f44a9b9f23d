package pulsar

import (
	"context"
	"errors"

	"wayside/edge"
)

// maxTries bounds how often a topic that is unloaded again and again, or a seat that
// passes from one dead client to the next, is asked for.
const maxTries = 16

// contend tries to get a name or a seat. If it is taken, the holder is asked for a
// sign of life; when it shows none it is removed, and the next try may win. A topic
// that was unloaded meanwhile is asked for again.
func (s *session) contend(ctx context.Context, try func() error) (err error) {
	for range maxTries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err = try()
		var taken *edge.InUseError
		switch {
		case errors.As(err, &taken):
			if taken.Holder == nil || taken.Holder.Alive(ctx) {
				return err
			}
		case !errors.Is(err, edge.ErrUnloaded):
			return err
		}
	}
	return err
}
