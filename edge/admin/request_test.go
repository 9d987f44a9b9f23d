package admin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"wayside/edge"
)

// Names are decoded once, and what is in them belongs to them.
func TestNamesInPaths(t *testing.T) {
	server, _ := newServer(t)
	for path, name := range map[string]string{
		"sp%20ace":           "sp ace",
		"double%2520space":   "double%20space",
		"pl+us":              "pl+us",
		"%2e%2e":             "..",
		"q%3Fm":              "q?m",
		"%C3%BCml":           "üml",
		"partitioned":        "partitioned",
		"semi;colon":         "semi;colon",
		"new%0Aline":         "new\nline",
		"quote%22%3Cb%3E%26": `quote"<b>&`,
	} {
		mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/"+path, "", http.StatusNoContent)
		if !server.broker.Exists(edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: name}) {
			t.Errorf("%s is not %q", path, name)
		}
		sub := "/admin/v2/persistent/public/default/" + path + "/subscription/"
		mustDo(t, server, http.MethodPut, sub+"a%2Fb%2F", "", http.StatusNoContent)
		if got := string(answerOf(t, server, "/admin/v2/persistent/public/default/"+path+"/subscriptions")); got != `["a/b/"]` {
			t.Errorf("subscriptions of %s: %s", path, got)
		}
		mustDo(t, server, http.MethodDelete, sub+"a%2Fb%2F", "", http.StatusNoContent)
	}
	for _, path := range []string{"/admin/v2/persistent/public/default/%ff", "/admin/v2/persistent/public/default/x/subscription/%ff", "/admin/v2/persistent/public/default/%20"} {
		mustDo(t, server, http.MethodPut, path, "", http.StatusPreconditionFailed)
	}
}

func TestBodies(t *testing.T) {
	server, _ := newServer(t, func(o *Options, _ *edge.Options) { o.MaxBody = 64 })
	const path = "/admin/v2/persistent/public/default/x/partitions"
	for _, test := range []struct {
		kind, body string
		status     int
		reason     string
	}{
		{"", "", 406, "Number of partitions should be more than 0"},
		{"", strings.Repeat(" ", 65), 413, "Body is larger than 64 bytes"},
		{"application/json", "2 3", 400, "Body is not what is expected here: invalid character '3' after top-level value"},
		{"application/json", "2.5", 400, "Body is not what is expected here: a whole number is expected"},
		{"application/json", `"x"`, 400, "Body is not what is expected here: a whole number is expected"},
		{"application/json", "1e300", 400, "Body is not what is expected here: a whole number is expected"},
		{"application/json", "1e3", 204, ""},
		{"application/json", `{"partitions":[]}`, 400, `Body is not what is expected here: a whole number is expected`},
		{"application/x-www-form-urlencoded", "2", 415, "Content type has to be application/json"},
		{"multipart/form-data; boundary=", "2", 415, "Content type has to be application/json"},
	} {
		got := ask(server, http.MethodPut, path, test.kind, test.body)
		want := ""
		if test.reason != "" {
			encoded, err := encode(reason{test.reason})
			if err != nil {
				t.Fatal(err)
			}
			want = string(encoded)
		}
		if got.Code != test.status || got.Body.String() != want {
			t.Errorf("%s %.40s: %d %s, want %d %s", test.kind, test.body, got.Code, got.Body, test.status, want)
		}
	}
	got := ask(server, http.MethodPut, "/admin/v2/tenants/t", "", `{"adminRoles":"x"}`)
	if want := `{"reason":"Body is not what is expected here: \"adminRoles\" cannot be a string"}`; got.Code != 400 || got.Body.String() != want {
		t.Errorf("%d %s, want %s", got.Code, got.Body, want)
	}
}

// A body that breaks off is the client's fault.
func TestBodyBreaksOff(t *testing.T) {
	server, _ := newServer(t)
	r, err := http.NewRequest(http.MethodPut, "http://broker.test:8080/admin/v2/tenants/t", io.MultiReader(strings.NewReader("{"), broken{}))
	if err != nil {
		t.Fatal(err)
	}
	w := &recorder{header: http.Header{}}
	server.ServeHTTP(w, r)
	if w.status != http.StatusBadRequest {
		t.Errorf("%d %s", w.status, w.body)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}
