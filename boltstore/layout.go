package boltstore

import (
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// What lies where in a file. Buckets at the root:
//
//	meta     format, ids, uptime, the list of volumes (meta.go)
//	records  topic number → record
//	values   small values of the broker by key (values.go)
//	large    those above a page, each in a bucket of its own
//	dead     what was crossed off and still takes pages (sweep.go)
//	t‹n›     topic number n
//
// and in a topic's bucket:
//
//	c        cursors (cursorstore.go)
//	e‹id›    ledger: one bucket per chunk under its first entry's id, its value under "v"
//	l‹id›    closed ledger: its place
//	p        properties, under "v"
//	q        producer name → sequence
//
// Numbers in keys are big endian, so that they sort.
var (
	bucketMeta      = []byte("meta")
	bucketRecords   = []byte("records")
	bucketValues    = []byte("values")
	bucketLarge     = []byte("large")
	bucketDead      = []byte("dead")
	bucketCursors   = []byte("c")
	bucketProps     = []byte("p")
	bucketSequences = []byte("q")
	keyValue        = []byte("v")
)

const (
	prefixTopic  = 't'
	prefixLedger = 'e'
	prefixPlace  = 'l'
)

// appendFill packs buckets whose keys only rise.
const appendFill = 1.0

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func numberKey(prefix byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), prefix), n)
}

func topicKey(n uint64) []byte { return numberKey(prefixTopic, n) }

func ledgerKey(id int64) []byte { return numberKey(prefixLedger, uint64(id)) }

func placeKey(id int64) []byte { return numberKey(prefixPlace, uint64(id)) }

// keyNumber reads the number behind a key's prefix of n bytes.
func keyNumber(key []byte, n int) (uint64, bool) {
	if len(key) != n+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[n:]), true
}

// eachNumbered visits the keys of a bucket that are a prefix and a number, in order,
// values of nested buckets being nil.
func eachNumbered(b *bbolt.Bucket, prefix byte, visit func(n uint64, value []byte) error) error {
	c := b.Cursor()
	for k, v := c.Seek([]byte{prefix}); len(k) > 0 && k[0] == prefix; k, v = c.Next() {
		n, ok := keyNumber(k, 1)
		if !ok {
			continue
		}
		if err := visit(n, v); err != nil {
			return err
		}
	}
	return nil
}
