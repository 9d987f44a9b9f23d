package boltstore

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// viewLedger reads a ledger's bucket in the file that holds it. It is edge.ErrGone
// when the ledger is not there any more.
func (s *Store) viewLedger(t *topic, number uint64, id int64, fn func(b *bbolt.Bucket) error) error {
	f, err := s.shelf.take(number)
	if err != nil {
		return err
	}
	return f.view(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(topicKey(t.key)); b != nil {
			if led := b.Bucket(ledgerKey(id)); led != nil {
				return fn(led)
			}
		}
		return fmt.Errorf("ledger %d of %s: %w", id, t.name, edge.ErrGone)
	})
}

// eachChunk visits the chunks that overlap a piece of one ledger, in order, with what
// of the piece each covers. A damaged one comes with its error and covers nothing
// beyond its first entry.
func eachChunk(led *bbolt.Bucket, piece edge.Range, visit func(c *chunk, err error, covers edge.Range) error) error {
	id := piece.First.Ledger
	cur := led.Cursor()
	for k := seekChunk(cur, piece.First.Entry); k != nil; k, _ = cur.Next() {
		n, ok := keyNumber(k, 0)
		first := int64(n)
		if !ok || first > piece.Last.Entry {
			break
		}
		c, err := openChunk(id, first, chunkValue(led, k))
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
	return nil
}

// seekChunk finds the chunk that holds an entry: the last one whose key is not
// behind it, or else the first.
func seekChunk(cur *bbolt.Cursor, entry int64) []byte {
	want := number(uint64(entry))
	k, _ := cur.Seek(want)
	if bytes.Equal(k, want) {
		return k
	}
	if k == nil {
		k, _ = cur.Last()
		return k
	}
	if k, _ = cur.Prev(); k == nil {
		k, _ = cur.First()
	}
	return k
}
