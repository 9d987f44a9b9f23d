package edge

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseTopicName(t *testing.T) {
	for in, want := range map[string]string{
		"local":                           "persistent://public/default/local",
		"tenant/ns/local":                 "persistent://tenant/ns/local",
		"persistent://t/n/l":              "persistent://t/n/l",
		"non-persistent://t/n/l":          "non-persistent://t/n/l",
		"persistent://t_=:.-/n/ä €%25+ .": "persistent://t_=:.-/n/ä €%25+ .",
		"a:b":                             "persistent://public/default/a:b",
		"persistent://t/n/a://b":          "",
		"":                                "",
		"   ":                             "",
		"a/b":                             "",
		"a/b/c/d":                         "",
		"public/default/ ":                "",
		"persistent://local":              "",
		"persistent://t/n":                "",
		"persistent://t/n/":               "",
		"persistent:///n/l":               "",
		"persistent://t/cluster/n/l":      "",
		"topic://t/n/l":                   "",
		"://t/n/l":                        "",
		"Persistent://t/n/l":              "",
		"t%/n/l":                          "",
		"t/ñ/l":                           "",
		"t/n\xff/l":                       "",
		"t/n/l\xff":                       "",
		strings.Repeat("x", 3000):         "",
		strings.Repeat("x", 2048):         "", // short, but its full name is not
	} {
		got, err := ParseTopicName(in)
		switch {
		case want == "" && !errors.Is(err, ErrName):
			t.Errorf("%q is %v, %v", in, got, err)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%q is %v, %v, want %s", in, got, err, want)
		}
	}
	longest := "persistent://t/n/" + strings.Repeat("x", maxTopicName-17)
	if n, err := ParseTopicName(longest); err != nil || n.String() != longest {
		t.Errorf("the longest name: %v", err)
	}
	if _, err := NewTopicName(Persistent, "t", "n", strings.Repeat("x", maxTopicName-16)); !errors.Is(err, ErrName) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestTopicNameParts(t *testing.T) {
	n, err := NewTopicName(NonPersistent, "t", "n", "l")
	if err != nil || n.NamespaceName() != "t/n" || n.IsPersistent() {
		t.Errorf("%v in %s, persistent %v, %v", n, n.NamespaceName(), n.IsPersistent(), err)
	}
	if n, err := NewTopicName(Persistent, "t", "n", "a/b"); !errors.Is(err, ErrName) {
		t.Errorf("a slash in the local name: %v, %v", n, err)
	}
	if p, _ := ParseTopicName("l"); !p.IsPersistent() {
		t.Errorf("%v is not persistent", p)
	}
}

func TestPartition(t *testing.T) {
	for local, want := range map[string]int{
		"a-partition-0":              0,
		"a-partition-12":             12,
		"a-partition-1-partition-2":  2,
		"a-partition-2147483647":     1<<31 - 1,
		"a-partition-2147483648":     -1,
		"a-partition-99999999999999": -1,
		"a":                          -1,
		"a-partition-":               -1,
		"a-partition-01":             -1,
		"a-partition-+1":             -1,
		"a-partition--1":             -1,
		"a-partition-1x":             -1,
		"a-partition-٣":              -1,
		"-partition-1":               -1,
		"a-partition-1-partition-x":  -1,
	} {
		n := TopicName{Persistent, "t", "n", local}
		base, index := n.Partition()
		if index != want {
			t.Errorf("%s is partition %d, want %d", local, index, want)
		}
		if index >= 0 && base.WithPartition(index) != n || index < 0 && base != n {
			t.Errorf("%s is of %v", local, base)
		}
	}
}

// Whatever is accepted reads back from its full name; nothing panics.
func TestTopicNameReadsBack(t *testing.T) {
	part := rapid.OneOf(rapid.StringMatching(`[a-z0-9_=:.-]{1,4}`), rapid.String())
	rapid.Check(t, func(r *rapid.T) {
		domain := rapid.SampledFrom([]string{Persistent, NonPersistent}).Draw(r, "domain")
		n, err := NewTopicName(domain, part.Draw(r, "tenant"), part.Draw(r, "namespace"), part.Draw(r, "local"))
		if err != nil {
			return
		}
		if again, err := ParseTopicName(n.String()); err != nil || again != n {
			r.Fatalf("%q reads back as %q, %v", n, again, err)
		}
	})
}

func TestNamesAreInTheOrderOfTheFullNames(t *testing.T) {
	var names []TopicName
	for _, domain := range []string{Persistent, NonPersistent} {
		for _, tenant := range []string{"a", "a-b", "a.b", "a0", "aa", "b"} {
			for _, namespace := range []string{"n", "n-", "n:", "n.x"} {
				for _, local := range []string{"t", "t-1", "T", "é"} {
					names = append(names, TopicName{domain, tenant, namespace, local})
				}
			}
		}
	}
	for _, x := range names {
		for _, y := range names {
			if got, want := x.compare(y), strings.Compare(x.String(), y.String()); got != want {
				t.Fatalf("%s to %s: %d, want %d", x, y, got, want)
			}
		}
	}
}
