package edge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

func TestOldCompactedFormsGo(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("old")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	hidden := func() (n int) {
		for _, r := range k.store.Records() {
			if r.Name.Domain != edge.Persistent {
				n++
			}
		}
		return n
	}
	for range 3 {
		k.put(p, "a=1", "b=1")
		k.mustCompact(topic)
		eventually(t, "one form is left", func() bool { return hidden() == 1 })
	}
	if n := len(k.broker.Records()); n != 1 {
		t.Errorf("%d topics are told of", n)
	}
	if names := k.broker.Names(""); len(names) != 1 {
		t.Errorf("topics %v", names)
	}
	if err := topic.DeleteSubscription(t.Context(), edge.CompactionSubscription, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the form goes with its subscription", func() bool { return hidden() == 0 })
	if got := k.readAll(topic, compactedReader("r")); len(got) != 6 {
		t.Errorf("without it %q", got)
	}
	k.mustCompact(topic)
	if err := k.broker.Delete(t.Context(), topic.Name(), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the form goes with its topic", func() bool { return hidden() == 0 })
}

// TestACompactionThatFails tells so, leaves the old form, and succeeds later.
func TestACompactionThatFails(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("fails")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.put(p, "a=1", "b=1")
	k.mustCompact(topic)
	k.put(p, "a=2")
	refuse := func(m *edge.Message) bool { return m.Facts.Origin != nil }
	k.hooks.refuse.Store(&refuse)
	if st := k.compact(topic); st.Err == nil || st.Failed == 0 {
		t.Fatalf("status %+v", st)
	}
	k.hooks.refuse.Store(nil)
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, []string{"a=1", "b=1", "a=2"}) {
		t.Fatalf("after it %q", got)
	}
	k.restart(compacting) // a leftover of the one that failed is nobody's
	topic = k.topic("fails")
	k.mustCompact(topic)
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, []string{"b=1", "a=2"}) {
		t.Fatalf("when it succeeds %q", got)
	}
}

func TestCompactionByThreshold(t *testing.T) {
	k := newKit(t, compacting)
	topic := k.topic("threshold")
	set := func(bytes int64) {
		err := k.broker.ChangePolicies(t.Context(), topic.Name().String(), func(p *edge.Policies) error {
			p.CompactionThreshold = &bytes
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p, _ := k.producer(topic, edge.ProducerOptions{})
	set(20)
	k.broker.Sweep(0)
	if subs := topic.Subscriptions(); !slices.Equal(subs, []string{edge.CompactionSubscription}) {
		t.Fatalf("what is not compacted is held by %v", subs)
	}
	k.put(p, "a=1", "a=2", "a=3")
	k.broker.Sweep(0)
	if st := topic.Compaction(); st.Running || st.Ran {
		t.Fatalf("below the threshold: %+v", st)
	}
	k.put(p, "a=4", "a=5", "a=6", "a=7")
	k.broker.Sweep(0)
	eventually(t, "it is compacted", func() bool { return topic.Compaction().Ran })
	if got := k.readAll(topic, compactedReader("r")); !slices.Equal(got, []string{"a=7"}) {
		t.Fatalf("compacted %q", got)
	}
}

func TestACompactionEndsWithItsTopic(t *testing.T) {
	k := newKit(t, compacting)
	topic, waits := k.topic("ends"), k.topic("waits")
	for _, at := range []*edge.Topic{topic, waits} {
		p, _ := k.producer(at, edge.ProducerOptions{})
		k.put(p, "a=1", "a=2")
	}
	blocked, release := make(chan struct{}, 8), make(chan struct{})
	hook := func([]edge.Range) error {
		blocked <- struct{}{}
		<-release
		return nil
	}
	k.hooks.read.Store(&hook)
	for _, at := range []*edge.Topic{topic, waits} {
		if err := at.Compact(); err != nil {
			t.Fatal(err)
		}
	}
	recv(t, blocked)
	if err := topic.Compact(); !errors.Is(err, edge.ErrExists) {
		t.Errorf("a second one: %v", err)
	}
	if err := k.broker.Unload(t.Context(), waits.Name()); err != nil {
		t.Fatal(err) // it does not wait for the other topic's
	}
	gone := make(chan error, 1)
	go func() { gone <- k.broker.Delete(t.Context(), topic.Name(), true) }()
	eventually(t, "the topic is closing", func() bool { return topic.Compact() != nil && !errors.Is(topic.Compact(), edge.ErrExists) })
	k.hooks.read.Store(nil)
	close(release)
	if err := recv(t, gone); err != nil {
		t.Fatal(err)
	}
	if st := topic.Compaction(); st.Running || st.Err == nil {
		t.Errorf("status %+v", st)
	}
	eventually(t, "nothing is left of it", func() bool {
		return !slices.ContainsFunc(k.store.Records(), func(r edge.TopicRecord) bool { return r.Name.Domain != edge.Persistent })
	})
}

// TestCompactionAgainstAModel publishes at random, compacts, trims and starts anew, and
// reads what a map of keys would hold.
func TestCompactionAgainstAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	change := func(o *edge.Options) { compacting(o); o.KeepAcked = 0 }
	k := newKit(t, change)
	topic := k.topic("model")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	newest, tail, n := map[string]int{}, []string(nil), 0
	word := func() string {
		n++
		key := fmt.Sprintf("k%d", rnd.IntN(12))
		switch rnd.IntN(8) {
		case 0:
			newest[key] = 0
			return key + "="
		case 1:
			return "none"
		}
		newest[key] = n
		return fmt.Sprintf("%s=%d", key, n)
	}
	for range 300 {
		switch rnd.IntN(12) {
		case 0:
			k.mustCompact(topic)
			tail = nil
			if rnd.IntN(2) == 0 {
				k.broker.Sweep(0)
				k.broker.Sweep(0)
			}
		case 1:
			if rnd.IntN(6) == 0 {
				k.restart(change)
				topic = k.topic("model")
				p, _ = k.producer(topic, edge.ProducerOptions{})
			}
		default:
			e := word()
			for range rnd.IntN(4) {
				e += " " + word()
			}
			k.put(p, e)
			tail = append(tail, e)
		}
		checkModel(t, k.readAll(topic, compactedReader("r")), newest, tail)
	}
}

// checkModel compares what a compacted reader got with what it has to get.
func checkModel(t *testing.T, got []string, newest map[string]int, tail []string) {
	t.Helper()
	if len(got) < len(tail) || !slices.Equal(got[len(got)-len(tail):], tail) {
		t.Fatalf("read %q, the tail is %q", got, tail)
	}
	have := map[string]int{}
	last := 0
	for i, e := range got {
		for _, w := range strings.Split(e, " ") {
			key, value, has := strings.Cut(w, "=")
			if !has {
				if w != "-" && i < len(got)-len(tail) {
					t.Fatalf("%q has no key and is compacted", w)
				}
				continue
			}
			v := 0
			if value != "" {
				if _, err := fmt.Sscan(value, &v); err != nil {
					t.Fatal(err)
				}
				if v <= last {
					t.Fatalf("%q comes behind %d", w, last)
				}
				last = v
			}
			if _, twice := have[key]; twice && i < len(got)-len(tail) {
				t.Fatalf("key %s is there twice: %q", key, got)
			}
			have[key] = v
		}
	}
	for key, v := range newest {
		if have[key] != v {
			t.Fatalf("key %s is %d, want %d: %q", key, have[key], v, got)
		}
	}
}
