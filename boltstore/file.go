package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	filePrefix = "wayside-"
	fileSuffix = ".db"
	tempSuffix = ".tmp"
	asideMark  = ".damaged-" // in the names of files that were set aside, before the time

	// allocSize is bbolt's own step of growth. It never grows a file here, but keeps
	// that much distance from its size limit.
	allocSize = 1 << 20

	// flockWait bounds the wait for bbolt's lock on a file: the directory is ours.
	flockWait = 5 * time.Second
)

// file is one bbolt file of the store: the main file, open through bbolt, or a
// volume, open for plain reads. Readers hold mu shared while they read; opening and
// closing takes it alone.
type file struct {
	number uint64
	path   string
	size   atomic.Int64 // bytes on disk
	used   atomic.Int64 // time of the last read, for closing the idlest
	open   atomic.Bool  // whether tree is set

	mu   sync.RWMutex
	db   *bbolt.DB // set in the main file
	tree *treeFile // set in a volume that is open
	f    *os.File  // under tree
}

func fileName(number uint64) string {
	return fmt.Sprintf("%s%06d%s", filePrefix, number, fileSuffix)
}

// parseFileName reads the number in a store file's name, and whether the file was set
// aside.
func parseFileName(name string) (number uint64, aside, ok bool) {
	digits, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false, false
	}
	if digits, ok = strings.CutSuffix(digits, fileSuffix); !ok {
		return 0, false, false
	}
	digits, _, aside = strings.Cut(digits, asideMark)
	n, err := strconv.ParseUint(digits, 10, 63)
	return n, aside, err == nil && n > 0
}

func (f *file) name() string { return filepath.Base(f.path) }

// protect runs fn and turns a panic, or a fault in the mapped file, into an error.
func protect(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	if err = fn(); errors.Is(err, berrors.ErrIncompatibleValue) { // a value where a bucket was, or the other way round
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// mapped reports whether the file is open through bbolt.
func (f *file) mapped() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.db != nil
}

// view runs fn in a read transaction of the main file. What fn reads is valid only
// inside it.
func (f *file) view(fn func(tx *bbolt.Tx) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.db == nil {
		return errTurned
	}
	return protect(func() error { return f.db.View(fn) })
}

// plain runs fn on a file that is not mapped, and opens it if need be.
func (f *file) plain(fn func(t *treeFile) error) error {
	f.used.Store(time.Now().UnixNano())
	for {
		f.mu.RLock()
		if f.db != nil {
			f.mu.RUnlock()
			return errTurned
		}
		if f.tree != nil {
			defer f.mu.RUnlock()
			return fn(f.tree)
		}
		f.mu.RUnlock()
		if err := f.openPlain(); err != nil {
			return err
		}
	}
}

func (f *file) openPlain() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db != nil || f.tree != nil {
		return nil
	}
	h, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.name(), err)
	}
	t, err := openTree(h)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.name(), errors.Join(err, h.Close()))
	}
	f.f, f.tree = h, t
	f.open.Store(true)
	return nil
}

// close closes the file once no reader is left.
func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closeLocked()
}

// closeIdle closes the file unless somebody reads.
func (f *file) closeIdle() bool {
	if !f.mu.TryLock() {
		return false
	}
	defer f.mu.Unlock()
	return f.closeLocked() == nil
}

func (f *file) closeLocked() (err error) {
	if f.db != nil {
		err = f.db.Close()
		f.db = nil
	}
	if f.f != nil {
		err = errors.Join(err, f.f.Close())
		f.f, f.tree = nil, nil
		f.open.Store(false)
	}
	return err
}

// mount makes a bbolt handle the file's own. A plain one is closed.
func (f *file) mount(db *bbolt.DB) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.closeLocked()
	f.db = db
	return err
}

// openWritable opens a checked file for writing. Maps are made as large as the file
// may become, so that bbolt never has to wait for readers to map it anew; where the
// address space is short, as large as it gives.
func openWritable(path string, mapSize int64) (*bbolt.DB, error) {
	for {
		var db *bbolt.DB
		err := protect(func() (err error) {
			db, err = bbolt.Open(path, 0o600, &bbolt.Options{
				Timeout:         flockWait,
				NoFreelistSync:  true,
				FreelistType:    bbolt.FreelistMapType,
				PageSize:        pageSize,
				InitialMmapSize: int(mapSize),
			})
			return err
		})
		if err == nil {
			db.AllocSize = allocSize
			return db, nil
		}
		if !errors.Is(err, syscall.ENOMEM) || mapSize == 0 {
			return nil, err
		}
		if mapSize /= 2; mapSize < 1<<20 {
			mapSize = 0
		}
	}
}
