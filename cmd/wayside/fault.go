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

// tell writes an error to people and returns the exit code it stands for, the first one
// of several. Errors that are no fault come from the command line's parser.
func tell(w io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	faults := faultsIn(err)
	if len(faults) == 0 {
		faults = []*fault{failed(exitUsage, "wrong usage", err.Error(), "see wayside --help")}
	}
	for _, f := range faults {
		for _, line := range f.lines {
			fmt.Fprintln(w, "wayside:", line)
		}
	}
	return faults[0].code
}

// faultsIn takes joined errors apart.
func faultsIn(err error) []*fault {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*fault
		for _, e := range joined.Unwrap() {
			all = append(all, faultsIn(e)...)
		}
		return all
	}
	var f *fault
	if errors.As(err, &f) {
		return []*fault{f}
	}
	return nil
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
