package uplink

import (
	"fmt"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"wayside/edge"
	"wayside/wire"
)

// message is what goes to the cloud, or to the parking topic. Its bytes are shared
// with the entry, or were made when the entry was decompressed.
type message struct {
	payload    []byte
	properties []wire.Property
	key        []byte
	ordering   []byte
	event      int64 // ms since 1970
	deliverAt  int64 // ms since 1970, 0 for at once
	sequence   int64 // of its producer here
	part       int32 // place in its batch, −1 for none
	schema     pulsar.Schema
}

// held is what is still needed of an entry whose messages are in the line.
type held struct {
	position edge.Position
	publish  int64       // ms since 1970
	producer string      // where its messages are to tell it
	entry    *edge.Entry // of one that is parked whole
	grant    edge.Grant  // of the entry
	more     edge.Grant  // of what it was decompressed to
	bytes    int64       // that it counts for in the window
	left     int         // items in the line
}

func (f *forwarder) hold(d *edge.Delivery) *held {
	h := &held{
		position: d.Entry.Position, publish: d.Entry.Facts.Publish, grant: d.Grant, bytes: int64(len(d.Entry.Data)),
	}
	if f.route.Provenance == ProvenanceFull {
		h.producer = d.Entry.Facts.Producer
	}
	return h
}

// release gives the memory back.
func (h *held) release() {
	h.grant.Release()
	h.more.Release()
}

// perMessage is counted for each message beside its bytes: headers on the wire, and
// the line's own memory.
const perMessage = 64

// size is what a message takes.
func (m *message) size() int {
	n := perMessage + len(m.payload) + len(m.key) + len(m.ordering)
	for _, p := range m.properties {
		n += len(p.Key) + len(p.Value) + 6
	}
	return n
}

// split makes items of an entry that is parsed. One that cannot be opened becomes a
// single item that is parked whole.
func (f *forwarder) split(h *held, d *edge.Delivery, m *wire.Message) []item {
	e := &d.Entry
	if e.Facts.Encrypted {
		return h.whole(e, "encrypted end to end")
	}
	if e.Facts.Chunk.IsChunk() {
		return h.whole(e, "a part of a message in chunks")
	}
	items := f.opened[:0]
	err := f.up.unpacker.Open(m, f.up.o.MaxMessageSize, func(s wire.Single) error {
		items = append(items, f.itemOf(h, e, &s))
		return nil
	})
	f.opened = items
	switch {
	case err != nil:
		return h.whole(e, fmt.Sprintf("cannot be opened: %v", err))
	case len(items) != int(e.Facts.Messages):
		return h.whole(e, fmt.Sprintf("holds %d messages, its header says %d", len(items), e.Facts.Messages))
	}
	return f.stillWanted(d.Rest, items)
}

// whole makes one item of an entry, of which everything is kept.
func (h *held) whole(e *edge.Entry, reason string) []item {
	kept := *e
	h.entry = &kept
	return []item{{first: e.Index, last: e.LastIndex(), size: len(e.Data), park: reason, whole: true, held: h}}
}

// stillWanted leaves out what was settled before the last restart, and what was
// acknowledged by others.
func (f *forwarder) stillWanted(rest []uint64, items []item) []item {
	kept := items[:0]
	for i := range items {
		open := rest == nil || i/64 < len(rest) && rest[i/64]&(1<<(i%64)) != 0
		if open && items[i].first >= f.line.plan.next {
			kept = append(kept, items[i])
		}
	}
	return kept
}

func (f *forwarder) itemOf(h *held, e *edge.Entry, s *wire.Single) item {
	m := message{
		payload: s.Payload, properties: append([]wire.Property(nil), s.Properties...),
		event: s.EventTime, deliverAt: e.Facts.DeliverAt, sequence: s.SequenceID, part: -1,
	}
	if m.event == 0 {
		m.event = e.Facts.Publish
	}
	if s.HasKey && !s.NullKey {
		m.key = s.Key
	}
	if s.HasOrderingKey {
		m.ordering = s.OrderingKey
	}
	if e.Facts.Batch {
		m.part = int32(s.Index)
	}
	it := item{first: e.Index + uint64(s.Index), held: h, alone: m.deliverAt != 0}
	it.last = it.first
	if len(e.Facts.Schema) > 0 {
		m.schema, it.group, it.family = f.schemas.find(e.Facts.Schema)
		it.schema = m.schema != nil
	}
	if !f.route.MixOrderingKeys {
		it.group += "\x00" + string(m.ordering)
	}
	it.size, it.msg = m.size(), m
	return it
}

// outgoing is the message as the official client takes it. The sequence id is the
// topic-wide index, the same after any restart.
func (f *forwarder) outgoing(it *item) *pulsar.ProducerMessage {
	m := &it.msg
	sequence := int64(it.first)
	out := &pulsar.ProducerMessage{
		Payload: m.payload, Key: string(m.key), OrderingKey: string(m.ordering),
		Properties: f.properties(it), EventTime: time.UnixMilli(m.event),
		SequenceID: &sequence, Schema: m.schema,
	}
	if out.Payload == nil {
		out.Payload = []byte{}
	}
	return out
}

// properties are the producer's own and those that tell where the message is from.
func (f *forwarder) properties(it *item) map[string]string {
	m := &it.msg
	if len(m.properties) == 0 && f.route.Provenance == ProvenanceNone {
		return nil
	}
	all := make(map[string]string, len(m.properties)+7)
	for _, p := range m.properties {
		all[string(p.Key)] = string(p.Value)
	}
	if f.route.Provenance == ProvenanceNone {
		return all
	}
	all["wayside"] = f.topic.BirthID() + ":" + strconv.FormatUint(it.first, 10)
	if f.route.Provenance == ProvenanceFull {
		h := it.held
		all["wayside.edge"] = f.up.o.EdgeID
		all["wayside.topic"] = f.name.String()
		all["wayside.entry"] = h.position.String()
		all["wayside.published"] = strconv.FormatInt(h.publish, 10)
		all["wayside.producer"] = h.producer
		all["wayside.sequence"] = strconv.FormatInt(m.sequence, 10)
		if m.part >= 0 {
			all["wayside.entry"] += ":" + strconv.Itoa(int(m.part))
		}
	}
	return all
}

// unacked is what the core took permits for.
func unacked(d *edge.Delivery) int {
	if d.Rest == nil {
		return int(d.Entry.Facts.Messages)
	}
	n := 0
	for i := range int(d.Entry.Facts.Messages) {
		if i/64 < len(d.Rest) && d.Rest[i/64]&(1<<(i%64)) != 0 {
			n++
		}
	}
	return n
}
