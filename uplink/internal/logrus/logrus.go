// Package logrus stands in for the library through which the official client tells of a
// few errors. All goes to log/slog's default logger.
package logrus

import (
	"fmt"
	"log/slog"
	"os"
)

// Fields are values by name.
type Fields map[string]any

// FieldLogger is a logger that may carry values.
type FieldLogger interface {
	WithField(name string, value any) *Entry
	WithFields(Fields) *Entry
	WithError(error) *Entry
	Debug(...any)
	Info(...any)
	Warn(...any)
	Error(...any)
	Debugf(string, ...any)
	Infof(string, ...any)
	Warnf(string, ...any)
	Errorf(string, ...any)
}

// Logger carries no values.
type Logger struct{ Entry }

// Entry carries values.
type Entry struct{ values []any }

var standard = &Logger{}

// StandardLogger is the one that everybody shares.
func StandardLogger() *Logger { return standard }

func (e *Entry) with(more ...any) *Entry {
	return &Entry{append(e.values[:len(e.values):len(e.values)], more...)}
}

// WithField carries one more value.
func (e *Entry) WithField(name string, value any) *Entry { return e.with(name, value) }

// WithError carries an error.
func (e *Entry) WithError(err error) *Entry { return e.with("err", err) }

// WithFields carries more values.
func (e *Entry) WithFields(fields Fields) *Entry {
	for name, value := range fields {
		e = e.with(name, value)
	}
	return e
}

// Debug and the others log at their level.
func (e *Entry) Debug(args ...any) { slog.Debug(fmt.Sprint(args...), e.values...) }

// Info logs.
func (e *Entry) Info(args ...any) { slog.Info(fmt.Sprint(args...), e.values...) }

// Warn logs.
func (e *Entry) Warn(args ...any) { slog.Warn(fmt.Sprint(args...), e.values...) }

// Error logs.
func (e *Entry) Error(args ...any) { slog.Error(fmt.Sprint(args...), e.values...) }

// Debugf and the others log at their level.
func (e *Entry) Debugf(format string, args ...any) { e.Debug(fmt.Sprintf(format, args...)) }

// Infof logs.
func (e *Entry) Infof(format string, args ...any) { e.Info(fmt.Sprintf(format, args...)) }

// Warnf logs.
func (e *Entry) Warnf(format string, args ...any) { e.Warn(fmt.Sprintf(format, args...)) }

// Errorf logs.
func (e *Entry) Errorf(format string, args ...any) { e.Error(fmt.Sprintf(format, args...)) }

// Fatal logs and ends the process.
func (e *Entry) Fatal(args ...any) {
	e.Error(args...)
	os.Exit(1)
}

// WithError is the standard logger's.
func WithError(err error) *Entry { return standard.WithError(err) }

// Warn is the standard logger's.
func Warn(args ...any) { standard.Warn(args...) }

// Error is the standard logger's.
func Error(args ...any) { standard.Error(args...) }

// Errorf is the standard logger's.
func Errorf(format string, args ...any) { standard.Errorf(format, args...) }

// Fatal logs and ends the process.
func Fatal(args ...any) { standard.Fatal(args...) }

// Fatalf logs and ends the process.
func Fatalf(format string, args ...any) { Fatal(fmt.Sprintf(format, args...)) }
