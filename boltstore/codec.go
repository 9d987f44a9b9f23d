package boltstore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// castagnoli is computed by the processor on the machines that matter.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxText bounds every string and byte field read from a value, before it is used.
const maxText = 1 << 20

func appendText[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// seal appends the checksum of a value; unseal takes it off again.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func unseal(b []byte) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, errDamaged
	}
	return b[:n], nil
}

// bind makes a sealed value one of a key in a topic's bucket, so that it is seen when it is
// met elsewhere: on a page of another topic, or under a key that is damaged. unbind takes
// that off again; of a value that belongs elsewhere it leaves one whose seal is broken.
// Older stores have not bound theirs. What belongs to no topic is bound to number 0.
func bind(topic uint64, key, sealed []byte) []byte {
	b := bytes.Clone(sealed)
	at := b[len(b)-4:]
	binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)^crc32.Checksum(append(number(topic), key...), castagnoli))
	return b
}

func putBound(b *bbolt.Bucket, topic uint64, key, sealed []byte) error {
	return b.Put(key, bind(topic, key, sealed))
}

func unbind(topic uint64, key, v []byte) []byte {
	if len(v) < 4 {
		return v
	}
	if b := bind(topic, key, v); binary.LittleEndian.Uint32(b[len(b)-4:]) == crc32.Checksum(b[:len(b)-4], castagnoli) {
		return b
	}
	return v
}

// decoder reads the fields of a value. After the first that does not fit it is bad
// and gives zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() {
	d.bad = true
	d.b = nil
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each, so that none
// is believed that could not follow.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// text reads a length and that many bytes, which stay shared with the value.
func (d *decoder) text() []byte {
	n := d.uvarint()
	if n > maxText || n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint64() uint64 {
	v := d.take(8)
	if d.bad {
		return 0
	}
	return binary.LittleEndian.Uint64(v)
}

// err is errDamaged if something did not fit or something is left.
func (d *decoder) err() error {
	if d.bad || len(d.b) > 0 {
		return errDamaged
	}
	return nil
}
