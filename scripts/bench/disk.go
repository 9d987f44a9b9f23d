package main

import (
	"os"
	"path/filepath"
	"strings"
)

// fileSystem names what a folder lies on, since a sync costs twice as much with a journal in the file system.
func fileSystem(folder string) string {
	device, kind := mountOf(folder)
	if kind != "ext4" {
		return kind + " on " + device
	}
	task, err := os.ReadFile("/sys/fs/ext4/" + filepath.Base(device) + "/journal_task")
	switch {
	case err != nil:
		return "ext4 (journal unknown) on " + device
	case strings.TrimSpace(string(task)) == "<none>":
		return "ext4 without a journal on " + device
	}
	return "ext4 with a journal on " + device
}

// mountOf returns device and type of the mount with the longest path that leads to folder.
func mountOf(folder string) (device, kind string) {
	device, kind = "unknown device", "unknown file system"
	mounts, _ := os.ReadFile("/proc/self/mounts")
	longest := ""
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < len(longest) || !within(folder, f[1]) {
			continue
		}
		device, longest, kind = f[0], f[1], f[2]
	}
	return device, kind
}

func within(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../")
}
