package admin

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wayside/edge"
)

// sentinels reads the texts of all exported errors of the core from its source.
func sentinels(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Err") {
				return true
			}
			call, ok := spec.Values[0].(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				t.Fatalf("%s: %s is made in another way", file, spec.Names[0].Name)
			}
			text, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			texts[spec.Names[0].Name] = text
			return true
		})
	}
	return texts
}

func TestEveryErrorHasItsVerdict(t *testing.T) {
	all := sentinels(t)
	if len(all) < 30 {
		t.Fatalf("only %d sentinels found", len(all))
	}
	known := map[string]bool{}
	for _, v := range verdicts {
		if known[v.err.Error()] {
			t.Errorf("%q has two rows", v.err)
		}
		known[v.err.Error()] = true
		if v.status < 400 || v.status == http.StatusInternalServerError || v.reason == "" {
			t.Errorf("%q is answered with %d %q", v.err, v.status, v.reason)
		}
	}
	for name, text := range all {
		if !known[text] {
			t.Errorf("edge.%s has no row", name)
		}
	}
}

func TestJudge(t *testing.T) {
	topic := topicName(t, "persistent://a/b/c")
	secret := errors.New("/data/store.db: bad page 7")
	for _, test := range []struct {
		err    error
		status int
		reason string
	}{
		{fmt.Errorf("%w: %w", edge.ErrStorage, secret), http.StatusServiceUnavailable, "The store failed: see the broker's log"},
		{secret, http.StatusInternalServerError, "Internal error: see the broker's log"},
		{refuse(http.StatusTeapot, "no %s", "tea"), http.StatusTeapot, "no tea"},
		{ofTopic(fmt.Errorf("open: %w", edge.ErrTopicNotFound), topic), http.StatusNotFound, "Topic persistent://a/b/c not found"},
		{ofTopic(refuse(http.StatusNotFound, "first word"), topic), http.StatusNotFound, "first word"},
		{ofSubscription(edge.ErrTopicInUse, topic, "s"), http.StatusPreconditionFailed, "Subscription has active connected consumers"},
		{ofSubscription(edge.ErrSubscriptionNotFound, topic, "s"), http.StatusNotFound, "Subscription s not found for topic persistent://a/b/c"},
		{&edge.InUseError{Err: edge.ErrConsumerBusy, What: "s"}, http.StatusPreconditionFailed, "Subscription has active connected consumers"},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), http.StatusServiceUnavailable, "The request took too long: it may still be carried out"},
	} {
		if got := judge(test.err); got.status != test.status || got.reason != test.reason {
			t.Errorf("%v: %d %q, want %d %q", test.err, got.status, got.reason, test.status, test.reason)
		}
	}
	if err := ofTopic(nil, topic); err != nil {
		t.Errorf("nil became %v", err)
	}
	if err := ofTopic(edge.ErrTopicNotFound, topic); !errors.Is(err, edge.ErrTopicNotFound) {
		t.Errorf("%v is no longer what it was", err)
	}
}
