package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// A cage is a memory cgroup: what a process takes in it, the pages of its files that are in memory included, is bounded.
type cage struct{ dir string }

// newCage makes one. Only root can, as a rule.
func newCage(limit int64) (*cage, error) {
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("wayside-bench-%d", os.Getpid())
	dir, file := filepath.Join(root, name), "memory.max"
	if _, err := os.Stat(root + "/memory/memory.limit_in_bytes"); err == nil { // the first version
		dir, file = filepath.Join(root, "memory", name), "memory.limit_in_bytes"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	c := &cage{dir: dir}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// around is the command that runs another one inside.
func (c *cage) around(command []string) []string {
	if c == nil {
		return command
	}
	return append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs")}, command...)
}

// leave removes it, when nothing runs in it any more.
func (c *cage) leave() {
	if c != nil {
		_ = os.Remove(c.dir)
	}
}
