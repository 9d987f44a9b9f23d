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
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"regexp"
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
	tenant, namespace, ok := strings.Cut(m.GetNamespace(), "/")
	if !ok || !edge.ValidPart(tenant) || !edge.ValidPart(namespace) {
		s.failRequest(m.GetRequestId(), fmt.Errorf("%w: Invalid namespace %q", edge.ErrBadRequest, m.GetNamespace()))
		return nil
	}
	pattern, filtered := compilePattern(m.GetTopicsPattern())
	names := listTopics(s.srv.broker.Names(m.GetNamespace()), m.GetMode(), pattern)
	hash := topicsHash(names)
	changed := m.TopicsHash == nil || m.GetTopicsHash() != hash
	if !changed {
		names = nil
	}
	s.out.reply(&pulsarpb.CommandGetTopicsOfNamespaceResponse{
		RequestId: m.RequestId, Topics: names, Filtered: &filtered, TopicsHash: &hash, Changed: proto.Bool(changed),
	})
	return nil
}

// compilePattern makes a pattern for names without scheme. ok is false when all names
// are to be listed.
func compilePattern(pattern string) (re *regexp.Regexp, ok bool) {
	if pattern == "" || utf8.RuneCountInString(pattern) > maxPattern {
		return nil, false
	}
	pattern = strings.TrimPrefix(pattern, "^") // the whole name has to match anyway
	if _, behind, scheme := strings.Cut(pattern, "://"); scheme {
		pattern = behind
	}
	re, err := regexp.Compile(`^(?:` + pattern + `)$`)
	return re, err == nil
}

// listTopics picks the names of one mode that match, if there is a pattern.
func listTopics(all []edge.TopicName, mode pulsarpb.CommandGetTopicsOfNamespace_Mode, pattern *regexp.Regexp) []string {
	var names []string
	for _, n := range all {
		if mode == pulsarpb.CommandGetTopicsOfNamespace_PERSISTENT && !n.IsPersistent() ||
			mode == pulsarpb.CommandGetTopicsOfNamespace_NON_PERSISTENT && n.IsPersistent() {
			continue
		}
		base, _ := n.Partition()
		if pattern == nil || pattern.MatchString(base.NamespaceName()+"/"+base.Local) {
			names = append(names, n.String())
		}
	}
	return names
}

// topicsHash is the hash of sorted names.
func topicsHash(names []string) string {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for i, n := range names {
		if i > 0 {
			sum.Write([]byte{','}) //nolint:errcheck // a hash takes everything
		}
		sum.Write([]byte(n)) //nolint:errcheck // as above
	}
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
}
