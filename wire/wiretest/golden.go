package wiretest

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// Golden is one recorded frame.
type Golden struct {
	Name   string
	Sender string // "client" or "broker"
	Origin string // what sent it, with its version
	Text   string // the frame in words, cut at 400 characters; see wire.Dump
	Frame  []byte // with its size field
}

// ReadGolden reads a file of golden frames: of each a line of text behind "# ",
// then name, sender, origin and frame in hex, with tabs between.
func ReadGolden(path string) ([]Golden, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Golden
	var text string
	for i, line := range strings.Split(string(b), "\n") {
		if after, ok := strings.CutPrefix(line, "# "); ok {
			text = after
			continue
		}
		if line == "" {
			continue
		}
		part := strings.Split(line, "\t")
		if len(part) != 4 {
			return nil, fmt.Errorf("%s:%d: %d columns, want 4", path, i+1, len(part))
		}
		frame, err := hex.DecodeString(part[3])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		all = append(all, Golden{Name: part[0], Sender: part[1], Origin: part[2], Text: text, Frame: frame})
	}
	return all, nil
}
