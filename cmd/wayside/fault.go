package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1 // status: degraded
	exitUsage       = 2 // wrong usage or configuration
	exitUnreachable = 3 // no broker answers
	exitInUse       = 4 // another process has the data directory
)

// fault is an error for people, with the exit code that it means.
type fault struct {
	code  int
	lines []string // each "what happened: to which thing: what to do"
	cause error    // for errors.Is, may be nil
}

func (f *fault) Error() string { return f.lines[0] }
func (f *fault) Unwrap() error { return f.cause }

// failed is a fault of one line.
func failed(code int, what, thing, todo string) *fault {
	return &fault{code: code, lines: []string{fmt.Sprintf("%s: %s: %s", what, thing, todo)}}
}

// tell writes an error to people and returns the exit code it stands for. Errors
// that are no fault come from the command line's parser.
func tell(w io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	var f *fault
	if !errors.As(err, &f) {
		f = failed(exitUsage, "wrong usage", err.Error(), "see wayside --help")
	}
	for _, line := range f.lines {
		fmt.Fprintln(w, "wayside:", line)
	}
	return f.code
}

// reason cuts an error of the operating system down to what it says, without the
// call and the path, which the message has already.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.As(err, &errno):
		return errno.Error()
	}
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
