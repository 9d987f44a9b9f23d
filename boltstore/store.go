package boltstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// Store is an edge.Store in bbolt files. It owns its directory until Close.
type Store struct {
	opts  Options
	lock  *os.File
	queue *queue
	shelf *shelf

	started time.Time
	closing chan struct{} // closed when Close was called
	done    chan struct{} // closed when the committer has ended
	remarks []string      // what happened to the files at opening

	log      *journal.Log // nil without a journal
	topicsMu sync.RWMutex // guards topics, what it says of each topic, and unsaved
	topics   map[edge.TopicName]*topic
	unsaved  map[*topic]*unsaved // what the journal has of topics and the main file has not

	live    atomic.Int64 // bytes
	commits atomic.Int64
	syncs   atomic.Int64
	written atomic.Int64 // bytes of entries
	failing atomic.Pointer[failure]

	freezing atomic.Pointer[freeze] // asked for, and not yet answered
	backing  sync.Mutex             // held as long as a backup is made

	// The committer's own.
	main         *file
	format       int64 // of the main file, as it was opened
	space        space
	ids          *ids
	volumes      map[uint64]*volume
	nextTopic    uint64
	active       int64 // topics whose open ledger has entries
	confirmed    uint64
	groups       int
	sweeping     bool
	reborn       bool   // no giving of new birth ids was interrupted
	bereft       bool   // the main file has been lost, or records in it
	telling      uint64 // segment of the last group, 0 before the first
	doubtful     bool   // not all that was confirmed need be there: ids may not go on from here
	hopeless     bool   // a failure that only a restart ends
	serving      bool   // opening has ended: remarks are not changed any more
	uptimeBase   int64
	uptimeNoted  int64
	compaction   *compaction     // nil when none is under way
	keepAcked    bool            // it takes what is acknowledged along
	stuck        map[uint64]bool // volumes that cannot be moved
	compactAfter time.Time
	compactPause time.Duration
	arena        []byte // values of the transaction under way

	// Of the journal.
	loosened map[*topic]struct{} // topics with loose chunks
	loose    int                 // these, in all
	settled  uint64              // commits up to it are saved
	ends     map[uint64]uint64   // the last commit of each segment
	fresh    int64               // bytes of the journal that are not saved
	since    time.Time           // of the first of them
	saving   *saving             // nil when none is under way
	filing   []byte              // values that are moved
	turning  bool                // the main file is to turn over
	pause    time.Time           // until then nothing is settled, after a failure
	zeros    []byte
}

// Records implements edge.Store.
func (s *Store) Records() []edge.TopicRecord {
	s.topicsMu.RLock()
	list := make([]edge.TopicRecord, 0, len(s.topics))
	for _, t := range s.topics {
		list = append(list, t.record())
	}
	s.topicsMu.RUnlock()
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i].Name, &list[j].Name
		return cmp.Or(strings.Compare(x.Domain, y.Domain), strings.Compare(x.Tenant, y.Tenant),
			strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Local, y.Local)) < 0
	})
	return list
}

// Stats implements edge.Store.
func (s *Store) Stats() edge.StoreStats {
	st := edge.StoreStats{
		LiveBytes:   s.live.Load(),
		FileBytes:   s.shelf.bytes() + s.journalBytes(),
		Quota:       s.opts.Quota,
		FileLimit:   s.opts.FileLimit,
		Commits:     s.commits.Load(),
		Syncs:       s.syncs.Load(),
		WrittenData: s.written.Load(),
		Failed:      s.failure(),
		Remarks:     slices.Clone(s.remarks),
	}
	return st
}

// Close implements edge.Store. Reads that still run are waited for.
func (s *Store) Close() error {
	if s.queue.close() {
		close(s.closing)
	}
	<-s.done
	s.backing.Lock() // none begins any more, since it is closing
	defer s.backing.Unlock()
	s.topicsMu.Lock()
	defer s.topicsMu.Unlock()
	if s.lock == nil {
		return nil
	}
	err := s.closeFiles()
	s.lock = nil
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

func (s *Store) logger() *slog.Logger { return s.opts.Logger }

// uptime counts the seconds that brokers have run on this store.
func (s *Store) uptime() int64 { return s.uptimeBase + int64(time.Since(s.started)/time.Second) }

// viewMain reads the main file. While that is closed for a repair it cannot be read
// this way.
func (s *Store) viewMain(fn func(tx *bbolt.Tx) error) error {
	for {
		f := s.shelf.mainFile()
		err := f.view(fn)
		switch {
		case !errors.Is(err, errTurned):
			return err
		case f == s.shelf.mainFile():
			return fmt.Errorf("%w: main file is being repaired", edge.ErrStorage)
		}
	}
}

// viewTopic reads a topic's bucket in the main file.
func (s *Store) viewTopic(t *topic, fn func(b *bbolt.Bucket) error) error {
	return s.viewMain(func(tx *bbolt.Tx) error {
		b := tx.Bucket(topicKey(t.key))
		if b == nil {
			return fmt.Errorf("topic %s: %w", t.name, edge.ErrGone)
		}
		return fn(b)
	})
}
