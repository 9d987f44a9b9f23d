package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"wayside/edge"
	"wayside/edge/admin"
)

// A broker that is not well, or whose uplink the cloud refuses, is degraded: exit 1,
// with the reasons.
func TestStatusDegraded(t *testing.T) {
	refused := uplinkReport{URL: "pulsar://cloud:6650", EdgeID: "pump-7", State: "refused", Reason: "the token is not accepted", Topics: []uplinkTopic{
		{Topic: "persistent://a/b/c", Target: "persistent://a/b/d", State: "refused", Backlog: 3, OldestAge: 7200, Rate: 2048, BacklogBytes: 4096, Drain: 2, RetrySeconds: 12, Parked: 1},
	}, Left: 4}
	full := dataReport{Path: "/data", FileSystem: "tmpfs", Warnings: []string{"everything is lost"}}
	for _, c := range []struct {
		status         admin.Status
		uplink         uplinkReport
		stdout, stderr string
	}{
		{admin.Status{Reasons: []string{"disk failed", "quota reached"}}, uplinkReport{State: "off"}, "health   DEGRADED\n         disk failed\n         quota reached\n", "disk failed; quota reached\n"},
		{
			admin.Status{Healthy: true}, refused,
			"persistent://a/b/c -> persistent://a/b/d: refused, 3 messages waiting, the oldest for 2h0m0s, 2.0 KiB/s, done in 2s, next try in 12s, 1 message parked\n         and 4 topics more\n",
			"uplink is refused: the token is not accepted\n",
		},
		{admin.Status{Reasons: []string{"x"}}, uplinkReport{State: "off"}, "data     /data on tmpfs, 0 B free\n         WARNING: everything is lost\n", "x\n"},
	} {
		c.status.Sections = map[string]json.RawMessage{"uplink": marshal(t, c.uplink), "data": marshal(t, full)}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != admin.StatusPath {
				http.NotFound(w, r)
				return
			}
			w.Write(marshal(t, c.status))
		}))
		command(t, "", "status", "--admin", server.URL).want(t, exitFailed, c.stdout, "wayside: broker is degraded: "+server.URL+": "+c.stderr)
		command(t, "", "status", "--json", "--admin", server.URL).want(t, exitFailed, string(marshal(t, c.status))+"\n", c.stderr)
		command(t, "", "status", "--admin", server.URL+"/elsewhere").want(t, exitUnreachable, "", "no Wayside answers: "+server.URL+"/elsewhere: it said 404 Not Found")
		server.Close()
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFileSystemName(t *testing.T) {
	for _, c := range []struct {
		magic    int64
		name     string
		volatile bool
	}{
		{unix.EXT4_SUPER_MAGIC, "ext4", false},
		{unix.TMPFS_MAGIC, "tmpfs", true},
		{unix.BTRFS_SUPER_MAGIC, "btrfs", false},
		{unix.BTRFS_SUPER_MAGIC - 1<<32, "btrfs", false}, // sign-extended, as on 32-bit machines
		{unix.OVERLAYFS_SUPER_MAGIC, "overlay", true},
		{0x1234, "file system 0x1234", false},
	} {
		if name, volatile := fileSystemName(c.magic); name != c.name || volatile != c.volatile {
			t.Errorf("0x%x is %q, volatile %v", c.magic, name, volatile)
		}
	}
	d := dataDir{fileSystem: "tmpfs", volatile: true, foreign: "1000"}
	if w := d.warnings(); len(w) != 2 || !strings.Contains(w[0], "tmpfs") || !strings.Contains(w[1], "1000") {
		t.Errorf("warnings %q", w)
	}
}

func TestNewEdgeID(t *testing.T) {
	for machine, prefix := range map[string]string{
		"pi": "pi-", "müll box/7": "m-ll-box-7-", "": "edge-", strings.Repeat("x", 60): strings.Repeat("x", maxMachineName) + "-",
	} {
		id := newEdgeID(machine)
		if !strings.HasPrefix(id, prefix) || len(id) != len(prefix)+8 || !edge.ValidPart(id) {
			t.Errorf("machine %q is called %q", machine, id)
		}
		if other := newEdgeID(machine); other == id {
			t.Errorf("twice the id %q", id)
		}
	}
}

func TestBootID(t *testing.T) {
	for text, want := range map[string]uint64{
		"0123abcd-4567-89ef-0000-000000000000\n": 0x0123abcd456789ef, "": 0, "short": 0, "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz": 0,
	} {
		if got := bootID(text); got != want {
			t.Errorf("boot id of %q is %x, want %x", text, got, want)
		}
	}
	if since := sinceBoot(); since <= 0 {
		t.Errorf("the machine runs for %v", since)
	}
}

// The kernel's list of locks names the process that has one.
func TestLockHolder(t *testing.T) {
	d := dataDir{path: t.TempDir(), exists: true}
	if d.inUse() || d.holder() != "" {
		t.Error("an empty directory is in use")
	}
	f, err := os.Create(filepath.Join(d.path, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if d.inUse() {
		t.Error("in use without a lock")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if !d.inUse() {
		t.Error("not in use, with a lock")
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	line := fmt.Sprintf("7: FLOCK  ADVISORY  WRITE 4321 %02x:%02x:%d 0 EOF\n", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	for text, want := range map[string]string{
		line: "4321", "": "", "1: POSIX ADVISORY WRITE 1 00:00:1 0 EOF\n" + line: "4321", strings.Replace(line, "WRITE", "READ", 1): "", "1: FLOCK\n": "",
	} {
		if got := lockOwner(text, info); got != want {
			t.Errorf("owner in %q is %q, want %q", text, got, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if d.inUse() {
		t.Error("in use after the lock has gone")
	}
}

func TestOwnAddresses(t *testing.T) {
	var c Config
	for listen, want := range map[string]string{
		"127.0.0.1:6650": "localhost:6650", ":7000": "127.0.0.1:7000", "0.0.0.0:6650": "localhost:6650", "10.1.2.3:6650": "10.1.2.3:6650",
	} {
		c.Listen.Pulsar, c.Listen.Advertised = listen, "broker.plant"
		got := " " + strings.Join(ownAddresses(&c), " ") + " "
		port := listen[strings.LastIndex(listen, ":"):]
		for _, each := range []string{want, "broker.plant" + port} {
			if !strings.Contains(got, " "+each+" ") {
				t.Errorf("%s is not known as %s:%s", listen, each, got)
			}
		}
		if listen == "10.1.2.3:6650" && strings.Contains(got, "localhost") {
			t.Errorf("%s counts as localhost", listen)
		}
	}
}

func TestAdvertised(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "pump": "pump:7000", "pump:1": "pump:1", "pulsar://pump": "pulsar://pump", "::1": "[::1]:7000", "[::1]": "[::1]:7000", "[::1]:5": "[::1]:5",
	} {
		if err := checkAdvertised(text); err != nil {
			t.Errorf("%q is refused: %v", text, err)
		}
		if got := withPort(text, 7000); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"a b", "pump:x", "http://pump", "me@pump", "pulsar://pump/topic"} {
		if checkAdvertised(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
