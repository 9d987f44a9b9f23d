package pulsar

// GET_TOPICS_OF_NAMESPACE (protocol version 13 on; pattern and hash since 20).
//
// Lists the topics of a namespace by their full names, every partition as its own. An
// unknown namespace is an empty list. A pattern of at most 50 characters has to match
// the whole name without scheme and partition. topics_hash is the CRC-32C of the sorted
// names, joined by commas, its four bytes written in hex from the lowest; a request that
// has the same gets changed=false and no names.
//
// Deviations: a pattern that Go's regular expressions cannot say is ignored, and the
// answer is unfiltered and says so. A namespace that is none is MetadataError, where the
// reference closes the connection.

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// maxPattern is the longest pattern, in characters, as in the reference.
const maxPattern = 50

func (s *session) handleTopics(c *pulsarpb.BaseCommand) error {
	m := c.GetGetTopicsOfNamespace()
	if err := checkNamespace(m.GetNamespace()); err != nil {
		s.failRequest(m.GetRequestId(), err)
		return nil
	}
	pattern, filtered := compilePattern(m.GetTopicsPattern())
	// One list at a time: whoever waits holds none.
	if err := s.wait(func() error { return s.srv.listing.take(s.ctx) }); err != nil {
		return err
	}
	defer s.srv.listing.give()
	names := listTopics(s.srv.broker.Names(m.GetNamespace()), m.GetMode(), pattern)
	hash := topicsHash(fullNames(names))
	changed := m.TopicsHash == nil || m.GetTopicsHash() != hash
	if !changed {
		names = nil
	}
	memory, err := s.takeList(names)
	if err != nil {
		return s.unlisted(m.GetRequestId(), err)
	}
	s.out.replyLarge(&pulsarpb.CommandGetTopicsOfNamespaceResponse{
		RequestId: m.RequestId, Topics: slices.Collect(fullNames(names)), Filtered: &filtered, TopicsHash: &hash, Changed: proto.Bool(changed),
	}, memory)
	return nil
}

// checkNamespace refuses what is not tenant/namespace.
func checkNamespace(ns string) error {
	tenant, namespace, ok := strings.Cut(ns, "/")
	if !ok || !edge.ValidPart(tenant) || !edge.ValidPart(namespace) {
		return fmt.Errorf("%w: Invalid namespace %.*q", edge.ErrBadRequest, maxDetail, ns)
	}
	return nil
}

// takeList takes the memory for an answer with these names, twice: as names, and as a
// frame. ErrLimit says that the frame would be so large that clients close the connection.
func (s *session) takeList(names []edge.TopicName) (edge.Grant, error) {
	size := listBytes(names)
	if size > s.srv.opts.MaxMessageSize {
		return edge.Grant{}, fmt.Errorf("%w: the names of %d topics make more than %d bytes", edge.ErrLimit, len(names), s.srv.opts.MaxMessageSize)
	}
	return s.takeRoom(2 * size)
}

// unlisted answers what takeList refused; any other error ends the session.
func (s *session) unlisted(request uint64, err error) error {
	if !errors.Is(err, edge.ErrLimit) {
		return err
	}
	s.failRequest(request, err)
	return nil
}

// listBytes is what a list of names takes in a frame, or a little more.
func listBytes(names []edge.TopicName) int {
	const beside = len("://") + len("//") + 4 // and the field's head
	size := 0
	for _, n := range names {
		size += len(n.Domain) + len(n.Tenant) + len(n.Namespace) + len(n.Local) + beside
	}
	return size
}

// compilePattern makes a pattern for names without scheme. ok is false when all names
// are to be listed.
func compilePattern(pattern string) (re *regexp.Regexp, ok bool) {
	if pattern == "" || utf8.RuneCountInString(pattern) > maxPattern {
		return nil, false
	}
	re, err := wholeName(withoutScheme(pattern))
	return re, err == nil
}

// wholeName compiles a pattern that a whole name has to match.
func wholeName(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

// withoutScheme is a pattern for names without scheme.
func withoutScheme(pattern string) string {
	pattern = strings.TrimPrefix(pattern, "^") // the whole name has to match anyway
	if _, behind, scheme := strings.Cut(pattern, "://"); scheme {
		return behind
	}
	return pattern
}

// listTopics picks the names of one mode that match, if there is a pattern. It takes
// the list over.
func listTopics(all []edge.TopicName, mode pulsarpb.CommandGetTopicsOfNamespace_Mode, pattern *regexp.Regexp) []edge.TopicName {
	return slices.DeleteFunc(all, func(n edge.TopicName) bool {
		if mode == pulsarpb.CommandGetTopicsOfNamespace_PERSISTENT && !n.IsPersistent() ||
			mode == pulsarpb.CommandGetTopicsOfNamespace_NON_PERSISTENT && n.IsPersistent() {
			return true
		}
		base, _ := n.Partition()
		return pattern != nil && !pattern.MatchString(base.NamespaceName()+"/"+base.Local)
	})
}

// fullNames are the names as clients write them, made one at a time.
func fullNames(names []edge.TopicName) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range names {
			if !yield(n.String()) {
				return
			}
		}
	}
}

// topicsHash is the hash of sorted names.
func topicsHash(names iter.Seq[string]) string {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	first := true
	for n := range names {
		if !first {
			sum.Write([]byte{','}) //nolint:errcheck // a hash takes everything
		}
		first = false
		sum.Write([]byte(n)) //nolint:errcheck // as above
	}
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
}

// turn is a lock for which one can wait as long as a context allows. It is made with a
// capacity of one.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }
