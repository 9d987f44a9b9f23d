package schema

import (
	"errors"
	"fmt"
	"slices"

	"wayside/edge"
)

// maxSteps bounds the pairs of types that one schema is compared in: a definition of the
// largest size compared with as large a one takes fewer, unless it was made to take long.
const maxSteps = 200_000

var errSteps = errors.New("comparing it takes too long")

// work is what is left of maxSteps.
type work struct{ steps int }

func newWork() *work { return &work{steps: maxSteps} }

func (w *work) checkAvro(old, next *edge.Schema, strategy edge.SchemaStrategy) error {
	before, err := parseAvro(old.Data)
	if err != nil {
		return checkOldForm(old, next)
	}
	after, err := parseAvro(next.Data)
	switch {
	case err != nil && next.Type == typeJSON:
		return nil // its old form, which a real broker takes after the new one
	case err != nil:
		return incompatible("%w", err)
	}
	if strategy.Backward() {
		err = w.canRead(after, before)
	}
	if err == nil && strategy.Forward() {
		err = w.canRead(before, after)
	}
	if err != nil {
		return incompatible("Error during schema compatibility check with strategy %s: %w", strategy, err)
	}
	return nil
}

// canRead says why a reader's schema cannot read what a writer's has written.
func (w *work) canRead(reader, writer *node) error {
	r := resolution{work: w, seen: map[pair]error{}, types: map[string]string{}, fields: map[string]map[string]string{}}
	r.collect(reader, map[*node]bool{})
	return r.resolve(reader, writer)
}

type pair struct{ reader, writer *node }

// resolution is one comparison. The reader's aliases rename the writer's types and
// fields, wherever in the writer's schema they are.
type resolution struct {
	*work
	seen   map[pair]error               // records: nil also while under way, which ends recursion
	types  map[string]string            // the reader's alias to its type's full name
	fields map[string]map[string]string // the reader's record to its fields' aliases to their names
}

// collect notes the reader's aliases.
func (r *resolution) collect(n *node, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	for _, alias := range n.aliases {
		r.types[alias] = n.full()
	}
	for i := range n.fields {
		f := &n.fields[i]
		for _, alias := range f.aliases {
			of := r.fields[n.full()]
			if of == nil {
				of = map[string]string{}
				r.fields[n.full()] = of
			}
			of[alias] = f.name
		}
		r.collect(f.of, seen)
	}
	if of := r.fields[n.full()]; of != nil && n.kind == "record" {
		for _, alias := range n.aliases {
			r.fields[alias] = of
		}
	}
	if n.item != nil {
		r.collect(n.item, seen)
	}
	for _, b := range n.branches {
		r.collect(b, seen)
	}
}

// fullName is a writer's type in the reader's words.
func (r *resolution) fullName(writer *node) string {
	if name, ok := r.types[writer.full()]; ok {
		return name
	}
	return writer.full()
}

func (r *resolution) resolve(reader, writer *node) error {
	if r.steps--; r.steps < 0 {
		return errSteps
	}
	switch {
	case writer.kind == "union":
		return r.resolveUnion(reader, writer)
	case reader.kind == writer.kind:
		return r.resolveSame(reader, writer)
	case reader.kind == "union":
		branch := r.branch(reader, writer)
		if branch == nil {
			return fmt.Errorf("no branch of the reader's union takes %s", writer.kind)
		}
		return r.resolve(branch, writer)
	case promotes(writer.kind, reader.kind):
		return nil
	}
	return fmt.Errorf("%s cannot be read as %s", writer.kind, reader.kind)
}

// resolveUnion lets each branch be read by the branch in its place if the unions have one
// form, else by whatever fits.
func (r *resolution) resolveUnion(reader, writer *node) error {
	alike := r.alike(reader, writer, map[pair]bool{})
	for i, branch := range writer.branches {
		to := reader
		if alike {
			to = reader.branches[i]
		}
		if err := r.resolve(to, branch); err != nil {
			return err
		}
	}
	return nil
}

// alike reports whether two types have one form: short names count, the names of fields
// and namespaces do not.
func (r *resolution) alike(reader, writer *node, seen map[pair]bool) bool {
	if reader.kind != writer.kind || reader.name != short(r.fullName(writer)) || reader.size != writer.size ||
		len(reader.fields) != len(writer.fields) || len(reader.branches) != len(writer.branches) ||
		!slices.Equal(reader.symbols, writer.symbols) {
		return false
	}
	p := pair{reader, writer}
	if seen[p] {
		return true
	}
	seen[p] = true
	if r.steps--; r.steps < 0 {
		return false
	}
	for i := range reader.fields {
		if !r.alike(reader.fields[i].of, writer.fields[i].of, seen) {
			return false
		}
	}
	for i := range reader.branches {
		if !r.alike(reader.branches[i], writer.branches[i], seen) {
			return false
		}
	}
	return reader.item == nil || r.alike(reader.item, writer.item, seen)
}

// resolveSame compares types of one kind. Symbols of an enum and the numbers of a
// decimal do not matter.
func (r *resolution) resolveSame(reader, writer *node) error {
	switch reader.kind {
	case "array", "map":
		return r.resolve(reader.item, writer.item)
	case "record":
		return r.resolveRecord(reader, writer)
	case "enum", "fixed":
		if short(r.fullName(writer)) != reader.name {
			return fmt.Errorf("%s %s is called %s there", reader.kind, reader.name, writer.name)
		}
		if reader.size != writer.size {
			return fmt.Errorf("fixed %s has %d bytes, not %d", reader.name, writer.size, reader.size)
		}
	}
	return nil
}

func short(full string) string {
	for i := len(full) - 1; i >= 0; i-- {
		if full[i] == '.' {
			return full[i+1:]
		}
	}
	return full
}

func (r *resolution) resolveRecord(reader, writer *node) error {
	p := pair{reader, writer}
	if err, ok := r.seen[p]; ok {
		return err
	}
	r.seen[p] = nil
	err := r.resolveFields(reader, writer)
	r.seen[p] = err
	return err
}

func (r *resolution) resolveFields(reader, writer *node) error {
	written := make(map[string]*field, len(writer.fields))
	aliases := r.fields[r.fullName(writer)]
	for i := range writer.fields {
		f := &writer.fields[i]
		name := f.name
		if alias, ok := aliases[name]; ok {
			name = alias
		}
		if written[name] != nil {
			return fmt.Errorf("an alias makes two fields %s of record %s", name, reader.name)
		}
		written[name] = f
	}
	for i := range reader.fields {
		f := &reader.fields[i]
		from := written[f.name]
		if from == nil {
			if !f.hasDefault {
				return fmt.Errorf("field %s of record %s is missing and has no default", f.name, reader.name)
			}
			continue
		}
		if err := r.resolve(f.of, from.of); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}

// branch is the one of a reader's union that takes what a writer's type writes: of its
// kind and, where it has one, its full name; a record of the same shape, best with its
// short name; and at last one that it can be promoted to.
func (r *resolution) branch(union, writer *node) *node {
	var shape *node
	for _, b := range union.branches {
		switch {
		case b.kind != writer.kind:
		case !b.named() || b.full() == r.fullName(writer):
			return b
		case b.kind == "record" && r.resolveRecord(b, writer) == nil:
			if shape == nil || b.name == short(r.fullName(writer)) {
				shape = b
			}
		}
	}
	if shape != nil {
		return shape
	}
	for _, b := range union.branches {
		if promotes(writer.kind, b.kind) {
			return b
		}
	}
	return nil
}

func promotes(from, to string) bool {
	switch to {
	case "long":
		return from == "int"
	case "float":
		return from == "int" || from == "long"
	case "double":
		return from == "int" || from == "long" || from == "float"
	case "bytes":
		return from == "string"
	case "string":
		return from == "bytes"
	}
	return false
}
