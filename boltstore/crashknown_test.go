package boltstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wayside/edge"
)

// crashKnown is what the child said of its store, over all rounds.
type crashKnown struct {
	topics   map[string]*crashTopic
	values   map[string]*versions
	used     map[edge.Position]string // by what, in all topics that there ever were
	receipts int
}

// crashTopic is what it said of a topic.
type crashTopic struct {
	birth    string
	entries  []edge.Entry // confirmed, or seen after a crash
	trimmed  edge.Position
	cursors  map[string]*versions
	props    *versions
	deleting bool
}

func newKnown() *crashKnown {
	return &crashKnown{topics: map[string]*crashTopic{}, values: map[string]*versions{}, used: map[edge.Position]string{}}
}

// clone is for a look at what might have happened: what is known stays as it is.
func (k *crashKnown) clone() *crashKnown {
	c := &crashKnown{topics: maps.Clone(k.topics), values: cloneVersions(k.values), used: maps.Clone(k.used), receipts: k.receipts}
	for name, w := range c.topics {
		t := *w
		t.entries, t.cursors, t.props = slices.Clone(w.entries), cloneVersions(w.cursors), w.props.clone()
		c.topics[name] = &t
	}
	return c
}

func newCrashTopic(birth string) *crashTopic {
	w := &crashTopic{birth: birth, cursors: map[string]*versions{}, props: &versions{[]version{{gone: true}}}}
	for i, name := range crashCursors {
		w.cursors[name] = &versions{[]version{{gone: i > 0}}}
	}
	return w
}

// note notes one line: what it is and of what, topic, birth id, and numbers.
func (k *crashKnown) note(line string) error {
	var what, name, birth string
	var p edge.Position
	var n uint64
	var seq int64
	if _, err := fmt.Sscan(line, &what, &name, &birth, &p.Ledger, &p.Entry, &n, &seq); err != nil {
		return fmt.Errorf("line %q: %v", line, err)
	}
	what, of, _ := strings.Cut(what, ":")
	if k.noteValue(what, of, n) {
		return nil
	}
	w := k.topics[name]
	if w == nil || what == "birth" && w.birth != birth {
		w = newCrashTopic(birth)
		k.topics[name] = w
	}
	switch what {
	case "birth":
	case "append":
		e := edge.Entry{Position: p, Index: n, Facts: edge.Facts{Sequence: seq, Messages: 1}}
		w.entries = append(w.entries, e)
		k.receipts++
		return k.use(name, w, e)
	case "ask":
		w.cursors[of].ask(version{n: n, at: p})
	case "drop":
		w.cursors[of].ask(version{n: n, gone: true})
	case "saved":
		w.cursors[of].confirm(n)
	case "property":
		w.props.ask(version{n: n})
	case "propertied":
		w.props.confirm(n)
	case "trim":
		w.trimmed = edge.Max(w.trimmed, p)
	case "delete":
		w.deleting = true
	case "deleted":
		*w = crashTopic{cursors: map[string]*versions{}, props: &versions{}}
	default:
		return fmt.Errorf("line %q", line)
	}
	return nil
}

func (k *crashKnown) noteValue(what, key string, n uint64) bool {
	v := k.values[key]
	if v == nil {
		v = &versions{[]version{{gone: true}}}
	}
	switch what {
	case "put":
		v.ask(version{n: n})
	case "unset":
		v.ask(version{n: n, gone: true})
	case "put-done":
		v.confirm(n)
	default:
		return false
	}
	k.values[key] = v
	return true
}

// use notes that a position was used. It is an error when it was for something else.
func (k *crashKnown) use(name string, w *crashTopic, e edge.Entry) error {
	content := fmt.Sprint(name, " ", w.birth, " ", e.Facts.Sequence)
	if was, ok := k.used[e.Position]; ok && was != content {
		return fmt.Errorf("position %v is used for %q and for %q", e.Position, was, content)
	}
	k.used[e.Position] = content
	return nil
}

// verify compares a store with what is known of it.
func (k *crashKnown) verify(s *Store) error {
	for name, w := range k.topics {
		if err := k.verifyTopic(s, name, w); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return k.verifyValues(s)
}

func (k *crashKnown) verifyTopic(s *Store, name string, w *crashTopic) error {
	there := slices.ContainsFunc(s.Records(), func(r edge.TopicRecord) bool { return r.Name.Local == name })
	if !there {
		if !w.deleting && w.birth != "" {
			return fmt.Errorf("the topic is gone")
		}
		k.topics[name] = newCrashTopic("")
		return nil
	}
	led, err := s.OpenLedger(crashName(name), nil)
	if err != nil {
		return err
	}
	if led.BirthID() != w.birth {
		*w = *newCrashTopic(led.BirthID()) // created, but not told of any more
	}
	w.deleting = false
	for _, step := range []func(edge.Ledger, string, *crashTopic) error{k.verifyEntries, verifyCursors, verifyProperties, verifySequence} {
		if err := step(led, name, w); err != nil {
			return err
		}
	}
	return await(led.Close)
}

func (k *crashKnown) verifyEntries(led edge.Ledger, name string, w *crashTopic) error {
	got, err := collectEntries(led, led.Spans().Start())
	if err != nil {
		return err
	}
	at := map[edge.Position]edge.Entry{}
	for i, e := range got {
		if string(e.Data) != crashData(name, e.Facts.Sequence) {
			return fmt.Errorf("entry %v has other data", e.Position)
		}
		if i > 0 && (e.Index != got[i-1].Index+1 || e.Facts.Sequence != got[i-1].Facts.Sequence+1) {
			return fmt.Errorf("entry %v, index %d, sequence %d follows %v, %d, %d", e.Position, e.Index, e.Facts.Sequence,
				got[i-1].Position, got[i-1].Index, got[i-1].Facts.Sequence)
		}
		at[e.Position] = e
		if err := k.use(name, w, e); err != nil {
			return err
		}
	}
	for _, e := range w.entries {
		g, ok := at[e.Position]
		switch {
		case !ok && e.Position.Less(w.trimmed) && !led.Spans().Start().Less(e.Position):
		case !ok:
			return fmt.Errorf("confirmed entry %v is gone", e.Position)
		case g.Index != e.Index || g.Facts.Sequence != e.Facts.Sequence:
			return fmt.Errorf("entry %v changed", e.Position)
		}
	}
	w.entries = got
	return nil
}

// verifyCursors wants each cursor as one of those that were asked for since the last that
// was confirmed, with all that it holds: not behind, and never ahead.
func verifyCursors(led edge.Ledger, name string, w *crashTopic) error {
	states, err := led.Cursors()
	if err != nil {
		return err
	}
	for cursor, v := range w.cursors {
		state, there := states[cursor]
		x, err := v.found(crashVersion(&state), !there)
		if err != nil {
			return fmt.Errorf("cursor %s: %w", cursor, err)
		}
		if x.gone {
			continue
		}
		if x.n == 0 {
			x.at = edge.Position{Ledger: state.MarkDelete.Ledger, Entry: -1} // where the topic began, or was trimmed
			if floor := led.(*ledger).view.Load().floor; floor != (edge.Position{}) {
				x.at = floor
			}
		}
		want := crashState(name+" "+cursor, x).Raised(led.(*ledger).view.Load().floor)
		if !sameState(state, want) {
			return fmt.Errorf("cursor %s, version %d: %v, want %v", cursor, x.n, state, want)
		}
	}
	return nil
}

func verifyProperties(led edge.Ledger, name string, w *crashTopic) error {
	value, err := led.Properties()
	if err != nil {
		return err
	}
	if _, err := w.props.found(crashValueVersion(name, value), value == nil); err != nil {
		return fmt.Errorf("properties: %w", err)
	}
	return nil
}

func verifySequence(led edge.Ledger, _ string, w *crashTopic) error {
	sequences, err := led.Sequences()
	if err != nil {
		return err
	}
	if n := len(w.entries); n > 0 && sequences["p"].Highest != w.entries[n-1].Facts.Sequence {
		return fmt.Errorf("sequence %d behind entry %+v", sequences["p"].Highest, w.entries[n-1].Facts)
	}
	return nil
}

func (k *crashKnown) verifyValues(s *Store) error {
	found := map[string][]byte{}
	err := s.ScanValues("", func(key string, value []byte) bool {
		found[key] = value
		return true
	})
	if err != nil {
		return err
	}
	for key, v := range k.values {
		value, there := found[key]
		if _, err := v.found(crashValueVersion(key, value), !there); err != nil {
			return fmt.Errorf("value %s: %w", key, err)
		}
	}
	return nil
}

// goOn appends to every topic and to a new one, and wants positions that were never used.
func (k *crashKnown) goOn(s *Store) error {
	for _, name := range append(slices.Sorted(maps.Keys(k.topics)), "fresh") {
		led, err := s.OpenLedger(crashName(name), crashCursors[:1])
		if err != nil {
			return err
		}
		w := k.topics[name]
		if w == nil || w.birth != led.BirthID() {
			w = newCrashTopic(led.BirthID())
			k.topics[name] = w
		}
		seq := int64(0)
		if n := len(w.entries); n > 0 {
			seq = w.entries[n-1].Facts.Sequence + 1
		} else if states, err := led.Sequences(); err != nil {
			return err
		} else if q, ok := states["p"]; ok {
			seq = q.Highest + 1
		}
		e, err := appendCrash(led, name, seq)
		if err != nil {
			return err
		}
		if was, ok := k.used[e.Position]; ok {
			return fmt.Errorf("%s: position %v was used for %q", name, e.Position, was)
		}
		w.entries = append(w.entries, e)
		if err := await(led.Close); err != nil {
			return err
		}
	}
	return nil
}

func appendCrash(led edge.Ledger, name string, seq int64) (edge.Entry, error) {
	type outcome struct {
		e   edge.Entry
		err error
	}
	done := make(chan outcome, 1)
	led.Append(crashMessage(name, seq), func(e edge.Entry, err error) { done <- outcome{e, err} })
	o := <-done
	return o.e, o.err
}

func crashMessage(name string, seq int64) edge.Message {
	return edge.Message{
		Facts:     edge.Facts{Producer: "p", Sequence: seq, Highest: seq, Messages: 1},
		Data:      []byte(crashData(name, seq)),
		Sequenced: true,
	}
}

// collectEntries reads all from a position on, and wants nothing lost.
func collectEntries(led edge.Ledger, next edge.Position) (all []edge.Entry, err error) {
	for {
		b, err := led.Read([]edge.Range{{First: next, Last: edge.Latest}}, 500, 1<<20)
		if err != nil {
			return nil, err
		}
		if len(b.Lost) > 0 {
			return nil, fmt.Errorf("lost %v", b.Lost)
		}
		if len(b.Entries) == 0 {
			return all, nil
		}
		all = append(all, b.Entries...)
		next = all[len(all)-1].Position.Next()
	}
}
