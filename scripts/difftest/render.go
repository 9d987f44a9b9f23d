package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"wayside/wire/pulsarpb"
)

// subCommand is the command inside an envelope.
func subCommand(c *pulsarpb.BaseCommand) protoreflect.Message {
	field := c.ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(c.GetType()))
	return c.ProtoReflect().Get(field).Message()
}

// renderLocked tells an event modulo what two brokers cannot have in common: positions become labels, generated names
// and times become marks, sentences of errors are there or not. Which fields are set is kept.
func (w *world) renderLocked(e *event) string {
	if e.cmd == nil {
		return w.common(e.text)
	}
	r := renderer{world: w, event: e, typ: e.cmd.GetType()}
	r.out.WriteString(e.cmd.GetType().String())
	if e.label != "" {
		r.out.WriteString(" of " + e.label)
	}
	if e.cmd.GetType() == pulsarpb.BaseCommand_MESSAGE {
		r.out.WriteString(" " + w.labelLocked(e))
	}
	r.message(subCommand(e.cmd))
	return w.common(r.out.String())
}

// common takes this world's own names out of a text.
func (w *world) common(text string) string { return strings.ReplaceAll(text, w.prefix, "{p}") }

// renderer writes the fields of one command.
type renderer struct {
	world *world
	event *event
	typ   pulsarpb.BaseCommand_Type
	out   strings.Builder
}

// message writes the fields that are set, in the order of their numbers.
func (r *renderer) message(m protoreflect.Message) {
	r.out.WriteString(" {")
	first := true
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) || r.silent(f) {
			continue
		}
		if !first {
			r.out.WriteString(" ")
		}
		first = false
		r.out.WriteString(string(f.Name()) + ":")
		r.field(f, m.Get(f))
	}
	r.out.WriteString("}")
}

// silent says which fields tell nothing: a broker may fill in highest_sequence_id where nobody asked for it, and the
// real one does so at random.
func (r *renderer) silent(f protoreflect.FieldDescriptor) bool {
	if f.Name() != "highest_sequence_id" {
		return false
	}
	highest := int64(r.event.cmd.GetSendReceipt().GetHighestSequenceId())
	return highest == 0 || highest == -1
}

func (r *renderer) field(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	if f.IsList() {
		r.out.WriteString("[")
		if f.Kind() == protoreflect.StringKind {
			r.names(f, v.List())
			return
		}
		for i := range v.List().Len() {
			if i > 0 {
				r.out.WriteString(" ")
			}
			r.value(f, v.List().Get(i))
		}
		r.out.WriteString("]")
		return
	}
	r.value(f, v)
}

// names writes names in the order of the alphabet: the real broker lists topics in that of a hash table.
func (r *renderer) names(f protoreflect.FieldDescriptor, list protoreflect.List) {
	var all []string
	for i := range list.Len() {
		all = append(all, r.text(string(f.Name()), list.Get(i).String()))
	}
	slices.Sort(all)
	r.out.WriteString(strings.Join(all, " ") + "]")
}

func (r *renderer) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.Name() == "txnid_least_bits":
		r.out.WriteString(r.world.txn(id{int64(r.most()), int64(v.Uint())}))
	case f.Kind() == protoreflect.MessageKind && f.Message().Name() == "MessageIdData":
		r.position(v.Message())
	case f.Kind() == protoreflect.MessageKind:
		r.message(v.Message())
	case f.Kind() == protoreflect.EnumKind:
		r.out.WriteString(string(f.Enum().Values().ByNumber(v.Enum()).Name()))
	case f.Kind() == protoreflect.DoubleKind:
		r.out.WriteString("<rate>")
	case f.Kind() == protoreflect.Uint64Kind:
		fmt.Fprint(&r.out, int64(v.Uint()))
	case f.Kind() == protoreflect.StringKind:
		r.out.WriteString(r.text(string(f.Name()), v.String()))
	case f.Kind() == protoreflect.BytesKind:
		fmt.Fprintf(&r.out, "%x", v.Bytes())
	default:
		fmt.Fprint(&r.out, v.Interface())
	}
}

// text renders a string: some only by whether they say anything.
func (r *renderer) text(field, s string) string {
	switch field {
	case "server_version", "message", "error_message", "address", "connectedSince", "brokerServiceUrl", "brokerServiceUrlTls":
		if s == "" {
			return `""`
		}
		return "<text>"
	case "topics_hash":
		if r.world.alike {
			return "<text>"
		}
	case "producer_name":
		if !r.world.names[s] {
			return "<generated>"
		}
	}
	return fmt.Sprintf("%q", s)
}

// position writes a message id by the label of what is there.
func (r *renderer) position(m protoreflect.Message) {
	d := m.Interface().(*pulsarpb.MessageIdData)
	if r.typ != pulsarpb.BaseCommand_MESSAGE {
		r.out.WriteString(r.world.place(id{int64(d.GetLedgerId()), int64(d.GetEntryId())}))
	} else {
		r.out.WriteString("its own")
	}
	if d.Partition != nil {
		fmt.Fprintf(&r.out, "/partition %d", d.GetPartition())
	}
	if d.BatchIndex != nil {
		fmt.Fprintf(&r.out, "/index %d", d.GetBatchIndex())
	}
	if d.BatchSize != nil {
		fmt.Fprintf(&r.out, "/of %d", d.GetBatchSize())
	}
	if len(d.GetAckSet()) > 0 {
		fmt.Fprintf(&r.out, "/left %v", d.GetAckSet())
	}
}

// place tells where a position is, by what was published there or before it.
func (w *world) place(at id) string {
	if label, ok := w.ids[at]; ok {
		return label
	}
	switch {
	case at == id{-1, -1}:
		return "none"
	case at == id{math.MaxInt64, math.MaxInt64}:
		return "latest"
	case at == id{}:
		return "nowhere"
	case at.entry == -1:
		return "before the first"
	}
	return "elsewhere"
}
