package uplink

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// The client's own lines are folded: the same line again within foldSpan is counted
// and said once afterwards. foldLines bounds how many different ones are remembered.
const (
	foldSpan  = time.Minute
	foldLines = 64
)

// folder writes the client's log lines to slog, and reads from them what the client's
// errors do not say.
type folder struct {
	out  *slog.Logger
	note func(line, cause string) // sees every warning and error

	mu    sync.Mutex
	lines map[string]*folded
}

type folded struct {
	since time.Time
	more  int
}

func newFolder(out *slog.Logger, note func(line, cause string)) *folder {
	return &folder{out: out, note: note, lines: map[string]*folded{}}
}

func (f *folder) write(level slog.Level, line, cause string, attrs []any) {
	if level >= slog.LevelWarn {
		f.note(line, cause)
	}
	if !f.out.Enabled(context.Background(), level) {
		return
	}
	key := withoutNumbers(line + "\x00" + cause)
	if level >= slog.LevelWarn {
		more, say := f.fold(key, time.Now())
		if !say {
			return
		}
		if more > 0 {
			attrs = append(attrs, "repeated", more)
		}
	}
	if cause != "" {
		attrs = append(attrs, "error", cause)
	}
	f.out.Log(context.Background(), level, "pulsar client: "+line, attrs...)
}

// withoutNumbers makes lines equal that differ in ports, ids and counts only.
func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// fold reports whether a line is to be said now, and how often it was not.
func (f *folder) fold(key string, now time.Time) (more int, say bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l, ok := f.lines[key]; ok {
		if now.Sub(l.since) < foldSpan {
			l.more++
			return 0, false
		}
		more = l.more
	} else if len(f.lines) >= foldLines {
		clear(f.lines)
	}
	f.lines[key] = &folded{since: now}
	return more, true
}

// lines is one logger of the client, with its fields.
type lines struct {
	f     *folder
	attrs []any
	cause string
}

var (
	_ log.Logger = (*lines)(nil)
	_ log.Entry  = (*lines)(nil)
)

func (l *lines) with(fields log.Fields) *lines {
	attrs := append([]any(nil), l.attrs...)
	for name, value := range fields {
		attrs = append(attrs, name, value)
	}
	return &lines{f: l.f, attrs: attrs, cause: l.cause}
}

// SubLogger implements the client's logger.
func (l *lines) SubLogger(fields log.Fields) log.Logger { return l.with(fields) }

// WithFields implements the client's logger.
func (l *lines) WithFields(fields log.Fields) log.Entry { return l.with(fields) }

// WithField implements the client's logger.
func (l *lines) WithField(name string, value any) log.Entry {
	return l.with(log.Fields{name: value})
}

// WithError implements the client's logger.
func (l *lines) WithError(err error) log.Entry {
	e := l.with(nil)
	if err != nil {
		e.cause = err.Error()
	}
	return e
}

// Debug is dropped: the client says one for every message.
func (l *lines) Debug(...any) {}

// Debugf is dropped.
func (l *lines) Debugf(string, ...any) {}

// Info is for those who look for trouble.
func (l *lines) Info(args ...any) { l.say(slog.LevelDebug, fmt.Sprint(args...)) }

// Infof is the same, formatted.
func (l *lines) Infof(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }

// Warn is said once per fold.
func (l *lines) Warn(args ...any) { l.say(slog.LevelWarn, fmt.Sprint(args...)) }

// Warnf is the same, formatted.
func (l *lines) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error is a warning too: what it means for the line, the uplink says itself.
func (l *lines) Error(args ...any) { l.say(slog.LevelWarn, fmt.Sprint(args...)) }

// Errorf is the same, formatted.
func (l *lines) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

func (l *lines) say(level slog.Level, line string) {
	l.f.write(level, strings.TrimSpace(line), l.cause, l.attrs)
}
