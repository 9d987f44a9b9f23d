package pulsar

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// seeks, readers and their questions for the last id. The clients' part is played as the
// official ones play it: there is more as long as the last id lies behind what was read
// last, or, with nothing read, behind the mark-delete position.

// reading makes a non-durable Exclusive consumer, as readers are.
func (c *client) reading(topic, sub string, consumer uint64, start *pulsarpb.MessageIdData) *client {
	c.t.Helper()
	m := subscribeCmd(topic, sub, exclusive, consumer, 1000+consumer)
	m.Durable, m.StartMessageId = proto.Bool(false), start
	c.say(m)
	return c.hear(fmt.Sprintf("SUCCESS {request_id:%d}", 1000+consumer))
}

// lastID asks for it.
func (c *client) lastID(consumer uint64) *pulsarpb.CommandGetLastMessageIdResponse {
	c.t.Helper()
	m := c.answered(lastIDCmd(consumer, 8)).GetGetLastMessageIdResponse()
	if m == nil || m.LastMessageId == nil || m.ConsumerMarkDeletePosition == nil {
		c.t.Fatalf("no last id: %v\n%s", m, c.story())
	}
	return m
}

// more says what a client makes of it that has read nothing yet.
func more(m *pulsarpb.CommandGetLastMessageIdResponse) bool {
	last, mark := position(m.LastMessageId), position(m.ConsumerMarkDeletePosition)
	return last.Entry >= 0 && mark.Less(last)
}

// seek sends it and takes the end of the consumer.
func (c *client) seek(m *pulsarpb.CommandSeek) *client {
	c.t.Helper()
	m.RequestId = num(7)
	c.say(m)
	return c.hear(fmt.Sprintf("CLOSE_CONSUMER {consumer_id:%d *", m.GetConsumerId()), "SUCCESS {request_id:7}")
}

func latestID() *pulsarpb.MessageIdData   { return id(1<<63-1, 1<<63-1) }
func earliestID() *pulsarpb.MessageIdData { return id(-1, -1) }

// SK-01: a reader on an empty topic says that there is a message, then blocks for ever.
func TestFieldSK01AnEmptyTopicHasNothing(t *testing.T) {
	r := serve(t)
	c := r.connect()
	for i, start := range []*pulsarpb.MessageIdData{earliestID(), latestID(), nil} {
		topic, consumer := fmt.Sprint("sk01-", i), uint64(i)
		c.reading(topic, "r", consumer, start)
		nothing := func(when string) {
			t.Helper()
			if m := c.lastID(consumer); position(m.LastMessageId).Entry != -1 || m.LastMessageId.GetBatchIndex() != -1 || more(m) {
				t.Errorf("start %v, %s: %v", start, when, m)
			}
		}
		nothing("new")
		c.seek(&pulsarpb.CommandSeek{ConsumerId: &consumer, MessagePublishTime: num(1)}).reading(topic, "r", consumer, start)
		nothing("after a seek by time")
		p := producerCmd(topic, consumer, 3)
		c.say(p)
		c.hear("PRODUCER_SUCCESS *")
		c.publish(consumer, 0, "first")
		c.hear("SEND_RECEIPT *")
		if m := c.lastID(consumer); !more(m) || position(m.LastMessageId).Entry != 0 {
			t.Errorf("start %v, with a message: %v", start, m)
		}
		c.say(flowCmd(consumer, 1))
		c.hear(fmt.Sprintf("MESSAGE {consumer_id:%d * *\"first\"", consumer))
	}
}

// SK-03: a reader at earliest, a seek into the middle, the next read hangs.
func TestFieldSK03AReaderGoesOnFromTheMiddleToTheEnd(t *testing.T) {
	for _, size := range []int{0, 5} {
		t.Run(fmt.Sprint("batches of ", size), func(t *testing.T) {
			r := serve(t)
			c := r.connect().producing("sk03")
			const n = 100
			for i := range uint64(n) {
				meta := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(i), PublishTime: num(1000 + 10*i)}
				if size > 0 {
					meta.NumMessagesInBatch = proto.Int32(int32(size))
				}
				data, err := wire.Build(meta, make([]byte, 40))
				if err != nil {
					t.Fatal(err)
				}
				c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(i)}, data)
				c.hear("SEND_RECEIPT *")
			}
			c.reading("sk03", "r", 2, earliestID())
			c.say(flowCmd(2, 1000))
			c.hearEntries(2, 0, 99)
			c.seek(&pulsarpb.CommandSeek{ConsumerId: num(2), MessagePublishTime: num(1000 + 10*50)}).reading("sk03", "r", 2, earliestID())
			m := c.lastID(2)
			if !more(m) || position(m.ConsumerMarkDeletePosition).Entry != 49 || int(m.LastMessageId.GetBatchIndex()) != size-1 {
				t.Errorf("after the seek: %v", m)
			}
			c.say(flowCmd(2, 1000))
			c.hearEntries(2, 50, 99)
			if last := position(c.lastID(2).LastMessageId); last.Entry != 99 {
				t.Errorf("the last is %v", last)
			}
			c.sync()
		})
	}
}

// SK-05: a reader at latest, inclusive, gives nothing though messages exist. The client
// asks for the last id and seeks it.
func TestFieldSK05TheLastMessageCanBeReadInclusively(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("sk05")
	for i := range uint64(10) {
		c.publish(1, i, fmt.Sprint("m", i))
		c.hear("SEND_RECEIPT *")
	}
	inclusive := func(consumer uint64, java bool) *pulsarpb.CommandMessage {
		t.Helper()
		c.reading("sk05", fmt.Sprint("r", consumer), consumer, latestID())
		last := c.lastID(consumer).LastMessageId
		to := id(int64(last.GetLedgerId()), int64(last.GetEntryId()))
		if n := last.GetBatchIndex(); n >= 0 && java {
			to.AckSet = []int64{-1 << n & 0x3FF}
		} else if n >= 0 {
			to.BatchIndex = &n
		}
		c.seek(&pulsarpb.CommandSeek{ConsumerId: &consumer, MessageId: to})
		c.say(flowCmd(consumer, 100)) // Go's, for the id that is gone
		c.reading("sk05", fmt.Sprint("r", consumer), consumer, latestID())
		if m := c.lastID(consumer); !more(m) {
			t.Errorf("nothing to read: %v", m)
		}
		c.say(flowCmd(consumer, 100))
		m := c.receive().GetMessage()
		c.sync()
		return m
	}
	if m := inclusive(1, false); m.GetMessageId().GetEntryId() != 9 {
		t.Errorf("a single one: %v", m)
	}
	c.publishBatch(1, 10, 10)
	for got := 0; got < 2; got++ { // the first reader gets it too
		c.receive()
	}
	if m := inclusive(2, false); m.GetMessageId().GetEntryId() != 10 || m.AckSet != nil {
		t.Errorf("a batch, as Go asks: %v", m)
	}
	if m := inclusive(3, true); m.GetMessageId().GetEntryId() != 10 || len(m.AckSet) != 1 || m.AckSet[0] != lastOfTen {
		t.Errorf("a batch, as Java asks: %v", m)
	}
}

// SK-07: "message available" is true after a seek to latest.
func TestFieldSK07NothingIsAvailableBehindLatest(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("sk07")
	for i := range uint64(5) {
		c.publish(1, i, "m")
		c.hear("SEND_RECEIPT *")
	}
	c.reading("sk07", "r", 2, earliestID())
	if m := c.lastID(2); !more(m) {
		t.Errorf("from earliest: %v", m)
	}
	c.seek(&pulsarpb.CommandSeek{ConsumerId: num(2), MessageId: latestID()}).reading("sk07", "r", 2, nil)
	if m := c.lastID(2); more(m) || position(m.ConsumerMarkDeletePosition) != position(m.LastMessageId) {
		t.Errorf("after the seek: %v", m)
	}
	c.say(flowCmd(2, 10))
	c.sync()
	c.publish(1, 5, "next")
	c.hearInAnyOrder("SEND_RECEIPT *", `MESSAGE {consumer_id:2 *"next"`)
}

// SK-09: a partitioned reader lists two last ids but the second message never comes.
func TestFieldSK09EachPartitionAnswersForItself(t *testing.T) {
	r := serve(t)
	if err := r.broker.CreatePartitions(t.Context(), topicName(t, "sk09"), 3); err != nil {
		t.Fatal(err)
	}
	c := r.connect()
	for i := range uint64(2) { // the third stays empty
		c.say(producerCmd(fmt.Sprint("sk09-partition-", i), i, i))
		c.hear("PRODUCER_SUCCESS *")
		c.publish(i, 0, fmt.Sprint("of ", i))
		c.hear("SEND_RECEIPT *")
	}
	for i := range uint64(3) {
		topic := fmt.Sprint("sk09-partition-", i)
		c.reading(topic, "multiTopicsReader-x", i, earliestID()).consuming(topic, "s", shared, 10+i)
		for _, consumer := range []uint64{i, 10 + i} {
			m := c.lastID(consumer)
			if m.LastMessageId.GetPartition() != int32(i) || more(m) != (i < 2) {
				t.Errorf("partition %d: %v", i, m)
			}
			c.say(flowCmd(consumer, 10))
			if i < 2 {
				c.hear(fmt.Sprintf("MESSAGE {consumer_id:%d message_id {*partition:%d}} *\"of %d\"", consumer, i, i))
			}
		}
	}
	c.sync()
}
