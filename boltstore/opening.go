package boltstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// Open takes a directory, makes it if need be, and starts the committer. ErrLocked
// says that somebody else has it, ErrFormat that another version wrote it. A damaged
// file is no error: what happened to it is told by Stats().Remarks.
func Open(o Options) (*Store, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

// prepare is Open without the committer: whoever called it is the committer.
func prepare(o Options) (*Store, error) {
	o, err := o.withLimits()
	if err != nil {
		return nil, err
	}
	if err := makeDir(o.Path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := lockDir(o.Path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{
		opts: o, lock: lock, queue: newQueue(), shelf: newShelf(), started: time.Now(),
		closing: make(chan struct{}), done: make(chan struct{}),
		unsaved: map[*topic]*unsaved{}, loosened: map[*topic]struct{}{}, ends: map[uint64]uint64{},
		topics: map[edge.TopicName]*topic{}, volumes: map[uint64]*volume{}, stuck: map[uint64]bool{},
		zeros: make([]byte, 256<<10), nextTopic: 1, compactPause: cmp.Or(o.hooks.pause, compactPause),
	}
	err = s.openFiles()
	s.tellRemarks()
	if err != nil {
		return nil, fmt.Errorf("store: %w", errors.Join(err, s.closeFiles()))
	}
	s.serving = true
	return s, nil
}

func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return journal.SyncDir(filepath.Dir(dir))
}

// closeFiles closes whatever has been opened.
func (s *Store) closeFiles() error {
	err := s.shelf.closeAll()
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	if s.space.grower != nil {
		err = errors.Join(err, s.space.grower.Close())
	}
	if s.ids != nil {
		err = errors.Join(err, s.ids.file.Close())
	}
	return errors.Join(err, s.lock.Close())
}

// directory is what lies in the store's directory.
type directory struct {
	files []uint64 // numbers of the files in service, ascending
	next  uint64   // number that no file has had
}

// openFiles brings a main file into service: the newest that can be served. Files
// that cannot are set aside, and topics salvaged from them.
func (s *Store) openFiles() (err error) {
	dir, err := s.listFiles()
	if err != nil {
		return err
	}
	if s.ids, err = openIDs(s.opts.Path); err != nil {
		return err
	}
	dir.next = max(dir.next, s.ids.main+1)
	for _, number := range slices.Backward(dir.files) {
		served, err := s.tryMain(number, &dir)
		if err != nil || served {
			return err
		}
	}
	if s.ids.main > 0 {
		s.remark("no data file can be served, the store starts empty")
	}
	s.bereft = true
	if err := s.createMain(dir.next); err != nil {
		return err
	}
	return s.openMain(dir.next, len(dir.files) > 0 || s.ids.main > 0)
}

// tryMain takes a file as the main file if it can be served, or else what can be
// salvaged from it.
func (s *Store) tryMain(number uint64, dir *directory) (served bool, err error) {
	older, err := s.checkFile(number)
	switch {
	case err == nil:
		rebirth := older
		if older {
			s.remark(fmt.Sprintf("%s: one of its two last states is damaged, the other is served", fileName(number)))
		}
		if number < s.ids.main {
			s.remark(fmt.Sprintf("%s is missing, the older %s is served", fileName(s.ids.main), fileName(number)))
			rebirth, s.bereft = true, true
		}
		return true, s.openMain(number, rebirth)
	case errors.Is(err, ErrFormat) || errors.Is(err, fs.ErrPermission):
		return false, err
	}
	s.remark(fmt.Sprintf("%s cannot be served: %v", fileName(number), err))
	name, err := s.setAside(number)
	if err != nil {
		return false, err
	}
	next := dir.next
	dir.next++
	if ok, err := s.salvage(name, next); err != nil || !ok {
		return false, err
	}
	return true, s.openMain(next, true)
}

// remark notes what happened to the files, for stats and the log.
func (s *Store) remark(text string) { s.remarks = append(s.remarks, text) }

// tellRemarks logs what happened to the files, in one line: it is one event to whoever
// looks after the device.
func (s *Store) tellRemarks() {
	if len(s.remarks) > 0 {
		s.logger().Error("store damaged", "remark", strings.ReplaceAll(strings.Join(s.remarks, "; "), "\n", ", "))
	}
}

// listFiles returns the store's files in order, and removes what an interrupted
// creation left.
func (s *Store) listFiles() (dir directory, err error) {
	names, err := os.ReadDir(s.opts.Path)
	if err != nil {
		return dir, err
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), filePrefix) && strings.HasSuffix(e.Name(), tempSuffix) {
			if err := os.Remove(filepath.Join(s.opts.Path, e.Name())); err != nil {
				return dir, fmt.Errorf("remove unfinished file: %w", err)
			}
			continue
		}
		n, aside, ok := parseFileName(e.Name())
		if ok {
			dir.next = max(dir.next, n)
		}
		if ok && !aside {
			dir.files = append(dir.files, n)
		}
	}
	dir.next++
	ascend(dir.files)
	return dir, nil
}

// ascend sorts numbers. (slices.Sort would be made anew for them.)
func ascend(list []uint64) {
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[uint64]V) []uint64 {
	list := make([]uint64, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	ascend(list)
	return list
}

func (s *Store) path(number uint64) string { return filepath.Join(s.opts.Path, fileName(number)) }

// checkFile checks a main file before bbolt maps it. When only the older of its two
// states is sound the newer one is crossed out and older is true.
func (s *Store) checkFile(number uint64) (older bool, err error) {
	f, err := os.OpenFile(s.path(number), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	metas, i, err := servedState(f)
	if err != nil {
		return false, err
	}
	if i > 0 {
		err = crossOut(f, metas[0].slot)
	}
	return notNewest(metas, i), err
}

// servedState finds the newest state of a file that can be served, among those whose
// meta pages can be read.
func servedState(f *os.File) (metas []metaPage, i int, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if metas, err = readMetas(f); err != nil {
		return nil, 0, err
	}
	for i, m := range metas {
		if err = checkState(f, st.Size(), m); err == nil {
			err = checkContents(f, m)
		}
		if err == nil || errors.Is(err, ErrFormat) {
			return metas, i, err
		}
	}
	return metas, 0, err
}

// notNewest reports whether a newer state than the one served was lost: a meta page that
// cannot be read may have named one.
func notNewest(metas []metaPage, i int) bool { return i > 0 || len(metas) == 1 }

// readMetas returns the meta pages that can be read, the newer first.
func readMetas(f io.ReaderAt) (metas []metaPage, err error) {
	var errs []error
	for slot := range int64(2) {
		m, err := readMeta(f, slot)
		if errors.Is(err, errForeign) {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		metas = append(metas, m)
	}
	if len(metas) == 0 {
		return nil, errors.Join(errs...)
	}
	sort.Slice(metas, func(i, j int) bool { return metas[i].txid > metas[j].txid })
	return metas, nil
}

// newestState is the number of the transaction that a file's newest state is of.
func newestState(f *os.File) (uint64, error) {
	metas, err := readMetas(f)
	if err != nil {
		return 0, err
	}
	return metas[0].txid, nil
}

// crossOut makes a meta page invalid, so that the other one counts.
func crossOut(f *os.File, slot int64) error {
	if _, err := f.WriteAt(make([]byte, pageHeader+metaSize), slot*pageSize); err != nil {
		return fmt.Errorf("cross out meta page %d: %w", slot, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cross out meta page %d: %w", slot, err)
	}
	return nil
}

// setAside renames a file that cannot be served. It is never deleted.
func (s *Store) setAside(number uint64) (name string, err error) {
	stem := strings.TrimSuffix(fileName(number), fileSuffix)
	name = stem + asideMark + s.opts.Clock().UTC().Format("20060102T150405") + fileSuffix
	if err := os.Rename(s.path(number), filepath.Join(s.opts.Path, name)); err != nil {
		return "", fmt.Errorf("set %s aside: %w", fileName(number), err)
	}
	s.remark(fmt.Sprintf("%s is set aside as %s", fileName(number), name))
	return name, journal.SyncDir(s.opts.Path)
}
