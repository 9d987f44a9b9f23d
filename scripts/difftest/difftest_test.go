package main

import (
	"path"
	"regexp"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

func TestProgramsAreManyAndHaveNames(t *testing.T) {
	all := programs()
	if len(all) < 60 {
		t.Errorf("%d programs", len(all))
	}
	valid := regexp.MustCompile(`^[a-z0-9-]+$`)
	seen := map[string]bool{}
	known := map[string]bool{}
	for _, s := range settings() {
		known[s.name] = true
	}
	for _, p := range all {
		if !valid.MatchString(p.name) || seen[p.name] {
			t.Errorf("program %q: the name is taken, or not one for a topic", p.name)
		}
		if seen[p.name] = true; len(p.steps) == 0 || !known[p.setting] {
			t.Errorf("program %q has no steps, or an unknown setting", p.name)
		}
	}
}

func TestEveryRowHasACauseAndAProgram(t *testing.T) {
	names := map[string]bool{}
	for _, d := range differences() {
		if names[d.name] || d.name == "" || d.cause == "" || d.kind != deliberate && d.kind != missing {
			t.Errorf("row %q: taken, or without a cause or kind", d.name)
		}
		names[d.name] = true
		for _, pattern := range []string{d.pulsar, d.wayside} {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("row %q: %v", d.name, err)
			}
		}
		if d.programs != "" && !slices.ContainsFunc(programs(), func(p program) bool {
			ok, err := path.Match(d.programs, p.name)
			return ok && err == nil
		}) {
			t.Errorf("row %q: no program is called %q", d.name, d.programs)
		}
	}
}

func TestARowMatchesWholeTexts(t *testing.T) {
	row := difference{name: "r", programs: "a-*", pulsar: "SUCCESS .*", wayside: ""}
	for _, c := range []struct {
		f    finding
		want bool
	}{
		{finding{program: "a-b", pulsar: "SUCCESS {}"}, true},
		{finding{program: "b", pulsar: "SUCCESS {}"}, false},
		{finding{program: "a-b", pulsar: "closed; SUCCESS {}"}, false},
		{finding{program: "a-b", pulsar: "SUCCESS {}", wayside: "closed"}, false},
	} {
		if got := named([]difference{row}, &c.f) != nil; got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

// told makes a world in which label m was sent as the entry given, and one connection a with the request 7 of consumer 1.
func told() (*world, *client) {
	w := newWorld(&side{name: "test"}, "prefix", "public/default", 0)
	c := &client{world: w, name: "a", owners: map[uint64]string{7: consumerStream(1)}, owed: map[uint64]bool{7: true},
		sent: map[uint64][]*sent{1: {{label: "m"}}}}
	w.clients["a"] = c
	w.entries["bytes"] = []string{"m"}
	return w, c
}

func TestPositionsBecomeLabels(t *testing.T) {
	w, c := told()
	at := &pulsarpb.MessageIdData{LedgerId: proto.Uint64(4), EntryId: proto.Uint64(2)}
	message := func(entry string) *event {
		return &event{client: c, entry: []byte(entry), cmd: &pulsarpb.BaseCommand{
			Type: pulsarpb.BaseCommand_MESSAGE.Enum(), Message: &pulsarpb.CommandMessage{ConsumerId: proto.Uint64(1), MessageId: at}}}
	}
	w.arrived(message("bytes")) // before its receipt
	w.arrived(&event{client: c, cmd: &pulsarpb.BaseCommand{
		Type:        pulsarpb.BaseCommand_SEND_RECEIPT.Enum(),
		SendReceipt: &pulsarpb.CommandSendReceipt{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(0), MessageId: at}}})
	w.arrived(message("others"))
	w.arrived(&event{client: c, cmd: &pulsarpb.BaseCommand{
		Type: pulsarpb.BaseCommand_SUCCESS.Enum(), Success: &pulsarpb.CommandSuccess{RequestId: proto.Uint64(7)}}})
	heard := w.heard()
	if got, want := heard["a consumer 1"], []string{
		"MESSAGE m {consumer_id:1 message_id:its own}", "MESSAGE m altered {consumer_id:1 message_id:its own}", "SUCCESS {request_id:7}",
	}; !slices.Equal(got, want) {
		t.Errorf("consumer: %q", got)
	}
	if got, want := heard["a producer 1"], []string{"SEND_RECEIPT of m {producer_id:1 sequence_id:0 message_id:m}"}; !slices.Equal(got, want) {
		t.Errorf("producer: %q", got)
	}
	if n := w.owes(); n != 0 {
		t.Errorf("%d answers are owed", n)
	}
	if got, want := w.expand("{p} {ns} $m $m+3"), "prefix public/default ledgerId:4 entryId:2 ledgerId:4 entryId:5"; got != want {
		t.Errorf("expanded %q", got)
	}
}

func TestSidesThatSayAnotherThingAreFound(t *testing.T) {
	p, _ := told()
	w, _ := told()
	r := &pair{program: &program{name: "x"}, pulsar: p, wayside: w, fold: (*world).heard}
	closed := func(on *world) { on.arrived(&event{client: on.clients["a"], stream: "connection", text: "closed"}) }
	closed(p)
	if got := r.compare(&step{}); len(got) != 1 || got[0].pulsar != "closed" || got[0].wayside != "" || got[0].row != nil {
		t.Errorf("found %+v", got)
	}
	closed(w)
	if got := r.compare(&step{}); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
}

func TestTheModelKnowsWhatIsLeft(t *testing.T) {
	p, _ := told()
	w, _ := told()
	model := newTwin(1, &pair{pulsar: p, wayside: w})
	model.entries = []*entry{{label: "m0"}, {label: "m1", left: 1}}
	for _, on := range []*world{p, w} {
		on.events = []*event{{stream: "last " + consumerStream(1), text: "MESSAGE m1 {}"}}
	}
	if err := model.left(); err != nil {
		t.Error(err)
	}
	model.entries[0].left = 1
	if model.left() == nil {
		t.Error("a lost entry was not missed")
	}
}
