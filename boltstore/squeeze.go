package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// ErrSalvage says that a directory is damaged in a way that has to be salvaged first.
var ErrSalvage = errors.New("data directory is damaged")

// Compacted is what compacting a directory did, bytes.
type Compacted struct {
	Before, After int64 // of files
	Live          int64
	Freed         int // files that are gone
}

// Compact wins all the space back in the directory of a stopped store that can be had:
// what no ledger lists any more, and what every subscription has acknowledged, unless
// keepAcked is set. It goes in the steps of a running store: a crash or the end of ctx
// leaves a directory as good as it was. The journal's content goes into the files.
// edge.ErrStoreFull says that the disk had no room for the next step.
func Compact(ctx context.Context, dir string, keepAcked bool, logger *slog.Logger) (c Compacted, err error) {
	o, err := maintenance(dir, logger, func(i *Inspection) error {
		if list := i.Mendable(); len(list) > 0 {
			return fmt.Errorf("%w: %v", ErrSalvage, list[0])
		}
		sum := i.Summary()
		c.Before, c.Live = sum.FileBytes, sum.LiveBytes
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("compact store: %w", err)
	}
	o.JournalBytes = 0
	s, err := prepare(o)
	if err != nil {
		return c, fmt.Errorf("compact store: %w", err)
	}
	s.keepAcked = keepAcked
	files := len(s.volumes)
	err = s.squeeze(ctx)
	c.Freed = max(0, files-len(s.volumes))
	path, high := s.main.path, s.space.high
	err = errors.Join(err, s.shelf.closeAll())
	if err == nil {
		err = cut(path, high)
	}
	err = errors.Join(err, s.closeFiles())
	if i, ierr := Inspect(dir); ierr == nil {
		c.After = i.Summary().FileBytes
		err = errors.Join(err, i.Close())
	}
	if err != nil {
		return c, fmt.Errorf("compact store: %w", err)
	}
	return c, nil
}

// maintenance are the options to open a stopped store with for work on it: no limit but
// the disk's, and the journal as it is. look sees the directory before.
func maintenance(dir string, logger *slog.Logger, look func(i *Inspection) error) (Options, error) {
	o := DefaultOptions()
	o.Path, o.Logger = dir, logger
	i, err := Inspect(dir)
	if err != nil {
		return o, err
	}
	err = look(i)
	sum := int64(0)
	for _, e := range i.names {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	o.Quota += sum
	o.FileLimit = 4 * o.Quota
	if there, err := journal.Exists(dir); err != nil || there {
		o.JournalBytes, o.JournalSegment = sum+minJournalSegment, 4<<20
	}
	return o, errors.Join(err, i.Close())
}

// cut gives the space behind a closed file's last page back.
func cut(path string, high int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(high)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// squeeze runs the winning back of space to its end.
func (s *Store) squeeze(ctx context.Context) error {
	if err := s.sweepAll(ctx); err != nil {
		return err
	}
	upTo := s.main.number
	if err := s.setApart(ctx, upTo); err != nil {
		return err
	}
	for moved := true; moved; {
		c := s.look(upTo)
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			s.compaction = c
			if more, err = s.compact(c); err != nil {
				return err
			}
			moved = c.move != nil
		}
	}
	return s.sweepAll(ctx)
}

// look starts a pass of a stopped store.
func (s *Store) look(upTo uint64) *compaction {
	c := &compaction{live: map[uint64]int64{}, upTo: upTo}
	s.walk(c)
	return c
}

// setApart turns the main file over if that and a move leave less than it takes.
func (s *Store) setApart(ctx context.Context, main uint64) error {
	c := s.look(main)
	for t := s.nextOf(c); t != nil; t = s.nextOf(c) {
		if err := errors.Join(ctx.Err(), s.survey(c, t)); err != nil {
			return err
		}
	}
	rest := c.live[main] + c.live[main]/8 + int64(len(s.topics))*turnTopicBytes
	if gain := s.space.high - rest; gain < max(1<<20, s.space.high/8) {
		return nil
	}
	if err := s.turnOver(); err != nil {
		return err
	}
	if s.main.number == main {
		return fmt.Errorf("%w: a new main file has no room", edge.ErrStoreFull)
	}
	return nil
}

// sweepAll gives back all that was crossed off.
func (s *Store) sweepAll(ctx context.Context) error {
	for s.sweeping {
		if err := errors.Join(ctx.Err(), s.sweep()); err != nil {
			return err
		}
	}
	return nil
}
