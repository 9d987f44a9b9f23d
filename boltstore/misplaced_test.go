package boltstore

import (
	"bytes"
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// editMain changes a closed store's main file through bbolt.
func editMain(t *testing.T, o Options, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := openWritable(mainPath(t, o.Path), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// topicBuckets are those of the topics of template, in order of their creation.
func topicBuckets(tx *bbolt.Tx) (list []*bbolt.Bucket) {
	for n := range uint64(3) {
		list = append(list, tx.Bucket(topicKey(n+1)))
	}
	return list
}

// TestStateOfAnotherTopic puts sound values of one topic into the bucket of another, as a
// disk does that gives back a page as it was before its last use: they are not served.
func TestStateOfAnotherTopic(t *testing.T) {
	o := testOptions(t)
	template(t, o)
	s := mustOpen(t, o)
	for _, name := range []string{"a", "b"} {
		l := mustLedger(t, s, name)
		at := l.Spans().End()
		m := edge.Message{Facts: edge.Facts{Producer: "p", Sequence: at.Ledger, Highest: at.Ledger, Messages: 1}, Sequenced: true}
		l.Append(m, func(edge.Entry, error) {})
		for _, err := range []error{
			await(func(done func(error)) {
				l.SaveCursor("sub", func() edge.CursorState { return edge.CursorState{MarkDelete: at} }, done)
			}),
			await(func(done func(error)) { l.SetProperties([]byte(name), done) }),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	editMain(t, o, func(tx *bbolt.Tx) error {
		topics := topicBuckets(tx)
		for _, bucket := range [][]byte{bucketCursors, bucketProps, bucketSequences} {
			k, v := topics[0].Bucket(bucket).Cursor().First()
			if err := topics[1].Bucket(bucket).Put(bytes.Clone(k), bytes.Clone(v)); err != nil {
				return err
			}
		}
		return nil
	})
	said := &listener{}
	o.Logger = said.logger()
	s = mustOpen(t, o)
	b := mustLedger(t, s, "b")
	if states, err := b.Cursors(); err != nil || states["sub"].MarkDelete != b.Spans().Start() {
		t.Errorf("cursors %v, %v", states, err)
	}
	if value, err := b.Properties(); err == nil {
		t.Errorf("properties %q", value)
	}
	if states, err := b.Sequences(); err != nil || len(states) > 0 {
		t.Errorf("sequences %v, %v", states, err)
	}
	if n := len(said.all()); n != 2 {
		t.Errorf("%d things are named: %q", n, said.all())
	}
}

// TestAValueWhereABucketWas costs the topic that it is in, and not the start.
func TestAValueWhereABucketWas(t *testing.T) {
	o := journalOptions(t)
	o.JournalBytes = 4 << 20
	s := mustOpen(t, o)
	for _, name := range []string{"a", "b"} {
		mustAppend(t, mustLedger(t, s, name, "sub"), "one "+name)
	}
	o.Path = copyDir(t, o.Path) // as a crash leaves it: the start has something to save
	editMain(t, o, func(tx *bbolt.Tx) error {
		b := tx.Bucket(topicKey(1))
		if err := b.DeleteBucket(bucketCursors); err != nil {
			return err
		}
		return b.Put(bucketCursors, []byte("value"))
	})
	s = mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) != 1 {
		t.Errorf("remarks %q", r)
	}
	b := mustLedger(t, s, "b")
	mustAppend(t, b, "two b")
	wantTexts(t, b, "one b", "two b")
}

// TestAVolumeThatIsNotListed stays as long as a topic needs it.
func TestAVolumeThatIsNotListed(t *testing.T) {
	small := newSmallStore(t)
	o := small.o
	o.Path = t.TempDir()
	for name, b := range small.files {
		if err := os.WriteFile(o.Path+"/"+name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	editMain(t, o, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(numberKey(prefixVolume, 1)) })
	missing, named, err := small.open(o.Path)
	if err != nil || missing > 0 || len(named) == 0 {
		t.Errorf("%d entries are missing, named %q: %v", missing, named, err)
	}
	if r := mustOpen(t, o).Stats().Remarks; len(r) > 0 {
		t.Errorf("remarks again: %q", r)
	}
}

// TestATopicWithoutARecord is named, and its number is not given to another.
func TestATopicWithoutARecord(t *testing.T) {
	o := testOptions(t)
	template(t, o)
	editMain(t, o, func(tx *bbolt.Tx) error { return tx.Bucket(bucketRecords).Delete(number(3)) })
	s := mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) != 1 {
		t.Errorf("remarks %q", r)
	}
	mustAppend(t, mustLedger(t, s, "d"), "one")
}
