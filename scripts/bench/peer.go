package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTime = 20 * time.Second // for a server to listen
	stopTime  = 20 * time.Second // for a server to end after SIGTERM
)

// A peer is one of the servers that are compared.
type peer struct {
	name    string
	driver  driver
	batches bool // whether its protocol has batches
	command []string
	dir     string // of its data and log
	address string
	process *exec.Cmd
	ended   chan error
}

func newPeers(wayside, nats, folder string) ([]*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports := make([]string, 4)
	for i := range ports {
		if ports[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	dir := func(name string) string { return filepath.Join(folder, name) }
	jetstream := dir("jetstream")
	config := fmt.Sprintf("listen: %q\njetstream { store_dir: %q, sync_interval: always, max_file_store: 40GB }\n", ports[3], jetstream)
	if err := os.MkdirAll(jetstream, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(jetstream+".conf", []byte(config), 0o644); err != nil {
		return nil, err
	}
	return []*peer{
		{name: "wayside", driver: &pulsarDriver{url: "pulsar://" + ports[0], admin: "http://" + ports[1]}, batches: true,
			command: []string{wayside, "serve", "--data", filepath.Join(dir("wayside"), "data"), "--listen", ports[0], "--admin", ports[1], "--set", "storage.quota=16GiB"},
			dir:     dir("wayside"), address: ports[0]},
		{name: "null", driver: &pulsarDriver{url: "pulsar://" + ports[2]}, batches: true,
			command: []string{self, "null", ports[2]}, dir: dir("null"), address: ports[2]},
		{name: "jetstream", driver: &natsDriver{url: "nats://" + ports[3]},
			command: []string{nats, "-c", jetstream + ".conf"}, dir: jetstream, address: ports[3]},
	}, nil
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
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
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
			return fmt.Errorf("%s ended at once (%v), see %s", p.name, err, log.Name())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen at %s, see %s", p.name, p.address, log.Name())
}

func (p *peer) stop() {
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

// cpu is the time that the server's threads have used, user and system.
func (p *peer) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest) // from field 3, the state; utime and stime are fields 14 and 15 of proc(5)
	if len(f) < 13 {
		return 0
	}
	ticks := 0
	for _, s := range f[11:13] {
		n, _ := strconv.Atoi(s)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // a tick is 1/100 s on every Linux port
}
