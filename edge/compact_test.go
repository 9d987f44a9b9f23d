package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

// words is an opener of entries that are texts: messages apart by spaces, each a key, "="
// and a value. One without "=" has no key, "-" was taken out, "sealed" cannot be opened.
type words struct{}

func (words) Keys(data []byte, visit func(edge.MessageKey)) error {
	if string(data) == "sealed" {
		return errors.New("sealed")
	}
	for i, w := range strings.Split(string(data), " ") {
		if w == "-" {
			continue
		}
		key, value, has := strings.Cut(w, "=")
		visit(edge.MessageKey{Index: i, Key: []byte(key), Has: has, Null: value == "" && has})
	}
	return nil
}

func (words) Thin(data []byte, keep func(int) bool) ([]byte, error) {
	all := strings.Split(string(data), " ")
	for i := range all {
		if !keep(i) {
			all[i] = "-"
		}
	}
	return []byte(strings.Join(all, " ")), nil
}

func compacting(o *edge.Options) { o.Opener = words{} }

// put publishes entries; several words make a batch.
func (k *kit) put(p *edge.Producer, entries ...string) (at []edge.Position) {
	k.Helper()
	for _, e := range entries {
		m := message(e)
		m.Facts.Messages = int32(strings.Count(e, " ") + 1)
		m.Facts.Batch = m.Facts.Messages > 1
		a := recv(k.T, send(p, m))
		if a.err != nil {
			k.Fatal(a.err)
		}
		at = append(at, a.Position)
	}
	return at
}

// compact has a topic compacted and waits for the end.
func (k *kit) compact(t *edge.Topic) edge.CompactionStatus {
	k.Helper()
	if err := t.Compact(); err != nil {
		k.Fatal(err)
	}
	eventually(k.T, "the compaction ends", func() bool { return !t.Compaction().Running })
	return t.Compaction()
}

func (k *kit) mustCompact(t *edge.Topic) {
	k.Helper()
	if st := k.compact(t); st.Err != nil || !st.Ran {
		k.Fatalf("compaction: %+v", st)
	}
}

func compactedReader(name string) edge.SubscribeOptions {
	return edge.SubscribeOptions{Name: name, Kind: edge.Exclusive, Start: &edge.Earliest, ReadCompacted: true, Epoch: -1}
}

// readAll reads a topic as a reader does, up to its last id.
func (k *kit) readAll(t *edge.Topic, o edge.SubscribeOptions) []string {
	k.Helper()
	c, in := k.subscribe(t, o)
	defer c.Close()
	last := c.LastID().Last
	c.Flow(1 << 20)
	var got []string
	for from := *o.Start; from.Less(last); {
		in.await(k.T, len(got)+1)
		all := in.all()
		got = bodiesOf(all)
		from = all[len(all)-1].Entry.Position
	}
	return got
}

func TestCompactionKeepsTheNewestOfEachKey(t *testing.T) {
	for _, tc := range []struct {
		name      string
		in        []string
		want      []string
		lastIndex int32 // messages up to the last one, 0 for no batch
	}{
		{"newest", []string{"a=1", "b=1", "a=2"}, []string{"b=1", "a=2"}, 0},
		{"null voids", []string{"a=1", "b=1", "a="}, []string{"b=1"}, 0},
		{"null, then new", []string{"a=1", "a=", "a=2"}, []string{"a=2"}, 0},
		{"no key", []string{"x", "a=1", "y"}, []string{"a=1"}, 0},
		{"all gone", []string{"x", "a=1", "a="}, nil, 0},
		{"batch", []string{"a=1 b=1 a=2 y", "b=2"}, []string{"- - a=2 -", "b=2"}, 0},
		{"batch whole", []string{"a=1 b=1"}, []string{"a=1 b=1"}, 2},
		{"batch gone", []string{"a=1 b=1", "a=2", "b="}, []string{"a=2"}, 0},
		{"last of a batch", []string{"a=1 b=1 b=", "c=1 d=1 y"}, []string{"a=1 - -", "c=1 d=1 -"}, 2},
		{"sealed", []string{"a=1", "sealed", "a=2"}, []string{"sealed", "a=2"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKit(t, compacting)
			topic := k.topic("compact")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			at := k.put(p, tc.in...)
			k.mustCompact(topic)
			o := compactedReader("r")
			if got := k.readAll(topic, o); !slices.Equal(got, tc.want) {
				t.Errorf("compacted %q, want %q", got, tc.want)
			}
			c, _ := k.subscribe(topic, o)
			if id := c.LastID(); id.Batch && id.Messages != tc.lastIndex || (tc.want == nil) != (id.Last == edge.Earliest) {
				t.Errorf("last id %+v", id)
			}
			c.Close()
			o.ReadCompacted = false
			if got := k.readAll(topic, o); !slices.Equal(got, tc.in) {
				t.Errorf("the topic itself holds %q", got)
			}
			if got := topic.Stats().Subscriptions[edge.CompactionSubscription]; got.MarkDelete != at[len(at)-1] {
				t.Errorf("%s stands at %v", edge.CompactionSubscription, got.MarkDelete)
			}
		})
	}
}

func TestACompactedReaderGoesOnBehindTheHorizon(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("live")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.put(p, "a=1", "b=1", "a=2")
	k.mustCompact(topic)
	k.put(p, "b=2")
	c, in := k.subscribe(topic, compactedReader("r"))
	c.Flow(100)
	in.await(t, 3)
	k.put(p, "b=3", "x")
	want := []string{"b=1", "a=2", "b=2", "b=3", "x"}
	if got := in.await(t, 5); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	k.mustCompact(topic) // under a reader's feet
	k.put(p, "c=1")
	if got := in.await(t, 6); !slices.Equal(got, append(want, "c=1")) {
		t.Fatalf("got %q", got)
	}
}

func TestWhatIsCompactedAwayIsNoBacklog(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("backlog")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.put(p, "a=1", "b=1", "a=2", "x", "b=2", "a=3", "y")
	k.mustCompact(topic)
	o := subscription("s", edge.Exclusive)
	o.ReadCompacted = true
	c, in := k.subscribe(topic, o)
	c.Flow(100)
	in.await(t, 2)
	k.ack(c, in.all()[0].Entry.Position)
	c.Redeliver(nil, -1)
	if got := in.await(t, 3); got[2] != "a=3" {
		t.Fatalf("%q came again", got[2])
	}
	k.ack(c, in.all()[1].Entry.Position)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 0 {
		t.Fatalf("backlog of %d", n)
	}
}

// trimmed lets the topic's own ledgers go as far as they may.
func (k *kit) trimmed(topic *edge.Topic) {
	k.Helper()
	start := topic.Spans().Start()
	eventually(k.T, "the topic is trimmed", func() bool {
		k.broker.Sweep(0)
		return start.Less(topic.Spans().Start())
	})
}

func TestTheCompactedFormOutlivesTheTopicsEntries(t *testing.T) {
	keepNothing := func(o *edge.Options) { compacting(o); o.KeepAcked = 0 }
	k := newKit(t, keepNothing)
	topic := k.topic("trim")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.put(p, "a=1", "b=1", "a=2", "c=1")
	k.mustCompact(topic)
	k.trimmed(topic)
	want := []string{"b=1", "a=2", "c=1"}
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	o := subscription("s", edge.Exclusive)
	o.ReadCompacted = true
	c, in := k.subscribe(topic, o)
	if mark := c.LastID().MarkDelete; mark != at[0] {
		t.Errorf("mark-delete %v, want the place before %v", mark, at[1])
	}
	c.Flow(100)
	in.await(t, 3)
	k.ack(c, at[1], at[3])
	c.Close()
	k.put(p, "d=1", "d=2")
	k.restart(keepNothing)
	topic = k.topic("trim")
	c, in = k.subscribe(topic, o)
	c.Flow(100)
	if got := in.await(t, 4); !slices.Equal(got, []string{"a=2", "c=1", "d=1", "d=2"}) {
		t.Fatalf("after a restart %q", got)
	}
	done := make(chan error, 1)
	c.Ack(parts(in.all()[3].Entry.Position), true, func(err error) { done <- err })
	if err := recv(t, done); err != nil {
		t.Fatal(err)
	}
	k.mustCompact(topic)
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, append(want, "d=2")) {
		t.Fatalf("compacted again %q", got)
	}
	c.Close()
	c, _ = k.subscribe(topic, o)
	c.Flow(100)
	if id := c.LastID(); id.Last != id.MarkDelete {
		t.Fatalf("nothing is left, but %+v", id)
	}
}

func TestSeeksIntoTheCompactedForm(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { compacting(o); o.KeepAcked = 0 })
	topic := k.topic("seek")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.put(p, "a=1", "b=1", "a=2", "c=1")
	k.mustCompact(topic)
	k.trimmed(topic)
	k.put(p, "d=1")
	for _, tc := range []struct {
		name string
		to   edge.SeekTarget
		want []string
	}{
		{"earliest", edge.SeekTarget{Position: edge.Earliest}, []string{"b=1", "a=2", "c=1", "d=1"}},
		{"an entry", edge.SeekTarget{Position: at[2]}, []string{"a=2", "c=1", "d=1"}},
		{"one compacted away", edge.SeekTarget{Position: at[0]}, []string{"b=1", "a=2", "c=1", "d=1"}},
		{"the begin of time", edge.SeekTarget{ByTime: true, Time: 1}, []string{"b=1", "a=2", "c=1", "d=1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, _ := k.subscribe(topic, compactedReader("s"))
			if err := c.Seek(t.Context(), tc.to); err != nil {
				t.Fatal(err)
			}
			c.Close()
			c, in := k.subscribe(topic, compactedReader("s"))
			defer c.Close()
			c.Flow(100)
			if got := in.await(t, len(tc.want)); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			done := make(chan error, 1)
			c.Ack(parts(in.all()[len(tc.want)-1].Entry.Position), true, func(err error) { done <- err })
			if err := recv(t, done); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a reader that has all is let go", func() bool {
				c.Close()
				k.broker.Sweep(time.Hour)
				return topic.Stats().Subscriptions["s"].Kind == 0 && len(topic.Stats().Subscriptions) == 1
			})
		})
	}
}

// TestManyKeys needs several rounds: more keys than are looked at in one.
func TestManyKeys(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("many")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	const entries, each = 70, 1000
	for pass := range 2 {
		for e := range entries {
			var b strings.Builder
			for i := range each {
				fmt.Fprintf(&b, " k%d=%d", e*each+i, pass)
			}
			k.put(p, b.String()[1:])
		}
	}
	k.mustCompact(topic)
	got := k.readAll(topic, compactedReader("r"))
	if len(got) != entries {
		t.Fatalf("%d entries are left, want %d", len(got), entries)
	}
	for i, e := range got {
		if strings.Contains(e, "=0") || strings.Contains(e, "-") || !strings.HasPrefix(e, fmt.Sprintf("k%d=", i*each)) {
			t.Fatalf("entry %d begins with %.40q", i, e)
		}
	}
	if st := topic.Compaction(); st.Removed < entries*each {
		t.Errorf("%d messages removed, want %d or more", st.Removed, entries*each)
	}
}

// chunked publishes a chunk of a message with a key.
func (k *kit) chunk(p *edge.Producer, body, uuid string, id, of int32) {
	k.Helper()
	m := message(body)
	m.Facts.Chunk = edge.Chunk{UUID: uuid, ID: id, Of: of}
	if a := recv(k.T, send(p, m)); a.err != nil {
		k.Fatal(a.err)
	}
}

func TestAChunkedMessageIsKeptAsAWhole(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("chunks")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.chunk(p, "a=old0", "u1", 0, 2)
	k.chunk(p, "a=old1", "u1", 1, 2)
	k.chunk(p, "a=new0", "u2", 0, 3)
	k.chunk(p, "a=new1", "u2", 1, 3)
	k.put(p, "b=1")
	k.mustCompact(topic) // the second message is not complete
	want := []string{"a=old0", "a=old1", "a=new0", "a=new1", "b=1"}
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, want) {
		t.Fatalf("before its end %q, want %q", got, want)
	}
	k.chunk(p, "a=new2", "u2", 2, 3)
	k.mustCompact(topic)
	want = []string{"a=new0", "a=new1", "b=1", "a=new2"}
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, want) {
		t.Fatalf("when it is complete %q, want %q", got, want)
	}
	k.put(p, "a=")
	k.mustCompact(topic)
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, []string{"b=1"}) {
		t.Fatalf("when it is void %q", got)
	}
}
