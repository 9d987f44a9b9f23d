package edge

import (
	"context"
	"fmt"
	"sync"
)

// formWriter writes the ledger of a new compacted form.
type formWriter struct {
	t      *Topic
	name   TopicName
	ledger Ledger
	state  compactedState
	slots  chan struct{} // one for each append under way

	mu  sync.Mutex
	err error // of the first append that failed
}

// copiesAtOnce bounds the appends of a compaction that are in the store's line, so that
// publishers do not wait behind it.
const copiesAtOnce = 32

// newForm opens the ledger that is not in use, without what may be left in it.
func (r *compacting) newForm(old *compacted, horizon Position) (*formWriter, error) {
	w := &formWriter{t: r.t, slots: make(chan struct{}, copiesAtOnce)}
	if old != nil {
		w.state.Side = 1 - old.state.Side
	}
	w.name = r.t.name.compactedName(w.state.Side)
	if err := r.awaitRetired(); err != nil {
		return nil, err
	}
	store := r.t.broker.store
	err := wait(r.ctx, func(done func(error)) { store.DeleteLedger(w.name, done) })
	if err == nil {
		w.ledger, err = store.OpenLedger(w.name, []string{keptAll})
	}
	if err != nil {
		return nil, fmt.Errorf("make a compacted form: %w: %w", ErrStorage, err)
	}
	w.state.Birth, w.state.Horizon, w.state.LastIndex = w.ledger.BirthID(), horizon, -1
	return w, nil
}

// awaitRetired waits until the name is free again that the new form takes.
func (r *compacting) awaitRetired() error {
	r.t.mu.Lock()
	last := r.t.retiring
	r.t.mu.Unlock()
	if last == nil {
		return nil
	}
	select {
	case <-last.gone:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// append adds the copy of an entry, of which data is left.
func (w *formWriter) append(ctx context.Context, e *Entry, data []byte, last int) error {
	if err := w.failure(); err != nil {
		return err
	}
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	grant, err := w.t.broker.budget.Take(ctx, SharePublish, int64(len(data)))
	if err != nil {
		<-w.slots
		return err
	}
	if w.state.Entries++; w.state.Entries == 1 {
		w.state.First = e.Position
	}
	w.state.Last, w.state.LastIndex = e.Position, last
	f := e.Facts
	f.Origin = &Origin{e.Position, e.Index}
	w.ledger.Append(Message{Facts: f, Data: data, Grant: grant}, func(_ Entry, err error) {
		w.note(err)
		<-w.slots
	})
	return nil
}

// note runs on the store's goroutine.
func (w *formWriter) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("write a compacted form: %w", err)
	}
}

func (w *formWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// settle waits until all that was appended is durable, whatever has failed.
func (w *formWriter) settle(err error) error {
	for range copiesAtOnce {
		w.slots <- struct{}{}
	}
	if err == nil {
		err = w.failure()
	}
	return err
}

// discard deletes what was written.
func (w *formWriter) discard() {
	w.t.broker.store.DeleteLedger(w.name, func(error) {})
}
