package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A service is a server that a script starts, waits for, and stops: scripts/pulsar. It outlives the script, and an
// interrupt of the terminal does not reach it.
type service struct {
	script  string
	env     []string
	dir     string // where the script notes the process
	started bool
	pid     int
}

func (s *service) start() error {
	s.started = true
	if err := s.run("start"); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err != nil {
		return err
	}
	s.pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	return err
}

func (s *service) stop() {
	if s.started {
		if err := s.run("stop"); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		}
	}
	s.started, s.pid = false, 0
}

func (s *service) run(what string) error {
	c := exec.Command(s.script, what)
	c.Env = append(os.Environ(), s.env...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", s.script, what, err)
	}
	return nil
}
