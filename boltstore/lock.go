package boltstore

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const lockName = "wayside.lock"

// lockDir takes the directory for this store, or fails at once with ErrLocked. The
// lock ends with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == syscall.EWOULDBLOCK {
		return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}
