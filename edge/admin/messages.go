package admin

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"wayside/edge"
	"wayside/wire"
)

// messageRoutes: single entries, to be looked at (protocol 5.2, captures
// curl-subscriptions): the n-th unacknowledged one of a subscription from 1, one by its
// id, and the n-th from either end of the topic. The body is the payload, uncompressed; a
// batch comes whole in its inner framing, and clients unpack it; what is encrypted stays
// so. All else is in headers. Nothing is acknowledged, and what does not exist is 404.
func (s *Server) messageRoutes(domain string) {
	s.handleSubscription(domain, "GET", "/subscription/{subscription}/position/{n}", s.peek)
	s.handleTopic(domain, "GET", "/ledger/{ledger}/entry/{entry}", s.messageByID)
	s.handleTopic(domain, "GET", "/examinemessage", s.examine)
}

func (s *Server) peek(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed, "Peek messages on a partitioned topic is not allowed")
	}
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 32)
	if err != nil {
		return nil, edge.ErrMessageNotFound
	}
	return s.entry(r, name, func(t *edge.Topic) (edge.Entry, error) {
		return t.Peek(r.Context(), subscription, int(n))
	})
}

func (s *Server) messageByID(r *http.Request, name edge.TopicName) (any, error) {
	ledger, err1 := strconv.ParseInt(r.PathValue("ledger"), 10, 64)
	entry, err2 := strconv.ParseInt(r.PathValue("entry"), 10, 64)
	if err1 != nil || err2 != nil {
		return nil, edge.ErrMessageNotFound
	}
	return s.entry(r, name, func(t *edge.Topic) (edge.Entry, error) {
		e, err := t.Entry(r.Context(), edge.Position{Ledger: ledger, Entry: entry})
		return e, reworded(err, edge.ErrMessageNotFound, "Message id not found")
	})
}

// examine counts from the end unless initialPosition=earliest; what is beyond the other
// end is the entry there.
func (s *Server) examine(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed,
			"Examine messages on a partitioned topic is not allowed, please try examine message on specific topic partition")
	}
	query := r.URL.Query()
	n := int64(1)
	if text := query.Get("messagePosition"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, edge.ErrMessageNotFound
		}
	}
	return s.entry(r, name, func(t *edge.Topic) (edge.Entry, error) {
		p, ok := nthOf(t.Spans(), max(n, 1), query.Get("initialPosition") == "earliest")
		if !ok {
			return edge.Entry{}, refuse(http.StatusPreconditionFailed, "Could not examine messages due to the total message is zero")
		}
		return t.Entry(r.Context(), p)
	})
}

// nthOf is the n-th entry from an end, n ≥ 1, or the last one in that direction; false
// if there is none.
func nthOf(spans edge.Spans, n int64, fromStart bool) (edge.Position, bool) {
	total, _, _ := spans.Totals()
	if total == 0 {
		return edge.Position{}, false
	}
	before := min(n, total) - 1
	if !fromStart {
		before = total - min(n, total)
	}
	for i := range spans.Len() {
		span := spans.At(i)
		if before < span.Entries() {
			return edge.Position{Ledger: span.Ledger, Entry: span.First + before}, true
		}
		before -= span.Entries()
	}
	return edge.Position{}, false
}

// message is an entry as it is answered.
type message struct {
	header http.Header
	body   []byte
}

func (s *Server) entry(r *http.Request, name edge.TopicName, find func(*edge.Topic) (edge.Entry, error)) (any, error) {
	if !name.IsPersistent() {
		return nil, edge.ErrTopicNotFound
	}
	var m message
	err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		e, err := find(t)
		if err == nil {
			m, err = opened(&e, s.broker.Options().MaxMessageSize)
		}
		if err == nil {
			m.transaction(t, &e)
		}
		return err
	})
	return m, err
}

// transaction sets what pulsar-admin goes by to leave out what consumers are not given.
func (m *message) transaction(t *edge.Topic, e *edge.Entry) {
	aborted := t.Aborted(e.Position, &e.Facts)
	m.header.Set("X-Pulsar-txn-aborted", strconv.FormatBool(aborted))
	m.header.Set("X-Pulsar-txn-uncommitted", strconv.FormatBool(!aborted && e.Facts.InTxn && t.Readable().Less(e.Position)))
	if e.Facts.Marker != 0 {
		m.header.Set("X-Pulsar-marker-type", strconv.Itoa(int(e.Facts.Marker)))
	}
}

// opened reads an entry's header and decompresses its payload to at most limit bytes.
func opened(e *edge.Entry, limit int) (message, error) {
	m, err := wire.ParseMessage(e.Data)
	if err != nil {
		return message{}, unreadable(err)
	}
	out := message{header: headersOf(e, &m), body: m.Payload}
	if m.EncryptionKeys > 0 {
		return out, nil
	}
	var u wire.Unpacker
	defer u.Close()
	if m.Batch {
		err := u.Open(&m, limit, func(first wire.Single) error {
			if first.Index == 0 {
				out.property(first.Properties)
			}
			return nil
		})
		if err != nil {
			return message{}, unreadable(err)
		}
	}
	whole := m
	whole.Batch = false // so that a batch is not taken apart
	err = u.Open(&whole, limit, func(all wire.Single) error {
		out.body = all.Payload
		if !m.Batch {
			out.property(all.Properties)
		}
		return nil
	})
	if err != nil {
		return message{}, unreadable(err)
	}
	return out, nil
}

func unreadable(err error) error {
	return &refusal{status: http.StatusUnprocessableEntity, reason: "Message cannot be opened", cause: err}
}

// headersOf says what Pulsar says of an entry, but for its properties.
func headersOf(e *edge.Entry, m *wire.Message) http.Header {
	h := http.Header{}
	set := func(name, value string) { h.Set("X-Pulsar-"+name, printable(value)) }
	set("Message-ID", e.Position.String())
	set("publish-time", isoMillis(m.PublishTime))
	set("producer-name", string(m.ProducerName))
	set("sequence-id", strconv.FormatInt(m.SequenceID, 10))
	set("Is-Encrypted", strconv.FormatBool(m.EncryptionKeys > 0))
	if m.EventTime > 0 {
		set("event-time", isoMillis(m.EventTime))
	}
	if m.HasPartitionKey {
		set("partition-key", string(m.PartitionKey))
	}
	if m.UncompressedSize > 0 {
		set("uncompressed-size", strconv.FormatUint(uint64(m.UncompressedSize), 10))
	}
	if m.Batch {
		set("num-batch-message", strconv.Itoa(int(m.NumMessages)))
		set("batch-size", strconv.Itoa(len(e.Data)-len(m.Metadata)))
	}
	return h
}

// property sets the properties' header, one JSON object in ASCII.
func (m *message) property(properties []wire.Property) {
	if len(properties) == 0 {
		return
	}
	object := make(map[string]string, len(properties))
	for _, p := range properties {
		object[string(p.Key)] = string(p.Value)
	}
	text, err := encode(object)
	if err != nil { // a map of strings
		return
	}
	m.header.Set("X-Pulsar-PROPERTY", ascii(string(text)))
}

// ascii writes what is beyond ASCII as JSON's escapes, since headers have no encoding.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > math.MaxUint16:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// printable takes control characters out of a header's value.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
