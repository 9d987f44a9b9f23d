package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"wayside/edge"
)

// The objects in testdata were answered by 4.0.7 for a topic with a producer, consumers
// of all types and a reader. Ours for the like have to have the same members in the same
// order, deep down, whatever the values.

func TestStatsMembers(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, eo *edge.Options) { eo.Deduplication = true })
	topic := open(t, server, "persistent://public/default/t")
	busy(t, topic)
	sameMembers(t, "testdata/stats-clients.json", answerOf(t, server, "/admin/v2/persistent/public/default/t/stats"))
	sameMembers(t, "testdata/internal-clients.json", answerOf(t, server, "/admin/v2/persistent/public/default/t/internalStats"))
}

// busy brings clients of every kind to a topic: names and counts as in testdata.
func busy(t *testing.T, topic *edge.Topic) {
	produce(t, topic, "maker", 0, "one", "two", "three", "four")
	properties := map[string]string{"made-by": "hold"}
	site := map[string]string{"site": "north"}
	add := func(sub, consumer string, kind edge.SubKind, durable bool, wanted int) {
		o := edge.SubscribeOptions{
			Name: sub, Consumer: consumer, Kind: kind, Durable: durable, Initial: edge.InitialEarliest, Metadata: site,
		}
		if durable {
			o.Properties = properties
		} else {
			o.Start = &edge.Earliest
		}
		subscribe(t, topic, o, wanted)
	}
	add("exclusive", "exclusive-0", edge.Exclusive, true, 4)
	add("shared", "shared-0", edge.Shared, true, 4)
	add("shared", "shared-1", edge.Shared, true, 0)
	add("failover", "failover-0", edge.Failover, true, 0)
	add("key-shared", "key-shared-0", edge.KeyShared, true, 4)
	add("look-fctvo", "reader", edge.Exclusive, false, 4)
}

func TestStatsOfEmptyTopic(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, eo *edge.Options) { eo.Deduplication = true })
	open(t, server, "persistent://public/default/e")
	want := compact(t, "testdata/stats-empty.json")
	got := answerOf(t, server, "/admin/v2/persistent/public/default/e/stats")
	if string(got) != want {
		t.Errorf("to the byte\n got %s\nwant %s", got, want)
	}
}

func TestPartitionedStats(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, eo *edge.Options) { eo.Deduplication = true })
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/p/partitions", "2", http.StatusNoContent)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/p/subscription/s", "", http.StatusNoContent)
	produce(t, open(t, server, "persistent://public/default/p-partition-0"), "a", 0, "one").Close(nil)
	produce(t, open(t, server, "persistent://public/default/p-partition-1"), "a", 0, "one", "two", "three").Close(nil)
	path := "/admin/v2/persistent/public/default/p/partitioned-stats"
	got := answerOf(t, server, path)
	sameMembers(t, "testdata/stats-partitioned.json", got)
	var sum struct {
		MsgInCounter  int64
		Subscriptions map[string]struct{ MsgBacklog, BacklogSize int64 }
		Partitions    map[string]json.RawMessage
	}
	if err := json.Unmarshal(got, &sum); err != nil {
		t.Fatal(err)
	}
	if s := sum.Subscriptions["s"]; sum.MsgInCounter != 4 || s.MsgBacklog != 4 || s.BacklogSize != 14 || len(sum.Partitions) != 2 {
		t.Errorf("sums are wrong: %s", got)
	}
	sum.Partitions = nil
	if err := json.Unmarshal(answerOf(t, server, path+"?perPartition=false"), &sum); err != nil || sum.Partitions == nil || len(sum.Partitions) != 0 {
		t.Errorf("partitions are to be left out, but the member stays: %v, %v", sum.Partitions, err)
	}
}

func TestPartitionedStatsCountAClientOnce(t *testing.T) {
	server, _ := newServer(t)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/p/partitions", "2", http.StatusNoContent)
	for i, names := range [][]string{{"a", "b", "b"}, {"b", "a"}} { // they come in any order, and not to all at once
		topic := open(t, server, fmt.Sprintf("persistent://public/default/p-partition-%d", i))
		for _, name := range names {
			subscribe(t, topic, edge.SubscribeOptions{Name: "s", Consumer: name, Kind: edge.Shared, Durable: true, Initial: edge.InitialEarliest}, 0)
		}
		produce(t, topic, fmt.Sprintf("made-%d", i), 0)
		produce(t, topic, fmt.Sprintf("up-%d", i), 0)
	}
	var got topicStats
	answer := answerOf(t, server, "/admin/v2/persistent/public/default/p/partitioned-stats?perPartition=false")
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, c := range got.Subscriptions["s"].Consumers {
		seen += fmt.Sprint(c.Name, c.Permits, " ")
	}
	if want := "a2000 b2000 b1000 "; seen != want || len(got.Publishers) != 2 {
		t.Errorf("consumers %q, want %q, and %d producers, want 2", seen, want, len(got.Publishers))
	}
	for _, member := range []string{"address", "connectedSince", "clientVersion", `"metadata":{}`, "producerName", "accessMode"} {
		if strings.Contains(string(answer), member) {
			t.Errorf("%q of one connection is in the sum: %s", member, answer)
		}
	}
}

func TestStatsValues(t *testing.T) {
	server, _ := newServer(t)
	topic := open(t, server, "persistent://public/default/v")
	produce(t, topic, "maker", 5, "abcde", "fghij")
	c, r := subscribe(t, topic, edge.SubscribeOptions{Name: "s", Consumer: "c", Kind: edge.Shared, Durable: true, Initial: edge.InitialEarliest}, 2)
	done := make(chan error, 1)
	c.Ack([]edge.AckPart{{Position: r.got[1].Entry.Position}}, false, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got topicStats
	if err := json.Unmarshal(answerOf(t, server, "/admin/v2/persistent/public/default/v/stats"), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Subscriptions["s"]
	for what, ok := range map[string]bool{
		"messages in":       got.MessagesIn == 10,
		"bytes in":          got.BytesIn == 10,
		"storage":           got.StorageSize == 10,
		"deduplication":     got.DeduplicationStatus == "Disabled",
		"publisher":         len(got.Publishers) == 1 && got.Publishers[0].Name == "maker" && got.Publishers[0].Address == "/127.0.0.1:57704" && got.Publishers[0].Metadata["role"] == "sensor",
		"type":              s.Type == "Shared",
		"backlog":           s.Backlog == 1,
		"messages out":      s.MessagesOut == 10,
		"unacked":           s.Unacked == 5,
		"holes":             s.HoleRanges == 1 && got.HoleRanges == 1,
		"last ack":          s.LastAcked > 0,
		"consumer":          len(s.Consumers) == 1 && s.Consumers[0].Name == "c" && s.Consumers[0].Permits == 990 && s.Consumers[0].Unacked == 5,
		"consumer's ack":    len(s.Consumers) == 1 && s.Consumers[0].LastAckedTime > "2020",
		"never acked":       isoMillis(0) == "1970-01-01T00:00:00Z",
		"owner":             got.OwnerBroker == "broker.test:8080",
		"individual ranges": strings.Contains(string(answerOf(t, server, "/admin/v2/persistent/public/default/v/internalStats")), fmt.Sprintf(`"individuallyDeletedMessages":"[(%d:0..%d:1]]"`, r.got[1].Entry.Position.Ledger, r.got[1].Entry.Position.Ledger)),
	} {
		if !ok {
			t.Errorf("%s is wrong", what)
		}
	}
	query := "/stats?excludePublishers=true&excludeConsumers=true&subscriptionBacklogSize=false&unknown=1"
	short := string(answerOf(t, server, "/admin/v2/persistent/public/default/v"+query))
	for _, want := range []string{`"publishers":[]`, `"consumers":[]`, `"backlogSize":-1`, `"msgBacklog":1`} {
		if !strings.Contains(short, want) {
			t.Errorf("%s is not in %s", want, short)
		}
	}
}

func TestLastMessageID(t *testing.T) {
	server, _ := newServer(t)
	topic := open(t, server, "persistent://public/default/l")
	path := "/admin/v2/persistent/public/default/l/lastMessageId"
	if got := string(answerOf(t, server, path)); !strings.Contains(got, `"entryId":-1,"partitionIndex":-1,"batchIndex":-1,"batchSize":0}`) {
		t.Errorf("empty topic: %s", got)
	}
	produce(t, topic, "single", 0, "a").Close(nil)
	if got := string(answerOf(t, server, path)); !strings.HasSuffix(got, `"entryId":0,"partitionIndex":-1,"batchIndex":-1,"batchSize":0}`) {
		t.Errorf("single message: %s", got)
	}
	produce(t, topic, "batch", 5, "b").Close(nil)
	want := `"entryId":1,"partitionIndex":-1,"batchIndex":4,"batchSize":0,"outstandingAcksInSameBatch":0,"originalBatchSize":0}`
	if got := string(answerOf(t, server, path)); !strings.HasSuffix(got, want) {
		t.Errorf("batch: %s", got)
	}
}

func TestRate(t *testing.T) {
	for _, test := range []struct {
		rate rate
		want string
	}{{0, "0.0"}, {1, "1.0"}, {1.5, "1.5"}, {1e21, "1000000000000000000000.0"}, {rate(zero() / zero()), "0.0"}, {rate(1 / zero()), "0.0"}} {
		if got, err := json.Marshal(test.rate); err != nil || string(got) != test.want {
			t.Errorf("%v: %s, %v, want %s", float64(test.rate), got, err, test.want)
		}
	}
}

func zero() float64 { return 0 }

// answerOf gets a path that has to be answered with 200.
func answerOf(t testing.TB, s *Server, path string) []byte {
	t.Helper()
	return mustDo(t, s, http.MethodGet, path, "", http.StatusOK)
}

// mustDo sends a request that has to be answered with a status.
func mustDo(t testing.TB, s *Server, method, path, body string, status int) []byte {
	t.Helper()
	got := ask(s, method, path, "", body)
	if got.Code != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, got.Code, got.Body, status)
	}
	return got.Body.Bytes()
}

func compact(t testing.TB, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sameMembers compares names and order of all members, with names that are data left out.
func sameMembers(t *testing.T, file string, got []byte) {
	t.Helper()
	want, have := members(t, []byte(compact(t, file))), members(t, got)
	delete(want, "/cursors/pulsar.dedup") // deduplication needs no cursor here
	for path, names := range want {
		if have[path] == "" {
			t.Errorf("%s: nothing at %s", file, path)
		} else if have[path] != names {
			t.Errorf("%s: at %s\n got %s\nwant %s", file, path, have[path], names)
		}
	}
}

// byName are objects whose members are named by the data; each may be any of them.
var byName = map[string]bool{
	"subscriptions": true, "partitions": true, "cursors": true, "metadata": true, "subscriptionProperties": true, "properties": true,
}

// members lists, for every place in a JSON value, the members there in order. In lists
// and in objects by name the places are merged: the last one counts, but those of
// subscriptions keep their names, since their types have different members.
func members(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, json.NewDecoder(bytes.NewReader(raw)), "", "", all)
	return all
}

func walk(t *testing.T, d *json.Decoder, path, name string, all map[string]string) {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token {
	case json.Delim('{'):
		var names []string
		for d.More() {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, key.(string))
			next := key.(string)
			if name == "partitions" {
				next = "*"
			}
			walk(t, d, path+"/"+next, next, all)
		}
		if !byName[name] && len(names) > 0 {
			all[path] = strings.Join(names, " ")
		}
		_, err = d.Token()
	case json.Delim('['):
		for d.More() {
			walk(t, d, path+"[]", "", all)
		}
		_, err = d.Token()
	}
	if err != nil {
		t.Fatal(err)
	}
}
