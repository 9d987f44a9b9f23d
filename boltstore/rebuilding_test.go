package boltstore

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"wayside/edge"
)

// TestLostMainFile loses the main file of a store whose data lies in the journal, as it is
// at a clean stop and as a kill leaves it: topics, entries and cursors come back.
func TestLostMainFile(t *testing.T) {
	for _, damage := range []string{"zeros", "missing", "cut"} {
		t.Run(damage, func(t *testing.T) {
			o := journalOptions(t)
			s := mustOpen(t, o)
			stored := map[string][]string{}
			births := map[string]string{}
			for _, name := range []string{"a", "b"} {
				l := mustLedger(t, s, name, "idle", "gone")
				for i := range 20 {
					text := fmt.Sprint(name, i)
					at := mustAppend(t, l, text)
					stored[name] = append(stored[name], text)
					if i == 12 {
						save := func() edge.CursorState { return edge.CursorState{MarkDelete: at[0].Position} }
						must(t, await(func(done func(error)) { l.SaveCursor("c", save, done) }))
						must(t, await(func(done func(error)) { l.DeleteCursor("gone", done) }))
						must(t, await(l.Roll))
					}
				}
				births[name] = l.BirthID()
			}
			mustLedger(t, s, "empty") // nothing was ever told of it
			left := copyDir(t, o.Path)
			must(t, s.Close())
			for name, dir := range map[string]string{"stopped": o.Path, "killed": left} {
				path := mainPath(t, dir)
				switch damage {
				case "zeros":
					edit(t, path, func(b []byte) []byte { return make([]byte, len(b)) })
				case "cut":
					edit(t, path, func(b []byte) []byte { return b[:pageSize] })
				default:
					must(t, os.Remove(path))
				}
				again := o
				again.Path = dir
				for range 2 { // at the second start all is as it was left
					s := mustOpen(t, again)
					lookRebuilt(t, s, name, stored, births)
					if _, err := s.OpenLedger(edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: "a"}, nil); err == nil {
						t.Fatal("opened twice")
					}
					must(t, s.Close())
				}
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lookRebuilt(t *testing.T, s *Store, what string, stored map[string][]string, births map[string]string) {
	t.Helper()
	if n := len(s.Records()); n != len(stored) {
		t.Fatalf("%s: %d topics, remarks %q", what, n, s.Stats().Remarks)
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		l := mustLedger(t, s, name)
		wantTexts(t, l, stored[name]...)
		if l.BirthID() == births[name] {
			t.Errorf("%s: %s has the birth id of old", what, name)
		}
		states, err := l.Cursors()
		must(t, err)
		if got := slices.Sorted(maps.Keys(states)); !slices.Equal(got, []string{"c", "idle"}) {
			t.Errorf("%s: %s has cursors %v", what, name, got)
		}
		rest, err := l.Read([]edge.Range{{First: states["c"].MarkDelete.Next(), Last: edge.Latest}}, 100, 1<<20)
		must(t, err)
		if len(rest.Entries) != 7 {
			t.Errorf("%s: %s: %d entries behind the cursor, want 7", what, name, len(rest.Entries))
		}
	}
}

// TestRebuiltWithoutItsBeginning loses the main file when it has had a part of a topic:
// what the journal still has comes back, and the rest is told to be lost.
func TestRebuiltWithoutItsBeginning(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	big := strings.Repeat("x", 4000)
	const n = 300 // entries: several times the journal
	for i := range n {
		mustAppend(t, l, fmt.Sprint(i, " ", big))
	}
	left := copyDir(t, o.Path)
	must(t, s.Close())
	must(t, os.Remove(mainPath(t, left)))
	o.Path = left
	s = mustOpen(t, o)
	if remarks := fmt.Sprint(s.Stats().Remarks); !strings.Contains(remarks, "1 topics were rebuilt") {
		t.Errorf("remarks are %s", remarks)
	}
	l = mustLedger(t, s, "a")
	all, _, err := collectServed(l)
	must(t, err)
	if len(all) < 20 || len(all) == n {
		t.Fatalf("%d entries of %d", len(all), n)
	}
	for i, e := range all {
		if want := fmt.Sprint(n-len(all)+i, " "); !strings.HasPrefix(string(e.Data), want) {
			t.Fatalf("entry %d is %.10q, want %q", i, e.Data, want)
		}
	}
	states, err := l.Cursors()
	must(t, err)
	if at := states["c"].MarkDelete; all[0].Position.Less(at) {
		t.Errorf("the cursor stands at %v, the first entry is %v", at, all[0].Position)
	}
	next := mustAppend(t, l, "next")
	if !all[len(all)-1].Position.Less(next[0].Position) {
		t.Errorf("next is %v", next[0].Position)
	}
}
