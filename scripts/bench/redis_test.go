package main

import "testing"

func TestRedisEntries(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	answer := []any{[]any{b("topic"), []any{
		[]any{b("1-0"), []any{b("d"), b("one")}},
		[]any{b("2-0"), []any{b("d"), b("two")}},
	}}}
	got, err := redisEntries(answer)
	if err != nil || len(got) != 2 || string(got[1].id) != "2-0" || string(got[1].payload) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	for name, bad := range map[string][]any{
		"no stream":    {},
		"a part only":  {[]any{b("topic")}},
		"no list":      {[]any{b("topic"), b("x")}},
		"no fields":    {[]any{b("topic"), []any{[]any{b("1-0")}}}},
		"fields alone": {[]any{b("topic"), []any{[]any{b("1-0"), []any{b("d")}}}}},
	} {
		if got, err := redisEntries(bad); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
