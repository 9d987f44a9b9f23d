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

// file is one bbolt file of the store. Readers hold mu shared for the length of a
// transaction; opening and closing the handle takes it alone.
type file struct {
	number uint64
	path   string
	size   atomic.Int64 // bytes on disk
	used   atomic.Int64 // time of the last read, for closing the idlest

	mu     sync.RWMutex
	db     *bbolt.DB   // nil when it is not open
	opened atomic.Bool // whether db is set
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
	return fn()
}

// view runs fn in a read transaction and opens the file read-only if need be. What
// fn reads is valid only inside it.
func (f *file) view(fn func(tx *bbolt.Tx) error) error {
	f.touched()
	for range 3 {
		f.mu.RLock()
		if f.db != nil {
			defer f.mu.RUnlock()
			return protect(func() error { return f.db.View(fn) })
		}
		f.mu.RUnlock()
		if err := f.openReadOnly(); err != nil {
			return err
		}
	}
	return fmt.Errorf("read %s: closed again and again", f.name())
}

func (f *file) openReadOnly() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db != nil {
		return nil
	}
	return protect(func() error {
		db, err := bbolt.Open(f.path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: flockWait, NoStatistics: true})
		if err != nil {
			return fmt.Errorf("open %s: %w", f.name(), err)
		}
		f.setDB(db)
		return nil
	})
}

// close closes the handle once no reader is left.
func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db == nil {
		return nil
	}
	db := f.db
	f.setDB(nil)
	return db.Close()
}

// setDB sets the handle; mu is held, or nobody else has the file yet.
func (f *file) setDB(db *bbolt.DB) {
	f.db = db
	f.opened.Store(db != nil)
}

// closeIdle closes the handle unless somebody reads.
func (f *file) closeIdle() bool {
	if !f.mu.TryLock() {
		return false
	}
	defer f.mu.Unlock()
	if f.db == nil {
		return true
	}
	db := f.db
	f.setDB(nil)
	return db.Close() == nil
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

// syncDir makes names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
