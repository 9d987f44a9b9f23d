package edge

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TopicName is a topic's full name, taken apart (protocol 3.16). It is comparable.
type TopicName struct {
	Domain    string // "persistent" or "non-persistent"
	Tenant    string
	Namespace string
	Local     string // any characters; with "-partition-N" if it is one
}

// Persistent and NonPersistent are the two domains.
const (
	Persistent    = "persistent"
	NonPersistent = "non-persistent"
)

const partitionMark = "-partition-"

// maxTopicName bounds the full name in bytes, so that it fits a bucket's key.
const maxTopicName = 2048

// ParseTopicName accepts the forms that clients send: full, "tenant/namespace/local"
// and "local". The old form with a cluster in it is refused. The error wraps ErrName.
func ParseTopicName(s string) (TopicName, error) {
	if len(s) > maxTopicName {
		return TopicName{}, fmt.Errorf("%w: %d bytes long, at most %d", ErrName, len(s), maxTopicName)
	}
	domain, rest, full := strings.Cut(s, "://")
	if !full {
		domain, rest = Persistent, s
	}
	parts := strings.Split(rest, "/")
	if !full && len(parts) == 1 {
		parts = []string{"public", "default", parts[0]}
	}
	if len(parts) != 3 {
		return TopicName{}, fmt.Errorf("%w: %q is not domain://tenant/namespace/topic", ErrName, s)
	}
	return NewTopicName(domain, parts[0], parts[1], parts[2])
}

// NewTopicName puts a name together from its parts, as the HTTP paths give them.
// What it accepts, ParseTopicName reads back from String. The error wraps ErrName.
func NewTopicName(domain, tenant, namespace, local string) (TopicName, error) {
	switch {
	case domain != Persistent && domain != NonPersistent:
		return TopicName{}, fmt.Errorf("%w: unknown domain %q", ErrName, domain)
	case !ValidPart(tenant) || !ValidPart(namespace):
		return TopicName{}, fmt.Errorf("%w: tenant %q or namespace %q is not made of letters, digits and any of _-=:. alone", ErrName, tenant, namespace)
	case strings.TrimSpace(local) == "":
		return TopicName{}, fmt.Errorf("%w: empty topic in %s/%s", ErrName, tenant, namespace)
	case strings.Contains(local, "/"):
		return TopicName{}, fmt.Errorf("%w: topic %q has a slash", ErrName, local)
	case !utf8.ValidString(local): // could not stand in JSON nor as a metric's label
		return TopicName{}, fmt.Errorf("%w: topic %q is not UTF-8", ErrName, local)
	}
	t := TopicName{domain, tenant, namespace, local}
	if n := len(t.String()); n > maxTopicName {
		return TopicName{}, fmt.Errorf("%w: %d bytes long, at most %d", ErrName, n, maxTopicName)
	}
	return t, nil
}

// ValidPart reports whether s can name a tenant or a namespace.
func ValidPart(s string) bool {
	for _, r := range s {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-=:.", r)
		if !ok {
			return false
		}
	}
	return s != ""
}

// String is the full name.
func (t TopicName) String() string {
	return t.Domain + "://" + t.Tenant + "/" + t.Namespace + "/" + t.Local
}

// LikePartition reports whether the name has what marks a partition's, whatever follows.
func (t TopicName) LikePartition() bool { return strings.Contains(t.Local, partitionMark) }

// compare orders as the full names do, without putting them together.
func (t TopicName) compare(o TopicName) int {
	return cmp.Or(
		strings.Compare(t.Domain, o.Domain), // of two, which differ in their first letter
		compareParts(t.Tenant, o.Tenant), compareParts(t.Namespace, o.Namespace),
		strings.Compare(t.Local, o.Local),
	)
}

// compareParts orders parts of a name behind which a slash follows: some of the
// characters that they are made of come before it.
func compareParts(a, b string) int {
	n := min(len(a), len(b))
	switch {
	case a[:n] != b[:n] || len(a) == len(b):
		return strings.Compare(a, b)
	case len(a) < len(b):
		return cmp.Compare('/', b[n])
	}
	return cmp.Compare(a[n], '/')
}

// NamespaceName is "tenant/namespace".
func (t TopicName) NamespaceName() string { return t.Tenant + "/" + t.Namespace }

// IsPersistent reports whether messages of the topic are stored.
func (t TopicName) IsPersistent() bool { return t.Domain == Persistent }

// Partition returns the base name and the index of a partition, or the name itself
// and −1. Only decimal digits without leading zeros behind the last mark count.
func (t TopicName) Partition() (base TopicName, index int) {
	i := strings.LastIndex(t.Local, partitionMark)
	if i <= 0 {
		return t, -1
	}
	digits := t.Local[i+len(partitionMark):]
	n, err := strconv.ParseInt(digits, 10, 32) // message ids have 32 bits for it
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return t, -1
	}
	base = t
	base.Local = t.Local[:i]
	return base, int(n)
}

// WithPartition is the name of partition i of a base name.
func (t TopicName) WithPartition(i int) TopicName {
	t.Local += partitionMark + strconv.Itoa(i)
	return t
}

// isCoordinator knows the topic by which clients find the transaction coordinator, by its
// partitions: it has one, and exists for lookups alone.
func (t TopicName) isCoordinator() bool {
	base, _ := t.Partition()
	return base.NamespaceName() == "pulsar/system" && base.Local == "transaction_coordinator_assign"
}
