package schema

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"wayside/edge"
)

// verdict is a line of testdata/avro.jsonl: two definitions, and what a real 4.0.7 said to
// them over HTTP when the one was uploaded behind the other.
type verdict struct {
	Name       string
	Old, New   json.RawMessage
	Invalid    bool // the old one is none
	NewInvalid int  `json:"newInvalid"` // the status that refused the new one in itself
	Backward   bool // under the strategy BACKWARD
	Forward    bool
	Same       bool // got the old one's version
	Broke      bool // the real broker failed over the new one; the verdict is our own
}

func verdicts(t *testing.T, file string) (all []verdict) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return all
}

func TestAvroIsJudgedAsByARealBroker(t *testing.T) {
	for _, kind := range []int32{typeAvro, typeJSON, typeProtobuf} {
		for _, v := range verdicts(t, "testdata/avro.jsonl") {
			t.Run(edge.SchemaTypeName(kind)+"/"+v.Name, func(t *testing.T) { v.check(t, kind) })
		}
	}
}

func (v *verdict) check(t *testing.T, kind int32) {
	var r Rules
	old, next := edge.Schema{Type: kind, Data: v.Old}, edge.Schema{Type: kind, Data: v.New}
	if err := r.Validate(&old); (err != nil) != v.Invalid {
		t.Fatalf("the old one: %v", err)
	}
	if v.Invalid {
		return
	}
	if err := r.Validate(&next); (err != nil) != (v.NewInvalid > 0) {
		t.Fatalf("the new one: %v", err)
	}
	if v.NewInvalid > 0 {
		return
	}
	have := []edge.Schema{old}
	if same := r.Find(&next, have) == 0; same != v.Same {
		t.Errorf("the same: %v, want %v", same, v.Same)
	}
	for strategy, want := range map[edge.SchemaStrategy]bool{edge.Backward: v.Backward, edge.Forward: v.Forward, edge.Full: v.Backward && v.Forward} {
		if err := r.Follows(&next, have, strategy); (err == nil) != want {
			t.Errorf("%s: %v, want %v", strategy, err, want)
		}
	}
}
