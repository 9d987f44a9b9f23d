package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// Options configure a Log. DefaultOptions fills in all but Dir.
type Options struct {
	Dir    string // exists; the log owns the files in it that it names
	Logger *slog.Logger
	// SegmentBytes is what a segment takes on disk. A group that needs more gets a
	// segment of its own.
	SegmentBytes int64
	// Spares is how many segments are kept to be used again.
	Spares int

	// ReadOnly leaves the directory as it is: Open, Replay, Pin and Close only.
	ReadOnly bool
	// Sync makes what was written to a file durable; nil is fdatasync.
	Sync func(f *os.File) error

	hooks hooks
}

// hooks let tests of this package stand in for a bad disk. Nil functions do nothing.
type hooks struct {
	write func(f *os.File, b []byte, at int64) error // before each write of frames
	make  func() error                               // before a segment is made
}

// DefaultOptions are the values of an installation that configures nothing.
func DefaultOptions() Options {
	return Options{Logger: slog.New(slog.DiscardHandler), SegmentBytes: 16 << 20, Spares: 1}
}

// minSegment leaves room for something behind head and link.
const minSegment = 16 << 10

// MaxGroup bounds the payload of one group, bytes.
const MaxGroup = 1 << 30

func (o Options) check() error {
	switch {
	case o.Dir == "" || o.Logger == nil:
		return errors.New("journal: no directory or no logger")
	case o.SegmentBytes < minSegment || o.SegmentBytes > MaxGroup || o.SegmentBytes%headBytes != 0:
		return fmt.Errorf("journal: segments of %d bytes", o.SegmentBytes)
	case o.Spares < 0:
		return errors.New("journal: negative number of spares")
	}
	return nil
}
