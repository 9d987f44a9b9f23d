package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/spf13/cobra"
)

type consumeFlags struct {
	clientFlags
	subscription string
	kind         string
	count        int
	from         string
	asJSON       bool
}

func (m *Main) consumeCommand() *cobra.Command {
	f := &consumeFlags{}
	c := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Subscribe, print and acknowledge",
		Long: "With -s the subscription is durable: what it has not acknowledged waits for it. Without -s a reader is used, which " +
			"leaves nothing behind.",
		Example: "  wayside consume temperature\n  wayside consume temperature -s display --from earliest -n 10 --json",
		Args:    oneTopic,
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVarP(&f.subscription, "subscription", "s", "", "durable subscription `NAME`")
	flags.StringVarP(&f.kind, "type", "t", "exclusive", "`TYPE` of the subscription: exclusive, shared, failover or key_shared")
	flags.IntVarP(&f.count, "count", "n", 0, "end after `COUNT` messages")
	flags.StringVar(&f.from, "from", "latest", "where a reader or a new subscription begins: earliest or latest")
	flags.BoolVar(&f.asJSON, "json", false, "print each message with everything it has, as a line of JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.check(c.Flags().Changed("type")); err != nil {
			return err
		}
		return m.consume(c.Context(), args[0], f)
	}
	return c
}

// inflow is where messages come from: a durable subscription, or a reader, which leaves
// nothing behind.
type inflow struct {
	next  func(context.Context) (pulsar.Message, error)
	done  func(pulsar.Message) error
	close func()
}

func (f *consumeFlags) check(kindGiven bool) error {
	_, kindOK := subscriptionKinds()[f.kind]
	switch {
	case !kindOK:
		return failed(exitUsage, "wrong usage", "-t "+f.kind, "write exclusive, shared, failover or key_shared")
	case kindGiven && f.subscription == "":
		return failed(exitUsage, "wrong usage", "-t "+f.kind, "it goes with -s, the subscription's name")
	case f.from != "earliest" && f.from != "latest":
		return failed(exitUsage, "wrong usage", "--from "+f.from, "write earliest or latest")
	case f.count < 0:
		return failed(exitUsage, "wrong usage", "-n", "write a number that is not negative")
	}
	return nil
}

func subscriptionKinds() map[string]pulsar.SubscriptionType {
	return map[string]pulsar.SubscriptionType{
		"exclusive": pulsar.Exclusive, "shared": pulsar.Shared, "failover": pulsar.Failover, "key_shared": pulsar.KeyShared,
	}
}

func (f *consumeFlags) open(client pulsar.Client, topic string) (*inflow, error) {
	if f.subscription == "" {
		return f.openReader(client, topic)
	}
	o := pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: f.subscription, Type: subscriptionKinds()[f.kind], EnableBatchIndexAcknowledgment: true,
	}
	if f.from == "earliest" {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	}
	consumer, err := client.Subscribe(o)
	if err != nil {
		return nil, err
	}
	return &inflow{consumer.Receive, consumer.Ack, consumer.Close}, nil
}

func (f *consumeFlags) openReader(client pulsar.Client, topic string) (*inflow, error) {
	o := pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.LatestMessageID(), SubscriptionRolePrefix: "wayside-consume"}
	if f.from == "earliest" {
		o.StartMessageID = pulsar.EarliestMessageID()
	}
	reader, err := client.CreateReader(o)
	if err != nil {
		return nil, err
	}
	return &inflow{reader.Next, func(pulsar.Message) error { return nil }, reader.Close}, nil
}

func (m *Main) consume(ctx context.Context, topicText string, f *consumeFlags) error {
	topic, err := topicArgument(topicText)
	if err != nil {
		return err
	}
	ctx, cancel := m.untilSignal(ctx)
	defer cancel()
	client, err := f.connect(ctx, m.Stderr)
	if err != nil {
		return err
	}
	in, err := f.open(client, topic)
	if err != nil {
		leave(client.Close)
		return failed(exitFailed, "cannot subscribe", topic, err.Error())
	}
	defer leave(in.close, client.Close)
	return f.receive(ctx, in, topic, m.Stdout)
}

// receive prints, then acknowledges: what could not be printed comes again.
func (f *consumeFlags) receive(ctx context.Context, in *inflow, topic string, w io.Writer) error {
	for n := 0; f.count == 0 || n < f.count; n++ {
		message, err := in.next(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return failed(exitFailed, "cannot receive", topic, err.Error())
		}
		if err := f.print(w, message); err != nil {
			return failed(exitFailed, "cannot write", "standard output", err.Error())
		}
		if err := in.done(message); err != nil {
			return failed(exitFailed, "cannot acknowledge", topic, err.Error())
		}
	}
	return nil
}

// printed is a message as --json shows it. A payload that is no text goes into Base64.
type printed struct {
	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	Key         string            `json:"key,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Published   string            `json:"published"`
	Event       string            `json:"event,omitempty"`
	Producer    string            `json:"producer"`
	Redelivered uint32            `json:"redelivered,omitempty"`
	Payload     *string           `json:"payload,omitempty"`
	Base64      []byte            `json:"payload_base64,omitempty"`
}

func (f *consumeFlags) print(w io.Writer, message pulsar.Message) error {
	if !f.asJSON {
		_, err := fmt.Fprintf(w, "%s\n", message.Payload())
		return err
	}
	id := message.ID()
	p := printed{
		ID: fmt.Sprintf("%d:%d", id.LedgerID(), id.EntryID()), Topic: message.Topic(), Key: message.Key(), Properties: message.Properties(),
		Published: message.PublishTime().UTC().Format(time.RFC3339Nano), Producer: message.ProducerName(), Redelivered: message.RedeliveryCount(),
	}
	if id.BatchIdx() >= 0 && id.BatchSize() > 0 {
		p.ID += fmt.Sprintf(":%d", id.BatchIdx())
	}
	if t := message.EventTime(); t.UnixMilli() > 0 {
		p.Event = t.UTC().Format(time.RFC3339Nano)
	}
	if payload := string(message.Payload()); utf8.ValidString(payload) {
		p.Payload = &payload
	} else {
		p.Base64 = message.Payload()
	}
	line, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode message %s: %w", p.ID, err)
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}
