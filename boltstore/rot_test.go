package boltstore

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// TestRottenPages damages files at random, page by page and bit by bit. Whatever it
// hits, the store starts, serves nothing that was not stored, and does not loop.
func TestRottenPages(t *testing.T) {
	o := testOptions(t)
	stored := template(t, o)
	clean := o.Path
	r := rand.New(rand.NewPCG(uint64(envNumber("WAYSIDE_ROT_SEED", 1)), 0))
	total, worst := 0, 1000
	rounds := envNumber("WAYSIDE_ROT_ROUNDS", 40)
	for range rounds {
		o.Path = copyDir(t, clean)
		edit(t, mainPath(t, o.Path), func(b []byte) []byte { return rot(r, b) })
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		found := inspect(t, s, stored)
		total += found
		worst = min(worst, found)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(o); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("on average %d of %d entries survive, at worst %d", total/rounds, 3*41, worst)
}

// rot changes a few places in the used part of a file, leaving one meta page alone.
func rot(r *rand.Rand, b []byte) []byte {
	used := usedPages(b)
	for range 1 + r.IntN(4) {
		page := b[(2+r.IntN(used-2))*pageSize:][:pageSize]
		switch r.IntN(5) {
		case 0:
			clear(page)
		case 1:
			for i := range page {
				page[i] = byte(r.Uint32())
			}
		case 2:
			page[r.IntN(pageHeader+3*pageElement)] = byte(r.Uint32())
		case 3:
			page[r.IntN(pageSize)] ^= 1 << r.IntN(8)
		case 4:
			copy(page, b[(2+r.IntN(used-2))*pageSize:][:pageSize])
		}
	}
	return b
}

// TestRottenWhileOpen damages a file behind the back of a store that is open, and
// reads. (A write can meet damage in bbolt's own walk after a failed commit, where
// nobody can catch it: the process ends, and the next start checks the file.)
func TestRottenWhileOpen(t *testing.T) {
	o := testOptions(t)
	stored := template(t, o)
	clean := o.Path
	r := rand.New(rand.NewPCG(2, 0))
	for range envNumber("WAYSIDE_ROT_ROUNDS", 40) / 2 {
		o.Path = copyDir(t, clean)
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(mainPath(t, o.Path), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		changed := rot(r, bytes.Clone(b))
		for i := 2 * pageSize; i < len(b); i += pageSize {
			if !bytes.Equal(b[i:i+pageSize], changed[i:i+pageSize]) {
				if _, err := f.WriteAt(changed[i:i+pageSize], int64(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.Close()
		look(t, s, stored)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedTopicStandsAlone damages one topic's page under an open store: it is
// refused, those that share its commits are not.
func TestDamagedTopicStandsAlone(t *testing.T) {
	o := testOptions(t)
	s := mustOpen(t, o)
	good, bad := mustLedger(t, s, "good"), mustLedger(t, s, "bad")
	mustAppend(t, good, "one")
	mustAppend(t, bad, "one")
	root := uint64(0)
	err := s.viewMain(func(tx *bbolt.Tx) error {
		root = uint64(tx.Bucket(topicKey(bad.(*ledger).topic.key)).Root())
		return nil
	})
	if err != nil || root == 0 {
		t.Fatalf("page %d, %v", root, err)
	}
	f, err := os.OpenFile(mainPath(t, o.Path), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, pageSize), int64(root)*pageSize); err != nil {
		t.Fatal(err)
	}
	q := s.queue
	done := make(chan error, 4)
	q.mu.Lock()
	for _, l := range []edge.Ledger{good, bad, good, bad} {
		q.putLocked(&appendOp{l: l.(*ledger), m: edge.Message{Data: []byte("two")}, done: func(_ edge.Entry, err error) { done <- err }})
	}
	q.mu.Unlock()
	q.signal()
	for i := range 4 {
		if err := <-done; (err != nil) != (i%2 == 1) {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	wantTexts(t, good, "one", "two", "two")
	if err := await(bad.Recover); !errors.Is(err, edge.ErrStorage) {
		t.Fatalf("recover: %v", err)
	}
	if err := errors.Join(await(bad.Close), s.Stats().Failed); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenLedger(crashName("bad"), nil); !errors.Is(err, edge.ErrStorage) {
		t.Fatalf("open: %v", err)
	}
	if err := await(func(done func(error)) { s.DeleteLedger(crashName("bad"), done) }); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, mustLedger(t, s, "bad"), "anew")
	mustAppend(t, good, "three")
}
