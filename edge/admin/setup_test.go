package admin

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wayside/edge"
	"wayside/edge/edgetest"
	"wayside/edge/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer makes a server, not listening, on a broker with a store in memory. Tests may
// change the options.
func newServer(t testing.TB, change ...func(*Options, *edge.Options)) (*Server, *edgetest.MemStore) {
	t.Helper()
	store := edgetest.NewMemStore()
	o, eo := DefaultOptions(), edge.DefaultOptions()
	eo.SchemaRules = schema.Rules{}
	for _, c := range change {
		c(&o, &eo)
	}
	broker, err := edge.NewBroker(store, eo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := broker.Close(ctx); err != nil {
			t.Errorf("close broker: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	o.Broker = broker
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cancel)
	return s, store
}
