package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"wayside/wire/wiretest"
)

// setting is how a program wants its broker to be: Pulsar by a namespace with policies, Wayside by an instance.
type setting struct {
	name     string
	space    string
	policies [][2]string // of the namespace on Pulsar: path below it, and body
	set      []string    // of the instance of Wayside
}

// settings are all there are. The first is the usual one.
func settings() []setting {
	return []setting{
		{name: "", space: "public/default"},
		{name: "dedup", space: "public/dedup", policies: [][2]string{{"deduplication", "true"}}, set: []string{"topics.deduplication=true"}},
		{name: "fixed", space: "public/fixed", policies: [][2]string{{"autoTopicCreation", `{"allowAutoTopicCreation":false}`}}, set: []string{"topics.auto_create=false"}},
		{name: "trimmed", space: "public/trimmed", set: []string{"storage.keep_acked=0", "topics.backlog_check_interval=1s"}},
	}
}

// wayside is one running instance.
type wayside struct {
	side
	process *exec.Cmd
}

const (
	readyTime = 20 * time.Second
	stopTime  = 20 * time.Second
)

// start starts the binary on free ports with its data below dir.
func start(bin, dir string, s *setting) (*wayside, error) {
	dir = filepath.Join(dir, "wayside-"+s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &wayside{}
	for _, addr := range []*string{&w.addr, &w.admin} {
		p, err := wiretest.StartProxy(wiretest.ProxyOptions{}) // takes a free port and gives it back
		if err != nil {
			return nil, err
		}
		*addr = p.Addr()
		p.Close()
	}
	w.name = "wayside"
	args := []string{"serve", "--data", filepath.Join(dir, "data"), "--listen", w.addr, "--admin", w.admin, "--set", "limits.memory=128MiB", "--set", "log.level=warn"}
	for _, kv := range s.set {
		args = append(args, "--set", kv)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	w.process = exec.Command(bin, args...)
	w.process.Stdout, w.process.Stderr = log, log
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(readyTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if code, _, err := ask(w.admin, http.MethodGet, "/readyz", ""); err == nil && code == http.StatusOK {
			return w, nil
		}
	}
	w.stop()
	return nil, fmt.Errorf("wayside did not become ready, see %s", log.Name())
}

// stop ends the instance and returns how it ended.
func (w *wayside) stop() error {
	if err := w.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(stopTime, func() { w.process.Process.Kill() })
	defer kill.Stop()
	return w.process.Wait()
}

// prepare makes the namespaces on either side and has Pulsar load what it serves: it refuses topics of a part of a
// namespace that nobody has looked up yet.
func prepare(pulsar *side, instances map[string]*wayside) error {
	for _, s := range settings() {
		path := "/admin/v2/namespaces/" + s.space
		for _, admin := range []string{pulsar.admin, instances[s.name].admin} {
			if code, body, err := ask(admin, http.MethodPut, path, ""); err != nil || code/100 != 2 && code != http.StatusConflict {
				return fmt.Errorf("create %s: %d %s %v", s.space, code, body, err)
			}
		}
		for _, p := range s.policies {
			if code, body, err := ask(pulsar.admin, http.MethodPost, path+"/"+p[0], p[1]); err != nil || code/100 != 2 {
				return fmt.Errorf("set %s of %s: %d %s %v", p[0], s.space, code, body, err)
			}
		}
		for i := range 40 {
			if _, _, err := ask(pulsar.admin, http.MethodGet, fmt.Sprintf("/lookup/v2/topic/persistent/%s/any-%d", s.space, i), ""); err != nil {
				return err
			}
		}
	}
	// Nor has it a coordinator of transactions before a client looked for it.
	_, _, err := ask(pulsar.admin, http.MethodGet, "/lookup/v2/topic/persistent/pulsar/system/transaction_coordinator_assign-partition-0", "")
	return err
}
