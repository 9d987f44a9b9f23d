package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTime = 20 * time.Second // for a server to listen
	stopTime  = 20 * time.Second // for a server to end after SIGTERM
)

// A peer is one of the servers that are compared.
type peer struct {
	name     string
	driver   driver
	batches  bool // whether its protocol has batches
	consumes bool // whether it hands out what it was given
	command  []string
	dir      string // of its data and log
	address  string
	service  *service // instead of command and address

	mu      sync.Mutex // start and stop, which an interrupt calls too
	process *exec.Cmd
	ended   chan error
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts the server and waits until it listens.
func (p *peer) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	if p.service != nil {
		return p.service.start()
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.process = exec.Command(p.command[0], p.command[1:]...)
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		p.process = nil
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.process.Wait() }()
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", p.address, time.Second); err == nil {
			return c.Close()
		}
		select {
		case err := <-p.ended:
			p.process = nil
			return fmt.Errorf("%s ended at once (%v): %s", p.name, err, lastLine(log.Name()))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen at %s: %s", p.name, p.address, lastLine(log.Name()))
}

// lastLine is what a log, which may be gone when somebody looks for it, ends with.
func lastLine(file string) string {
	b, _ := os.ReadFile(file)
	b = bytes.TrimSpace(b)
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

func (p *peer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.service != nil {
		p.service.stop()
		return
	}
	if p.process == nil {
		return
	}
	_ = p.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = p.process.Process.Kill()
		<-p.ended
	}
	p.process = nil
}

func stopAll(peers []*peer) {
	for _, p := range peers {
		p.stop()
	}
}

// pid is the server's process, 0 when there is none.
func (p *peer) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.service != nil:
		return p.service.pid
	case p.process != nil:
		return p.process.Process.Pid
	}
	return 0
}

// cpu is the time that the server's threads have used, user and system.
func (p *peer) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0
	}
	used, err := parseCPU(string(b))
	if err != nil {
		return 0
	}
	return used
}

// parseCPU reads utime and stime, fields 14 and 15 of proc(5). The second field, the program's name in parentheses, may
// hold anything, parentheses too.
func parseCPU(stat string) (time.Duration, error) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // from the third field
	if len(f) < 13 {
		return 0, errors.New("too few fields")
	}
	ticks := 0
	for _, s := range f[11:13] {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // a tick is 1/100 s on every Linux port
}
