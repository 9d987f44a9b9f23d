package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"wayside/configs"
)

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"prodcue x", exitUsage, `wayside: unknown command: prodcue: did you mean wayside produce?`},
		{"subscribe x", exitUsage, `wayside: unknown command: subscribe: see wayside --help`},
		{"config chek", exitUsage, `wayside: unknown command: config chek: did you mean wayside config check?`},
		{"serve --lisen :1", exitUsage, "wayside: wrong usage: unknown flag: --lisen: see wayside serve --help"},
		{"serve extra", exitUsage, "wayside: wrong usage: extra: wayside serve takes flags only, see wayside serve --help"},
		{"serve -c", exitUsage, "wayside: wrong usage: flag needs an argument: 'c' in -c: see wayside serve --help"},
		{"serve --config=", exitUsage, "wayside: wrong usage: -c: name a file"},
		{"serve -c none.yaml", exitUsage, "wayside: cannot open the configuration: none.yaml: there is no such file"},
		{"serve --set storage.quota", exitUsage, "wayside: wrong usage: --set storage.quota: write --set KEY=VALUE"},
		{"serve --set storage.quota=10mb", exitUsage, `wayside: --set: storage.quota: "10mb" has no known unit, did you mean MB or MiB?`},
		{"produce", exitUsage, "wayside: wrong usage: no TOPIC: see wayside produce --help"},
		{"consume a b", exitUsage, "wayside: wrong usage: a b: wayside consume takes one TOPIC, see wayside consume --help"},
		{"produce a/b -m x", exitUsage, "wayside: wrong topic: a/b: write temperature, tenant/namespace/topic"},
		{"produce t/n!/a -m x", exitUsage, "wayside: wrong topic: t/n!/a: invalid topic name"},
		{"produce x -p a", exitUsage, "wayside: wrong usage: -p a: write -p NAME=VALUE"},
		{"produce x -n -1", exitUsage, "wayside: wrong usage: -n and --rate"},
		{"produce x --url localhost:6650", exitUsage, "wayside: wrong usage: --url localhost:6650: write pulsar://HOST:PORT"},
		{"consume x -s y -t queue", exitUsage, "wayside: wrong usage: -t queue: write exclusive"},
		{"consume x -t shared", exitUsage, "wayside: wrong usage: -t shared: it goes with -s"},
		{"consume x -n -1", exitUsage, "wayside: wrong usage: -n"},
		{"demo --sensors 0", exitUsage, "wayside: wrong usage: --sensors, --rate"},
	} {
		command(t, "", strings.Fields(c.args)...).want(t, c.code, "", c.want)
	}
}

// Nobody listens at a port that was free a moment ago.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "pulsar://" + l.Addr().String()
	l.Close()
	for _, args := range [][]string{{"produce", "x", "-m", "y"}, {"consume", "x"}, {"demo"}} {
		command(t, "", append(args, "--url", url)...).
			want(t, exitUnreachable, "", "wayside: no broker answers: "+url+": connect: connection refused; start one with wayside serve")
	}
}

func TestConfigCommands(t *testing.T) {
	command(t, "", "config", "check").want(t, exitDone, "built-in defaults: ok\n", "")
	if o := command(t, "", "config", "default"); o.stdout != configs.Default() || o.code != exitDone {
		t.Errorf("exit %d, %q", o.code, o.stdout)
	}
	inDirectory(t, "storage: {quota: 2GiB}\nuplink:\n  url: pulsar+ssl://cloud:6651\n  auth: {token: \"${TOKEN}\"}\n  routes:\n    - {from: \"a/b/*\", to: \"{edge}\", compression: lz4}\n")
	o := commandIn(t, environment("TOKEN", "s3cret"), "", "config", "show", "-c", "f.yaml", "--listen", ":7000")
	o.want(t, exitDone, anything, "")
	for _, line := range []string{
		"storage:\n",
		"  quota: 2GiB                              # f.yaml:1\n",
		"  file_limit: 0                            # default\n",
		"  pulsar: :7000                            # --listen\n",
		"    token: \"***\"                           # f.yaml:4\n",
		"  routes:\n    - {from: a/b/*, to: \"{edge}\", forward: stored, compression: lz4, provenance: id, park: \"{tenant}/{namespace}/wayside.parked\"} # f.yaml:6\n",
	} {
		if !strings.Contains(o.stdout, line) {
			t.Errorf("lacks %q:\n%s", line, o.stdout)
		}
	}
	if strings.Contains(o.stdout, "s3cret") {
		t.Error("shows the secret")
	}
}

// What config show prints is a configuration, the same one.
func TestShownConfigReadsBack(t *testing.T) {
	shown := command(t, "", "config", "show", "--set", "uplink.url=pulsar://c:1", "--set", "uplink.routes=[{from: 'x*', to: 'y-{1}'}]").stdout
	inDirectory(t, shown)
	command(t, "", "config", "check", "-c", "f.yaml").want(t, exitDone, "f.yaml: ok\n", "")
	again := command(t, "", "config", "show", "-c", "f.yaml").stdout
	strip := func(s string) string {
		var lines []string
		for line := range strings.Lines(s) {
			text, _, _ := strings.Cut(line, "#")
			lines = append(lines, strings.TrimRight(text, " \n"))
		}
		return strings.Join(lines, "\n")
	}
	if strip(again) != strip(shown) {
		t.Errorf("read back as\n%s\nwas\n%s", again, shown)
	}
}

func TestVersionManCompletion(t *testing.T) {
	command(t, "", "version").want(t, exitDone, "wayside ", "")
	o := command(t, "", "man")
	o.want(t, exitDone, ".TH WAYSIDE 1", "")
	for _, text := range []string{"serve", "config default", "status", "produce TOPIC", "consume TOPIC", "demo", "version", "completion SHELL", `\-\-set`, ".SH EXIT STATUS"} {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("the manual lacks %q", text)
		}
	}
	command(t, "", "completion", "bash").want(t, exitDone, "bash completion", "")
	command(t, "").want(t, exitDone, "Usage:", "")
}

// A consumer in the background sees what the demo's sensors say, and a signal ends both.
func TestDemo(t *testing.T) {
	b := serve(t, t.TempDir())
	d := start(t, environment(), "demo", "--url", b.url, "--sensors", "6", "--rate", "50")
	d.until("a line of the demo", func() bool { return strings.Contains(d.stdout.String(), "seen by a consumer") })
	d.signals <- syscall.SIGINT
	if code := d.wait(); code != exitDone {
		t.Errorf("exit %d: %s", code, d.stderr())
	}
	var published, confirmed, seen int
	lines := strings.Split(strings.TrimSpace(d.stdout.String()), "\n")
	if _, err := scan(lines[len(lines)-1], &published, &confirmed, &seen); err != nil {
		t.Fatal(err)
	}
	if published == 0 || confirmed != published || seen == 0 {
		t.Errorf("%d published, %d confirmed, %d seen", published, confirmed, seen)
	}
}

func scan(line string, published, confirmed, seen *int) (int, error) {
	return fmt.Sscanf(line, "%d published, %d confirmed, %d seen", published, confirmed, seen)
}
