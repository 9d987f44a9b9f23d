package edge

import "time"

// dropped notes a duplicate that was dropped. mixed says that it is a batch with messages
// beyond what was known of its name, which went with it (protocol 3.18).
//
// A client that comes back repeats what it had no receipt for, and nothing is said of
// that. One that is new was told where its name stands: if it begins below that, as a
// device does that was restarted and counts from the start, all it publishes is lost.
func (p *Producer) dropped(f *Facts, mixed bool) {
	b := p.topic.broker
	b.duplicates.Add(int64(f.Messages))
	if p.opts.Deduplicate || p.opts.Epoch > 0 && !mixed {
		return
	}
	what, line := "what a producer publishes is dropped: its sequences are stored already", &p.repeats
	if mixed {
		what, line = "a batch is dropped with new messages in it: it begins with sequences that are stored already", &p.mixes
	}
	p.topic.mu.Lock()
	kept, tell := line.again(time.Now())
	p.topic.mu.Unlock()
	if !tell {
		return
	}
	args := []any{"topic", p.topic.name.String(), "producer", p.name, "first", f.Sequence, "last", max(f.Highest, f.Sequence), "told", p.last}
	if kept > 0 {
		args = append(args, "repeated", kept)
	}
	b.opts.Logger.Warn(what, args...)
}
