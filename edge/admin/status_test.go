package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

func TestStatus(t *testing.T) {
	type uplink struct {
		State string `json:"state"`
	}
	server, _ := newServer(t, func(o *Options, _ *edge.Options) {
		o.Version, o.StatusTopics = "1.2.3", 2
		o.Clock = func() time.Time { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC) }
		o.Sections = map[string]func() any{"uplink": func() any { return uplink{"connected"} }}
	})
	for i, name := range []string{"small", "large", "middle", "none"} {
		topic := open(t, server, "persistent://public/default/"+name)
		mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/"+name+"/subscription/s", "", http.StatusNoContent)
		produce(t, topic, "p", 0, strings.Repeat("x", []int{1, 30, 20, 5}[i])).Close(nil)
	}
	mustDo(t, server, http.MethodPost, "/admin/v2/persistent/public/default/none/subscription/s/skip_all", "", http.StatusNoContent)
	var got Status
	if err := json.Unmarshal(answerOf(t, server, StatusPath), &got); err != nil {
		t.Fatal(err)
	}
	var section uplink
	if err := json.Unmarshal(got.Sections["uplink"], &section); err != nil || section.State != "connected" {
		t.Errorf("section is %s, %v", got.Sections["uplink"], err)
	}
	if got.Version != "1.2.3" || got.Time != "2026-11-30T08:00:00Z" || !got.Healthy || got.Reasons == nil || len(got.Reasons) != 0 {
		t.Errorf("head is wrong: %+v", got)
	}
	topics := got.Topics
	if topics.Count != 4 || topics.Open != 4 || topics.Subscriptions != 4 || topics.BacklogBytes != 51 || topics.Left != 1 || topics.Clients != -1 {
		t.Errorf("topics are %+v", topics)
	}
	var names []string
	for _, l := range topics.Largest {
		names = append(names, fmt.Sprint(l.Name[len("persistent://public/default/"):], l.BacklogBytes))
	}
	if fmt.Sprint(names) != "[large30 middle20]" {
		t.Errorf("largest are %v", names)
	}
	if got.Disk.LiveBytes != 51 || got.Disk.Commits == 0 || got.Disk.Remarks == nil {
		t.Errorf("disk is %+v", got.Disk)
	}
	if len(got.Memory.Shares) != 5 || got.Memory.Heap == 0 || got.Memory.System < got.Memory.Heap {
		t.Errorf("memory is %+v", got.Memory)
	}
}

func TestStatusWithBadSection(t *testing.T) {
	server, _ := newServer(t, func(o *Options, _ *edge.Options) {
		o.Sections = map[string]func() any{"odd": func() any { return func() {} }}
	})
	got := ask(server, http.MethodGet, StatusPath, "", "")
	if got.Code != http.StatusInternalServerError || got.Body.String() != `{"reason":"Internal error: see the broker's log"}` {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestHealth(t *testing.T) {
	server, store := newServer(t)
	if got := string(answerOf(t, server, "/readyz")); got != `{"ready":true,"reasons":[],"remarks":[]}` {
		t.Errorf("ready: %s", got)
	}
	topic := open(t, server, "persistent://public/default/t")
	store.Fail(errors.New("disk is broken"))
	p, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Name: "p", PeerKey: 1}, producerEnd{}, peer{})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	p.Publish(edge.Message{Data: []byte("x"), Facts: edge.Facts{Producer: "p", Messages: 1}}, func(_ edge.Receipt, err error) { failed <- err })
	if err := <-failed; err == nil {
		t.Fatal("the store took a message")
	}
	var ready Readiness
	got := ask(server, http.MethodGet, "/readyz", "", "")
	if err := json.Unmarshal(got.Body.Bytes(), &ready); err != nil || got.Code != http.StatusServiceUnavailable || ready.Ready || len(ready.Reasons) == 0 {
		t.Errorf("unready: %d %s", got.Code, got.Body)
	}
	for _, path := range []string{"/admin/v2/brokers/health", "/admin/v2/brokers/ready"} {
		if got := ask(server, http.MethodGet, path, "", ""); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `{"reason":"`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := string(answerOf(t, server, "/healthz")); got != `{"alive":true}` {
		t.Errorf("alive: %s", got)
	}
	store.Fail(nil)
}
