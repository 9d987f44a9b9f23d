package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/twmb/avro"

	"wayside/edge"
)

// node is one type in a definition. References are followed, so the tree of a recursive
// type is a graph.
type node struct {
	kind     string // "error" counts as "record"
	name     string // of record, enum and fixed, without namespace
	space    string // their namespace
	aliases  []string
	fields   []field
	item     *node // of an array or a map
	branches []*node
	symbols  []string
	size     int
	props    map[string]any // whatever else was said of it
}

type field struct {
	name       string
	aliases    []string
	of         *node
	order      string
	hasDefault bool
	props      map[string]any
}

func (n *node) full() string {
	if n.space == "" {
		return n.name
	}
	return n.space + "." + n.name
}

func (n *node) named() bool { return n.kind == "record" || n.kind == "enum" || n.kind == "fixed" }

// validateAvro also takes JSON's old form for type JSON.
func validateAvro(s *edge.Schema) error {
	tree, err := parseAvro(s.Data)
	switch {
	case err != nil && s.Type == typeJSON:
		_, err = oldForm(s.Data)
		return err
	case err != nil:
		return errForm("Invalid schema definition data for %s schema: %w", edge.SchemaTypeName(s.Type), err)
	case s.Type == typeAvro && tree.kind == "union":
		return errForm("Avro schema typed [UNION] is not supported")
	}
	return nil
}

// Attributes that the library would check more strictly than a real broker does, which
// takes defaults that do not fit their type, aliases that clash and decimals without a
// precision, are kept from it under other names.
const (
	keptDefault = "wayside.default" // of a field, as JSON text
	keptAliases = "wayside.aliases" // of a field
	keptLogical = "wayside.logicalType"
	keptNumber  = "wayside.number " // begins the text of a number
)

// parseAvro reads a definition.
func parseAvro(data []byte) (*node, error) {
	raw, err := rename(data)
	if err != nil {
		return nil, err
	}
	parsed, err := avro.Parse(string(raw), avro.WithLaxNames(func(string) error { return nil })) // builder checks them
	if err != nil {
		return nil, err
	}
	b := builder{defined: map[string]*node{}}
	return b.build(parsed.Root(), "")
}

// rename writes a definition with some attributes under their other names.
func rename(data []byte) ([]byte, error) {
	if depth(data) > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("something follows the definition")
	}
	if err := renameIn(value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func renameIn(value any) error {
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			v[i] = asText(e)
			if err := renameIn(e); err != nil {
				return err
			}
		}
	case map[string]any:
		fields, _ := v["fields"].([]any)
		for _, f := range fields {
			if err := renameField(f); err != nil {
				return err
			}
		}
		move(v, "logicalType", keptLogical)
		for name, e := range v {
			if name != "size" || !isCount(e) {
				v[name] = asText(e)
			}
			if err := renameIn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// asText makes a text of a number, as it is written: all that is done with it is to compare
// it, and a number of a few digits may take long to work out.
func asText(value any) any {
	if n, ok := value.(json.Number); ok {
		return keptNumber + string(n)
	}
	return value
}

// isCount reports whether a value may be the size of a fixed type.
func isCount(value any) bool {
	n, ok := value.(json.Number)
	if !ok {
		return false
	}
	_, err := strconv.ParseInt(string(n), 10, 32)
	return err == nil
}

// renameField also refuses a type that is spread over its field, which the library takes.
func renameField(value any) error {
	f, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	switch f["type"] {
	case "record", "error", "enum", "array", "map", "fixed":
		return fmt.Errorf("type %s of a field has to be an object of its own", f["type"])
	}
	if value, ok := f["default"]; ok {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		f["default"] = string(text)
	}
	move(f, "default", keptDefault)
	move(f, "aliases", keptAliases)
	return nil
}

func move(in map[string]any, from, to string) {
	if value, ok := in[from]; ok {
		in[to] = value
		delete(in, from)
	}
}

// maxDepth bounds how deeply a definition is nested, in brackets. Real ones have a few
// dozen; a real broker's JSON reader gives up at a thousand.
const maxDepth = 1000

// depth is the deepest nesting of brackets outside of strings.
func depth(data []byte) int {
	deep, most, text := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			deep++
			most = max(most, deep)
		case c == '}' || c == ']':
			deep--
		}
	}
	return most
}

// goodName follows the Java library: letters, digits and underscores of any script, the
// first no digit. Namespaces are free.
func goodName(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != ""
}

// reserved are the attributes that types have of themselves.
var reserved = []string{"aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "values"}

// builder turns the library's description into nodes.
type builder struct{ defined map[string]*node }

// build makes the node of a description that stands in a namespace.
func (b *builder) build(d *avro.SchemaNode, space string) (*node, error) {
	n := &node{kind: d.Type, props: d.Props}
	for _, name := range reserved {
		delete(n.props, name) // where they mean nothing, they say nothing
	}
	var err error
	switch d.Type {
	case "record", "error":
		n.kind = "record"
		if err = b.define(n, d); err == nil {
			err = b.buildFields(n, d)
		}
	case "enum":
		n.symbols = d.Symbols
		if err = b.define(n, d); err == nil {
			err = goodNames("symbol", d.Symbols)
		}
	case "fixed":
		n.size = d.Size
		err = b.define(n, d)
	case "array":
		n.item, err = b.build(d.Items, space)
	case "map":
		n.item, err = b.build(d.Values, space)
	case "union":
		for i := range d.Branches {
			var branch *node
			if branch, err = b.build(&d.Branches[i], space); err != nil {
				break
			}
			n.branches = append(n.branches, branch)
		}
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
	default:
		return b.refer(d.Type, space)
	}
	return n, err
}

// define gives a node its name and makes it known by it.
func (b *builder) define(n *node, d *avro.SchemaNode) error {
	n.name, n.space = d.Name, d.Namespace
	if i := strings.LastIndexByte(d.Name, '.'); i >= 0 {
		n.name, n.space = d.Name[i+1:], d.Name[:i]
	}
	if err := goodNames("name", []string{n.name}); err != nil {
		return err
	}
	for _, alias := range d.Aliases {
		if err := goodNames("alias", []string{short(alias)}); err != nil {
			return err
		}
		if !strings.Contains(alias, ".") && n.space != "" {
			alias = n.space + "." + alias
		}
		n.aliases = append(n.aliases, alias)
	}
	b.defined[n.full()] = n
	return nil
}

func (b *builder) buildFields(n *node, d *avro.SchemaNode) error {
	for i := range d.Fields {
		f := &d.Fields[i]
		if err := goodNames("name", []string{f.Name}); err != nil {
			return err
		}
		aliases, err := aliasesOf(f.Props[keptAliases])
		if err != nil {
			return err
		}
		of, err := b.build(&f.Type, n.space)
		if err != nil {
			return err
		}
		delete(f.Props, keptAliases) // they do not make a definition another one
		_, hasDefault := f.Props[keptDefault]
		n.fields = append(n.fields, field{name: f.Name, aliases: aliases, of: of, order: f.Order, hasDefault: hasDefault, props: f.Props})
	}
	return nil
}

// aliasesOf reads the aliases of a field, which may be any text.
func aliasesOf(kept any) (aliases []string, err error) {
	if kept == nil {
		return nil, nil
	}
	list, ok := kept.([]any)
	for _, e := range list {
		alias, isText := e.(string)
		aliases, ok = append(aliases, alias), ok && isText && !strings.HasPrefix(alias, keptNumber)
	}
	if !ok {
		return nil, errors.New("aliases of a field are no list of names")
	}
	return aliases, nil
}

func goodNames(what string, names []string) error {
	for _, name := range names {
		if !goodName(name) {
			return fmt.Errorf("illegal %s %.40q", what, name)
		}
	}
	return nil
}

// refer finds a named type, in the namespace that the reference stands in or in none.
func (b *builder) refer(name, space string) (*node, error) {
	if space != "" && !strings.Contains(name, ".") {
		if n := b.defined[space+"."+name]; n != nil {
			return n, nil
		}
	}
	if n := b.defined[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%.40q is not defined before it is used", name)
}
