package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"wayside/edge/admin"
)

// The whole way in one process: publish, restart, consume what was acknowledged to the
// publisher, acknowledge, restart, nothing comes again.
func TestServeProduceConsume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	command(t, "", "consume", "temperature", "--url", b.url, "-s", "display", "-n", "0", "--from", "elsewhere").
		want(t, exitUsage, "", "wayside: wrong usage: --from elsewhere: write earliest or latest")
	command(t, "21.5\n21.7\n", "produce", "temperature", "--url", b.url, "-k", "sensor-1", "-p", "unit=C").want(t, exitDone, "2 confirmed", "")
	command(t, "", "produce", "public/default/temperature", "--url", b.url, "-m", "a", "-m", "b", "-n", "3").want(t, exitDone, "3 confirmed", "")
	b.end()

	b = serve(t, dir)
	o := command(t, "", "consume", "temperature", "--url", b.url, "-s", "display", "--from", "earliest", "-n", "2", "--json")
	o.want(t, exitDone, anything, "")
	checkMessages(t, o.stdout, "21.5", "21.7")
	b.end()

	b = serve(t, dir)
	command(t, "", "consume", "temperature", "--url", b.url, "-s", "display", "-t", "shared", "-n", "3").want(t, exitDone, "a\nb\na\n", "")
	b.end()
}

func checkMessages(t *testing.T, lines string, payloads ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(lines), "\n")
	if len(got) != len(payloads) {
		t.Fatalf("%d messages, want %d:\n%s", len(got), len(payloads), lines)
	}
	for i, line := range got {
		var m printed
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Payload == nil || *m.Payload != payloads[i] || m.Key != "sensor-1" || m.Properties["unit"] != "C" || m.Topic != "persistent://public/default/temperature" {
			t.Errorf("message %d is %s", i, line)
		}
	}
}

// What the broker says at its start, a line each.
func TestStartLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	for message, attributes := range map[string][]string{
		"starting":       {"version", "commit", "go", "platform"},
		"configuration":  {"from"},
		"data directory": {"path", "file_system", "free", "quota"},
		"listening":      {"for", "address", "reach", "auth"},
		"uplink":         {"state"},
	} {
		line := b.logged(message)
		for _, a := range attributes {
			if line[a] == nil || line[a] == "" {
				t.Errorf("line %q has no %s: %v", message, a, line)
			}
		}
	}
	if got := b.logged("listening", "for", "admin")["reach"]; got != "this machine only" {
		t.Errorf("loopback reaches %v", got)
	}
}

func TestSecondInstance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	second := filepath.Join(dir, "journal-000002.seg") // made beside, once it serves
	for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		if _, err := os.Stat(second); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%v in\n%s", err, tree(t, dir))
		}
	}
	before := tree(t, dir)
	o := command(t, "", "serve", "--data", dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "log.level=error")
	o.want(t, exitInUse, "", "wayside: data directory is in use: "+dir+": process ")
	if !strings.Contains(o.stderr, fmt.Sprintf("process %d has it", os.Getpid())) {
		t.Errorf("it does not say which process: %s", o.stderr)
	}
	// The same ports too, as with the same file: the directory is what it names.
	command(t, "", "serve", "--data", dir, "--listen", strings.TrimPrefix(b.url, "pulsar://"), "--set", "log.level=error").
		want(t, exitInUse, "", "data directory is in use")
	if after := tree(t, dir); after != before {
		t.Errorf("the second instance changed the directory:\n%s\nwas\n%s", after, before)
	}
	command(t, "", "status", "--admin", b.admin).want(t, exitDone, "healthy", "")
}

// tree lists a directory with sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"--listen", taken, "--admin", "127.0.0.1:0"}, {"--listen", "127.0.0.1:0", "--admin", taken}} {
		o := command(t, "", append([]string{"serve", "--data", dir, "--set", "log.level=error"}, args...)...)
		o.want(t, exitFailed, "", "wayside: port is taken: "+taken+": another program listens there, stop it or set listen.")
		if strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("more than one line: %s", o.stderr)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

func TestBadDataDirectory(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{filepath.Join(root, "missing", "data"), "wayside: parent of the data directory is missing: " + filepath.Join(root, "missing") + ": make it, or mount what belongs there\n"},
		{file, "wayside: data directory is a file: " + file + ": name a directory with --data or storage.path\n"},
		{filepath.Join(file, "data"), "wayside: cannot use the data directory: " + filepath.Join(file, "data") + ": not a directory\n"},
		{"/proc/wayside", "wayside: cannot make the data directory: /proc/wayside: "},
		{"/sys/kernel", "wayside: cannot "},
	} {
		o := command(t, "", "serve", "--data", c.dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "log.level=error")
		o.want(t, exitFailed, "", c.want)
	}
	if got := tree(t, root); strings.Count(got, "\n") != 1 {
		t.Errorf("something was made:\n%s", got)
	}
}

// A directory of somebody else is refused with the owner named. Root may write
// everywhere, so the texts are checked on what the system would answer.
func TestDeniedDirectory(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := whyDenied(syscall.EROFS, dir, info); !strings.Contains(got, "mounted read-only") {
		t.Error(got)
	}
	want := fmt.Sprintf("%s belongs to user %d with mode -rwx", dir, os.Geteuid())
	if got := whyDenied(syscall.EACCES, dir, info); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ": change its mode, or name another directory with --data") {
		t.Errorf("%q lacks %q", got, want)
	}
	if os.Geteuid() == 0 {
		return
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err = inspectDataDir(dir)
	wantFault(t, err, exitFailed, "cannot write to the data directory: "+dir+": "+whyDenied(syscall.EACCES, dir, info))
}

// A start that fails behind the making of the directory takes it away again.
func TestFailedStartLeavesNothing(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	o := command(t, "", "serve", "--data", dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "log.level=error",
		"--set", "uplink.url=pulsar+ssl://cloud:6651", "--set", "uplink.routes=[{from: a, to: b}]", "--set", "uplink.tls.ca_file="+filepath.Join(root, "none.pem"))
	o.want(t, exitUsage, "", "wayside: cannot read uplink.tls.ca_file: "+filepath.Join(root, "none.pem")+": there is no such file")
	if got := tree(t, root); got != "" {
		t.Errorf("left behind:\n%s", got)
	}
}

func TestBadConfigurationTouchesNothing(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "f.yaml")
	if err := os.WriteFile(file, []byte("storage:\n  qouta: 1GiB\nlog:\n  level: loud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "data")
	for _, name := range []string{"serve", "config check"} {
		args := append(strings.Fields(name), "-c", file, "--data", dir)
		command(t, "", args...).want(t, exitUsage, "",
			"wayside: "+file+":2:3: storage.qouta: unknown key, did you mean storage.quota?\nwayside: "+file+":4:10: log.level: \"loud\" is not one of debug, info, warn, error\n")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

// The edge id is made once and stays with the store; a configured one wins.
func TestEdgeIDIsFrozen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := edgeIDOf(t, dir)
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, machine+"-") || len(first) != len(machine)+9 {
		t.Errorf("edge id %q of machine %q", first, machine)
	}
	if again := edgeIDOf(t, dir); again != first {
		t.Errorf("edge id %q after a restart, was %q", again, first)
	}
	if got := edgeIDOf(t, dir, "--set", "edge.id=pump-7"); got != "pump-7" {
		t.Errorf("edge id %q, configured is pump-7", got)
	}
	if other := edgeIDOf(t, filepath.Join(t.TempDir(), "data")); other == first {
		t.Errorf("two devices are called %q", first)
	}
}

func edgeIDOf(t *testing.T, dir string, args ...string) string {
	t.Helper()
	b := serve(t, dir, args...)
	defer b.end()
	var data dataReport
	section(t, b, "data", &data)
	return data.EdgeID
}

// section reads a part of the status.
func section(t *testing.T, b *broker, name string, to any) {
	t.Helper()
	o := command(t, "", "status", "--json", "--admin", b.admin)
	o.want(t, exitDone, anything, "")
	var s admin.Status
	if err := json.Unmarshal([]byte(o.stdout), &s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.Sections[name], to); err != nil {
		t.Fatalf("section %s: %v", name, err)
	}
}

// SIGINT ends it like SIGTERM, and so does the end of the context.
func TestStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	b.signals <- syscall.SIGINT
	if code := b.wait(); code != exitDone {
		t.Errorf("exit %d after SIGINT", code)
	}
	b.logged("stopped")
	b = serve(t, dir)
	b.cancel()
	if code := b.wait(); code != exitDone {
		t.Errorf("exit %d after the end of the context", code)
	}
}

// SIGHUP reads the file again: what can be changed is, what cannot is named, and a file
// with errors changes nothing.
func TestReload(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "f.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limits: {connections: 10}\n")
	b := serve(t, filepath.Join(root, "data"), "-c", file)
	write("limits: {conections: 10}\n")
	b.signals <- syscall.SIGHUP
	if p := b.logged("configuration not reloaded")["problem"]; p != file+":1:10: limits.conections: unknown key, did you mean limits.connections?" {
		t.Errorf("problem %v", p)
	}
	write("limits: {connections: 20}\nlog: {level: debug}\n")
	b.signals <- syscall.SIGHUP
	b.logged("configuration reloaded")
	if keys := b.logged("changed, but takes effect only after a restart")["keys"]; keys != "limits.connections" {
		t.Errorf("waiting for a restart: %v", keys)
	}
	b.end()
}

func TestStatus(t *testing.T) {
	b := serve(t, filepath.Join(t.TempDir(), "data"))
	command(t, "", "produce", "temperature", "--url", b.url, "-m", "1").want(t, exitDone, "1 confirmed", "")
	for _, text := range []string{"health   healthy", "topics   1 topic", "of 1.0 GiB quota", "uplink   off"} {
		command(t, "", "status", "--admin", b.admin).want(t, exitDone, text, "")
	}
	b.end()
	command(t, "", "status", "--admin", b.admin).want(t, exitUnreachable, "", "wayside: broker not reachable: "+b.admin+": connect: connection refused")
	command(t, "", "status", "--admin", "http://").want(t, exitUsage, "", "write http://HOST:PORT")
}
