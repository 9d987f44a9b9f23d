package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dataDir is a directory that was found usable. Nothing in it has been touched.
type dataDir struct {
	path       string // absolute
	exists     bool
	fileSystem string
	free       int64  // bytes that this process may use
	volatile   bool   // gone after a reboot
	foreign    string // its owner, if that is somebody else
}

// inspectDataDir finds out whether the directory can be used, or made, without
// touching anything.
func inspectDataDir(path string) (dataDir, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return dataDir{}, failed(exitFailed, "cannot use the data directory", path, err.Error())
	}
	d := dataDir{path: full}
	info, err := os.Stat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, d.inspectParent()
	case err != nil:
		return d, failed(exitFailed, "cannot use the data directory", full, reason(err))
	case !info.IsDir():
		return d, failed(exitFailed, "data directory is a file", full, "name a directory with --data or storage.path")
	}
	d.exists = true
	if err := unix.Access(full, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return d, failed(exitFailed, "cannot write to the data directory", full, whyDenied(err, full, info))
	}
	d.foreign = foreignOwner(info)
	return d, d.statFileSystem(full)
}

// inspectParent is for a directory that does not exist yet.
func (d *dataDir) inspectParent() error {
	parent := filepath.Dir(d.path)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(exitFailed, "parent of the data directory is missing", parent, "make it, or mount what belongs there")
	case err != nil:
		return failed(exitFailed, "cannot use the data directory", d.path, reason(err))
	case !info.IsDir():
		return failed(exitFailed, "parent of the data directory is a file", parent, "name another directory with --data or storage.path")
	}
	if err := unix.Access(parent, unix.W_OK|unix.X_OK); err != nil {
		return failed(exitFailed, "cannot make the data directory", d.path, whyDenied(err, parent, info))
	}
	return d.statFileSystem(parent)
}

// whyDenied says what to do about a refusal of the file system at a directory.
func whyDenied(err error, directory string, info fs.FileInfo) string {
	if errors.Is(err, syscall.EROFS) {
		return "the file system is mounted read-only, mount it writable"
	}
	owner, what := ownerOf(info), "change its owner"
	if owner == os.Geteuid() {
		what = "change its mode"
	}
	return fmt.Sprintf("%s belongs to user %d with mode %v, wayside runs as user %d: %s, or name another directory with --data",
		directory, owner, info.Mode().Perm(), os.Geteuid(), what)
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// foreignOwner is the user to whom the directory belongs if that is not ours: root may
// write there, but the files it makes shut the owner out.
func foreignOwner(info fs.FileInfo) string {
	if owner := ownerOf(info); owner >= 0 && owner != os.Geteuid() {
		return strconv.Itoa(owner)
	}
	return ""
}

func (d *dataDir) statFileSystem(at string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return failed(exitFailed, "cannot use the data directory", d.path, reason(err))
	}
	d.free = int64(st.Bavail) * int64(st.Bsize)
	d.fileSystem, d.volatile = fileSystemName(int64(st.Type))
	return nil
}

// fileSystemName knows those that edge devices have; volatile ones lose everything
// with the power.
func fileSystemName(magic int64) (name string, volatile bool) {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.XFS_SUPER_MAGIC: "xfs", unix.F2FS_SUPER_MAGIC: "f2fs",
		unix.NFS_SUPER_MAGIC: "nfs", unix.MSDOS_SUPER_MAGIC: "vfat", unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p",
		0x2fc12fc1: "zfs", 0x24051905: "ubifs",
	}
	unstable := map[int64]string{unix.TMPFS_MAGIC: "tmpfs", 0x858458f6: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay"}
	magic &= 0xffffffff // the kernel's type is signed and 32 bits wide on some machines
	if name, ok := unstable[magic]; ok {
		return name, true
	}
	if name, ok := names[magic]; ok {
		return name, false
	}
	return fmt.Sprintf("file system 0x%x", magic), false
}

// warnings are what may lose data later, though everything works now.
func (d *dataDir) warnings() []string {
	list := []string{}
	if d.volatile {
		list = append(list, "data directory is on "+d.fileSystem+": everything in it is lost at the next restart of the machine")
	}
	if d.foreign != "" {
		list = append(list, "data directory belongs to user "+d.foreign+", who will not be able to use the files made now")
	}
	return list
}

// make creates the directory if need be. undo removes what it made, with all that has
// come into it: it is for a start that fails before anybody could publish.
func (d *dataDir) make() (undo func() error, err error) {
	if d.exists {
		return func() error { return nil }, nil
	}
	if err := os.Mkdir(d.path, 0o750); err != nil {
		return nil, failed(exitFailed, "cannot make the data directory", d.path, reason(err))
	}
	return func() error { return os.RemoveAll(d.path) }, nil
}

// inUse reports whether another process has the store open: it holds a lock on one of
// the files. Asking takes a shared lock for a moment and leaves nothing behind.
func (d *dataDir) inUse() bool {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && locked(filepath.Join(d.path, e.Name()))
	})
}

func locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), syscall.EWOULDBLOCK)
}

// refuseInUse is the answer to a second instance.
func (d *dataDir) refuseInUse(cause error) error {
	who := "another process has it"
	if pid := d.holder(); pid != "" && pid != "0" {
		who = "process " + pid + " has it"
	}
	f := failed(exitInUse, "data directory is in use", d.path, who+", stop it or name another directory with --data")
	f.cause = cause
	return f
}

// holder returns the process that has a lock on a file of the directory, "" when
// nobody has. Processes of other namespaces show as 0.
func (d *dataDir) holder() string {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if pid := lockOwner(string(locks), info); pid != "" {
			return pid
		}
	}
	return ""
}

// lockOwner looks a file up in the kernel's list, whose lines read
// "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF": process, device and inode.
func lockOwner(locks string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	inode := strconv.FormatUint(st.Ino, 10)
	device := fmt.Sprintf("%02x:%02x", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	for line := range strings.Lines(locks) {
		fields := strings.Fields(line)
		if len(fields) > 5 && fields[1] == "FLOCK" && fields[3] == "WRITE" && fields[5] == device+":"+inode {
			return fields[4]
		}
	}
	return ""
}
