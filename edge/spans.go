package edge

import "sort"

// Span is one ledger of a topic: which entries it has and what lies before them.
type Span struct {
	Ledger int64
	First  int64 // entry id of its first entry, 0 unless its head was lost
	Last   int64 // of its last; First−1 when it is empty

	// Sums over the topic up to this ledger's first entry, counted for the life of
	// the birth id. They only grow, and count what was lost since.
	EntriesBefore  int64
	MessagesBefore int64 // the index of its first message
	BytesBefore    int64

	Messages int64 // in the ledger
	Bytes    int64 // in the ledger, data only
	Created  int64 // wall clock, ms since 1970
	LastTime int64 // publish time of the last entry, ms since 1970
}

// Entries is the number of entries in the span.
func (s Span) Entries() int64 { return s.Last - s.First + 1 }

// Start is the position before the span's first entry.
func (s Span) Start() Position { return Position{s.Ledger, s.First - 1} }

// End is the position of its last entry, or Start when it is empty.
func (s Span) End() Position { return Position{s.Ledger, s.Last} }

// Spans is the list of a topic's ledgers in order, the open one last. It is
// immutable: rolling and trimming replace it as a whole, appending replaces Open.
type Spans struct {
	Closed []Span
	Open   Span
}

// Len is the number of ledgers, the open one included.
func (s Spans) Len() int { return len(s.Closed) + 1 }

// At returns ledger i of Len.
func (s Spans) At(i int) Span {
	if i == len(s.Closed) {
		return s.Open
	}
	return s.Closed[i]
}

// Start is the position before the first entry that the topic holds.
func (s Spans) Start() Position { return s.At(0).Start() }

// Last is the position of the last entry. Without any it is the position before the
// first one to come, and ok is false.
func (s Spans) Last() (p Position, ok bool) {
	for i := s.Len() - 1; i >= 0; i-- {
		if span := s.At(i); span.Entries() > 0 {
			return span.End(), true
		}
	}
	return s.Open.Start(), false
}

// End is the position of the last entry, or the one before the first to come: the
// mark-delete of a cursor that has acknowledged everything.
func (s Spans) End() Position {
	p, _ := s.Last()
	return p
}

// search returns the index of the first span whose ledger is ≥ ledger.
func (s Spans) search(ledger int64) int {
	if ledger >= s.Open.Ledger { // most are asked for there
		return len(s.Closed) + int(min(ledger-s.Open.Ledger, 1))
	}
	return sort.Search(s.Len(), func(i int) bool { return s.At(i).Ledger >= ledger })
}

// Contains reports whether an entry is stored at p.
func (s Spans) Contains(p Position) bool {
	i := s.search(p.Ledger)
	if i == s.Len() {
		return false
	}
	span := s.At(i)
	return span.Ledger == p.Ledger && p.Entry >= span.First && p.Entry <= span.Last
}

// AtOrAfter returns the first stored position that is ≥ p, or false if there is none.
func (s Spans) AtOrAfter(p Position) (Position, bool) {
	for i := s.search(p.Ledger); i < s.Len(); i++ {
		span := s.At(i)
		first := span.First
		if span.Ledger == p.Ledger {
			first = max(first, p.Entry)
		}
		if first <= span.Last {
			return Position{span.Ledger, first}, true
		}
	}
	return Position{}, false
}

// After returns the first stored position behind p, or false if there is none.
func (s Spans) After(p Position) (Position, bool) { return s.AtOrAfter(p.Next()) }

// AtOrBefore returns the last stored position that is ≤ p, or false if there is none.
func (s Spans) AtOrBefore(p Position) (Position, bool) {
	for i := min(s.search(p.Ledger), s.Len()-1); i >= 0; i-- {
		span := s.At(i)
		last := span.Last
		switch {
		case span.Ledger > p.Ledger:
			continue
		case span.Ledger == p.Ledger:
			last = min(last, p.Entry)
		}
		if last >= span.First {
			return Position{span.Ledger, last}, true
		}
	}
	return Position{}, false
}

// MarkBefore is the mark-delete that leaves p as the next entry: the position just
// before it in its own ledger (protocol 3.13).
func (s Spans) MarkBefore(p Position) Position { return p.Before() }

// EntriesUpTo counts the entries ever stored up to p, p included, be they there still
// or not.
func (s Spans) EntriesUpTo(p Position) int64 {
	i := s.search(p.Ledger)
	if i == s.Len() {
		return s.Open.EntriesBefore + s.Open.Entries()
	}
	span := s.At(i)
	if span.Ledger != p.Ledger {
		return span.EntriesBefore
	}
	return span.EntriesBefore + max(0, min(p.Entry, span.Last)-span.First+1)
}

// BytesUpTo is the same for bytes; inside a ledger it is an estimate from the average
// size of its entries.
func (s Spans) BytesUpTo(p Position) int64 {
	i := s.search(p.Ledger)
	if i == s.Len() {
		return s.Open.BytesBefore + s.Open.Bytes
	}
	span := s.At(i)
	return span.BytesBefore + span.bytesOf(s.EntriesUpTo(p)-span.EntriesBefore)
}

// bytesOf estimates the bytes of n of the span's entries; of all it is exact.
func (s Span) bytesOf(n int64) int64 {
	if n == s.Entries() {
		return s.Bytes
	}
	return int64(float64(s.Bytes) * float64(n) / float64(s.Entries()))
}

// EntriesBetween counts the stored entries in (after, upTo].
func (s Spans) EntriesBetween(after, upTo Position) int64 {
	var n int64
	for i := s.search(after.Ledger); i < s.Len() && s.At(i).Ledger <= upTo.Ledger; i++ {
		n += s.At(i).between(after, upTo)
	}
	return n
}

// BytesBetween is the same for bytes; of a ledger that lies in it by a part it is
// an estimate from the average size of its entries.
func (s Spans) BytesBetween(after, upTo Position) int64 {
	var n int64
	for i := s.search(after.Ledger); i < s.Len() && s.At(i).Ledger <= upTo.Ledger; i++ {
		span := s.At(i)
		n += span.bytesOf(span.between(after, upTo))
	}
	return n
}

// between counts the span's entries in (after, upTo].
func (s Span) between(after, upTo Position) int64 {
	first, last := s.First, s.Last
	if after.Ledger == s.Ledger {
		first = max(first, after.Next().Entry)
	}
	if upTo.Ledger == s.Ledger {
		last = min(last, upTo.Entry)
	}
	return max(0, last-first+1)
}

// Totals counts what is stored now.
func (s Spans) Totals() (entries, messages, bytes int64) {
	for i := range s.Len() {
		span := s.At(i)
		entries += span.Entries()
		messages += span.Messages
		bytes += span.Bytes
	}
	return entries, messages, bytes
}

// positionAfterBytes is the last entry of about so many bytes behind a position. The
// estimate goes by each ledger's average and may be one entry more.
func (s Spans) positionAfterBytes(after Position, bytes int64) Position {
	at := after
	for i := s.search(after.Ledger); i < s.Len() && bytes > 0; i++ {
		span := s.At(i)
		from := span.First
		if span.Ledger == after.Ledger {
			from = max(from, after.Entry+1)
		}
		n := span.Last - from + 1
		if n <= 0 {
			continue
		}
		each := max(span.Bytes/span.Entries(), 1)
		take := min(n, bytes/each+1)
		at = Position{span.Ledger, from + take - 1}
		bytes -= take * each
	}
	return at
}

// nth is the n-th stored position from p on, counted from 1.
func (s Spans) nth(p Position, n int64) (Position, bool) {
	for i := s.search(p.Ledger); i < s.Len(); i++ {
		span := s.At(i)
		first := span.First
		if span.Ledger == p.Ledger {
			first = max(first, p.Entry)
		}
		if count := span.Last - first + 1; n > max(count, 0) {
			n -= max(count, 0)
			continue
		}
		return Position{span.Ledger, first + n - 1}, true
	}
	return Position{}, false
}
