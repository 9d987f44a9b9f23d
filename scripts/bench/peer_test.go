package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 9061 0 3 0 150 27 1 2 20 0 11 0 510 1 2"
	for stat, want := range map[string]time.Duration{
		"42 (redis-server)" + rest: 1770 * time.Millisecond,
		"42 (a) b (c)" + rest:      1770 * time.Millisecond,
	} {
		if got, err := parseCPU(stat); err != nil || got != want {
			t.Errorf("%q: %v, %v, not %v", stat, got, err, want)
		}
	}
	for _, stat := range []string{"", "42 (a)", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x y"} {
		if got, err := parseCPU(stat); err == nil {
			t.Errorf("%q: %v", stat, got)
		}
	}
}

func TestLastLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("first\nthe cause\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := lastLine(file); got != "the cause" {
		t.Errorf("%q", got)
	}
	if got := lastLine(file + "x"); got != "" {
		t.Errorf("%q of no file", got)
	}
}
