package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One broker forwards to another that plays the cloud: what was published before the
// cloud could be reached arrives too, in order, and what only counts when acknowledged
// waits for that.
func TestUplink(t *testing.T) {
	root := t.TempDir()
	cloud := serve(t, filepath.Join(root, "cloud"), "--set", "topics.deduplication=true")
	address := strings.TrimPrefix(cloud.url, "pulsar://")
	cloud.end()

	routes := `[{from: public/default/temperature, to: "{edge}-{topic}", compression: zstd}, {from: "alarm*", to: "{edge}-{topic}", forward: acknowledged, by: panel}]`
	e := serve(t, filepath.Join(root, "edge"), "--set", "edge.id=pump-7", "--set", "uplink.url=pulsar://"+address, "--set", "uplink.routes="+routes)
	if line := e.logged("uplink"); line["target"] != "pulsar://"+address || line["routes"] != 2.0 || line["edge_id"] != "pump-7" {
		t.Errorf("start line %v", line)
	}
	command(t, "1\n2\n3\n", "produce", "temperature", "--url", e.url, "-k", "sensor-1").want(t, exitDone, "3 confirmed", "")
	for _, alarm := range []string{"fire", "smoke"} {
		command(t, "", "produce", "alarms", "--url", e.url, "-m", alarm).want(t, exitDone, "1 confirmed", "")
	}
	command(t, "", "consume", "alarms", "--url", e.url, "-s", "panel", "--from", "earliest", "-n", "1").want(t, exitDone, "fire\n", "")

	cloud = serve(t, filepath.Join(root, "cloud"), "--set", "topics.deduplication=true", "--listen", address)
	command(t, "", "consume", "pump-7-temperature", "--url", cloud.url, "-s", "check", "--from", "earliest", "-n", "3").want(t, exitDone, "1\n2\n3\n", "")
	command(t, "", "consume", "pump-7-alarms", "--url", cloud.url, "-s", "check", "--from", "earliest", "-n", "1").want(t, exitDone, "fire\n", "")
	command(t, "", "consume", "alarms", "--url", e.url, "-s", "panel", "-n", "1").want(t, exitDone, "smoke\n", "")
	command(t, "", "consume", "pump-7-alarms", "--url", cloud.url, "-s", "check", "-n", "1").want(t, exitDone, "smoke\n", "")
	checkReport(t, e)
	e.end()
	cloud.end()
}

func checkReport(t *testing.T, e *broker) {
	t.Helper()
	var r uplinkReport
	section(t, e, "uplink", &r)
	if r.EdgeID != "pump-7" || r.Routes != 2 || len(r.Topics) != 2 || r.Sent < 4 || r.Parked != 0 {
		t.Errorf("status says %+v", r)
	}
	o := command(t, "", "status", "--admin", e.admin)
	o.want(t, exitDone, "persistent://public/default/temperature -> persistent://public/default/pump-7-temperature: ", "")
	response, err := http.Get(e.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	const labels = `{cluster="standalone",namespace="public/default",remote_cluster="cloud",route="public.default.temperature",topic="persistent://public/default/temperature"}`
	for _, want := range []string{"pulsar_replication_backlog" + labels + " 0\n", "wayside_uplink_sent_total" + labels + " 3\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// Files that hold secrets are looked at before anything is made, and named.
func TestUplinkFiles(t *testing.T) {
	root := t.TempDir()
	missing := filepath.Join(root, "none")
	for _, path := range []string{"uplink.auth.token_file", "uplink.tls.ca_file"} {
		o := command(t, "", "serve", "--data", filepath.Join(root, "data"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "log.level=error",
			"--set", "uplink.url=pulsar+ssl://localhost:1", "--set", "uplink.routes=[{from: a, to: b}]", "--set", path+"="+missing)
		o.want(t, exitUsage, "", "wayside: cannot read "+path+": "+missing+": there is no such file\n")
	}
	if got := tree(t, root); got != "" {
		t.Errorf("left behind:\n%s", got)
	}
}

// A token is read for each connection, without the line's end that editors add.
func TestTokenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	var b server
	b.Uplink.TokenFile = name
	for _, text := range []string{"first\n", "second"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := b.cloudAuth().Token()
		if err != nil || got != strings.TrimSpace(text) {
			t.Errorf("token %q, %v", got, err)
		}
	}
}
