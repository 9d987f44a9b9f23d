package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

const (
	// stopTimeout is for all steps of a clean stop together.
	stopTimeout = 10 * time.Second
	// clientsTimeout is for the clients' part of it.
	clientsTimeout = stopTimeout / 2
	// cutGrace is how long they may take to notice that they were cut.
	cutGrace = 2 * time.Second
)

func (m *Main) serveCommand() *cobra.Command {
	var f configFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the broker",
		Long: "Flags beat the file, the file beats the defaults. SIGTERM and SIGINT stop it cleanly, a second one at once; " +
			"SIGHUP reads the file again and applies what can be changed while running.",
		Example: "  wayside serve\n  wayside serve -c /etc/wayside/wayside.yaml --set storage.quota=2GiB",
		Args:    onlyFlags,
	}
	f.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		load := func() (settings, error) { return f.load(c, m.Env) }
		return m.serve(c.Context(), load)
	}
	return c
}

func (m *Main) serve(ctx context.Context, load func() (settings, error)) error {
	s, err := load()
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(logLevel(s.Log.Level))
	b := &server{settings: s, log: newLogger(m.Stderr, s.Log.Format, level), level: level, env: m.Env, died: make(chan error, 2)}
	if err := b.start(); err != nil {
		return errors.Join(err, b.abandon())
	}
	b.log.Info("ready")
	return m.attend(ctx, b, load)
}

// attend waits for what ends the broker, and reloads meanwhile when asked to.
func (m *Main) attend(ctx context.Context, b *server, load func() (settings, error)) error {
	for {
		select {
		case s := <-m.Signals:
			if s == hangup {
				b.reload(load())
				continue
			}
			b.log.Info("stopping", "signal", s.String())
			return m.stop(b)
		case <-ctx.Done():
			b.log.Info("stopping")
			return m.stop(b)
		case err := <-b.died:
			b.log.Error("stopping, a listener failed", "err", err)
			return errors.Join(failed(exitFailed, "a listener failed", "the broker has stopped", err.Error()), m.stop(b))
		}
	}
}

// stop ends the broker in order. A second signal, or the deadline, cuts what has not
// ended: nothing that was confirmed is lost by it.
func (m *Main) stop(b *server) error {
	begin := time.Now()
	ctx, cut := context.WithTimeout(context.Background(), stopTimeout)
	defer cut()
	done := make(chan error, 1)
	go func() { done <- b.stop(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return failed(exitFailed, "did not stop cleanly", b.data.path, err.Error())
			}
			b.log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
			return nil
		case s := <-m.Signals:
			if s != hangup {
				b.log.Warn("cut short by a second signal", "signal", s.String())
				cut()
			}
		case <-ctx.Done():
			return waitAfterCut(done, b.data.path)
		}
	}
}

func waitAfterCut(done <-chan error, path string) error {
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
		return failed(exitFailed, "was cut short", path, fmt.Sprintf("%v; everything confirmed is on disk", err))
	case <-time.After(cutGrace):
		return failed(exitFailed, "was cut short", path, "the disk does not answer; everything confirmed is on disk")
	}
}

// abandon undoes a start that failed half way.
func (b *server) abandon() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := b.stop(ctx); err != nil {
		return failed(exitFailed, "could not undo the start", b.Storage.Path, err.Error())
	}
	return nil
}
