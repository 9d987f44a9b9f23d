package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk names the test that a process was started for, on a file system of its own.
const smallDisk = "WAYSIDE_SMALL_DISK"

// onSmallDisk runs a test in a process of its own, whose data directory is on a file
// system in memory of so many bytes. Where namespaces are not to be had it is skipped.
func onSmallDisk(t *testing.T, size int64, test func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(smallDisk) == t.Name() {
		dir := t.TempDir()
		if err := unix.Mount("wayside", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
			t.Skip("no file system in memory: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
		test(t, filepath.Join(dir, "data"))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=40s")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	switch ended := (*exec.ExitError)(nil); {
	case err != nil && !errors.As(err, &ended):
		t.Skip("no namespaces: ", err)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	case err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Errorf("%v\n%s", err, out)
	case testing.Verbose():
		t.Logf("%s", out)
	}
}

// fill takes what is left of the file system of a directory, and returns what gives it
// back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(filepath.Dir(dir), "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n > 0; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
