package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// pace copies files no faster than a rate.
type pace struct {
	ctx   context.Context
	rate  int64 // bytes per second, 0 for none
	tell  func(done, total int64)
	total int64
	done  int64
	began time.Time
	freed int64 // bytes that were copied without a wait
}

const (
	pacePiece = 256 << 10
	// paceSync bounds what is written and not on the disk: a sync of all at the end would
	// hold up everybody else's.
	paceSync = 4 << 20
)

// copy writes n bytes of a file to a new one and syncs it. hurry says before every piece
// whether the rate does not count, or why it has to stop; it may be nil.
func (p *pace) copy(to string, from io.ReaderAt, n int64, hurry func() (bool, error)) (err error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, min(pacePiece, max(n, 1)))
	for at := int64(0); at < n; {
		now := false
		if hurry != nil {
			if now, err = hurry(); err != nil {
				return err
			}
		}
		piece := buf[:min(int64(len(buf)), n-at)]
		if err := p.wait(int64(len(piece)), now); err != nil {
			return err
		}
		if _, err := from.ReadAt(piece, at); err != nil {
			return fmt.Errorf("read for %s: %w", to, err)
		}
		if _, err := f.WriteAt(piece, at); err != nil {
			return err
		}
		if at += int64(len(piece)); at%paceSync == 0 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// wait lets time pass until n more bytes are within the rate.
func (p *pace) wait(n int64, now bool) error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.done += n
	if p.tell != nil {
		p.tell(p.done, p.total)
	}
	if now {
		p.freed += n
	}
	if p.rate <= 0 || now {
		return nil
	}
	due := time.Duration(float64(p.done-p.freed) / float64(p.rate) * float64(time.Second))
	t := time.NewTimer(due - time.Since(p.began))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// copyWhole copies a file beside others.
func copyWhole(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	p := pace{ctx: context.Background()}
	return p.copy(to, f, st.Size(), nil)
}
