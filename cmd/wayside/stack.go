package main

import (
	"context"
	"errors"
	"fmt"
)

// stack is what was started. It is stopped in reverse order, all steps under one
// deadline; each returns when its goroutines have ended.
type stack struct{ steps []step }

type step struct {
	name string
	stop func(context.Context) error
}

func (k *stack) push(name string, stop func(context.Context) error) {
	k.steps = append(k.steps, step{name, stop})
}

// stop calls every step, also behind one that failed, and once only.
func (k *stack) stop(ctx context.Context) error {
	var errs []error
	for len(k.steps) > 0 {
		last := k.steps[len(k.steps)-1]
		k.steps = k.steps[:len(k.steps)-1]
		if err := last.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}
