package boltstore

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// The meta bucket holds numbers of the store as a whole, under these keys, and under
// 'v' and a file's number what is known of a volume.
var (
	metaFormat  = []byte("format")  // formatNumber
	metaLease   = []byte("lease")   // ledger ids below it may have been used
	metaUptime  = []byte("uptime")  // seconds that brokers have run on this store
	metaRebirth = []byte("rebirth") // set while topics are given new birth ids
)

const (
	prefixVolume = 'v'

	// formatNumber is the layout that this version writes. It reads the first one too,
	// which knew no journal, and the second, where values were not bound to their topics,
	// and makes them its own.
	formatNumber = 3
	formatFirst  = 1

	// uptimeStep is how often the uptime is written at most, seconds.
	uptimeStep = 60
)

// volume is a read-only file that holds ledgers.
type volume struct {
	number  uint64
	ledgers int64  // that are still listed by some topic
	bytes   int64  // of entries in these
	name    string // of the file in the directory
}

// unknownLedgers is the count of a volume whose own is damaged: it stays.
const unknownLedgers = 1 << 40

func (v *volume) encode() []byte {
	b := binary.AppendVarint(binary.AppendVarint(nil, v.ledgers), v.bytes)
	return seal(appendText(b, v.name))
}

func decodeVolume(number uint64, value []byte) (volume, error) {
	b, err := unseal(value)
	if err != nil {
		return volume{}, fmt.Errorf("volume %d: %w", number, err)
	}
	d := decoder{b: b}
	v := volume{number: number, ledgers: d.varint(), bytes: d.varint(), name: string(d.text())}
	return v, d.err()
}

func putNumber(b *bbolt.Bucket, key []byte, n int64) error {
	return b.Put(key, seal(binary.AppendVarint(nil, n)))
}

// getNumber reads a number; one that is not there, or is damaged, is 0.
func getNumber(b *bbolt.Bucket, key []byte) int64 {
	n, err := decodeNumber(b.Get(key))
	if err != nil {
		return 0
	}
	return n
}

func decodeNumber(v []byte) (int64, error) {
	b, err := unseal(v)
	if err != nil {
		return 0, err
	}
	d := decoder{b: b}
	n := d.varint()
	return n, d.err()
}

// writeMeta brings the numbers that have moved into a transaction.
func (s *Store) writeMeta(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketMeta)
	if s.ids.end != s.ids.noted {
		if err := putNumber(b, metaLease, s.ids.end); err != nil {
			return err
		}
	}
	if up := s.uptime(); up >= s.uptimeNoted+uptimeStep {
		return putNumber(b, metaUptime, up)
	}
	return nil
}

// notedMeta remembers what a durable commit holds of them.
func (s *Store) notedMeta() {
	s.ids.noted = s.ids.end
	if up := s.uptime(); up >= s.uptimeNoted+uptimeStep {
		s.uptimeNoted = up
	}
}
