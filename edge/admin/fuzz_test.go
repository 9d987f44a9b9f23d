package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"wayside/edge"
	"wayside/edge/edgetest"
)

// FuzzRequest sends anything to a broker: no panic, never 500, and every refusal has its
// reason.
func FuzzRequest(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		for _, x := range readTranscript(f, file) {
			f.Add(x.method, x.path, x.kind, x.body)
		}
	}
	server := newFuzzed(f)
	f.Fuzz(func(t *testing.T, method, path, kind, body string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !isMethod(method) {
			return // net/http answers these itself
		}
		defer server.begin(t)()
		check(t, server.Server, method, u, kind, body)
	})
}

// FuzzTopic puts anything into the places of a topic's path, and then does some things to
// the topic, which order picks.
func FuzzTopic(f *testing.F) {
	f.Add("public", "default", "t", "s", "1796025803499", `{"ledgerId":1,"entryId":0}`, uint32(0x5040302))
	f.Add("public", "default", "ü-partition-3", "a/b", "-5", `"latest"`, uint32(0xc0a0601))
	f.Add("public", "default", "..", "%", "x", `{"type":"KEY_VALUE","schema":"{\"key\":{},\"value\":1}"}`, uint32(0x13121110))
	f.Add("public", "default", "\xff", "\x00", "9223372036854775808", "3", uint32(0x1514070b))
	const topics, schemas = "/admin/v2/persistent{at}", "/admin/v2/schemas{at}/schema"
	routes := []struct{ method, path string }{
		{"PUT", topics + "/partitions"}, {"POST", topics + "/partitions"},
		{"GET", topics + "/partitions?checkAllowAutoCreation=true"}, {"DELETE", topics + "/partitions"},
		{"PUT", topics + "/subscription/{sub}"}, {"DELETE", topics + "/subscription/{sub}"},
		{"POST", topics + "/subscription/{sub}/resetcursor/{n}"}, {"POST", topics + "/subscription/{sub}/resetcursor"},
		{"POST", topics + "/subscription/{sub}/skip_all"}, {"GET", topics + "/subscriptions"}, {"GET", topics + "/stats"},
		{"GET", topics + "/internalStats"}, {"GET", topics + "/partitioned-stats"}, {"GET", topics + "/lastMessageId"},
		{"PUT", topics + "/properties"}, {"GET", topics + "/properties"}, {"PUT", topics + "/unload"},
		{"POST", topics + "/trim"}, {"POST", topics + "/terminate"},
		{"POST", schemas}, {"GET", schemas}, {"DELETE", schemas}, {"GET", "/lookup/v2/topic/persistent{at}"}, {"GET", StatusPath},
	}
	server := newFuzzed(f)
	f.Fuzz(func(t *testing.T, tenant, namespace, topic, sub, n, body string, order uint32) {
		defer server.begin(t)()
		fill := strings.NewReplacer("{sub}", url.PathEscape(sub), "{n}", url.PathEscape(n),
			"{at}", "/"+url.PathEscape(tenant)+"/"+url.PathEscape(namespace)+"/"+url.PathEscape(topic))
		ask := func(method, path string) { askURL(t, server.Server, method, fill.Replace(path), body) }
		if order>>31 == 0 {
			ask("PUT", topics)
		}
		for ; order > 0; order >>= 8 {
			route := routes[int(order&0xff)%len(routes)]
			ask(route.method, route.path)
		}
		scraped(t, server.Server)
		ask("DELETE", topics+"?force=true")
	})
}

// fuzzed is a server that is made once, since that takes longer than what it is asked.
// Every execution gives it a broker of its own.
type fuzzed struct{ *Server }

func newFuzzed(f *testing.F) fuzzed {
	server, _ := newServer(f)
	return fuzzed{server}
}

// begin puts a new broker in; end closes it.
func (s fuzzed) begin(t *testing.T) (end func()) {
	store := edgetest.NewMemStore()
	broker, err := edge.NewBroker(store, edge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	s.Server.broker = broker
	return func() {
		if err := broker.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// isMethod reports whether net/http lets s through as a method.
func isMethod(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) {
			return false
		}
	}
	return s != ""
}

func askURL(t *testing.T, server *Server, method, path, body string) {
	t.Helper()
	u, err := url.ParseRequestURI(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	check(t, server, method, u, "", body)
}

func check(t *testing.T, server *Server, method string, u *url.URL, kind, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
	r.Method, r.URL, r.RequestURI = method, u, u.String()
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	switch {
	case w.Code == http.StatusInternalServerError, w.Code >= 300 && w.Code < 400:
		t.Errorf("%s %s %q: %d %s", method, u, body, w.Code, w.Body)
	case w.Code >= 400 && !isReason(w.Body.Bytes()):
		t.Errorf("%s %s %q: %d %s has no reason", method, u, body, w.Code, w.Body)
	case w.Code == http.StatusNoContent && w.Body.Len() > 0:
		t.Errorf("%s %s: a body with 204", method, u)
	}
}
