package pulsar

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"wayside/wire/pulsarpb"
)

// Every command that the protocol has is either handled or refused for a stated
// reason, and stands in the table of doc.go as that.
func TestNoCommandIsForgotten(t *testing.T) {
	table := commandTable(t)
	for number, name := range pulsarpb.BaseCommand_Type_name {
		c := commandFor(pulsarpb.BaseCommand_Type(number))
		handled := c.handle != nil || c.scan != nil || c.payload
		if handled == (c.refusal != "") {
			t.Errorf("%s: handled %t, refusal %q", name, handled, c.refusal)
		}
		if c.refusal == unknownToUs {
			t.Errorf("%s is not in commandFor", name)
		}
		line, ok := table[name]
		if !ok {
			t.Errorf("%s is not in the table of doc.go", name)
			continue
		}
		if closes := strings.HasSuffix(line, "; closes"); closes != (c.refusal != "") {
			t.Errorf("%s: doc.go says %q, refusal %q", name, line, c.refusal)
		}
		if file := regexp.MustCompile(`\w+\.go`).FindString(line); file != "" {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: doc.go names %s, which is not there", name, file)
			}
		}
	}
	for name := range table {
		if _, ok := pulsarpb.BaseCommand_Type_value[name]; !ok {
			t.Errorf("doc.go has %s, which the protocol has not", name)
		}
	}
}

func commandTable(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\t([A-Z_]+) +(?:C|B|CB) +(.*)$`).FindAllStringSubmatch(string(raw), -1) {
		table[m[1]] = m[2]
	}
	return table
}

// Every file with a handler opens with what its commands do and where it deviates.
func TestHandlersStateTheirFacts(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		raw, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if regexp.MustCompile(`(?m)^func \(s \*session\) (handle|refuse[TW])\w+\(`).MatchString(text) &&
			(!strings.Contains(text, "// Deviations: ") || !strings.Contains(text, "protocol version ")) {
			t.Errorf("%s has a handler and does not say since when and where it deviates", f.Name())
		}
	}
}

// The table from errors to codes has every error of the core.
func TestErrorTableIsComplete(t *testing.T) {
	text := map[string]bool{}
	for _, f := range faults() {
		text[f.err.Error()] = true
	}
	for name, message := range sentinels(t) {
		if !text[message] {
			t.Errorf("edge.%s (%q) has no code", name, message)
		}
	}
}

// sentinels reads the exported errors of the core out of its source.
func sentinels(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Err") {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok {
			t.Fatalf("%s is no call of errors.New", spec.Names[0].Name)
		}
		found[spec.Names[0].Name] = strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`)
		return true
	})
	if len(found) < 20 {
		t.Fatalf("only %d errors found", len(found))
	}
	return found
}
