package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// What is advertised is told over HTTP as it was written, a host alone with the port that
// is listened on, which the binary protocol tells too.
func TestAdvertisedOverHTTP(t *testing.T) {
	for _, advertised := range []string{"edge.example", "edge.example:16650", "pulsar://edge.example:16650", "fe80::1", "[fe80::1]:7"} {
		b := serve(t, filepath.Join(t.TempDir(), "data"), "--set", "listen.advertised="+advertised)
		port := b.url[strings.LastIndex(b.url, ":")+1:]
		want := map[string]string{"edge.example": "edge.example:" + port, "fe80::1": "[fe80::1]:" + port}[advertised]
		if want == "" {
			want = strings.TrimPrefix(advertised, "pulsar://")
		}
		if got := lookedUp(t, b.admin); got != "pulsar://"+want {
			t.Errorf("advertised %q is told as %q, want pulsar://%s", advertised, got, want)
		}
		b.end()
	}
}

// lookedUp asks for a topic as clients with an http:// service URL do.
func lookedUp(t *testing.T, admin string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(admin + "/lookup/v2/topic/persistent/public/default/x")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ BrokerURL string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.BrokerURL
}
