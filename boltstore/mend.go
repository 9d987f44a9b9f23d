package boltstore

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
)

// Salvaged is what salvaging a directory did.
type Salvaged struct {
	Remarks []string  // what happened to the files
	Left    []Finding // what a check says behind it, notes left out
	Checked Checked
}

// Salvage does with the directory of a stopped store what a start does with a damaged
// one: files that cannot be served are set aside, what can be read of them is kept, the
// journal is replayed. A directory that is not damaged so is left as it is. Copies of the
// journal's files stay beside those that are set aside.
func Salvage(dir string, logger *slog.Logger) (out Salvaged, err error) {
	mends := false
	o, err := maintenance(dir, logger, func(i *Inspection) error {
		mends = len(i.Mendable()) > 0
		if i.s.main == nil || !i.damaged[i.s.main.number] {
			return nil
		}
		kept, err := i.keepJournal()
		if len(kept) > 0 {
			out.Remarks = append(out.Remarks, fmt.Sprintf("%d files of the journal are copied beside it, as *%s*", len(kept), asideMark))
		}
		return err
	})
	if err == nil && mends {
		var s *Store
		if s, err = Open(o); err == nil {
			err = s.Close()
			out.Remarks = append(out.Remarks, s.remarks...)
		}
	}
	if err != nil {
		return out, fmt.Errorf("salvage store: %w", err)
	}
	i, err := Inspect(dir)
	if err != nil {
		return out, fmt.Errorf("check what was salvaged: %w", err)
	}
	out.Checked, err = i.Check(func(f Finding) {
		if !f.Note && len(out.Left) < maxLeft {
			out.Left = append(out.Left, f)
		}
	})
	return out, errors.Join(err, i.Close())
}

// maxLeft bounds the findings that are kept.
const maxLeft = 1000

// keepJournal copies the files of the journal under names that no start looks at: what
// they hold of topics whose names are lost goes with the first start.
func (i *Inspection) keepJournal() (names []string, err error) {
	mark := asideMark + time.Now().UTC().Format("20060102T150405")
	for _, e := range i.names {
		if !strings.HasSuffix(e.Name(), ".seg") {
			continue
		}
		name := e.Name() + mark
		to := filepath.Join(i.s.opts.Path, name)
		if err := copyWhole(filepath.Join(i.s.opts.Path, e.Name()), to); err != nil {
			return names, errors.Join(fmt.Errorf("keep a copy of the journal: %w", err), removeIfThere(to))
		}
		names = append(names, name)
	}
	return names, nil
}
