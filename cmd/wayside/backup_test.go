package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wayside/edge/admin"
)

// A running broker makes a backup of what it holds, on which another one serves.
func TestBackupOfARunningBroker(t *testing.T) {
	b := serve(t, filepath.Join(t.TempDir(), "data"))
	command(t, "", "produce", "pump", "-m", "one", "--url", b.url).want(t, exitDone, anything, anything)
	dir := t.TempDir()
	target := filepath.Join(dir, "b")
	backup := []string{"store", "backup", "--admin", b.admin, "--to"}
	command(t, "", append(backup, target)...).want(t, exitDone, target+": backup of the broker at "+b.admin, "")
	command(t, "", append(backup, target)...).want(t, exitFailed, "", "it is not empty")
	command(t, "", append(backup, "b")...).want(t, exitUsage, "", "write an absolute path")
	command(t, "", append(backup, target, "x")...).want(t, exitUsage, "", "takes flags only")
	command(t, "", "store", "check", target).want(t, exitDone, "sound, 1 topic, ", "")
	command(t, "", "produce", "pump", "-m", "two", "--url", b.url).want(t, exitDone, anything, anything)

	other := serve(t, target)
	o := command(t, "", "consume", "pump", "--from", "earliest", "-n", "1", "--url", other.url)
	o.want(t, exitDone, "one", anything)
	if strings.Contains(o.stdout, "two") {
		t.Error("the backup has what came later")
	}
	other.end()

	slow := start(t, environment(), append(backup, filepath.Join(dir, "slow"), "--rate", "1")...)
	running := func() admin.BackupStatus {
		var s admin.BackupStatus
		response, err := http.Get(b.admin + admin.BackupPath)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for running().State != admin.BackupRunning {
	}
	command(t, "", append(backup, filepath.Join(dir, "c"))...).want(t, exitFailed, "", "Another backup is under way")
	slow.signals <- syscall.SIGTERM
	if code := slow.wait(); code != exitFailed || !strings.Contains(slow.stderr(), "backup was given up") {
		t.Errorf("exit %d: %s", code, slow.stderr())
	}
	for running().State == admin.BackupRunning {
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v is left, %v", names, err)
	}

	// One that is under way does not keep the broker from its stop.
	_ = start(t, environment(), append(backup, filepath.Join(dir, "late"), "--rate", "1")...)
	for running().State != admin.BackupRunning {
	}
	b.end()
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v is left, %v", names, err)
	}
	command(t, "", append(backup, target)...).want(t, exitUnreachable, "", "broker not reachable")
}
