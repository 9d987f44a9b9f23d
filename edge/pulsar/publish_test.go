package pulsar

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func TestTrap21And22ReceiptsEchoTheSequences(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("receipts")
	c.publish(1, 7, "single")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:7 message_id {ledgerId:* entryId:0} highest_sequence_id:0}")
	c.publishBatch(1, 8, 3)
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:8 message_id {ledgerId:* entryId:1} highest_sequence_id:10}")
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(12), HighestSequenceId: num(11)}, entryOf(t, 12, 0, []byte("odd")))
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:12 message_id {ledgerId:* entryId:2} highest_sequence_id:11}")
	c.publish(1, 13, "")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:13 *")
}

func TestReceiptsComeInOrderBehindTheCommit(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("order")
	r.store.Hold()
	for i := range 50 {
		c.publish(1, uint64(i), "m")
	}
	c.sync()
	bad := entryOf(t, 50, 0, []byte("bad"))
	bad[len(bad)-1] ^= 1
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(50)}, bad)
	c.publish(1, 51, "m")
	c.say(closeProducerCmd(1, 9))
	c.sync()
	r.store.Release()
	for i := range 50 {
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d message_id {ledgerId:* entryId:%d} *", i, i))
	}
	c.hear(
		`SEND_ERROR {producer_id:1 sequence_id:50 error:ChecksumError message:"Checksum failed on the broker"}`,
		"SEND_RECEIPT {producer_id:1 sequence_id:51 message_id {ledgerId:* entryId:50} *",
		"SUCCESS {request_id:9}",
	)
}

func TestTrap53And54EntriesPassUnchanged(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("bytes").consuming("bytes", "s", exclusive, 1)
	c.say(flowCmd(1, 100))
	for i, size := range []int{0, 1, copied - 100, copied, 3 * copied, 1 << 20} {
		meta := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(uint64(i)), PublishTime: num(1), PartitionKey: proto.String("k")}
		meta.ProtoReflect().SetUnknown([]byte{0xc2, 0x0c, 3, 'n', 'e', 'w'}) // field 200
		data, err := wire.Build(meta, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			data = data[6:] // without a checksum
		}
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(uint64(i))}, data)
		for range 2 {
			got := c.receive()
			if got.GetMessage() != nil && string(got.Entry) != string(data) {
				t.Fatalf("entry of %d bytes came back changed, %d bytes", len(data), len(got.Entry))
			}
		}
	}
}

func TestRefusedMessages(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("refused").consuming("refused", "s", shared, 1)
	c.say(flowCmd(1, 100))
	batch := func(count int32, payload []byte, compressed bool, claimed uint32) []byte {
		m := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(3), PublishTime: num(1), NumMessagesInBatch: &count}
		if compressed {
			m.Compression, m.UncompressedSize = pulsarpb.CompressionType_ZLIB.Enum(), &claimed
		}
		data, err := wire.Build(m, payload)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const lie = `SEND_ERROR {producer_id:1 sequence_id:5 error:MetadataError message:"The batch cannot hold as many messages as it claims"}`
	for name, test := range map[string]struct {
		entry []byte
		set   func(*pulsarpb.CommandSend)
		want  string
	}{
		"most messages":           {batch(math.MaxInt32, make([]byte, 10), false, 0), nil, lie},
		"no messages":             {batch(0, make([]byte, 10), false, 0), nil, lie},
		"less than none":          {batch(-1, make([]byte, 10), false, 0), nil, lie},
		"more than there is room": {batch(2, make([]byte, 10), false, 0), nil, lie},
		"compressed lie":          {batch(math.MaxInt32, make([]byte, 10), true, math.MaxUint32), nil, lie},
		"no metadata":             {[]byte("\x00\x00\x00\x02\xff\xff"), nil, `SEND_ERROR {producer_id:1 sequence_id:5 error:MetadataError message:"Metadata cannot be read"}`},
		"nothing at all":          {nil, nil, `SEND_ERROR {producer_id:1 sequence_id:5 error:MetadataError message:"Metadata cannot be read"}`},
		"cut off":                 {[]byte("\x00\x00\xff\x02\xff"), nil, `SEND_ERROR {producer_id:1 sequence_id:5 error:MetadataError message:"Metadata cannot be read"}`},
		"message id": {entryOf(t, 3, 0, nil), func(m *pulsarpb.CommandSend) { m.MessageId = id(1, 1) },
			`SEND_ERROR {producer_id:1 sequence_id:5 error:NotAllowedError message:"Only shadow topic supports sending messages with messageId"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			m := &pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(3), HighestSequenceId: num(5)}
			if test.set != nil {
				test.set(m)
			}
			c.sendEntry(m, test.entry)
			c.hear(test.want)
		})
	}
	c.t = t
	c.publish(1, 9, "good")
	c.hearInAnyOrder("SEND_RECEIPT {producer_id:1 sequence_id:9 *", `MESSAGE *"good"`)
	r.stop()
	if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
		t.Errorf("memory of refused messages is still held: %d bytes", used)
	}
}

func TestDuplicatesGetAReceipt(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.Deduplication = true })
	c := r.connect()
	m := producerCmd("dedup", 1, 1)
	m.ProducerName = proto.String("named")
	c.say(m)
	c.hear("PRODUCER_SUCCESS {request_id:1 producer_name:\"named\" last_sequence_id:-1 *")
	c.publish(1, 5, "a")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:5 message_id {ledgerId:* entryId:0} *")
	c.publish(1, 5, "a")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:5 message_id {ledgerId:18446744073709551615 entryId:18446744073709551615} *")
	c.say(closeProducerCmd(1, 2))
	c.hear("SUCCESS {request_id:2}")
	m.RequestId = num(3)
	c.say(m)
	c.hear("PRODUCER_SUCCESS {request_id:3 producer_name:\"named\" last_sequence_id:5 *")
}

func TestFailedStoreClosesProducersAndAnswersNothing(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("failing")
	r.store.Hold()
	for i := range 5 {
		c.publish(1, uint64(i), "m")
	}
	c.sync()
	r.store.Fail(errors.New("no space"))
	r.store.Release()
	c.hear("CLOSE_PRODUCER {producer_id:1 request_id:18446744073709551615}")
	c.publish(1, 5, "late")
	c.sync()
	r.store.Fail(nil)
	again := producerCmd("failing", 1, 4)
	again.Epoch = num(1)
	c.say(again)
	c.hear("PRODUCER_SUCCESS {request_id:4 *")
	for i := range 6 {
		c.publish(1, uint64(i), "m")
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d message_id {ledgerId:* entryId:%d} *", i, i))
	}
}

func TestTrap11And27ATerminatedTopic(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("ended").consuming("ended", "s", exclusive, 1)
	java := r.dial()
	java.say(&pulsarpb.CommandConnect{ClientVersion: proto.String("Pulsar-Java-v4.0.7"), ProtocolVersion: proto.Int32(21)})
	java.hear("CONNECTED *")
	java.consuming("ended", "j", exclusive, 1)
	c.publish(1, 0, "last")
	at := c.receive().GetSendReceipt().GetMessageId()
	if _, err := r.broker.Terminate(t.Context(), topicName(t, "ended")); err != nil {
		t.Fatal(err)
	}
	c.hear("CLOSE_PRODUCER {producer_id:1 *")
	c.publish(1, 1, "ignored")
	c.sync()
	c.say(producerCmd("ended", 2, 9))
	c.hear(`ERROR {request_id:9 error:TopicTerminatedError message:"Topic was already terminated"}`)
	for _, x := range []*client{java, c} {
		x.say(flowCmd(1, 1))
		x.hear(`MESSAGE *"last"`)
		x.say(ackCmd(1, 2, id(int64(at.GetLedgerId()), 0)))
		if x == java {
			x.hearInAnyOrder("REACHED_END_OF_TOPIC {consumer_id:1}", "ACK_RESPONSE *")
		} else {
			x.hear("ACK_RESPONSE *")
		}
		x.sync()
	}
	c.consuming("ended", "late", exclusive, 7)
}

func TestAccessModes(t *testing.T) {
	r := serve(t)
	c, d := r.connect(), r.connect()
	with := func(mode pulsarpb.ProducerAccessMode, producer, request uint64) *pulsarpb.CommandProducer {
		m := producerCmd("modes", producer, request)
		m.ProducerAccessMode = &mode
		return m
	}
	const (
		sharedMode = pulsarpb.ProducerAccessMode_Shared
		exclusive  = pulsarpb.ProducerAccessMode_Exclusive
		wait       = pulsarpb.ProducerAccessMode_WaitForExclusive
		fence      = pulsarpb.ProducerAccessMode_ExclusiveWithFencing
	)
	c.say(with(sharedMode, 1, 1))
	c.hear("PRODUCER_SUCCESS {request_id:1 *producer_ready:true}")
	c.say(with(exclusive, 2, 2))
	c.hear(`ERROR {request_id:2 error:ProducerFenced message:"Topic has existing shared producers"}`)
	d.say(with(wait, 1, 3))
	d.hear(`PRODUCER_SUCCESS {request_id:3 producer_name:"*" last_sequence_id:-1 schema_version:"" producer_ready:false}`)
	c.say(with(sharedMode, 3, 4))
	c.hear(`ERROR {request_id:4 error:ProducerBusy message:"Topic has an existing exclusive producer: null"}`)
	c.say(closeProducerCmd(1, 5))
	c.hear("SUCCESS {request_id:5}")
	d.hear(`PRODUCER_SUCCESS {request_id:3 producer_name:"*" last_sequence_id:-1 schema_version:"" topic_epoch:0 producer_ready:true}`)
	d.publish(1, 0, "owner")
	d.hear("SEND_RECEIPT *")
	c.say(with(wait, 6, 8))
	c.hear("PRODUCER_SUCCESS {request_id:8 *producer_ready:false}")
	c.say(with(fence, 7, 9))
	c.hearInAnyOrder(
		"PRODUCER_SUCCESS {request_id:9 *topic_epoch:1 producer_ready:true}",
		`ERROR {request_id:8 error:ProducerFenced message:"Fenced out"}`,
	)
	d.hear("CLOSE_PRODUCER {producer_id:1 request_id:18446744073709551615}")
	d.publish(1, 1, "fenced")
	d.sync()
	old := with(exclusive, 1, 10)
	old.TopicEpoch = num(0)
	d.say(old)
	d.hear(`ERROR {request_id:10 error:ProducerFenced message:"Topic has an existing exclusive producer: *"}`)
}

func TestWaitingProducerMayNotSend(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("waiting")
	d := r.connect()
	m := producerCmd("waiting", 1, 3)
	m.ProducerAccessMode = pulsarpb.ProducerAccessMode_WaitForExclusive.Enum()
	d.say(m)
	d.hear("PRODUCER_SUCCESS {*producer_ready:false}")
	d.publish(1, 0, "too early")
	d.closed()
	c.publish(1, 0, "undisturbed")
	c.hear("SEND_RECEIPT *")
}

func TestSlotsHoldTheReader(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Replies = 4 })
	c := r.connect().producing("slots")
	r.store.Hold()
	for i := range 20 {
		c.publish(1, uint64(i), "m")
	}
	eventually(t, "the reader waits for a slot", func() bool { return r.only().held.Load() })
	if used := r.only().slots.used.Load(); used != 4 {
		t.Errorf("%d slots in use, want 4", used)
	}
	r.store.Release()
	for i := range 20 {
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d *", i))
	}
}

func TestMemoryHoldsTheReader(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.Budget = edge.NewBudget(1 << 20) })
	c := r.connect().producing("memory")
	r.store.Hold()
	_, limit := r.broker.Budget().Usage(edge.SharePublish)
	n := int(limit/(64<<10)) + 4
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range n {
			c.publish(1, uint64(i), string(make([]byte, 64<<10)))
		}
	}()
	eventually(t, "the reader waits for memory", func() bool { return r.only().held.Load() })
	if used, _ := r.broker.Budget().Usage(edge.SharePublish); used > limit {
		t.Errorf("%d bytes taken of %d", used, limit)
	}
	r.store.Release()
	for i := range n {
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d *", i))
	}
	<-sent
}

// Behind these errors comes CLOSE_PRODUCER, which says it all.
func TestWhatACloseAnswersIsNotAnsweredTwice(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("unanswered")
	c.sync()
	s := r.only()
	p := s.producers.entries[1]
	for _, err := range []error{
		edge.ErrGone, fmt.Errorf("%w: disk", edge.ErrStorage), edge.ErrLedgerFailed, edge.ErrStoreFull, edge.ErrTerminated, edge.ErrQuotaHold,
	} {
		if !s.slots.tryTake() {
			t.Fatal("no slot")
		}
		p.answers(7, 0)(edge.Receipt{}, err)
		c.sync()
	}
	s.slots.tryTake()
	p.answers(7, 9)(edge.Receipt{}, edge.ErrUnauthorized)
	c.hear(`SEND_ERROR {producer_id:1 sequence_id:9 error:AuthorizationError message:"Client is not authorized"}`)
	c.sync()
	eventually(t, "all slots are home", func() bool { return s.slots.used.Load() == 0 })
}
