package boltstore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// ErrNoStore says that a directory holds nothing of a store.
var ErrNoStore = errors.New("no store is there")

// Inspection is a data directory that is read as a start would read it, and not changed.
// Nobody can start on it meanwhile. It is for one goroutine.
type Inspection struct {
	s        *Store // without committer
	lock     *os.File
	names    []os.DirEntry
	tree     *treeFile // of the main file, nil if nothing of it can be read
	findings []Finding // of opening
	damaged  map[uint64]bool
	aside    []string
}

// Inspect opens a directory for reading. ErrLocked says that somebody has it,
// ErrNoStore that nothing is there, ErrFormat that another version wrote it.
func Inspect(dir string) (*Inspection, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect store: %w", err)
	}
	lock, err := shareDir(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect store: %w", err)
	}
	o := DefaultOptions()
	o.Path = dir
	i := &Inspection{lock: lock, names: names, damaged: map[uint64]bool{}, s: &Store{
		opts: o, shelf: newShelf(), ids: &ids{}, started: time.Now(),
		unsaved: map[*topic]*unsaved{}, loosened: map[*topic]struct{}{}, ends: map[uint64]uint64{},
		topics: map[edge.TopicName]*topic{}, volumes: map[uint64]*volume{},
	}}
	if err := i.open(); err != nil {
		return nil, fmt.Errorf("inspect store: %w", errors.Join(err, i.Close()))
	}
	return i, nil
}

// shareDir takes the directory for reading. One that never had a lock file is taken as it
// is: none is made.
func shareDir(dir string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == syscall.EWOULDBLOCK {
		err = fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close ends the inspection.
func (i *Inspection) Close() error {
	err := i.s.shelf.closeAll()
	if i.s.log != nil {
		err = errors.Join(err, i.s.log.Close())
	}
	if i.lock != nil {
		err = errors.Join(err, i.lock.Close())
	}
	return err
}

func (i *Inspection) find(f Finding) { i.findings = append(i.findings, f) }

// Mendable are the findings at opening that salvaging does something about.
func (i *Inspection) Mendable() (list []Finding) {
	for _, f := range i.findings {
		if f.Mends {
			list = append(list, f)
		}
	}
	return list
}

// open reads what a start would: the main file, the table of topics, the journal.
func (i *Inspection) open() error {
	var files []uint64
	segments := false
	for _, e := range i.names {
		n, aside, ok := parseFileName(e.Name())
		switch {
		case ok && aside:
			i.aside = append(i.aside, e.Name())
		case ok:
			files = append(files, n)
		}
		segments = segments || strings.HasSuffix(e.Name(), ".seg")
	}
	noted := i.readIDs()
	if len(files)+len(i.aside) == 0 && !segments && !noted {
		return ErrNoStore
	}
	ascend(files)
	if err := i.openMain(files); err != nil || i.tree == nil {
		return err
	}
	i.loadMeta()
	i.loadRecords()
	i.findVolumes(files)
	return i.readJournal()
}

// readIDs reads the side file and reports whether it is there.
func (i *Inspection) readIDs() bool {
	f, err := os.Open(filepath.Join(i.s.opts.Path, idsName))
	if err != nil {
		return false
	}
	i.s.ids.file = f
	i.s.ids.read()
	i.s.ids.file = nil
	if i.s.ids.turn == 0 {
		i.find(Finding{What: "the notes about ids cannot be read", To: idsName, Do: "nothing, the next start writes them anew"})
	}
	return errors.Join(f.Close()) == nil
}

// openMain opens the file that a start would serve, or salvage.
func (i *Inspection) openMain(files []uint64) error {
	if len(files) == 0 {
		i.find(Finding{What: "there is no data file", To: i.s.opts.Path, Do: "put it back from a backup: a start would begin with an empty store", Mends: true})
		return nil
	}
	number := files[len(files)-1]
	f, err := os.Open(i.s.path(number))
	if err != nil {
		return err
	}
	file := &file{number: number, path: i.s.path(number), f: f}
	i.s.main = file
	i.s.shelf.put(file, true)
	if st, err := f.Stat(); err == nil {
		file.size.Store(st.Size())
	}
	metas, at, err := servedState(f)
	switch {
	case errors.Is(err, ErrFormat):
		return err
	case err != nil:
		i.damaged[number] = true
		i.find(Finding{What: "the main file cannot be served", To: fmt.Sprintf("%s, %v", file.name(), err), Do: doSalvage, Mends: true})
		if i.tree, err = openTree(f); err != nil {
			return nil // nothing of it can be read
		}
		left := rescueFactor * i.tree.high
		i.tree.left = &left
	default:
		m := metas[at]
		i.tree = &treeFile{f: f, high: m.high, root: treeBucket{page: m.root}}
		if notNewest(metas, at) {
			i.find(Finding{What: "one of the two last states of the main file is damaged, the other is served", To: file.name(), Do: doSalvage, Mends: true})
		}
	}
	if main := i.s.ids.main; number < main {
		i.find(Finding{What: "a newer data file is missing, an older one is served", To: fileName(main), Do: "put it back if you have it, or " + doSalvage, Mends: true})
	}
	file.tree = i.tree
	file.open.Store(true)
	return nil
}

// number reads one of the store's numbers, 0 if it is not there.
func (i *Inspection) number(key []byte) int64 {
	r := rescue{t: i.tree}
	return r.number(key)
}

func (i *Inspection) loadMeta() {
	s := i.s
	s.format, _ = i.tree.format()
	s.uptimeBase = i.number(metaUptime)
	s.settled = uint64(i.number(metaSettled))
	s.ids.noted = i.number(metaLease)
	b, err := i.tree.find(bucketMeta)
	if err != nil {
		return
	}
	for c := i.tree.seek(b, []byte{prefixVolume}); c.valid(); c.next() {
		n, ok := keyNumber(c.key(), 1)
		if !ok || c.key()[0] != prefixVolume {
			continue
		}
		value, err := c.value(pageSize)
		v := volume{}
		if err == nil {
			v, err = decodeVolume(n, value)
		}
		if err != nil {
			v = volume{number: n, ledgers: unknownLedgers, name: fileName(n)}
			i.find(Finding{What: "the count of a volume's ledgers is damaged", To: v.name, Do: "nothing, its file stays for good"})
		}
		s.volumes[n] = &v
	}
}

func (i *Inspection) loadRecords() {
	b, err := i.tree.find(bucketRecords)
	if err != nil {
		return
	}
	used := int64(0)
	for c := i.tree.seek(b, nil); c.valid(); c.next() {
		n, ok := keyNumber(c.key(), 0)
		if !ok {
			continue
		}
		v, err := c.value(maxRescued)
		var name edge.TopicName
		var rec record
		if err == nil {
			name, rec, err = decodeRecord(v)
		}
		if err != nil {
			i.find(Finding{What: "a topic's record is damaged", To: fmt.Sprintf("topic number %d", n), Do: "nothing, the topic is lost with its name"})
			continue
		}
		i.s.topics[name] = &topic{key: n, name: name, rec: rec}
		used = max(used, rec.open.span.Ledger+1)
	}
	i.s.ids.start(max(used, i.s.ids.noted))
}

// findVolumes puts the listed volumes on the shelf.
func (i *Inspection) findVolumes(files []uint64) {
	s := i.s
	for n, v := range s.volumes {
		f := &file{number: n, path: filepath.Join(s.opts.Path, v.name)}
		st, err := os.Stat(f.path)
		if err != nil {
			i.find(Finding{What: "a volume is missing", To: fmt.Sprintf("%s with %d ledgers", v.name, v.ledgers), Do: "put it back if you have it, what lies in it is lost without"})
			continue
		}
		f.size.Store(st.Size())
		s.shelf.put(f, false)
	}
	for _, n := range files {
		if n < s.main.number && s.volumes[n] == nil {
			i.find(Finding{What: "a volume is not needed any more", To: fileName(n), Do: "nothing, the next start deletes it", Note: true})
		}
	}
}

// readJournal replays what the main file does not know, in memory.
func (i *Inspection) readJournal() error {
	s := i.s
	if there, err := journal.Exists(s.opts.Path); err != nil || !there {
		if s.settled > 0 && err == nil {
			i.find(Finding{What: "the journal is missing", To: s.opts.Path, Do: "put its files (journal-*.seg) back if you have them, what lay in it is lost without"})
		}
		return err
	}
	o := journal.DefaultOptions()
	o.Dir, o.Logger, o.ReadOnly = s.opts.Path, slog.New(slog.DiscardHandler), true
	var err error
	if s.log, err = journal.Open(o); err != nil {
		return err
	}
	if err := s.replay(); err != nil {
		return err
	}
	for _, text := range s.log.Damage() {
		i.find(Finding{What: "the journal is damaged", To: text, Do: doNothing, Mends: strings.Contains(text, "head")})
	}
	for _, text := range s.remarks {
		i.find(Finding{What: "the journal is damaged", To: text, Do: doSalvage, Mends: true})
	}
	return nil
}
