package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"wayside/wire/pulsarpb"
)

// side is one of the brokers that are compared.
type side struct {
	name  string
	addr  string // HOST:PORT of the binary protocol
	admin string // HOST:PORT of the admin interface
}

// world is one side while a program is played on it.
type world struct {
	side   *side
	prefix string // of all topics, told apart from those of other programs
	spaces string // the namespace, tenant/name
	start  int64  // milliseconds since 1970; the first entry is published one later; the same in both worlds
	clock  int64  // publish time of the last entry
	alike  bool   // the other world is on the same broker, under names that differ

	clients map[string]*client // by name; used by the world's own goroutine only

	mu      sync.Mutex // guards what follows
	events  []*event   // of the present step
	last    time.Time  // when the last one came
	record  []string   // the whole conversation
	ids     map[id]string
	labels  map[string]id
	entries map[string][]string // labels of what was sent, by its bytes
	holders map[string]string   // "client consumer" that was given a label last
	counts  map[string]uint32   // redelivery count that it came with
	names   map[string]bool     // of producers, as given by the program
	txns    map[string]id       // transactions by the program's names for them, as most and least bits
}

// id is a position of a topic.
type id struct{ ledger, entry int64 }

// event is something that a broker said, or that happened.
type event struct {
	client *client
	cmd    *pulsarpb.BaseCommand // nil for what is told by text
	entry  []byte
	stream string
	text   string
	label  string // of the SEND that is answered
}

func newWorld(s *side, prefix, spaces string, clock int64) *world {
	return &world{
		side: s, prefix: prefix, spaces: spaces, start: clock, clock: clock, clients: map[string]*client{}, last: time.Now(),
		ids: map[id]string{}, labels: map[string]id{}, entries: map[string][]string{}, holders: map[string]string{}, counts: map[string]uint32{},
		names: map[string]bool{}, txns: map[string]id{},
	}
}

// close ends all connections.
func (w *world) close() {
	for _, c := range w.clients {
		c.close()
	}
}

func (w *world) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record = append(w.record, line)
}

func (w *world) closed(c *client) {
	w.mu.Lock()
	clear(c.owed)
	clear(c.sent)
	c.probed, c.asked = 0, 0
	gone := c.gone
	w.mu.Unlock()
	if !gone {
		w.arrived(&event{client: c, stream: "connection", text: "closed"})
	}
}

// arrived takes an event, settles what it answers and learns the names that it tells.
func (w *world) arrived(e *event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	w.events = append(w.events, e)
	if e.cmd == nil {
		return
	}
	e.stream = w.streamLocked(e)
	switch e.cmd.GetType() {
	case pulsarpb.BaseCommand_SEND_RECEIPT:
		r := e.cmd.GetSendReceipt()
		w.answeredLocked(e, r.GetProducerId(), int64(r.GetSequenceId()))
		at := id{int64(r.GetMessageId().GetLedgerId()), int64(r.GetMessageId().GetEntryId())}
		if e.label != "" && at.ledger >= 0 {
			w.labelledLocked(at, e.label)
		}
	case pulsarpb.BaseCommand_SEND_ERROR:
		r := e.cmd.GetSendError()
		w.answeredLocked(e, r.GetProducerId(), int64(r.GetSequenceId()))
	case pulsarpb.BaseCommand_MESSAGE:
		m := e.cmd.GetMessage()
		label := w.labelLocked(e)
		w.holders[label] = e.client.name + " " + strconv.FormatUint(m.GetConsumerId(), 10)
		w.counts[label] = m.GetRedeliveryCount()
	case pulsarpb.BaseCommand_CLOSE_PRODUCER:
		delete(e.client.sent, e.cmd.GetCloseProducer().GetProducerId())
	case pulsarpb.BaseCommand_NEW_TXN_RESPONSE:
		w.begunLocked(e)
	}
}

// labelledLocked notes where an entry is. All of non-persistent topics are at one position, which names none.
func (w *world) labelledLocked(at id, label string) {
	w.labels[label] = at
	if at != (id{}) {
		w.ids[at] = label
	}
}

// answeredLocked finds the SEND that is answered: the first with that sequence.
func (w *world) answeredLocked(e *event, producer uint64, sequence int64) {
	all := e.client.sent[producer]
	for i, s := range all {
		if s.sequence == sequence || s.highest == sequence {
			e.label = s.label
			e.client.sent[producer] = slices.Delete(all, i, i+1)
			return
		}
	}
}

// streamLocked says within which sequence the order of an event counts.
func (w *world) streamLocked(e *event) string {
	c := e.cmd
	switch c.GetType() {
	case pulsarpb.BaseCommand_CONNECTED:
		return "handshake"
	case pulsarpb.BaseCommand_SEND_RECEIPT:
		return producerStream(c.GetSendReceipt().GetProducerId())
	case pulsarpb.BaseCommand_SEND_ERROR:
		return producerStream(c.GetSendError().GetProducerId())
	case pulsarpb.BaseCommand_CLOSE_PRODUCER:
		return producerStream(c.GetCloseProducer().GetProducerId())
	case pulsarpb.BaseCommand_CLOSE_CONSUMER:
		return consumerStream(c.GetCloseConsumer().GetConsumerId())
	case pulsarpb.BaseCommand_MESSAGE:
		return consumerStream(c.GetMessage().GetConsumerId())
	case pulsarpb.BaseCommand_ACTIVE_CONSUMER_CHANGE:
		return consumerStream(c.GetActiveConsumerChange().GetConsumerId())
	case pulsarpb.BaseCommand_REACHED_END_OF_TOPIC:
		return consumerStream(c.GetReachedEndOfTopic().GetConsumerId())
	case pulsarpb.BaseCommand_WATCH_TOPIC_UPDATE:
		return watcherStream(c.GetWatchTopicUpdate().GetWatcherId())
	}
	request, ok := requestOf(c)
	if !ok {
		return "connection"
	}
	delete(e.client.owed, request)
	if c.GetType() == pulsarpb.BaseCommand_ERROR { // changes nothing, so it may come when it likes
		return fmt.Sprintf("request %d", request)
	}
	if owner := e.client.owners[request]; owner != "" {
		return owner
	}
	return fmt.Sprintf("request %d", request)
}

// requestOf finds the id of the request that a command answers.
func requestOf(c *pulsarpb.BaseCommand) (uint64, bool) {
	sub := subCommand(c)
	field := sub.Descriptor().Fields().ByName("request_id")
	if field == nil || !sub.Has(field) {
		return 0, false
	}
	return sub.Get(field).Uint(), true
}

// labelLocked names the entry of a MESSAGE: by its position, or, when its receipt has not come yet, by its bytes.
func (w *world) labelLocked(e *event) string {
	m := e.cmd.GetMessage().GetMessageId()
	at := id{int64(m.GetLedgerId()), int64(m.GetEntryId())}
	same := w.entries[string(e.entry)]
	if label, ok := w.ids[at]; ok {
		if !slices.Contains(same, label) {
			return label + " altered" + compactedTo(e.entry)
		}
		return label
	}
	for _, label := range same {
		if known, ok := w.labels[label]; !ok || known == at {
			w.labelledLocked(at, label)
			return label
		}
	}
	if len(same) > 0 {
		return same[0] + " at another position"
	}
	return "unknown entry"
}

// owes counts the answers that are still to come.
func (w *world) owes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.clients {
		n += len(e.owed) + e.probed + e.asked
		for _, s := range e.sent {
			n += len(s)
		}
	}
	return n
}

// forgive forgets what has not been answered, for the steps to come.
func (w *world) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		clear(c.owed)
		clear(c.sent)
		c.probed, c.asked = 0, 0
	}
}

// probe has every connection show that the broker has read what was said.
func (w *world) probe() {
	for _, c := range w.clients {
		c.probe()
	}
}

// quiet is how long nothing has come.
func (w *world) quiet() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// begin starts a step.
func (w *world) begin(title string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.last = nil, time.Now()
	w.record = append(w.record, "-- "+title)
}

// heard is what was said since the step began: by connection and stream, in order.
func (w *world) heard() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string][]string{}
	for _, e := range w.events {
		key := e.stream
		if e.client != nil {
			key = e.client.name + " " + e.stream
		}
		all[key] = append(all[key], w.renderLocked(e))
	}
	return all
}

// transcript is the recorded conversation.
func (w *world) transcript() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.record, "\n")
}

// position matches $LABEL with, perhaps, entries added or taken off.
func position() *regexp.Regexp { return regexp.MustCompile(`\$([A-Za-z]\w*)([+-]\d+)?`) }

// expand puts this world's names and positions into the text of a step. A label that has no position, since its SEND
// was refused, gets one that cannot be.
func (w *world) expand(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "{p}", w.prefix), "{ns}", w.spaces)
	text = w.expandTimes(w.expandTxns(text))
	w.mu.Lock()
	defer w.mu.Unlock()
	return position().ReplaceAllStringFunc(text, func(s string) string {
		m := position().FindStringSubmatch(s)
		at, ok := w.labels[m[1]]
		if !ok {
			at = id{1 << 40, 0}
		}
		n, _ := strconv.ParseInt(m[2], 10, 64)
		return fmt.Sprintf("ledgerId:%d entryId:%d", at.ledger, uint64(at.entry+n))
	})
}
