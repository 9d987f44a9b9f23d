package boltstore

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// chunkSource walks the chunks of one ledger in order, in the main file or in a
// volume. What a volume cannot give is passed over.
type chunkSource interface {
	// seek goes to the last chunk whose key is not behind the entry, or the first.
	seek(entry int64)
	next()
	// at returns the key and value where the source stands, or false at the end.
	at() (first int64, value chunkValue, ok bool)
}

// mappedChunks are those of a ledger in the main file.
type mappedChunks struct {
	ledger *bbolt.Bucket
	cur    *bbolt.Cursor
	key    []byte
}

func (m *mappedChunks) seek(entry int64) {
	m.cur = m.ledger.Cursor()
	want := number(uint64(entry))
	k, _ := m.cur.Seek(want)
	switch {
	case string(k) == string(want):
	case k == nil:
		k, _ = m.cur.Last()
	default:
		if k, _ = m.cur.Prev(); k == nil {
			k, _ = m.cur.First()
		}
	}
	m.key = k
}

func (m *mappedChunks) next() { m.key, _ = m.cur.Next() }

func (m *mappedChunks) at() (int64, chunkValue, bool) {
	n, ok := keyNumber(m.key, 0)
	if !ok {
		return 0, nil, false
	}
	var v mapped
	if b := m.ledger.Bucket(m.key); b != nil {
		v = b.Get(keyValue)
	}
	return int64(n), v, true
}

// plainChunks are those of a ledger in a volume.
type plainChunks struct {
	t      *treeFile
	ledger treeBucket
	cur    *treeCursor
}

func (p *plainChunks) seek(entry int64) { p.cur = p.t.seek(p.ledger, number(uint64(entry))) }

func (p *plainChunks) next() { p.cur.next() }

func (p *plainChunks) at() (int64, chunkValue, bool) {
	if !p.cur.valid() {
		return 0, nil, false
	}
	n, ok := keyNumber(p.cur.key(), 0)
	if !ok {
		return 0, nil, false
	}
	b, err := p.cur.bucket()
	if err != nil {
		return int64(n), mapped(nil), true
	}
	v := p.t.seek(b, keyValue)
	if !v.valid() || string(v.key()) != string(keyValue) {
		return int64(n), mapped(nil), true
	}
	return int64(n), plainValue{v}, true
}

// plainValue is a value where a tree's cursor stands.
type plainValue struct{ cur *treeCursor }

func (v plainValue) size() int { return v.cur.valueSize() }

func (v plainValue) read(offset, n int) ([]byte, error) { return v.cur.read(offset, n) }

// viewLedger reads the chunks of a ledger in the file that holds it. It is
// edge.ErrGone when the ledger is not there any more.
func (s *Store) viewLedger(t *topic, number uint64, id int64, fn func(src chunkSource) error) error {
	f, err := s.shelf.take(number)
	if err != nil {
		return err
	}
	for {
		if err := f.viewLedger(topicKey(t.key), ledgerKey(id), fn); !errors.Is(err, errTurned) {
			return err
		}
	}
}

// errTurned says that a main file became a volume, or the other way round at a
// repair, while somebody was about to read it.
var errTurned = errors.New("file changes its part")

func (f *file) viewLedger(topic, id []byte, fn func(src chunkSource) error) error {
	if f.mapped() {
		return f.view(func(tx *bbolt.Tx) error {
			if b := tx.Bucket(topic); b != nil {
				if led := b.Bucket(id); led != nil {
					return fn(&mappedChunks{ledger: led})
				}
			}
			return fmt.Errorf("ledger: %w", edge.ErrGone)
		})
	}
	return f.plain(func(t *treeFile) error {
		led, err := t.find(topic, id)
		if err != nil {
			return err
		}
		return fn(&plainChunks{t: t, ledger: led})
	})
}

// eachChunk visits the chunks that overlap a piece of one ledger, in order, with what
// of the piece each covers. A damaged one comes with its error and covers nothing
// for sure.
func eachChunk(src chunkSource, piece edge.Range, visit func(c *chunk, err error, covers edge.Range) error) error {
	id := piece.First.Ledger
	for src.seek(piece.First.Entry); ; src.next() {
		first, value, ok := src.at()
		if !ok || first > piece.Last.Entry {
			return nil
		}
		c, err := openChunk(id, first, value)
		covers := edge.Range{First: edge.Position{Ledger: id, Entry: max(first, piece.First.Entry)}, Last: piece.Last}
		if err == nil {
			covers.Last.Entry = min(covers.Last.Entry, c.last())
			if covers.Empty() {
				continue
			}
		}
		if err := visit(&c, err, covers); err != nil {
			return err
		}
	}
}
