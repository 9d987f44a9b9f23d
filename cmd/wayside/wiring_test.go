package main

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"testing"
	"time"

	"wayside/edge"
)

// Every setting reaches the part that it is for.
func TestSettingsReachTheirParts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := &server{log: slog.New(slog.DiscardHandler), env: environment()}
	b.ports.pulsar, b.data.path = l, "/data"
	b.Storage.Quota, b.Storage.FileLimit, b.Storage.KeepAcked, b.Storage.CommitDelay = 11, 12, 13, 14*time.Second
	b.Limits.MessageSize, b.Limits.Memory, b.Limits.Connections = 21, 22<<20, 23
	b.Topics.Deduplication, b.Topics.BacklogCheckInterval = true, 31*time.Second
	b.Listen.Advertised = "edge.example:7"
	b.Uplink.URL, b.Uplink.RateLimit = "pulsar://cloud:1", 41

	store := b.storeOptions()
	if store.Path != "/data" || store.Quota != 11 || store.FileLimit != 12 || store.CommitDelay != 14*time.Second {
		t.Errorf("store: %+v", store)
	}
	core := b.coreOptions()
	if core.KeepAcked != 13 || core.MaxMessageSize != 21 || !core.Deduplication || core.BacklogCheckInterval != 31*time.Second ||
		core.AutoCreate || core.AutoCreateNamespaces {
		t.Errorf("core: %+v", core)
	}
	for name, want := range map[string]edge.WhenFull{"hold": edge.WhenFullHold, "fail": edge.WhenFullFail, "drop-oldest": edge.WhenFullDropOldest} {
		if b.Storage.WhenFull = name; b.coreOptions().WhenFull != want {
			t.Errorf("when_full %s becomes %v", name, b.coreOptions().WhenFull)
		}
	}
	if b.Topics.Transactions = true; core.Transactions || !b.coreOptions().Transactions || core.Marker == nil {
		t.Error("transactions are mixed up")
	}
	if b.Topics.AutoCreate = true; !b.coreOptions().AutoCreate || b.coreOptions().AutoCreateNamespaces {
		t.Error("auto_create is mixed up")
	}
	clients := b.clientOptions()
	if clients.MaxMessageSize != 21 || clients.Connections != 23 || clients.Advertised != "edge.example:7" {
		t.Errorf("clients: %+v", clients)
	}
	if up := uplinkOptions(&b.Config, "pump"); up.URL != "pulsar://cloud:1" || up.RateLimit != 41 || up.MaxMessageSize != 21 || up.EdgeID != "pump" {
		t.Errorf("uplink: %+v", up)
	}
}

// The runtime's limit is that of the settings while the broker runs, and what it was
// before behind it.
func TestMemoryLimitIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	b := &server{env: environment()}
	b.Limits.Memory = 100 << 20
	if err := b.boundMemory(); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got != 100<<20 {
		t.Errorf("limit %d", got)
	}
	if err := b.stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d after the stop, was %d", got, before)
	}
}
