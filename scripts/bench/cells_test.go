package main

import "testing"

func TestChoose(t *testing.T) {
	for names, want := range map[string]string{
		"drain":                     "drain-singles, drain-batches",
		"publish-1":                 "publish-1",
		"publish-batches":           "publish-pipelined, publish-batches",
		"fanout-each-stopped":       "fanout-each, fanout-each-stopped",
		"drain-singles,publish-256": "publish-256, drain-singles",
		"all":                       cellNames(cells()),
	} {
		chosen, err := choose(names)
		if got := cellNames(chosen); err != nil || got != want {
			t.Errorf("%s: %s, %v, not %s", names, got, err, want)
		}
	}
	for _, names := range []string{"", "publish-", "publish-2", "drain,"} {
		if chosen, err := choose(names); err == nil {
			t.Errorf("%q: %s", names, cellNames(chosen))
		}
	}
}

func TestPeersAreLeftOutWithoutTheirProgram(t *testing.T) {
	peers, out, err := newPeers("null,redis,sqlite", programs{}, t.TempDir())
	if err != nil || len(peers) != 2 || peers[0].name != "null" || peers[1].name != "sqlite" || len(out) != 1 {
		t.Errorf("%v, %q, %v", peers, out, err)
	}
	if _, _, err := newPeers("null,nobody", programs{}, t.TempDir()); err == nil {
		t.Error("an unknown peer is taken")
	}
	if _, _, err := newPeers("redis", programs{}, t.TempDir()); err == nil {
		t.Error("no peer at all is enough")
	}
}
