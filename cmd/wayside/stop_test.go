package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Steps are stopped in reverse order, each once, also behind one that fails.
func TestStackStops(t *testing.T) {
	var k stack
	var order []string
	for _, name := range []string{"store", "broker", "clients"} {
		k.push(name, func(context.Context) error {
			order = append(order, name)
			if name == "broker" {
				return errors.New("no")
			}
			return nil
		})
	}
	if err := k.stop(t.Context()); err == nil || err.Error() != "stop broker: no" {
		t.Errorf("error %v", err)
	}
	if err := k.stop(t.Context()); err != nil {
		t.Errorf("a second stop says %v", err)
	}
	if want := []string{"clients", "broker", "store"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// stopping is a stop under way of a broker whose only step is the given one.
func stopping(step func(context.Context) error, signals ...os.Signal) error {
	sent := make(chan os.Signal, len(signals))
	for _, s := range signals {
		sent <- s
	}
	b := &server{log: slog.New(slog.DiscardHandler), data: dataDir{path: "DIR"}}
	b.push("clients", step)
	m := &Main{Signals: sent}
	return m.stop(b)
}

func TestSecondSignalCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := stopping(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, syscall.SIGHUP, syscall.SIGTERM)
		wantFault(t, err, exitFailed, "was cut short: DIR: stop clients: context canceled; everything confirmed is on disk")
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestStopDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := stopping(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		if err != nil || time.Since(begin) != stopTimeout {
			t.Errorf("a step that ends when it is cut: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		stuck := make(chan struct{})
		err = stopping(func(context.Context) error {
			<-stuck
			return nil
		})
		wantFault(t, err, exitFailed, "was cut short: DIR: the disk does not answer; everything confirmed is on disk")
		if took := time.Since(begin); took != stopTimeout+cutGrace {
			t.Errorf("a stuck step was waited for %v", took)
		}
		close(stuck)
	})
}

// A client that takes nothing costs the steps behind it no time, and is no failure.
func TestStuckClientsLeaveTimeForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &server{log: slog.New(slog.DiscardHandler)}
		stuck := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		begin := time.Now()
		if err := b.closeClients(t.Context(), stuck); err != nil || time.Since(begin) != clientsTimeout {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), clientsTimeout/2)
		defer cancel()
		if err := b.closeClients(ctx, stuck); err == nil {
			t.Error("a stop that was cut itself is not told")
		}
		broken := errors.New("broken")
		if err := b.closeClients(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("an error of another kind: %v", err)
		}
	})
}

// Both faults of a failed start that could not be undone are told.
func TestTellJoined(t *testing.T) {
	var b strings.Builder
	code := tell(&b, errors.Join(failed(exitInUse, "a", "b", "c"), nil, failed(exitFailed, "d", "e", "f")))
	if code != exitInUse || b.String() != "wayside: a: b: c\nwayside: d: e: f\n" {
		t.Errorf("exit %d, %q", code, b.String())
	}
}
