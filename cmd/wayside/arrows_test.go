package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path that all packages of this repository begin with.
const module = "wayside"

// arrows says which of our packages each package may import. A package that is not
// listed may not exist.
var arrows = map[string][]string{
	"cmd/wayside":   {"configs", "boltstore", "edge", "edge/admin", "edge/pulsar", "edge/schema", "uplink", "wire"},
	"configs":       {},
	"edge":          {},
	"edge/pulsar":   {"edge", "wire", "wire/pulsarpb"}, // the messages that wire decodes and encodes
	"edge/admin":    {"edge", "wire"},
	"edge/edgetest": {"edge"},
	"edge/schema":   {"edge"},
	"wire":          {"wire/pulsarpb"},
	"wire/pulsarpb": {},
	"wire/wiretest": {"wire", "wire/pulsarpb"},
	"boltstore":     {"edge", "boltstore/journal"},
	"uplink":        {"edge", "wire", "wire/pulsarpb"}, // the metadata that wire unpacks

	"boltstore/journal": {},
}

// testArrows is what tests of a package may import beyond its own arrows: doubles, and
// the parts needed to put a whole broker together.
var testArrows = []string{"edge", "wire", "wire/pulsarpb", "edge/edgetest", "edge/schema", "wire/wiretest", "boltstore", "edge/pulsar", "edge/admin", "uplink"}

// outside says which packages alone may import something of others, by prefix.
var outside = map[string][]string{
	"go.etcd.io/bbolt":                   {"boltstore"},
	"github.com/apache/pulsar-client-go": {"uplink", "cmd/wayside"},
	"github.com/spf13/cobra":             {"cmd/wayside"},
	"github.com/spf13/pflag":             {"cmd/wayside"},
	"gopkg.in/yaml.v3":                   {"cmd/wayside"},
	"net/http":                           {"edge/admin", "cmd/wayside"},
	"flag":                               {},
	"google.golang.org/protobuf":         {"edge/schema", "wire", "wire/pulsarpb", "wire/wiretest", "edge/pulsar", "uplink"},
	"github.com/klauspost/compress":      {"wire"},
	"github.com/twmb/avro":               {"edge/schema"},
	"github.com/pierrec/lz4":             {"wire"},
}

// goPackage is what `go list` tells of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	out, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var found []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
}

// Arrows point down only.
func TestImportArrows(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 8 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, complaint := range crooked(name, p) {
			t.Error(complaint)
		}
	}
}

// crooked lists what a package imports and should not.
func crooked(name string, p goPackage) (complaints []string) {
	allowed, known := arrows[name]
	if !known {
		return []string{name + " has no place in the table of arrows"}
	}
	complain := func(imported, why string) { complaints = append(complaints, name+" imports "+imported+": "+why) }
	for _, path := range p.Imports {
		if ours, ok := strings.CutPrefix(path, module+"/"); ok {
			if !slices.Contains(allowed, ours) {
				complain(ours, "no such arrow")
			}
			continue
		}
		for prefix, who := range outside {
			if (path == prefix || strings.HasPrefix(path, prefix+"/")) && !slices.Contains(who, name) {
				complain(path, "it is for others")
			}
		}
	}
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		ours, ok := strings.CutPrefix(path, module+"/")
		if ok && ours != name && !slices.Contains(allowed, ours) && !slices.Contains(testArrows, ours) {
			complain(ours, "no such arrow, not for tests either")
		}
	}
	return complaints
}

// The check itself finds each kind of wrong arrow.
func TestCrooked(t *testing.T) {
	for _, c := range []struct {
		name string
		p    goPackage
		want int
	}{
		{"edge", goPackage{Imports: []string{"fmt", "sync"}}, 0},
		{"edge", goPackage{Imports: []string{"wayside/wire"}}, 1},
		{"edge/pulsar", goPackage{Imports: []string{"wayside/edge", "wayside/boltstore"}}, 1},
		{"edge/pulsar", goPackage{TestImports: []string{"wayside/edge/edgetest", "wayside/boltstore"}}, 0},
		{"boltstore", goPackage{Imports: []string{"go.etcd.io/bbolt", "go.etcd.io/bbolt/errors"}}, 0},
		{"uplink", goPackage{Imports: []string{"go.etcd.io/bbolt/errors"}}, 1},
		{"edge", goPackage{Imports: []string{"net/http"}, XTestImports: []string{"wayside/cmd/wayside"}}, 2},
		{"somewhere", goPackage{}, 1},
	} {
		if got := crooked(c.name, c.p); len(got) != c.want {
			t.Errorf("%s %v: %v, want %d", c.name, c.p, got, c.want)
		}
	}
}
