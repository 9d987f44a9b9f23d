package edge

import (
	"context"
	"fmt"
	"hash/maphash"
)

// compacting is one compaction of a topic. It works in rounds, of which each is complete
// in itself: the first pass notes the newest message of each key behind the old horizon,
// up to the end or until the table of keys is full; the second writes a new form of the
// old one and of what was looked at, without all that is void by then. So the memory is
// bounded whatever the number of keys, and a crash costs no more than a round.
//
// What is kept (watched on 4.0.7): of each key the newest message, unless it has no
// content; of a batch, as long as one of its messages is kept, the batch with the others
// taken out; no message without a key. What nobody here can open, a batch that is
// encrypted above all, is kept whole.
//
// Deliberate differences: a null value alone voids its key too, also where the client
// does not say that the content's size is 0 (4.0.7 keeps those of C++ clients); a chunked
// message is kept or dropped as a whole (4.0.7 keeps its last chunk, which nobody can
// use); and so is an encrypted batch (4.0.7 drops it or goes by its first message's key).
type compacting struct {
	t       *Topic
	ctx     context.Context
	opener  Opener
	sub     *Subscription
	table   *keyTable
	ids     maphash.Seed        // of chunked messages' identities
	open    map[uint64]struct{} // chunked messages that are not complete
	removed int64               // messages
}

// voided is the newest message of a key that a null value has voided.
const voided = ^uint64(0)

// chunkedBit tells the identities of chunked messages from ordinals.
const chunkedBit = 1 << 63

// all compacts up to the present end.
func (r *compacting) all() error {
	if err := r.t.ensureSubscription(r.ctx, CompactionSubscription); err != nil {
		return err
	}
	var err error
	if r.sub, err = r.t.subscription(r.ctx, CompactionSubscription); err != nil {
		return err
	}
	grant, err := r.t.broker.budget.Take(r.ctx, ShareSubscription, tableBytes)
	if err != nil {
		return err
	}
	defer grant.Release()
	r.table, r.ids = newKeyTable(), maphash.MakeSeed()
	target := r.t.readable(r.t.ledger.Spans())
	for {
		more, err := r.round(target)
		if err != nil || !more {
			return err
		}
	}
}

// round compacts a piece. It returns false when there is nothing left.
func (r *compacting) round(target Position) (more bool, err error) {
	old := r.t.compacted.Load()
	dirty := Range{r.t.ledger.Spans().Start().Next(), target}
	if old != nil {
		dirty.First = Max(dirty.First, old.state.Horizon.Next())
	}
	if r.t.ledger.Spans().EntriesBetween(dirty.First.Before(), target) == 0 {
		return false, nil
	}
	r.table.clear()
	r.open = map[uint64]struct{}{}
	if old != nil {
		if err := r.scanChunks(old); err != nil {
			return false, err
		}
	}
	dirty.Last, err = r.note(dirty)
	if err != nil {
		return false, err
	}
	if err := r.write(old, dirty); err != nil {
		return false, err
	}
	return dirty.Last != target, nil
}

// each visits the entries of a range until visit returns false. It returns the last one
// that it has passed, lost ones included.
func (r *compacting) each(l Ledger, all Range, visit func(*Entry) (bool, error)) (last Position, err error) {
	last = all.First.Before()
	for !all.Empty() {
		grant, err := r.t.broker.budget.Take(r.ctx, ShareRead, readBytes)
		if err != nil {
			return last, err
		}
		b, err := l.Read([]Range{all}, readEntries, readBytes)
		if err != nil {
			grant.Release()
			return last, fmt.Errorf("read for compaction: %w", err)
		}
		raiseTo(&grant, b.Entries)
		next, more, err := visitAll(b.Entries, visit)
		grant.Release()
		if next != (Position{}) {
			last = next
		}
		if err != nil || !more {
			return last, err
		}
		all.First = behind(&b, all.Last)
		last = Max(last, all.First.Before())
	}
	return last, nil
}

// raiseTo lets a grant count what has come.
func raiseTo(g *Grant, list []Entry) {
	n := int64(0)
	for i := range list {
		n += int64(len(list[i].Data))
	}
	g.raise(n)
}

func visitAll(list []Entry, visit func(*Entry) (bool, error)) (last Position, more bool, err error) {
	for i := range list {
		if more, err = visit(&list[i]); err != nil || !more {
			return last, false, err
		}
		last = list[i].Position
	}
	return last, true, nil
}

// scanChunks finds the chunked messages that the old form has the begin of alone.
func (r *compacting) scanChunks(old *compacted) error {
	l, err := old.pin()
	if err != nil {
		return err
	}
	defer old.unpin()
	spans := l.Spans()
	return l.Scan(Range{spans.Start().Next(), spans.End()}, func(_ Position, f Facts) bool {
		r.noteChunk(&f)
		return true
	})
}

// noteChunk notes which chunked messages are under way.
func (r *compacting) noteChunk(f *Facts) {
	switch {
	case !f.Chunk.IsChunk():
	case f.Chunk.Last():
		delete(r.open, r.chunked(f))
	case len(r.open) < maxChunkOwners:
		r.open[r.chunked(f)] = struct{}{}
	}
}

func (r *compacting) chunked(f *Facts) uint64 {
	return maphash.String(r.ids, f.Chunk.UUID) | chunkedBit
}

// identity tells a message, or all of a chunked one, from the others.
func (r *compacting) identity(e *Entry, index int) uint64 {
	if e.Facts.Chunk.IsChunk() {
		return r.chunked(&e.Facts)
	}
	return e.Index + uint64(index) + 1
}

// whole reports whether an entry is never opened: it has more messages than the table
// holds keys.
func whole(e *Entry) bool { return e.Facts.Messages > keysAtOnce }

// passes reports whether an entry is nobody's: a marker, or what was aborted.
func (r *compacting) passes(e *Entry) bool {
	return e.Facts.Marker != 0 || r.t.Aborted(e.Position, &e.Facts)
}

// note fills the table from a range, and returns how far it came.
func (r *compacting) note(dirty Range) (Position, error) {
	return r.each(r.t.ledger, dirty, func(e *Entry) (bool, error) {
		f := &e.Facts
		r.noteChunk(f)
		switch {
		case r.passes(e) || f.Chunk.IsChunk() && !f.Chunk.Last() || whole(e):
			return true, nil
		case !r.table.holds(int(f.Messages)):
			return false, nil
		}
		_ = r.opener.Keys(e.Data, func(k MessageKey) { // what cannot be opened voids nothing
			switch {
			case !k.Has:
			case k.Null:
				r.table.put(k.Key, voided)
			default:
				r.table.put(k.Key, r.identity(e, k.Index))
			}
		})
		return true, nil
	})
}

// write makes the new form and puts it in the place of the old one.
func (r *compacting) write(old *compacted, dirty Range) error {
	w, err := r.newForm(old, dirty.Last)
	if err != nil {
		return err
	}
	if old != nil {
		err = r.copyOld(old, w)
	}
	if err == nil {
		_, err = r.each(r.t.ledger, dirty, func(e *Entry) (bool, error) { return true, r.copy(w, e, true) })
	}
	if err = w.settle(err); err == nil {
		err = r.t.compactedTo(r.ctx, r.sub, w.state, w.ledger)
	}
	if err != nil {
		w.discard()
	}
	return err
}

func (r *compacting) copyOld(old *compacted, w *formWriter) error {
	l, err := old.pin()
	if err != nil {
		return err
	}
	defer old.unpin()
	spans := l.Spans()
	_, err = r.each(l, Range{spans.Start().Next(), spans.End()}, func(e *Entry) (bool, error) {
		own := []Entry{*e}
		if own = originals(own, Earliest); len(own) == 0 {
			return true, nil
		}
		return true, r.copy(w, &own[0], false)
	})
	return err
}

// copy writes what is left of an entry. fresh says that it comes from behind the old
// horizon: then its keys are in the table.
func (r *compacting) copy(w *formWriter, e *Entry, fresh bool) error {
	if r.passes(e) {
		return nil
	}
	var keep []int
	seen := 0
	err := r.opener.Keys(e.Data, func(k MessageKey) {
		seen++
		if r.keeps(e, k, fresh) {
			keep = append(keep, k.Index)
		}
	})
	data, last := e.Data, int(e.Facts.Messages)-1
	switch {
	case err != nil || whole(e):
		keep = make([]int, e.Facts.Messages)
	case len(keep) == 0:
		r.removed += int64(seen)
		return nil
	case e.Facts.Batch:
		last = keep[len(keep)-1]
		if len(keep) < int(e.Facts.Messages) {
			data, err = r.thin(e, keep)
		}
	}
	if err != nil && data == nil {
		return err
	}
	if !e.Facts.Batch {
		last = -1
	}
	r.removed += int64(max(seen-len(keep), 0))
	return w.append(r.ctx, e, data, last)
}

// thin writes a batch with only some of its messages, in ascending order.
func (r *compacting) thin(e *Entry, keep []int) ([]byte, error) {
	data, err := r.opener.Thin(e.Data, func(i int) bool {
		for len(keep) > 0 && keep[0] < i {
			keep = keep[1:]
		}
		return len(keep) > 0 && keep[0] == i
	})
	if err != nil {
		return nil, fmt.Errorf("thin batch %s out: %w", e.Position, err)
	}
	return data, nil
}

// keeps reports whether a message is the newest of its key, as far as is known.
func (r *compacting) keeps(e *Entry, k MessageKey, fresh bool) bool {
	if !k.Has {
		return false
	}
	id := r.identity(e, k.Index)
	chunk := e.Facts.Chunk.IsChunk()
	if _, begun := r.open[id]; chunk && begun {
		return true
	}
	newest := r.table.get(k.Key)
	if newest == 0 {
		return !fresh || chunk
	}
	return newest == id
}
