package boltstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
)

// A backup is a data directory of its own: main file, volumes, journal and ids as they
// stood behind one commit. Files are copied, never linked: a start that finds the main
// file lost may serve a volume and write to it, which would reach through a link.
//
// Who starts on it must not be taken for the original, which may have gone on: every
// topic gets a new birth id and ledger at the first start (rebirth), and ids that the
// original cannot have handed out.

// ErrTarget says that a backup cannot go where it was to go.
var ErrTarget = errors.New("backup cannot go there")

// ErrBackupBusy says that another backup is under way.
var ErrBackupBusy = errors.New("another backup is under way")

// Progress is told how many bytes of how many have been copied. It may be nil.
type Progress = func(done, total int64)

// backup is one that is being made.
type backup struct {
	dir    string // that is copied
	target string
	temp   string
	pace   pace
	main   uint64
	lease  int64
	parts  []part
}

// part is a file, or its beginning.
type part struct {
	name  string
	from  io.ReaderAt
	bytes int64
	hurry func() (bool, error)
	let   func() error // once it is copied or given up
}

// unfinishedSuffix ends the name of a directory that is being filled.
const unfinishedSuffix = ".unfinished"

// newBackup finds out whether a backup can go somewhere.
func newBackup(ctx context.Context, dir, target string, rate int64, tell Progress) (*backup, error) {
	refuse := func(why string) (*backup, error) { return nil, fmt.Errorf("%w: %s: %s", ErrTarget, target, why) }
	if !filepath.IsAbs(target) || rate < 0 {
		return refuse("write an absolute path, and no negative rate")
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(target)))
	if err != nil {
		return refuse("its parent directory is missing, make it or mount what belongs there")
	}
	clean := filepath.Join(real, filepath.Base(filepath.Clean(target)))
	source, err := filepath.Abs(dir)
	if err == nil {
		source, err = filepath.EvalSymlinks(source)
	}
	if err != nil {
		return nil, err
	}
	if rel, err := filepath.Rel(source, clean); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return refuse("it lies in the data directory, name another place")
	}
	if names, err := os.ReadDir(clean); err == nil && len(names) > 0 {
		return refuse("it is not empty, name a new directory")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return refuse("it is no directory that can be read, name a new one")
	} else if err == nil && mountPoint(clean) {
		return refuse("it is where a file system is mounted, name a directory in it")
	}
	b := &backup{dir: dir, target: clean, temp: clean + unfinishedSuffix, pace: pace{ctx: ctx, rate: rate, tell: tell}}
	if _, err := os.Lstat(b.temp); err == nil {
		return refuse(b.temp + " is left of a backup that did not end, or is still made: remove it")
	}
	return b, nil
}

func mountPoint(dir string) bool {
	a, err := os.Stat(dir)
	b, perr := os.Stat(filepath.Dir(dir))
	if err != nil || perr != nil {
		return false
	}
	x, ok := a.Sys().(*syscall.Stat_t)
	y, yok := b.Sys().(*syscall.Stat_t)
	return ok && yok && x.Dev != y.Dev
}

// fits verifies that the target's disk has the space.
func (b *backup) fits() error {
	for _, p := range b.parts {
		b.pace.total += p.bytes
	}
	var st syscall.Statfs_t
	parent := filepath.Dir(b.target)
	if err := syscall.Statfs(parent, &st); err != nil {
		return err
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // other types elsewhere
	if need := b.pace.total + b.pace.total/64 + backupSlack; free < need {
		return fmt.Errorf("%w: %s: %d bytes are free there and %d are needed", ErrTarget, b.target, free, need)
	}
	return nil
}

// backupSlack is left to the target's disk beside what is copied.
const backupSlack = 4 << 20

// make copies everything. What it leaves is a whole backup or nothing.
func (b *backup) make() (err error) {
	defer func() { err = errors.Join(err, b.letAll()) }()
	if err := b.fits(); err != nil {
		return err
	}
	if err := os.Mkdir(b.temp, 0o750); err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if err = b.fill(); err == nil {
		err = b.finish()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(b.temp))
	}
	return nil
}

func (b *backup) letAll() (err error) {
	for _, p := range b.parts {
		if p.let != nil {
			err = errors.Join(err, p.let())
		}
	}
	b.parts = nil
	return err
}

func (b *backup) fill() error {
	for i := range b.parts {
		p := &b.parts[i]
		err := b.pace.copy(filepath.Join(b.temp, p.name), p.from, p.bytes, p.hurry)
		if p.let != nil {
			err = errors.Join(err, p.let())
			p.let = nil
		}
		if err != nil {
			return err
		}
	}
	return b.rename()
}

// jump is by how much the ids of a backup lie above those of the original, at least. What
// is added at random keeps two backups of one moment apart.
const jump = 1 << 20

// rename makes the copy a store of its own.
func (b *backup) rename() error {
	var random [4]byte
	rand.Read(random[:]) //nolint:errcheck // never fails
	lease := b.lease + jump + int64(binary.LittleEndian.Uint32(random[:])>>1)
	path := filepath.Join(b.temp, fileName(b.main))
	if err := sound(path); err != nil {
		return fmt.Errorf("the copy of the main file is not sound: %w", err)
	}
	db, err := openWritable(path, 0)
	if err != nil {
		return err
	}
	high := int64(0)
	err = db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		return errors.Join(putNumber(meta, metaRebirth, 1), putNumber(meta, metaLease, lease))
	})
	if err == nil {
		err = db.View(func(tx *bbolt.Tx) error {
			high = tx.Size()
			return nil
		})
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := cut(path, high); err != nil {
		return err
	}
	i, err := openIDs(b.temp)
	if err != nil {
		return err
	}
	return errors.Join(i.write(lease, b.main), i.file.Close())
}

// sound verifies that the newest state of a main file can be served.
func sound(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	metas, i, err := servedState(f)
	if err == nil && metas[i].txid != metas[0].txid {
		err = errDamaged
	}
	return err
}

// finish gives the backup its name.
func (b *backup) finish() error {
	if err := journal.SyncDir(b.temp); err != nil {
		return err
	}
	if err := context.Cause(b.pace.ctx); err != nil {
		return err
	}
	// A directory takes the place of an empty one.
	if err := syscall.Rename(b.temp, b.target); err != nil {
		return fmt.Errorf("rename %s: %w", b.temp, err)
	}
	return journal.SyncDir(filepath.Dir(b.target))
}

// Backup copies the directory of a stopped store to target, an absolute path of nothing
// or of an empty directory, at most rate bytes a second, 0 for no limit. ErrTarget says
// that it cannot go there, ErrSalvage that the directory is damaged.
func (i *Inspection) Backup(ctx context.Context, target string, rate int64, tell Progress) error {
	if list := i.Mendable(); len(list) > 0 || i.tree == nil {
		return fmt.Errorf("back up store: %w: %v", ErrSalvage, i.findings)
	}
	s := i.s
	b, err := newBackup(ctx, s.opts.Path, target, rate, tell)
	if err != nil {
		return err
	}
	b.main, b.lease = s.main.number, max(s.ids.end, s.ids.noted)
	b.parts = append(b.parts, part{name: s.main.name(), from: i.tree.f, bytes: int64(i.tree.high) * pageSize})
	if s.log != nil {
		b.addJournal(s.log.Freeze(), nil)
	}
	if err := b.addVolumes(s); err != nil {
		return errors.Join(err, b.letAll())
	}
	if err := b.make(); err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	return nil
}

func (b *backup) addJournal(pieces []journal.Piece, hurry func() (bool, error)) {
	for _, p := range pieces {
		b.parts = append(b.parts, part{name: p.Name, from: p, bytes: p.Bytes, hurry: hurry, let: func() error {
			p.Unpin()
			return nil
		}})
	}
}

// maxBackupVolumes bounds the files that are open for a backup.
const maxBackupVolumes = 1024

// addVolumes opens the listed volumes: whatever happens to their names, they can be read
// until they are let go.
func (b *backup) addVolumes(s *Store) error {
	if len(s.volumes) > maxBackupVolumes {
		return fmt.Errorf("back up store: %d volumes, at most %d: compact it first", len(s.volumes), maxBackupVolumes)
	}
	for _, v := range s.volumes {
		f, err := os.Open(filepath.Join(s.opts.Path, v.name))
		if errors.Is(err, os.ErrNotExist) {
			continue // lost before
		}
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		b.parts = append(b.parts, part{name: v.name, from: f, bytes: st.Size(), let: f.Close})
	}
	return nil
}
