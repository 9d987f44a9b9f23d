package edgetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"wayside/edge"
)

// Harness makes the stores that the contract suite runs on. All that it opens is
// closed by the suite.
type Harness struct {
	// Open makes an empty store that closes ledgers after RollAfter entries.
	Open func(t *testing.T) edge.Store
	// Reopen opens again what a closed store has stored.
	Reopen func(t *testing.T, s edge.Store) edge.Store
	// Fail lets commits of a store fail with err, nil lets them work again.
	Fail      func(s edge.Store, err error)
	RollAfter int
}

// TestStore runs the contract of edge.Store, edge.Ledger and edge.Values: what every
// store has to do, and what the core relies on.
func TestStore(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"AppendKeepsOrderAndContent", testAppend},
		{"BarriersStandInLine", testBarrier},
		{"GrantsComeBack", testGrants},
		{"FailedAppendStopsThoseBehind", testFailure},
		{"ReadByRanges", testRead},
		{"ReadIsBounded", testReadBounds},
		{"ReadNamesWhatIsGone", testReadLost},
		{"ScanAndFind", testScan},
		{"LedgersRollAndTrim", testRollTrim},
		{"SpansCount", testSpans},
		{"CursorsAreSaved", testCursors},
		{"CursorCallsActInOrder", testCursorOrder},
		{"CursorStateIsAskedLate", testCursorLate},
		{"LargeCursors", testLargeCursor},
		{"SequencesFollowEntries", testSequences},
		{"SequencesAreBounded", testSequenceBound},
		{"PropertiesAndValues", testSmallState},
		{"TopicsAreReborn", testRebirth},
		{"LedgersCloseAndOpen", testLedgerClose},
		{"StoreCloseDrains", testStoreClose},
		{"RecordsTellOfTopics", testRecords},
		{"RandomWalk", testRandomWalk},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t, h: h, store: h.Open(t)}
			t.Cleanup(func() { b.check(b.store.Close()) })
			c.run(t, b)
		})
	}
}

// bench is one store under test with what the tests do to it.
type bench struct {
	*testing.T
	h     Harness
	store edge.Store
}

// answerTime is far beyond what any answer takes.
const answerTime = 30 * time.Second

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) want(err, target error) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Fatalf("error %v, want %v", err, target)
	}
}

func topicName(local string) edge.TopicName {
	return edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: local}
}

func (b *bench) open(local string, reserved ...string) edge.Ledger {
	b.Helper()
	l, err := b.store.OpenLedger(topicName(local), reserved)
	b.check(err)
	return l
}

// reopen closes the store and opens it again.
func (b *bench) reopen() {
	b.Helper()
	b.check(b.store.Close())
	b.store = b.h.Reopen(b.T, b.store)
}

// await runs a call with done and waits for the answer.
func await(call func(done func(error))) error {
	answered := make(chan error, 1)
	call(func(err error) { answered <- err })
	select {
	case err := <-answered:
		return err
	case <-time.After(answerTime):
		return errors.New("no answer")
	}
}

// do awaits a call that has to succeed.
func (b *bench) do(call func(done func(error))) {
	b.Helper()
	b.check(await(call))
}

// message is number i of a topic, different in size and facts from its neighbours.
func message(i int) edge.Message {
	return edge.Message{
		Facts: edge.Facts{
			Producer: fmt.Sprintf("p-%d", i%3), Sequence: int64(i), Highest: int64(i),
			Messages: int32(1 + i%4), Batch: i%4 > 0, Publish: 1000 + int64(i), Receive: 2000 + int64(i),
		},
		Data: fmt.Appendf(nil, "entry %d %*s", i, i%50, ""),
	}
}

// appendAll appends messages and waits for all answers.
func (b *bench) appendAll(l edge.Ledger, messages ...edge.Message) []edge.Entry {
	b.Helper()
	entries := make([]edge.Entry, 0, len(messages))
	errs := make(chan error, len(messages))
	for _, m := range messages {
		l.Append(m, func(e edge.Entry, err error) {
			entries = append(entries, e)
			errs <- err
		})
	}
	for range messages {
		select {
		case err := <-errs:
			b.check(err)
		case <-time.After(answerTime):
			b.Fatal("no answer to append")
		}
	}
	return entries
}

// fill appends messages from … from+n−1.
func (b *bench) fill(l edge.Ledger, from, n int) []edge.Entry {
	b.Helper()
	messages := make([]edge.Message, n)
	for i := range messages {
		messages[i] = message(from + i)
	}
	return b.appendAll(l, messages...)
}

// all is the range that holds everything.
var all = edge.Range{First: edge.Earliest, Last: edge.Latest}

func (b *bench) readAll(l edge.Ledger) []edge.Entry {
	b.Helper()
	var entries []edge.Entry
	next := edge.Range{First: l.Spans().Start(), Last: edge.Latest}
	for {
		batch, err := l.Read([]edge.Range{next}, 100, 1<<20)
		b.check(err)
		if len(batch.Lost) > 0 {
			b.Fatalf("lost %v", batch.Lost)
		}
		if len(batch.Entries) == 0 {
			return entries
		}
		entries = append(entries, batch.Entries...)
		next.First = entries[len(entries)-1].Position.Next()
	}
}
