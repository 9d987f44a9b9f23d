package boltstore

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Options configure a Store. DefaultOptions fills in all but Path.
type Options struct {
	Path   string           // directory, made if it does not exist
	Clock  func() time.Time // wall clock of times kept in the store
	Logger *slog.Logger

	// Quota is what live bytes are held against: data that some cursor has not
	// acknowledged. The store states it in its stats and sizes ledgers by it; whom to
	// refuse at it is the broker's decision.
	Quota int64
	// TopicQuota is the same for one topic, 0 for none: it only sizes ledgers.
	TopicQuota int64
	// FileLimit bounds what the files take on disk, bytes; 0 is twice the quota.
	// Appends beyond it fail with edge.ErrStoreFull.
	FileLimit int64

	// GroupBytes caps the data of one transaction, unless one message is larger.
	GroupBytes int
	// CommitDelay lets a group gather for that long before it is written. 0 commits
	// at once and gathers only while a sync runs.
	CommitDelay time.Duration
	// SaveInterval is the longest that a cursor saved without done stays unwritten.
	SaveInterval time.Duration

	// VolumeBytes is the size at which the main file becomes a read-only volume.
	VolumeBytes int64
	// JournalBytes is what of the journal stays before its oldest segments are moved into
	// the files; 0 is a store without a journal. JournalSegment is the size of a segment,
	// 0 for a quarter of it, 16 MiB at most.
	JournalBytes   int64
	JournalSegment int64

	// LedgerEntries and LedgerBytes close a ledger, so that it can be trimmed.
	LedgerEntries int64
	LedgerBytes   int64

	hooks hooks
}

// hooks let tests of this package stand in for a bad disk. Nil functions do nothing.
type hooks struct {
	refuse *atomic.Pointer[error]           // why groups fail before anything is written
	commit func(tx *bbolt.Tx) error         // instead of tx.Commit
	grow   func(f *os.File, to int64) error // instead of writing zeros up to that size
	reopen func() error                     // before a failed main file is opened anew
	sync   func(f *os.File) error           // instead of fdatasync of the journal
	pause  time.Duration                    // instead of compactPause, unless 0
	small  int64                            // instead of smallMain, unless 0
}

// DefaultOptions are the values of an installation that configures nothing.
func DefaultOptions() Options {
	volume := int64(256 << 20)
	if is32bit {
		volume = 64 << 20
	}
	return Options{
		Clock:         time.Now,
		Logger:        slog.New(slog.DiscardHandler),
		Quota:         1 << 30,
		GroupBytes:    1 << 20,
		SaveInterval:  time.Second,
		VolumeBytes:   volume,
		LedgerEntries: 50_000,
		LedgerBytes:   32 << 20,
	}
}

const (
	is32bit = math.MaxInt == math.MaxInt32

	// pageSize is fixed, so that a store can be moved between machines whose kernels
	// have other page sizes.
	pageSize = 4096

	// minFileLimit leaves room for a reserve and some data in front of it.
	minFileLimit = 2 << 20

	// minVolume keeps the turning over of small stores from costing more than it gives.
	minVolume = 32 << 20

	// minJournalSegment keeps what a segment costs, its head and the syncs that make it,
	// small beside what it holds.
	minJournalSegment = 64 << 10

	// maxGroupBytes bounds what one transaction holds in memory.
	maxGroupBytes = 64 << 20
)

// withLimits checks the options and fills in what follows from others.
func (o Options) withLimits() (Options, error) {
	if o.FileLimit == 0 {
		o.FileLimit = 2 * o.Quota
	}
	switch {
	case o.Path == "":
		return o, errors.New("store: no path")
	case o.Clock == nil || o.Logger == nil:
		return o, errors.New("store: no clock or no logger")
	case o.Quota <= 0:
		return o, fmt.Errorf("store: quota of %d bytes", o.Quota)
	case o.FileLimit < minFileLimit:
		return o, fmt.Errorf("store: file limit of %d bytes, at least %d", o.FileLimit, minFileLimit)
	case o.GroupBytes < pageSize || o.GroupBytes > maxGroupBytes:
		return o, fmt.Errorf("store: groups of %d bytes", o.GroupBytes)
	case o.CommitDelay < 0 || o.SaveInterval <= 0:
		return o, errors.New("store: negative delay or no save interval")
	case o.VolumeBytes < 1<<20 || o.LedgerEntries < 1 || o.LedgerBytes < 1:
		return o, errors.New("store: volumes under 1 MiB, or ledgers without size")
	}
	if o.JournalBytes > 0 && o.JournalSegment == 0 {
		o.JournalSegment = min(max(o.JournalBytes/4/pageSize*pageSize, minJournalSegment), 16<<20)
	}
	if o.JournalBytes < 0 || o.JournalSegment < 0 || o.JournalSegment%pageSize != 0 {
		return o, fmt.Errorf("store: journal of %d bytes in segments of %d", o.JournalBytes, o.JournalSegment)
	}
	o.SaveInterval += o.CommitDelay // so that cursors ride with the group that waits
	// A main file that turns over needs room for others beside it.
	if quarter := o.FileLimit / 4; o.VolumeBytes > quarter {
		o.VolumeBytes = max(quarter, min(minVolume, o.VolumeBytes))
	}
	return o, nil
}

// space is what follows from the limits for a main file: the reserve, which appends
// leave alone, so that acknowledgements, trims and deletes still find room when the
// disk or the limit is full, and the step of growth.
func (o Options) space() space {
	return space{
		reserve: min(max(o.FileLimit/32, 256<<10), 16<<20) / pageSize * pageSize,
		step:    min(max(o.FileLimit/64, 64<<10), 2<<20) / pageSize * pageSize,
	}
}
