package boltstore

import (
	"bufio"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type eventKind int

const (
	eventSay      eventKind = iota // on standard output
	eventWrite                     // data at offset
	eventTruncate                  // to offset
	eventSync                      // of a file
	eventSyncDir
	eventCreate
	eventRename
	eventUnlink
)

// event is one recorded call that changes a disk, or says something.
type event struct {
	kind   eventKind
	name   string
	to     string
	offset int64
	data   []byte
	file   *diskFile // that a creation made
}

// recording is a child's calls in order. A write counts from its start, a sync from
// its end.
type recording struct {
	dir     string
	events  []event
	started map[string]string // calls by thread that strace has shown by half
}

var (
	straceCall    = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	straceResumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	straceFD      = regexp.MustCompile(`^\d+<([^>]*)>`)
)

func parseRecord(t *testing.T, dir, log string) *recording {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &recording{dir: dir, started: map[string]string{}}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r.line(strings.TrimSuffix(line, "\n"))
	}
	if len(r.events) < 100 {
		t.Skipf("strace shows %d calls only", len(r.events))
	}
	return r
}

// line takes one line of strace's output. Calls that other threads interrupted come
// in two.
func (r *recording) line(line string) {
	if m := straceResumed.FindStringSubmatch(line); m != nil {
		if args, ok := r.started[m[1]]; ok {
			delete(r.started, m[1])
			r.ended(m[2], args, m[3])
		}
		return
	}
	m := straceCall.FindStringSubmatch(line)
	if m == nil {
		return
	}
	args, unfinished := strings.CutSuffix(m[3], " <unfinished ...>")
	r.begun(m[2], args)
	if unfinished {
		r.started[m[1]] = args
	} else {
		r.ended(m[2], args, args)
	}
}

// begun notes what counts from the start of a call.
func (r *recording) begun(call, args string) {
	switch call {
	case "write":
		if strings.HasPrefix(args, "1<") {
			_, data := firstText(args)
			r.events = append(r.events, event{kind: eventSay, data: data})
		}
	case "pwrite64":
		rest, data := firstText(args)
		fields := strings.Split(strings.TrimLeft(rest, ", "), ", ")
		if len(fields) < 2 {
			return
		}
		offset, err := strconv.ParseInt(strings.TrimRight(strings.Fields(fields[1])[0], ")"), 10, 64)
		if name, ok := r.inside(args); ok && err == nil {
			r.events = append(r.events, event{kind: eventWrite, name: name, offset: offset, data: data})
		}
	}
}

// ended notes what counts from the end of a successful call.
func (r *recording) ended(call, args, result string) {
	if strings.Contains(result, "= -1 ") {
		return
	}
	switch call {
	case "fdatasync", "fsync":
		if m := straceFD.FindStringSubmatch(args); m != nil && unescape(m[1]) == r.dir {
			r.events = append(r.events, event{kind: eventSyncDir})
		} else if name, ok := r.inside(args); ok {
			r.events = append(r.events, event{kind: eventSync, name: name})
		}
	case "ftruncate":
		if name, ok := r.inside(args); ok {
			fields := strings.Split(args, ", ")
			size, _ := strconv.ParseInt(strings.TrimRight(strings.Fields(fields[1])[0], ")"), 10, 64)
			r.events = append(r.events, event{kind: eventTruncate, name: name, offset: size})
		}
	case "openat":
		if rest, path := firstText(args); strings.Contains(rest, "O_CREAT") && filepath.Dir(string(path)) == r.dir {
			r.events = append(r.events, event{kind: eventCreate, name: filepath.Base(string(path))})
		}
	case "unlink", "unlinkat":
		if _, path := firstText(args); filepath.Dir(string(path)) == r.dir {
			r.events = append(r.events, event{kind: eventUnlink, name: filepath.Base(string(path))})
		}
	case "rename", "renameat":
		rest, from := firstText(args)
		if _, to := firstText(rest); filepath.Dir(string(to)) == r.dir {
			r.events = append(r.events, event{kind: eventRename, name: filepath.Base(string(from)), to: filepath.Base(string(to))})
		}
	}
}

// inside returns the name of the file in the child's directory that a call's first
// argument is open on.
func (r *recording) inside(args string) (string, bool) {
	m := straceFD.FindStringSubmatch(args)
	if m == nil {
		return "", false
	}
	path := unescape(m[1])
	return filepath.Base(path), filepath.Dir(path) == r.dir
}

// firstText takes the first quoted text of arguments, and what follows it.
func firstText(args string) (rest string, text []byte) {
	_, args, _ = strings.Cut(args, `"`)
	quoted, rest, _ := strings.Cut(args, `"`)
	text, err := hex.DecodeString(strings.ReplaceAll(quoted, `\x`, ""))
	if err != nil {
		return rest, nil
	}
	return rest, text
}

// unescape reads a path that strace may have written in hexadecimal.
func unescape(s string) string {
	if !strings.HasPrefix(s, `\x`) {
		return s
	}
	if b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, "")); err == nil {
		return string(b)
	}
	return s
}
