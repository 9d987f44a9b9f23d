package edgetest

import (
	"testing"

	"go.uber.org/goleak"

	"wayside/edge"
)

func TestMemStore(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	t.Run("Contract", func(t *testing.T) {
		TestStore(t, Harness{
			Open:      func(*testing.T) edge.Store { return NewMemStore() },
			Reopen:    func(_ *testing.T, s edge.Store) edge.Store { return s.(*MemStore).Reopen() },
			Fail:      func(s edge.Store, err error) { s.(*MemStore).Fail(err) },
			RollAfter: MemRollAfter,
		})
	})
}
