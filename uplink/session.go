package uplink

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// session is one producer of the official client, from its creation to its first
// failure. The client may not reconnect by itself: when its connection ends, so does
// the session. Then everything unanswered has ended so, and a producer that resends
// behind our back, up to 1,700 times a second when the cloud refuses, cannot be.
type session struct {
	by      identity
	client  *client
	p       pulsar.Producer
	post    func(event)
	opened  time.Time
	bytes   atomic.Int64   // handed to the client and not called back
	broken  atomic.Bool    // something has failed
	lost    atomic.Bool    // the connection has ended
	flushes sync.WaitGroup // in the client
	ctx     context.Context
	cancel  context.CancelFunc
	closed  chan struct{} // when Close has returned
}

// never is a delay that the client accepts and that does not come.
const never = 1000 * time.Hour

// noLimit is a batch size in bytes that no batch reaches: bounds are ours.
const noLimit = 1 << 30

// openSession creates a producer. It waits for the cloud.
func openSession(l *link, by identity, how Compression, pending int, post func(event)) (*session, error) {
	c, err := l.acquire()
	if err != nil {
		return nil, err
	}
	s := &session{by: by, client: c, post: post, opened: time.Now(), closed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.p, err = c.CreateProducer(pulsar.ProducerOptions{
		Topic:                           by.target,
		Name:                            by.producer,
		SendTimeout:                     -1, // the watchdog's business
		MaxPendingMessages:              pending,
		CompressionType:                 compressionOf(how),
		BatchingMaxMessages:             uint(by.count),
		BatchingMaxSize:                 noLimit,
		BatchingMaxPublishDelay:         never,
		PartitionsAutoDiscoveryInterval: never,
		BackOffPolicyFunc:               s.reconnecting,
	})
	if err != nil {
		s.cancel()
		c.release()
		return nil, err
	}
	return s, nil
}

func compressionOf(how Compression) pulsar.CompressionType {
	switch how {
	case CompressionLZ4:
		return pulsar.LZ4
	case CompressionZstd:
		return pulsar.ZSTD
	}
	return pulsar.NoCompression
}

// reconnecting is called by the client at the beginning of each reconnect, before
// anything is sent again. It ends the session, and keeps the client waiting until
// Close has returned, after which the client gives up.
func (s *session) reconnecting() backoff.Policy {
	s.lost.Store(true)
	s.post(event{session: s, what: sessionLost})
	<-s.closed
	return &backoff.DefaultBackoff{}
}

// single marks a message that is not to join a batch although the producer makes
// them: the client lets messages with a delivery time go by themselves, and writes
// only a time above zero into the metadata.
func single() time.Time { return time.Unix(0, 0) }

// send hands a message over. It may wait for the client's memory, at most until ctx
// ends. The outcome is posted from the client's goroutines, or from here.
func (s *session) send(ctx context.Context, index uint64, size int, m *pulsar.ProducerMessage) {
	s.bytes.Add(int64(size))
	s.p.SendAsync(ctx, m, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		s.bytes.Add(-int64(size))
		if err != nil {
			s.broken.Store(true)
		}
		e := event{session: s, what: sessionAnswer, index: index, err: err}
		if err == nil {
			e.duplicate = id.LedgerID() == -1 && id.EntryID() == -1
			e.batch = id.BatchSize()
		}
		s.post(e)
	})
}

// flush closes the open batch. The client waits for all receipts then; nobody here
// waits for the client.
func (s *session) flush() {
	s.flushes.Go(func() { _ = s.p.FlushWithCtx(s.ctx) }) // failures come with the messages
}

// close ends the producer in the background, since it may wait for a peer that is
// gone. Nothing may be sent or flushed any more.
func (s *session) close(wg *group) {
	s.cancel()
	wg.Go(func() {
		s.flushes.Wait()
		s.p.Close()
		close(s.closed)
		s.client.lose(s.bytes.Load())
		s.client.release()
	})
}

// awaitClose waits a while for a session's end, since the cloud allows a producer's
// name but once. One on a client that was given up is not waited for. nil is none.
func (s *session) awaitClose(most time.Duration) {
	if s == nil || s.client.isRetired() {
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-s.closed:
	case <-t.C:
	}
}
