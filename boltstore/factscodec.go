package boltstore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"wayside/edge"
)

// Bits of the first field of stored facts.
const (
	factBatch = 1 << iota
	factKeyBinary
	factTombstone
	factEncrypted
	factInTxn
)

// Tags of the fields that most entries lack. A new field gets a new tag; readers keep
// what they do not know.
const (
	tagKey = iota + 1
	tagChunk
	tagMarker
	tagTxn
	tagEvent
	tagDeliverAt
	tagSchema
	tagOrigin
)

// maxFacts bounds what is stored of an entry beside its bytes: the longest key with
// room for the rest.
const maxFacts = 256 << 10

// appendFacts writes the fixed fields, the tagged ones that are set, and the tail.
func appendFacts(b []byte, f *edge.Facts) []byte {
	b = binary.AppendUvarint(b, factFlags(f))
	b = appendText(b, f.Producer)
	b = binary.AppendVarint(b, f.Sequence)
	b = binary.AppendVarint(b, f.Highest-f.Sequence)
	b = binary.AppendUvarint(b, uint64(max(f.Messages, 1)))
	b = binary.AppendUvarint(b, uint64(f.Slot))
	b = binary.AppendVarint(b, f.Publish)
	b = binary.AppendVarint(b, f.Receive-f.Publish)
	b = binary.AppendVarint(b, f.ReceiveMono)
	b = binary.LittleEndian.AppendUint64(b, f.Boot)
	b = appendTagged(b, f)
	return append(b, f.Tail...)
}

func factFlags(f *edge.Facts) uint64 {
	return bit(f.Batch, factBatch) | bit(f.KeyBinary, factKeyBinary) | bit(f.Tombstone, factTombstone) |
		bit(f.Encrypted, factEncrypted) | bit(f.InTxn, factInTxn)
}

func bit(set bool, mask uint64) uint64 {
	if set {
		return mask
	}
	return 0
}

func appendTagged(b []byte, f *edge.Facts) []byte {
	var field [3*binary.MaxVarintLen64 + 64]byte
	if f.Key != nil {
		b = appendTag(b, tagKey, f.Key)
	}
	if f.Chunk != (edge.Chunk{}) {
		v := binary.AppendVarint(field[:0], int64(f.Chunk.ID))
		v = binary.AppendVarint(v, int64(f.Chunk.Of))
		b = appendTag(b, tagChunk, append(v, f.Chunk.UUID...))
	}
	if f.Marker != 0 {
		b = appendTag(b, tagMarker, binary.AppendVarint(field[:0], int64(f.Marker)))
	}
	if f.InTxn || f.Txn != (edge.TxnID{}) {
		v := binary.LittleEndian.AppendUint64(field[:0], f.Txn.Most)
		b = appendTag(b, tagTxn, binary.LittleEndian.AppendUint64(v, f.Txn.Least))
	}
	if f.Event != 0 {
		b = appendTag(b, tagEvent, binary.AppendVarint(field[:0], f.Event))
	}
	if f.DeliverAt != 0 {
		b = appendTag(b, tagDeliverAt, binary.AppendVarint(field[:0], f.DeliverAt))
	}
	if f.Schema != nil {
		b = appendTag(b, tagSchema, f.Schema)
	}
	if f.Origin != nil {
		v := appendPosition(field[:0], f.Origin.Position)
		b = appendTag(b, tagOrigin, binary.AppendUvarint(v, f.Origin.Index))
	}
	return b
}

func appendTag(b []byte, tag uint64, value []byte) []byte {
	return appendText(binary.AppendUvarint(b, tag), value)
}

// decodeFacts reads what appendFacts wrote. The facts share nothing with b. names
// saves a copy for each run of entries from one producer.
func decodeFacts(b []byte, names *interned) (edge.Facts, error) {
	d := decoder{b: b}
	flags := d.uvarint()
	f := edge.Facts{
		Batch: flags&factBatch != 0, KeyBinary: flags&factKeyBinary != 0, Tombstone: flags&factTombstone != 0,
		Encrypted: flags&factEncrypted != 0, InTxn: flags&factInTxn != 0,
	}
	f.Producer = names.text(d.text())
	f.Sequence = d.varint()
	f.Highest = f.Sequence + d.varint()
	f.Messages = int32(d.uvarint())
	f.Slot = uint16(d.uvarint())
	f.Publish = d.varint()
	f.Receive = f.Publish + d.varint()
	f.ReceiveMono = d.varint()
	f.Boot = d.uint64()
	for len(d.b) > 0 {
		d.tagged(&f)
	}
	if f.Messages < 1 {
		d.fail()
	}
	if err := d.err(); err != nil {
		return edge.Facts{}, fmt.Errorf("facts: %w", err)
	}
	return f, nil
}

// tagged reads one tagged field; one that is unknown goes into the tail as it is.
func (d *decoder) tagged(f *edge.Facts) {
	whole := d.b
	tag := d.uvarint()
	v := decoder{b: d.text()}
	if d.bad {
		return
	}
	switch tag {
	case tagKey:
		f.Key = cloneSet(v.b)
	case tagChunk:
		f.Chunk.ID, f.Chunk.Of = int32(v.varint()), int32(v.varint())
		f.Chunk.UUID = string(v.b)
	case tagMarker:
		f.Marker = int32(v.varint())
	case tagTxn:
		f.Txn.Most, f.Txn.Least = v.uint64(), v.uint64()
	case tagEvent:
		f.Event = v.varint()
	case tagDeliverAt:
		f.DeliverAt = v.varint()
	case tagSchema:
		f.Schema = cloneSet(v.b)
	case tagOrigin:
		f.Origin = &edge.Origin{Position: v.position(), Index: v.uvarint()}
	default:
		f.Tail = append(f.Tail, whole[:len(whole)-len(d.b)]...)
	}
	if v.bad {
		d.fail()
	}
}

// cloneSet copies bytes that were there, if only as none: nil means absent.
func cloneSet(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// validTail reports whether a tail is made of whole tagged fields.
func validTail(tail []byte) bool {
	d := decoder{b: tail}
	for len(d.b) > 0 {
		d.uvarint()
		d.text()
	}
	return !d.bad
}

// interned remembers the last few texts, so that a run of equal ones is one string.
type interned struct {
	recent [4]string
	next   int
}

func (t *interned) text(b []byte) string {
	if t == nil {
		return string(b)
	}
	if i := slices.IndexFunc(t.recent[:], func(s string) bool { return s == string(b) }); i >= 0 {
		return t.recent[i]
	}
	s := string(b)
	t.recent[t.next%len(t.recent)] = s
	t.next++
	return s
}
