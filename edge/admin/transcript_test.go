package admin

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wayside/edge"
)

// The files in testdata are what Apache Pulsar 4.0.7 answered to plain requests:
//
//	> METHOD PATH [CONTENT TYPE] BODY
//	< STATUS BODY
//	= STATUS BODY    where this broker answers otherwise, on purpose
//
// "*" in JSON stands for any value, a body "(page)" for Jetty's own pages and stack
// traces, in whose place {"reason"} has to stand.

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runTranscript(t, file) })
	}
}

type exchange struct {
	line                 int
	method, path, kind   string
	body, status, answer string
}

var update = flag.Bool("update", false, "write the broker's own answers into the transcripts, to be reviewed as a diff")

func runTranscript(t *testing.T, file string) {
	server, _ := newServer(t, func(_ *Options, eo *edge.Options) { eo.Deduplication = true }) // as it was there
	if *update {
		rewrite(t, server, file)
		return
	}
	for _, x := range readTranscript(t, file) {
		got := ask(server, x.method, x.path, x.kind, x.body)
		name := fmt.Sprintf("%s:%d: %s %s %s", file, x.line, x.method, x.path, x.body)
		if strconv.Itoa(got.Code) != x.status {
			t.Errorf("%s\n got %d %s\nwant %s %s", name, got.Code, got.Body, x.status, x.answer)
			continue
		}
		if why := compare(x, got); why != "" {
			t.Errorf("%s: %s\n got %s\nwant %s", name, why, got.Body, x.answer)
		}
	}
}

// ask sends one request the way a client does that named the broker broker.test:8080.
func ask(h http.Handler, method, path, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://broker.test:8080"+path, strings.NewReader(body))
	if kind == "" && body != "" {
		kind = "application/json"
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var requestLine = regexp.MustCompile(`^> (\S+) (\S+)(?: \[([a-z][a-z]*/[^\]]*)\])?(?: (.*))?$`)

func readTranscript(t testing.TB, file string) []exchange {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []exchange
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "> "):
			m := requestLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("%s:%d: not a request: %s", file, n, line)
			}
			all = append(all, exchange{line: n, method: m[1], path: m[2], kind: m[3], body: m[4]})
		case strings.HasPrefix(line, "< "), strings.HasPrefix(line, "= "):
			x := &all[len(all)-1]
			x.status, x.answer, _ = strings.Cut(line[2:], " ")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// changing are the values that differ from run to run.
var changing = regexp.MustCompile(`"(timestamp|ledgerId)":\d+`)

// rewrite asks everything and notes the answers that differ.
func rewrite(t *testing.T, server *Server, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(raw), "\n"), func(l string) bool { return strings.HasPrefix(l, "= ") })
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	exchanges := readTranscript(t, file)
	own := map[int]string{}
	for _, x := range exchanges {
		got := ask(server, x.method, x.path, x.kind, x.body)
		if strconv.Itoa(got.Code) != x.status || compare(x, got) != "" {
			body := changing.ReplaceAllString(got.Body.String(), `"$1":"*"`)
			own[x.line] = strings.TrimSpace(fmt.Sprintf("= %d %s", got.Code, body))
		}
	}
	for _, x := range slices.Backward(exchanges) { // from the end, so that line numbers stay true
		if answer, ok := own[x.line]; ok {
			lines = slices.Insert(lines, x.line+1, answer)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compare says how an answer differs, "" if it does not.
func compare(x exchange, got *httptest.ResponseRecorder) string {
	body := got.Body.String()
	switch {
	case x.method == http.MethodHead:
		return ""
	case x.answer == "":
		if body != "" {
			return "a body where there is none"
		}
		if kind := got.Header().Get("Content-Type"); kind != "" {
			return "a content type without a body: " + kind
		}
		return ""
	case x.answer == "(page)":
		var r map[string]string
		if json.Unmarshal([]byte(body), &r) != nil || len(r) != 1 || r["reason"] == "" {
			return "not a reason"
		}
		return ""
	case got.Header().Get("Content-Type") != "application/json":
		return "not called JSON: " + got.Header().Get("Content-Type")
	}
	var want, have any
	if json.Unmarshal([]byte(x.answer), &want) != nil {
		if body != x.answer {
			return "another text"
		}
		return ""
	}
	if err := json.Unmarshal([]byte(body), &have); err != nil {
		return err.Error()
	}
	return differs("", want, have)
}

// sortNames orders lists of names, whose order is nobody's promise.
func sortNames(list []any) {
	slices.SortFunc(list, func(a, b any) int {
		x, okX := a.(string)
		y, okY := b.(string)
		if !okX || !okY {
			return 0
		}
		return strings.Compare(x, y)
	})
}

// differs names the first place where two JSON values differ.
func differs(at string, want, have any) string {
	if want == "*" {
		return ""
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for k := range have {
			if _, ok := want[k]; !ok {
				return at + "." + k + " is too many"
			}
		}
		for k, v := range want {
			h, ok := have[k]
			if !ok {
				return at + "." + k + " is missing"
			}
			if why := differs(at+"."+k, v, h); why != "" {
				return why
			}
		}
		return ""
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return at + " has another length"
		}
		sortNames(want)
		sortNames(have)
		for i := range want {
			if why := differs(fmt.Sprintf("%s[%d]", at, i), want[i], have[i]); why != "" {
				return why
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, have) {
		return fmt.Sprintf("%s is %v, not %v", at, have, want)
	}
	return ""
}
