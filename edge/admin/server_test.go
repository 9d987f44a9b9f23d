package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

// serve runs a server on a port of its own until the test ends, and returns its URL.
func serve(t *testing.T, change ...func(*Options, *edge.Options)) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, _ := newServer(t, append(change, func(o *Options, _ *edge.Options) { o.Listener = l })...)
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return server, "http://" + l.Addr().String()
}

// client keeps no connections behind.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func TestServeAndClose(t *testing.T) {
	_, url := serve(t)
	got, err := client(t).Get(url + "/admin/v2/clusters")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, err := io.ReadAll(got.Body); err != nil || string(body) != `["standalone"]` {
		t.Errorf("%s, %v", body, err)
	}
}

func TestCloseWithoutServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, _ := newServer(t, func(o *Options, _ *edge.Options) { o.Listener = l })
	if err := server.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listener is open: %v", err)
	}
	if got := ask(server, http.MethodGet, "/readyz", "", ""); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "stopping") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestServeEndsWithContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, _ := newServer(t, func(o *Options, _ *edge.Options) { o.Listener = l })
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A request that waits for a commit is cut when the deadline of Close has passed.
func TestCloseCutsWhatWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	working := make(chan struct{})
	var armed atomic.Bool
	server, store := newServer(t, func(o *Options, eo *edge.Options) {
		o.Listener = l
		eo.Clock = func() time.Time { // asked for the time of a schema right before its commit
			if armed.CompareAndSwap(true, false) {
				close(working)
			}
			return time.Now()
		}
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	store.Hold()
	t.Cleanup(store.Release)
	armed.Store(true)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		url := "http://" + l.Addr().String() + "/admin/v2/schemas/public/default/t/schema"
		if got, err := client(t).Post(url, "application/json", strings.NewReader(`{"type":"STRING","schema":""}`)); err == nil {
			_ = got.Body.Close()
		}
	}()
	<-working
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	<-asked
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	_, url := serve(t, func(o *Options, _ *edge.Options) { o.Connections = 2 })
	address := strings.TrimPrefix(url, "http://")
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		held = append(held, c)
		if line := get(t, c); !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatalf("within the bound: %q", line)
		}
	}
	third, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = third.Close() })
	answered := make(chan string, 1)
	go func() { answered <- get(t, third) }()
	_ = held[0].Close()
	if line := <-answered; !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Errorf("after one has gone: %q", line)
	}
}

// get sends one request on a connection and reads the answer's head.
func get(t *testing.T, c net.Conn) string {
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Error(err)
		return ""
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	if err != nil {
		t.Error(err)
	}
	return string(buf[:n])
}

func TestLimitedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 1)
	dial := func() {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	dial()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	dial()
	second := make(chan error, 1)
	var c net.Conn
	go func() {
		var err error
		c, err = l.Accept()
		second <- err
	}()
	select {
	case <-second:
		t.Fatal("a second connection is taken while the first is open")
	default:
	}
	_, _ = first.Close(), first.Close()
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	third := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		third <- err
	}()
	_, _ = l.Close(), l.Close()
	if err := <-third; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	_ = c.Close()
}

func TestMethodsAndPaths(t *testing.T) {
	server, _ := newServer(t)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"DELETE", "/admin/v2/brokers/health", 405, "GET, HEAD"},
		{"GET", "/admin/v2/persistent/a/b/c/unload", 405, "PUT"},
		{"PATCH", "/admin/v2/tenants/x", 405, "DELETE, GET, HEAD, POST, PUT"},
		{"PUT", "/metrics", 405, "GET, HEAD"},
		{"GET", "/", 404, ""},
		{"GET", "/admin/v2//tenants", 404, ""},
		{"GET", "/admin/v2/./tenants", 404, ""},
		{"GET", "/admin/v2/x/../tenants", 404, ""},
		{"GET", "/admin/v2/%74enants", 200, ""},
		{"GET", "/admin/v2/tenants//", 404, ""},
		{"GET", "/admin/v2/namespaces/public/default/retention", 200, ""},
		{"GET", "/admin/v2/namespaces/public/default/none", 404, ""},
		{"GET", "/admin/v2/persistent/public/default/t/" + strings.Repeat("x/", 1000), 404, ""},
		{"GET", "/admin/v2/brokers/configuration", 404, ""},
		{"GET", "/admin/v3/functions/public/default", 404, ""},
	} {
		got := ask(server, test.method, test.path, "", "")
		if got.Code != test.status || got.Header().Get("Allow") != test.allow {
			t.Errorf("%s %.60s: %d with Allow %q, want %d with %q", test.method, test.path, got.Code, got.Header().Get("Allow"), test.status, test.allow)
		}
		if test.status != 200 && !isReason(got.Body.Bytes()) {
			t.Errorf("%s %.60s: %s", test.method, test.path, got.Body)
		}
	}
	r := httptest.NewRequest("OPTIONS", "/", nil)
	r.URL.Path, r.RequestURI = "*", "*"
	w := httptest.NewRecorder()
	if server.ServeHTTP(w, r); w.Code != 404 {
		t.Errorf("OPTIONS *: %d", w.Code)
	}
}

func isReason(body []byte) bool {
	var r map[string]string
	return json.Unmarshal(body, &r) == nil && len(r) == 1 && r["reason"] != ""
}

func TestRequestTakesTooLong(t *testing.T) {
	server, store := newServer(t, func(o *Options, _ *edge.Options) { o.RequestTimeout = time.Millisecond })
	store.Hold()
	defer store.Release()
	got := ask(server, http.MethodPut, "/admin/v2/namespaces/public/slow", "", "")
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "too long") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// logged keeps what is logged.
type logged struct {
	slog.Handler
	mu   sync.Mutex
	seen []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, fmt.Sprint(r.Level, " ", r.Message))
	return nil
}

func TestWhatIsLogged(t *testing.T) {
	log := &logged{}
	server, _ := newServer(t, func(o *Options, _ *edge.Options) {
		o.Logger = slog.New(log)
		o.Sections = map[string]func() any{"odd": func() any { return func() {} }}
	})
	ask(server, http.MethodGet, "/admin/v2/tenants", "", "")
	ask(server, http.MethodGet, "/admin/v2/tenants/nobody", "", "")
	ask(server, http.MethodPut, "/admin/v2/tenants/t", "", "{broken")
	ask(server, http.MethodPut, "/admin/v2/namespaces/public/n", "", "")
	ask(server, http.MethodGet, StatusPath, "", "")
	if want := []string{"INFO admin request", "WARN admin request failed"}; !slices.Equal(log.seen, want) {
		t.Errorf("logged %v, want %v: what changed something and what was our fault, once each", log.seen, want)
	}
}
