package admin

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// entryOf makes what a producer sends.
func entryOf(t *testing.T, payload []byte, change func(*pulsarpb.MessageMetadata)) string {
	t.Helper()
	meta := &pulsarpb.MessageMetadata{
		ProducerName: proto.String("maker"), SequenceId: proto.Uint64(7), PublishTime: proto.Uint64(1_700_000_000_000),
	}
	if change != nil {
		change(meta)
	}
	data, err := wire.Build(meta, payload)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func pair(k, v string) *pulsarpb.KeyValue {
	return &pulsarpb.KeyValue{Key: proto.String(k), Value: proto.String(v)}
}

func deflated(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// batchOf is the inner framing of two messages.
func batchOf(t *testing.T) []byte {
	t.Helper()
	var batch []byte
	for i, text := range []string{"first", "second"} {
		var err error
		meta := &pulsarpb.SingleMessageMetadata{Properties: []*pulsarpb.KeyValue{pair("n", fmt.Sprint(i))}}
		if batch, err = wire.AppendSingle(batch, meta, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return batch
}

func TestMessages(t *testing.T) {
	server, _ := newServer(t)
	topic := open(t, server, "persistent://public/default/m")
	batch := batchOf(t)
	compressed := deflated(t, batch)
	produce(t, topic, "maker", 0,
		entryOf(t, []byte("plain"), func(m *pulsarpb.MessageMetadata) {
			m.Properties = []*pulsarpb.KeyValue{pair("colour", "blau"), pair("ü", "\U0001F600\n")}
			m.PartitionKey, m.EventTime, m.UncompressedSize = proto.String("k\r\n0"), proto.Uint64(1_600_000_000_000), proto.Uint32(5)
		}),
		entryOf(t, compressed, func(m *pulsarpb.MessageMetadata) {
			m.NumMessagesInBatch, m.Compression = proto.Int32(2), pulsarpb.CompressionType_ZLIB.Enum()
			m.UncompressedSize = proto.Uint32(uint32(len(batch)))
		}),
		entryOf(t, []byte("secret"), func(m *pulsarpb.MessageMetadata) {
			m.EncryptionKeys = []*pulsarpb.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}}
		}),
		"no entry at all",
		entryOf(t, []byte("not zlib"), func(m *pulsarpb.MessageMetadata) {
			m.Compression, m.UncompressedSize = pulsarpb.CompressionType_ZLIB.Enum(), proto.Uint32(9)
		}),
	).Close(nil)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/m/subscription/s", `"earliest"`, http.StatusNoContent)
	ledger := topic.Spans().Open.Ledger
	for _, test := range []struct {
		rest   string
		status int
		body   string
		header map[string]string
	}{
		{"/subscription/s/position/1", 200, "plain", map[string]string{
			"Message-Id": fmt.Sprint(ledger, ":0"), "Publish-Time": "2023-11-14T22:13:20Z", "Event-Time": "2020-09-13T12:26:40Z",
			"Producer-Name": "maker", "Sequence-Id": "7", "Is-Encrypted": "false", "Txn-Uncommitted": "false",
			"Partition-Key": "k  0", "Uncompressed-Size": "5", "Property": `{"colour":"blau","\u00fc":"\ud83d\ude00\n"}`,
		}},
		{"/subscription/s/position/2", 200, string(batch), map[string]string{
			"Message-Id": fmt.Sprint(ledger, ":1"), "Num-Batch-Message": "2", "Batch-Size": fmt.Sprint(10 + len(compressed)), "Property": `{"n":"0"}`,
		}},
		{"/subscription/s/position/3", 200, "secret", map[string]string{"Is-Encrypted": "true"}},
		{"/subscription/s/position/4", 422, `{"reason":"Message cannot be opened"}`, nil},
		{"/subscription/s/position/5", 422, `{"reason":"Message cannot be opened"}`, nil},
		{"/subscription/s/position/6", 404, `{"reason":"Message not found"}`, nil},
		{"/subscription/s/position/0", 404, `{"reason":"Message not found"}`, nil},
		{"/subscription/s/position/-1", 404, `{"reason":"Message not found"}`, nil},
		{"/subscription/s/position/x", 404, `{"reason":"Message not found"}`, nil},
		{"/subscription/none/position/1", 404, `{"reason":"Subscription none not found for topic persistent://public/default/m"}`, nil},
		{fmt.Sprintf("/ledger/%d/entry/0", ledger), 200, "plain", map[string]string{"Message-Id": fmt.Sprint(ledger, ":0")}},
		{fmt.Sprintf("/ledger/%d/entry/99", ledger), 404, `{"reason":"Message id not found"}`, nil},
		{"/ledger/999/entry/0", 404, `{"reason":"Message id not found"}`, nil},
		{"/ledger/x/entry/0", 404, `{"reason":"Message not found"}`, nil},
		{"/examinemessage?initialPosition=earliest&messagePosition=2", 200, string(batch), nil},
		{"/examinemessage?initialPosition=latest&messagePosition=3", 200, "secret", nil},
		{"/examinemessage?messagePosition=100", 200, "plain", nil},
		{"/examinemessage?messagePosition=-100", 422, `{"reason":"Message cannot be opened"}`, nil},
		{"/examinemessage?messagePosition=x", 404, `{"reason":"Message not found"}`, nil},
	} {
		got := ask(server, http.MethodGet, "/admin/v2/persistent/public/default/m"+test.rest, "", "")
		if got.Code != test.status || got.Body.String() != test.body {
			t.Errorf("%s: %d %q, want %d %q", test.rest, got.Code, got.Body, test.status, test.body)
		}
		for name, want := range test.header {
			if have := got.Header().Get("X-Pulsar-" + name); have != want {
				t.Errorf("%s: %s is %q, want %q", test.rest, name, have, want)
			}
		}
		var properties map[string]string
		if text := got.Header().Get("X-Pulsar-Property"); text != "" && json.Unmarshal([]byte(text), &properties) != nil {
			t.Errorf("%s: properties are no JSON: %s", test.rest, text)
		}
	}
}

func TestMessagesElsewhere(t *testing.T) {
	server, _ := newServer(t)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/p/partitions", "2", http.StatusNoContent)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/p/subscription/s", "", http.StatusNoContent)
	for path, want := range map[string]string{
		"p/subscription/s/position/1":             `405 {"reason":"Peek messages on a partitioned topic is not allowed"}`,
		"p/examinemessage":                        `405 {"reason":"Examine messages on a partitioned topic is not allowed, please try examine message on specific topic partition"}`,
		"p-partition-0/examinemessage":            `412 {"reason":"Could not examine messages due to the total message is zero"}`,
		"none/subscription/s/position/1":          `404 {"reason":"Topic persistent://public/default/none not found"}`,
		"none/ledger/1/entry/0":                   `404 {"reason":"Topic persistent://public/default/none not found"}`,
		"p-partition-0/subscription/s/position/1": `404 {"reason":"Message not found"}`,
	} {
		got := ask(server, http.MethodGet, "/admin/v2/persistent/public/default/"+path, "", "")
		if have := strings.TrimSpace(fmt.Sprint(got.Code, " ", got.Body)); have != want {
			t.Errorf("%s: %s, want %s", path, have, want)
		}
	}
}

// The n-th entry, over several ledgers of which one is empty and one lost its head.
func TestNthOf(t *testing.T) {
	spans := edge.Spans{
		Closed: []edge.Span{
			{Ledger: 1, First: 2, Last: 3, EntriesBefore: 2},
			{Ledger: 5, First: 0, Last: -1, EntriesBefore: 4},
		},
		Open: edge.Span{Ledger: 6, First: 0, Last: 1, EntriesBefore: 4},
	}
	for _, test := range []struct {
		n         int64
		fromStart bool
		want      string
	}{
		{1, true, "1:2"}, {2, true, "1:3"}, {3, true, "6:0"}, {4, true, "6:1"}, {5, true, "6:1"},
		{1, false, "6:1"}, {2, false, "6:0"}, {3, false, "1:3"}, {4, false, "1:2"}, {9, false, "1:2"},
	} {
		if p, ok := nthOf(spans, test.n, test.fromStart); !ok || p.String() != test.want {
			t.Errorf("%d from start %v: %v, %v, want %s", test.n, test.fromStart, p, ok, test.want)
		}
	}
	if _, ok := nthOf(edge.Spans{Open: edge.Span{Ledger: 1, Last: -1}}, 1, true); ok {
		t.Error("an empty topic has a first entry")
	}
}

// TestTrim: the answers as watched on 4.0.7, and what it does.
func TestTrim(t *testing.T) {
	server, _ := newServer(t)
	base := "/admin/v2/persistent/public/default/"
	topic := open(t, server, "persistent://public/default/trimmed")
	produce(t, topic, "p", 0, "a", "b")
	mustDo(t, server, http.MethodPut, base+"parts/partitions", "2", http.StatusNoContent)
	for _, name := range []string{"trimmed", "parts", "parts-partition-1"} {
		if body := mustDo(t, server, http.MethodPost, base+name+"/trim", "", http.StatusOK); len(body) > 0 {
			t.Errorf("%s: %s", name, body)
		}
	}
	if n, _, _ := topic.Spans().Totals(); n != 0 {
		t.Errorf("%d entries are there that nobody wants", n)
	}
	mustDo(t, server, http.MethodPost, base+"none/trim", "", http.StatusNotFound)
	open(t, server, "non-persistent://public/default/fleeting")
	mustDo(t, server, http.MethodPost, "/admin/v2/non-persistent/public/default/fleeting/trim", "", http.StatusMethodNotAllowed)
}
