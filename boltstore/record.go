package boltstore

import (
	"encoding/binary"
	"fmt"

	"wayside/edge"
)

// record is the durable summary of a topic, written with each commit that touches
// it and kept in memory for every topic.
type record struct {
	birth uint64
	open  place         // the open ledger; it and the sums in it outlive all entries
	first sums          // before the first entry that is stored
	floor edge.Position // last position that was trimmed; the zero value if none
	filed edge.Position // entries before it lie in the files, the others in the journal

	closed     int           // ledgers beside the open one
	tail       edge.Position // last entry of these
	cursors    int
	sequences  int
	slowest    edge.Position // least mark-delete, meaningless without cursors
	live       int64
	lastAppend int64 // ms since 1970
}

// sums count what was stored before a point in the life of a birth id.
type sums struct{ entries, messages, bytes int64 }

// place is a ledger with what the store alone knows of it.
type place struct {
	span edge.Span
	where
}

type where struct {
	file   uint64 // number of the file that holds its entries
	newest int64  // latest publish time in it
}

// Forms of a record. The first has all entries in the files.
const (
	recordFiled   = 1
	recordVersion = 2
)

// behind is the sums behind a ledger.
func (p *place) behind() sums {
	return sums{
		p.span.EntriesBefore + p.span.Entries(),
		p.span.MessagesBefore + p.span.Messages,
		p.span.BytesBefore + p.span.Bytes,
	}
}

// following is the ledger that comes behind a closed one.
func (p *place) following(id, created int64, file uint64) place {
	b := p.behind()
	return place{
		span: edge.Span{
			Ledger: id, Last: -1, Created: created,
			EntriesBefore: b.entries, MessagesBefore: b.messages, BytesBefore: b.bytes,
		},
		where: where{file: file},
	}
}

// stored counts what is stored now.
func (r *record) stored() (entries, bytes int64) {
	end := r.open.behind()
	return end.entries - r.first.entries, end.bytes - r.first.bytes
}

func (r *record) encode(name edge.TopicName) []byte {
	b := appendName(append(make([]byte, 0, 192), recordVersion), name)
	b = binary.LittleEndian.AppendUint64(b, r.birth)
	b = appendPlace(b, &r.open)
	for _, v := range []int64{
		r.first.entries, r.first.messages, r.first.bytes, r.floor.Ledger, r.floor.Entry,
		int64(r.closed), r.tail.Ledger, r.tail.Entry, int64(r.cursors), int64(r.sequences), r.slowest.Ledger, r.slowest.Entry, r.live, r.lastAppend, r.filed.Ledger, r.filed.Entry,
	} {
		b = binary.AppendVarint(b, v)
	}
	return seal(b)
}

func decodeRecord(v []byte) (edge.TopicName, record, error) {
	b, err := unseal(v)
	if err != nil || len(b) == 0 || b[0] != recordVersion && b[0] != recordFiled {
		return edge.TopicName{}, record{}, fmt.Errorf("topic record: %w", errDamaged)
	}
	d := decoder{b: b[1:]}
	version := b[0]
	name := d.name()
	r := record{birth: d.uint64(), open: d.place()}
	r.first = sums{d.varint(), d.varint(), d.varint()}
	r.floor = edge.Position{Ledger: d.varint(), Entry: d.varint()}
	r.closed, r.tail = int(d.varint()), edge.Position{Ledger: d.varint(), Entry: d.varint()}
	r.cursors, r.sequences = int(d.varint()), int(d.varint())
	r.slowest = edge.Position{Ledger: d.varint(), Entry: d.varint()}
	r.live, r.lastAppend = d.varint(), d.varint()
	if version == recordFiled {
		r.filed = r.open.span.End().Next()
	} else {
		r.filed = edge.Position{Ledger: d.varint(), Entry: d.varint()}
	}
	if err := d.err(); err != nil {
		return edge.TopicName{}, record{}, fmt.Errorf("topic record: %w", err)
	}
	return name, r, nil
}

func appendName(b []byte, name edge.TopicName) []byte {
	for _, part := range []string{name.Domain, name.Tenant, name.Namespace, name.Local} {
		b = appendText(b, part)
	}
	return b
}

func (d *decoder) name() edge.TopicName {
	return edge.TopicName{
		Domain: string(d.text()), Tenant: string(d.text()), Namespace: string(d.text()), Local: string(d.text()),
	}
}

func appendPlace(b []byte, p *place) []byte {
	for _, v := range []int64{
		p.span.Ledger, p.span.First, p.span.Last, p.span.EntriesBefore, p.span.MessagesBefore, p.span.BytesBefore,
		p.span.Messages, p.span.Bytes, p.span.Created, p.span.LastTime, p.newest, int64(p.file),
	} {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func (d *decoder) place() place {
	p := place{span: edge.Span{
		Ledger: d.varint(), First: d.varint(), Last: d.varint(),
		EntriesBefore: d.varint(), MessagesBefore: d.varint(), BytesBefore: d.varint(),
		Messages: d.varint(), Bytes: d.varint(), Created: d.varint(), LastTime: d.varint(),
	}}
	p.where = where{newest: d.varint(), file: uint64(d.varint())}
	return p
}

// encode writes a closed ledger's place.
func (p *place) encode() []byte { return seal(appendPlace(make([]byte, 0, 64), p)) }

func decodePlace(v []byte) (place, error) {
	b, err := unseal(v)
	if err != nil {
		return place{}, fmt.Errorf("ledger: %w", err)
	}
	d := decoder{b: b}
	p := d.place()
	if err := d.err(); err != nil {
		return place{}, fmt.Errorf("ledger: %w", err)
	}
	return p, nil
}
