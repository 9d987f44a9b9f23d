package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// defaultPeers are those of which nothing but Go is needed.
const defaultPeers = "wayside,null,jetstream"

// programs are the files of the servers; one that is not there is "".
type programs struct{ wayside, nats, redis, mosquitto, pulsar string }

// A candidate is a server that can be compared, once it has its addresses and its folder.
type candidate struct {
	name    string
	program string // "" if there is none
	make    func(dir string, address, second string) (*peer, error)
}

func candidates(files programs, self string) []candidate {
	stream := func(sync string) func(string, string, string) (*peer, error) {
		return func(dir, address, _ string) (*peer, error) {
			config := fmt.Sprintf("listen: %q\njetstream { store_dir: %q, sync_interval: %s, max_file_store: 40GB }\n", address, dir, sync)
			return &peer{driver: &natsDriver{url: "nats://" + address}, consumes: true,
				command: []string{files.nats, "-c", dir + ".conf"}}, os.WriteFile(dir+".conf", []byte(config), 0o644)
		}
	}
	sqlite := func(way string) func(string, string, string) (*peer, error) {
		return func(dir, address, _ string) (*peer, error) {
			return &peer{driver: &pulsarDriver{url: "pulsar://" + address}, batches: true,
				command: []string{self, "sqlite", address, filepath.Join(dir, "entries.db"), way}}, nil
		}
	}
	return []candidate{
		{"wayside", files.wayside, func(dir, address, admin string) (*peer, error) {
			return &peer{driver: &pulsarDriver{url: "pulsar://" + address, admin: "http://" + admin}, batches: true, consumes: true,
				command: []string{files.wayside, "serve", "--data", filepath.Join(dir, "data"), "--listen", address, "--admin", admin,
					"--set", "storage.quota=16GiB"}}, nil
		}},
		{"null", self, func(dir, address, _ string) (*peer, error) {
			return &peer{driver: &pulsarDriver{url: "pulsar://" + address}, batches: true, command: []string{self, "null", address}}, nil
		}},
		{"jetstream", files.nats, stream("always")},
		{"jetstream-default", files.nats, stream("2m")},
		{"redis", files.redis, func(dir, address, _ string) (*peer, error) {
			_, port, err := net.SplitHostPort(address)
			return &peer{driver: &redisDriver{address: address}, consumes: true,
				command: []string{files.redis, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "",
					"--appendonly", "yes", "--appendfsync", "always"}}, err
		}},
		{"mosquitto", files.mosquitto, newMosquitto(files.mosquitto)},
		{"sqlite", self, sqlite("each")},
		{"sqlite-group", self, sqlite("group")},
		{"pulsar", files.pulsar, newPulsar(files.pulsar)},
	}
}

func newMosquitto(file string) func(string, string, string) (*peer, error) {
	return func(dir, address, _ string) (*peer, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		// Without bounds of its own that would drop messages or hold publishers back; saved as it does by default.
		config := fmt.Sprintf("listener %s %s\nallow_anonymous true\nuser root\npersistence true\npersistence_location %s/\n"+
			"max_queued_messages 0\nmax_queued_bytes 0\nmax_inflight_messages %d\nset_tcp_nodelay true\nlog_type error\n", port, host, dir, window)
		return &peer{driver: &mqttDriver{url: "tcp://" + address}, consumes: true,
			command: []string{file, "-c", dir + ".conf"}}, os.WriteFile(dir+".conf", []byte(config), 0o644)
	}
}

func newPulsar(script string) func(string, string, string) (*peer, error) {
	return func(dir, address, admin string) (*peer, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		_, adminPort, err := net.SplitHostPort(admin)
		return &peer{driver: &pulsarDriver{url: "pulsar://localhost:" + port, admin: "http://" + admin}, batches: true, consumes: true,
			service: &service{script: script, dir: dir,
				env: []string{"PULSAR_HOME=" + dir, "PULSAR_PORT=" + port, "PULSAR_ADMIN=" + adminPort, "PULSAR_DEDUP=false"}}}, err
	}
}

// newPeers makes the named peers, "all" for every one, in the order named. What has no program is left out, and said.
func newPeers(names string, files programs, folder string) (peers []*peer, out []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	all := candidates(files, self)
	chosen := all
	if names != "all" {
		chosen = nil
		for name := range strings.SplitSeq(names, ",") {
			i := slices.IndexFunc(all, func(c candidate) bool { return c.name == name })
			if i < 0 {
				return nil, nil, fmt.Errorf("-peers: no %q; there are %s, and all", name, candidateNames(all))
			}
			chosen = append(chosen, all[i])
		}
	}
	for _, c := range chosen {
		if c.program == "" {
			out = append(out, fmt.Sprintf("%s is left out: its program is not there", c.name))
			continue
		}
		p, err := newPeer(c, filepath.Join(folder, c.name))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.name, err)
		}
		peers = append(peers, p)
	}
	if len(peers) == 0 {
		return nil, nil, fmt.Errorf("-peers %s: none is there", names)
	}
	return peers, out, nil
}

func newPeer(c candidate, dir string) (*peer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	second, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p, err := c.make(dir, address, second)
	if err != nil {
		return nil, err
	}
	p.name, p.dir, p.address = c.name, dir, address
	return p, nil
}

func candidateNames(all []candidate) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}
