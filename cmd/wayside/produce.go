package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/spf13/cobra"
	"golang.org/x/time/rate"
)

// maxLine bounds a line of standard input, in bytes: the default limit of a message.
const maxLine = 5 << 20

type produceFlags struct {
	clientFlags
	texts      []string
	key        string
	properties []string
	count      int
	rate       float64
}

func (m *Main) produceCommand() *cobra.Command {
	f := &produceFlags{}
	c := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Publish lines of standard input, or the texts given",
		Long: "Each line, or each -m, becomes a message. With -n the texts are gone through again and again " +
			"until COUNT messages are sent; of standard input at most COUNT lines are read.",
		Example: "  wayside produce temperature -m 21.5\n  sensor | wayside produce plant/line-1/vibration -k motor-7",
		Args:    oneTopic,
	}
	f.add(c)
	flags := c.Flags()
	flags.StringArrayVarP(&f.texts, "message", "m", nil, "`TEXT` to publish; may be repeated")
	flags.StringVarP(&f.key, "key", "k", "", "`KEY` of every message")
	flags.StringArrayVarP(&f.properties, "property", "p", nil, "property `NAME=VALUE` of every message; may be repeated")
	flags.IntVarP(&f.count, "count", "n", 0, "publish `COUNT` messages")
	flags.Float64Var(&f.rate, "rate", 0, "at most `N` messages a second; 0 for no limit")
	c.RunE = func(c *cobra.Command, args []string) error { return m.produce(c.Context(), args[0], f) }
	return c
}

func (m *Main) produce(ctx context.Context, topicText string, f *produceFlags) error {
	topic, err := topicArgument(topicText)
	if err != nil {
		return err
	}
	properties, err := parseProperties(f.properties)
	if err != nil {
		return err
	}
	if f.count < 0 || f.rate < 0 {
		return failed(exitUsage, "wrong usage", "-n and --rate", "write numbers that are not negative")
	}
	ctx, cancel := m.untilSignal(ctx)
	defer cancel()
	client, err := f.connect(ctx, m.Stderr)
	if err != nil {
		return err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		leave(client.Close)
		return failed(exitFailed, "cannot publish", topic, err.Error())
	}
	defer leave(producer.Close, client.Close)
	p := &publisher{producer: producer, key: f.key, properties: properties, limiter: limiter(f.rate)}
	begin := time.Now()
	err = p.publishAll(ctx, f.source(ctx, m.Stdin))
	return p.finish(m.Stdout, topic, time.Since(begin), err)
}

func parseProperties(list []string) (map[string]string, error) {
	properties := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, failed(exitUsage, "wrong usage", "-p "+s, "write -p NAME=VALUE")
		}
		properties[name] = value
	}
	return properties, nil
}

// limiter lets perSecond messages pass, 0 for all of them.
func limiter(perSecond float64) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), 1)
}

// payload is one thing to publish, or why there is none.
type payload struct {
	data []byte
	err  error
}

// source returns a function that gives the next payload, or io.EOF at the end of all
// or of the context.
func (f *produceFlags) source(ctx context.Context, stdin io.Reader) func() ([]byte, error) {
	given, limit := 0, f.count
	next := func() ([]byte, error) { return []byte(f.texts[given%len(f.texts)]), ctx.Err() }
	if len(f.texts) == 0 {
		next = nextOf(ctx, readLines(ctx, stdin))
	} else if limit == 0 {
		limit = len(f.texts)
	}
	return func() ([]byte, error) {
		if limit > 0 && given == limit {
			return nil, io.EOF
		}
		data, err := next()
		given++
		return data, err
	}
}

func nextOf(ctx context.Context, lines <-chan payload) func() ([]byte, error) {
	return func() ([]byte, error) {
		select {
		case p, more := <-lines:
			if !more {
				return nil, io.EOF
			}
			return p.data, p.err
		case <-ctx.Done():
			return nil, io.EOF
		}
	}
}

// readLines reads ahead by one line. Its goroutine ends with the input or, as a read
// cannot be broken off, at the first line behind the end of the context.
func readLines(ctx context.Context, r io.Reader) <-chan payload {
	lines := make(chan payload)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case lines <- payload{data: append([]byte(nil), scanner.Bytes()...)}:
			case <-ctx.Done():
				return
			}
		}
		if err := scanner.Err(); err != nil {
			select {
			case lines <- payload{err: badInput(err)}:
			case <-ctx.Done():
			}
		}
	}()
	return lines
}

func badInput(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return failed(exitFailed, "line too long", "standard input", "at most "+formatSize(maxLine))
	}
	return failed(exitFailed, "cannot read", "standard input", reason(err))
}

// publisher sends and counts receipts.
type publisher struct {
	producer   pulsar.Producer
	key        string
	properties map[string]string
	limiter    *rate.Limiter

	mu        sync.Mutex
	confirmed int
	refused   int
	failure   error // the first one
}

// publishAll sends until next ends or the context does, and waits for the receipts.
func (p *publisher) publishAll(ctx context.Context, next func() ([]byte, error)) error {
	sending, cancel := lingering(ctx)
	defer cancel()
	for {
		data, err := next()
		if err == nil && p.limiter.Wait(ctx) != nil {
			err = io.EOF
		}
		if err != nil {
			return errors.Join(withoutEnd(err), p.flush())
		}
		p.producer.SendAsync(sending, &pulsar.ProducerMessage{Payload: data, Key: p.key, Properties: p.properties},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { p.count(err) })
	}
}

func withoutEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (p *publisher) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	if err := p.producer.FlushWithCtx(ctx); err != nil {
		return failed(exitFailed, "not everything is confirmed", p.producer.Topic(), err.Error())
	}
	return nil
}

func (p *publisher) count(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.confirmed++
		return
	}
	p.refused++
	if p.failure == nil {
		p.failure = err
	}
}

func (p *publisher) finish(w io.Writer, topic string, took time.Duration, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(w, "%d confirmed in %v\n", p.confirmed, took.Round(time.Millisecond))
	if p.refused > 0 {
		return failed(exitFailed, fmt.Sprintf("%d of %d messages not confirmed", p.refused, p.refused+p.confirmed), topic, p.failure.Error())
	}
	return err
}
