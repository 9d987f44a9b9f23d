package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

func TestExpiryAndSkips(t *testing.T) {
	server, _ := newServer(t)
	topic := open(t, server, "persistent://public/default/e")
	produce(t, topic, "p", 0, "0", "1", "2", "3", "4", "5").Close(nil)
	const base = "/admin/v2/persistent/public/default/e"
	for _, sub := range []string{"s", "read"} {
		mustDo(t, server, http.MethodPut, base+"/subscription/"+sub, `"earliest"`, http.StatusNoContent)
	}
	subscribe(t, topic, edge.SubscribeOptions{Name: "read", Kind: edge.Exclusive, Durable: true, Epoch: -1}, 0)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/pt/partitions", "2", http.StatusNoContent)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/pt/subscription/s", `"earliest"`, http.StatusNoContent)
	ledger := topic.Spans().Open.Ledger
	for _, x := range []struct {
		path, body string
		status     int
		part       string // of the reason
		left       int64  // backlog of s, or of read, then
	}{
		{"e/subscription/s/skip/2", "", 204, "", 4},
		{"e/subscription/s/skip/0", "", 204, "", 4},
		{"e/subscription/s/skip/-1", "", 204, "", 4},
		{"e/subscription/s/skip/x", "", 404, "", 4},
		{"e/subscription/none/skip/1", "", 404, "Subscription none not found for topic", 4},
		{"pt/subscription/s/skip/1", "", 405, "Skip messages on a partitioned topic is not allowed", 4},
		{"e/subscription/s/expireMessages/3600", "", 204, "", 4}, // nobody reads
		{"e/subscription/s/expireMessages/0", "", 204, "", 4},
		{"e/subscription/read/expireMessages/3600", "", 409, "Expire message by timestamp not issued on topic persistent://public/default/e for subscription read", 6},
		{"e/subscription/none/expireMessages/1", "", 404, "Subscription none not found", 4},
		{"none/subscription/s/expireMessages/1", "", 404, "Topic persistent://public/default/none not found", 4},
		{"pt/subscription/s/expireMessages/1", "", 409, "on topic persistent://public/default/pt-partition-0 for subscription s", 4},
		{"e/subscription/s/expireMessages", fmt.Sprintf(`{"ledgerId":%d,"entryId":2}`, ledger), 204, "", 3},
		{"e/subscription/s/expireMessages", fmt.Sprintf(`{"ledgerId":%d,"entryId":4,"isExcluded":true}`, ledger), 204, "", 2},
		{"e/subscription/s/expireMessages", "", 400, "A message id is expected", 2},
		{"pt/subscription/s/expireMessages", `{"ledgerId":1,"entryId":2}`, 405, "not supported for partitioned-topic", 2},
		{"e/subscription/s/skip/100", "", 204, "", 0},
		{"e/subscription/s/expireMessages/1", "", 409, "for subscription s due to", 0},
		{"e/all_subscription/expireMessages/3600", "", 409, "for subscription read due to", 6},
		{"e/all_subscription/expireMessages/-1", "", 409, "for subscription s due to", 0},
		{"e/subscription/read/expireMessages/1", "", 409, "", 0}, // the call before has done it
		{"none/all_subscription/expireMessages/1", "", 404, "not found", 0},
		{"e/all_subscription/expireMessages/x", "", 404, "", 0},
	} {
		got := ask(server, http.MethodPost, "/admin/v2/persistent/public/default/"+x.path, "application/json", x.body)
		if got.Code != x.status || !strings.Contains(got.Body.String(), x.part) {
			t.Errorf("%s: %d %q, want %d %q", x.path, got.Code, got.Body, x.status, x.part)
		}
		sub := "s"
		if strings.Contains(x.path, "/read/") || strings.Contains(x.part, "subscription read") {
			sub = "read"
		}
		if have := topic.Stats().Subscriptions[sub].Backlog; have != x.left {
			t.Errorf("%s: backlog of %s is %d, want %d", x.path, sub, have, x.left)
		}
	}
	if st := topic.Stats().Subscriptions["read"]; st.Expired != 6 || st.LastExpire == 0 {
		t.Errorf("expired %d at %d", st.Expired, st.LastExpire)
	}
}

// oneKey has every entry be a message of one key.
type oneKey struct{}

func (oneKey) Keys(data []byte, visit func(edge.MessageKey)) error {
	visit(edge.MessageKey{Key: []byte("k"), Has: true})
	return nil
}

func (oneKey) Thin(data []byte, _ func(int) bool) ([]byte, error) { return data, nil }

func TestCompaction(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, o *edge.Options) { o.Opener = oneKey{} })
	topic := open(t, server, "persistent://public/default/c")
	produce(t, topic, "p", 0, "0", "1", "2").Close(nil)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/pt/partitions", "2", http.StatusNoContent)
	base := "/admin/v2/persistent/public/default/"
	status := func(name string) string {
		return strings.TrimSpace(string(mustDo(t, server, http.MethodGet, base+name+"/compaction", "", http.StatusOK)))
	}
	const never, good = `{"status":"NOT_RUN","lastError":""}`, `{"status":"SUCCESS","lastError":""}`
	if got := status("c"); got != never {
		t.Errorf("before: %s", got)
	}
	ends := func(name string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); strings.Contains(status(name), "RUNNING"); {
			if time.Now().After(deadline) {
				t.Fatal("it does not end")
			}
		}
		if got := status(name); got != good {
			t.Errorf("%s after it: %s", name, got)
		}
	}
	mustDo(t, server, http.MethodPut, base+"c/compaction", "", http.StatusNoContent)
	ends("c")
	mustDo(t, server, http.MethodPut, base+"pt/compaction", "", http.StatusNoContent)
	ends("pt-partition-0")
	ends("pt-partition-1")
	mustDo(t, server, http.MethodGet, base+"pt/compaction", "", http.StatusNotFound)
	mustDo(t, server, http.MethodGet, base+"none/compaction", "", http.StatusNotFound)
	mustDo(t, server, http.MethodPut, base+"none/compaction", "", http.StatusNotFound)
	stats := string(answerOf(t, server, base+"c/stats"))
	for _, part := range []string{`"lastCompactionRemovedEventCount":2`, `"__compaction"`} {
		if !strings.Contains(stats, part) {
			t.Errorf("%s is not in %s", part, stats)
		}
	}
	if all := string(answerOf(t, server, base+"c/internalStats")); !strings.Contains(all, `"compactedLedger":{"ledgerId":0,"entries":1,`) {
		t.Errorf("internal stats %s", all)
	}
}

// TestCompactionNeedsAnOpener: a broker without one says so.
func TestCompactionNeedsAnOpener(t *testing.T) {
	server, _ := newServer(t)
	open(t, server, "persistent://public/default/c")
	got := ask(server, http.MethodPut, "/admin/v2/persistent/public/default/c/compaction", "", "")
	if got.Code < 400 || got.Code >= 500 {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
