package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wayside/edge"
)

// edgeIDKey is where the store keeps the edge id that was made at its first start.
const edgeIDKey = "cmd/edge-id"

// maxMachineName keeps a long machine name from filling producer names, in bytes.
const maxMachineName = 48

// frozenEdgeID returns the id that the store has kept since its first start. In a new
// store it puts one: the machine's name, and random digits because a flashed fleet
// shares its machine name.
func frozenEdgeID(values edge.Values, machine string) (string, error) {
	var kept string
	err := values.ScanValues(edgeIDKey, func(key string, value []byte) bool {
		if key == edgeIDKey {
			kept = string(value)
		}
		return false
	})
	if err != nil {
		return "", fmt.Errorf("read the edge id: %w", err)
	}
	if kept != "" {
		return kept, nil
	}
	id := newEdgeID(machine)
	done := make(chan error, 1)
	values.PutValue(edgeIDKey, []byte(id), func(err error) { done <- err })
	if err := <-done; err != nil {
		return "", fmt.Errorf("keep the edge id: %w", err)
	}
	return id, nil
}

func newEdgeID(machine string) string {
	fitting := func(r rune) rune {
		if edge.ValidPart(string(r)) {
			return r
		}
		return '-'
	}
	name := strings.Map(fitting, machine)
	if len(name) > maxMachineName {
		name = name[:maxMachineName]
	}
	if name == "" {
		name = "edge"
	}
	var digits [4]byte
	rand.Read(digits[:]) // never fails, says its documentation
	return name + "-" + hex.EncodeToString(digits[:])
}

func machineName(log *slog.Logger) string {
	name, err := os.Hostname()
	if err != nil {
		log.Warn("machine has no name", "err", err)
	}
	return name
}

// bootID is a number that differs from one start of the machine to the next: half of
// the kernel's random id. It is 0 where the kernel gives none.
func bootID(text string) uint64 {
	digits := strings.ReplaceAll(strings.TrimSpace(text), "-", "")
	if len(digits) < 16 {
		return 0
	}
	n, err := strconv.ParseUint(digits[:16], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

func readBootID(log *slog.Logger) uint64 {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		log.Warn("machine has no boot id, time stamps cannot be mended later", "err", err)
	}
	return bootID(string(text))
}

// sinceBoot is the time since the machine's start, sleep included.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
