package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled is the data directory of a stopped broker with some messages.
func filled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)

	command(t, "", "produce", "pump", "-m", "one", "-m", "two", "-m", "three of them", "--url", b.url).want(t, exitDone, anything, anything)
	b.end()
	return dir
}

// In use, or nothing at all: every command says so at once.
func TestStoreRefuses(t *testing.T) {
	dir, nothing := filepath.Join(t.TempDir(), "data"), t.TempDir()
	b := serve(t, dir)
	defer b.end()
	for _, name := range []string{"stat", "check", "salvage", "compact", "backup"} {
		args := []string{"store", name, dir}
		if name == "backup" {
			args = append(args, "--to", filepath.Join(nothing, "b"))
		}
		command(t, "", args...).want(t, exitInUse, "", "wayside: data directory is in use: "+dir+": process ")
		args[2] = nothing
		command(t, "", args...).want(t, exitFailed, "", "wayside: no data directory of a Wayside: "+nothing+": name the one")
		args[2] = filepath.Join(nothing, "none")
		command(t, "", args...).want(t, exitFailed, "", "wayside: cannot read the data directory: "+args[2]+": there is no such file")
	}
	if names, err := os.ReadDir(nothing); err != nil || len(names) > 0 {
		t.Errorf("%v was left behind", names)
	}
	for _, args := range []string{"store chek x", "store stat", "store check a b", "store stat x -n -1", "store backup x", "store backup x --to y --rate 1mb"} {
		command(t, "", strings.Fields(args)...).want(t, exitUsage, "", "wayside: ")
	}
}

func TestStoreStatCheckCompact(t *testing.T) {
	dir := filled(t)
	command(t, "", "store", "stat", dir).want(t, exitDone, "persistent://public/default/pump, ", "")
	var r storeReport
	o := command(t, "", "store", "stat", dir, "--json", "-n", "1")
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Entries == 0 || r.Topics != 1 || len(r.Largest) != 1 || r.JournalBytes == 0 || r.Format == 0 || len(r.Remarks) > 0 {
		t.Errorf("%v: %s", err, o.stdout)
	}
	command(t, "", "store", "check", dir).want(t, exitDone, dir+": sound, 1 topic, ", "")
	command(t, "", "store", "salvage", dir).want(t, exitDone, dir+": had nothing to salvage, 1 topic, ", "")
	command(t, "", "store", "compact", dir).want(t, exitDone, dir+": files took ", "")
	command(t, "", "store", "check", dir).want(t, exitDone, "sound, 1 topic, ", "")
	b := serve(t, dir)
	command(t, "", "consume", "pump", "--from", "earliest", "-n", "3", "--url", b.url).want(t, exitDone, "three of them", anything)
	b.end()
}

// A main file without its beginning is found, set aside, and the rest is whole.
func TestStoreDamaged(t *testing.T) {
	dir := filled(t)
	paths, err := filepath.Glob(filepath.Join(dir, "wayside-*.db"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	raw, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	clear(raw[:8192])
	if err := os.WriteFile(paths[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	o := command(t, "", "store", "check", dir)
	o.want(t, exitFailed, "the main file cannot be served: wayside-000001.db", "wayside: data directory is damaged: "+dir)
	if after, err := os.ReadFile(paths[0]); err != nil || !bytes.Equal(raw, after) {
		t.Error("checking has changed the file")
	}
	for _, args := range [][]string{{"compact", dir}, {"backup", dir, "--to", filepath.Join(t.TempDir(), "b")}} {
		command(t, "", append([]string{"store"}, args...)...).want(t, exitFailed, "", "run wayside store salvage first")
	}
	command(t, "", "store", "salvage", dir).want(t, exitDone, "is set aside as wayside-000001.damaged-", "")
	command(t, "", "store", "check", dir).want(t, exitDone, "a damaged file was set aside: wayside-000001.damaged-", "")
	b := serve(t, dir)
	b.end()
}

func TestStoreBackup(t *testing.T) {
	dir, target := filled(t), filepath.Join(t.TempDir(), "copy")
	command(t, "", "store", "backup", dir, "--to", target).want(t, exitDone, target+": backup of "+dir, "")
	command(t, "", "store", "backup", dir, "--to", target).want(t, exitFailed, "", "it is not empty")
	command(t, "", "store", "backup", dir, "--to", filepath.Join(dir, "x")).want(t, exitFailed, "", "it lies in the data directory")
	command(t, "", "store", "check", target).want(t, exitDone, "sound, 1 topic, ", "")
	a, b := serve(t, dir), serve(t, target)
	for _, broker := range []*broker{a, b} {
		command(t, "", "consume", "pump", "--from", "earliest", "-n", "3", "--url", broker.url).want(t, exitDone, "three of them", anything)
	}
	a.end()
	b.end()
}
