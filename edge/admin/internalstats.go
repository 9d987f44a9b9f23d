package admin

import (
	"fmt"
	"net/http"
	"strings"

	"wayside/edge"
)

// Internal statistics describe a topic's ledgers and cursors (protocol 5.2, captures
// curl-stats). What Pulsar says of the storage nodes below has its idle value. As there,
// the open ledger counts 0 entries in the list of ledgers; currentLedger… tells them.

type internalStats struct {
	EntriesAdded      int64                  `json:"entriesAddedCounter"` // ever, for the life of the topic
	Entries           int64                  `json:"numberOfEntries"`
	Size              int64                  `json:"totalSize"`
	CurrentEntries    int64                  `json:"currentLedgerEntries"`
	CurrentSize       int64                  `json:"currentLedgerSize"`
	LastLedgerCreated string                 `json:"lastLedgerCreatedTimestamp"`
	WaitingCursors    int                    `json:"waitingCursorsCount"` // that have read everything and have consumers
	PendingAdds       int                    `json:"pendingAddEntriesCount"`
	LastConfirmed     string                 `json:"lastConfirmedEntry"` // "ledger:entry"
	State             string                 `json:"state"`
	Ledgers           []ledgerInfo           `json:"ledgers"`
	Cursors           map[string]cursorStats `json:"cursors"`
	SchemaLedgers     []ledgerInfo           `json:"schemaLedgers"`
	CompactedLedger   ledgerInfo             `json:"compactedLedger"`
}

type ledgerInfo struct {
	ID              int64 `json:"ledgerId"`
	Entries         int64 `json:"entries"`
	Size            int64 `json:"size"`
	Offloaded       bool  `json:"offloaded"`
	UnderReplicated bool  `json:"underReplicated"`
}

type cursorStats struct {
	MarkDelete        string            `json:"markDeletePosition"`
	Read              string            `json:"readPosition"`
	WaitingRead       bool              `json:"waitingReadOp"`
	PendingReads      int               `json:"pendingReadOps"`
	Consumed          int64             `json:"messagesConsumedCounter"` // entries acknowledged of those that are or were there
	Ledger            int64             `json:"cursorLedger"`
	LedgerLast        int64             `json:"cursorLedgerLastEntry"`
	Individually      string            `json:"individuallyDeletedMessages"` // ranges, open below and closed above
	LastSwitch        string            `json:"lastLedgerSwitchTimestamp"`
	State             string            `json:"state"`
	Active            bool              `json:"active"` // it has consumers
	SinceFirstUnacked int64             `json:"numberOfEntriesSinceFirstNotAckedMessage"`
	Ranges            int               `json:"totalNonContiguousDeletedMessagesRange"`
	PendingRead       bool              `json:"subscriptionHavePendingRead"`
	PendingReplayRead bool              `json:"subscriptionHavePendingReplayRead"`
	Properties        map[string]string `json:"properties"`
}

func (s *Server) getInternalStats(r *http.Request, name edge.TopicName) (any, error) {
	stats, err := s.topicStats(r, name)
	if err != nil {
		return nil, err
	}
	return internalOf(stats), nil
}

func (s *Server) getPartitionedInternalStats(r *http.Request, name edge.TopicName) (any, error) {
	n, err := s.partitioned(name)
	if err != nil {
		return nil, err
	}
	metadata, err := s.metadataOf(name, n)
	if err != nil {
		return nil, err
	}
	whole := struct {
		Metadata   partitionMetadata        `json:"metadata"`
		Partitions map[string]internalStats `json:"partitions"`
	}{metadata, map[string]internalStats{}}
	for _, partition := range s.each(name) {
		stats, err := s.topicStats(r, partition)
		if err != nil && !gone(err) {
			return nil, ofTopic(err, partition)
		}
		if err == nil {
			whole.Partitions[partition.String()] = internalOf(stats)
		}
	}
	return whole, nil
}

func internalOf(t edge.TopicStats) internalStats {
	entries, _, size := t.Spans.Totals()
	last := t.Spans.End()
	v := internalStats{
		EntriesAdded:      t.Spans.Open.EntriesBefore + t.Spans.Open.Entries(),
		Entries:           entries,
		Size:              size,
		CurrentEntries:    t.Spans.Open.Entries(),
		CurrentSize:       t.Spans.Open.Bytes,
		LastLedgerCreated: isoMillis(t.Spans.Open.Created),
		LastConfirmed:     last.String(),
		State:             "LedgerOpened",
		Ledgers:           []ledgerInfo{},
		Cursors:           make(map[string]cursorStats, len(t.Subscriptions)),
		SchemaLedgers:     []ledgerInfo{},
		CompactedLedger:   ledgerInfo{ID: -1, Entries: -1, Size: -1},
	}
	if t.CompactedEntries > 0 {
		v.CompactedLedger = ledgerInfo{Entries: t.CompactedEntries, Size: t.CompactedBytes}
	}
	if t.Terminated {
		v.State = "Terminated"
	}
	for _, span := range t.Spans.Closed {
		v.Ledgers = append(v.Ledgers, ledgerInfo{ID: span.Ledger, Entries: span.Entries(), Size: span.Bytes})
	}
	v.Ledgers = append(v.Ledgers, ledgerInfo{ID: t.Spans.Open.Ledger})
	for name, sub := range t.Subscriptions {
		c := cursorOf(t.Spans, sub)
		if c.WaitingRead {
			v.WaitingCursors++
		}
		v.Cursors[name] = c
	}
	return v
}

func cursorOf(spans edge.Spans, sub edge.SubscriptionStats) cursorStats {
	end := spans.End()
	waiting := len(sub.Consumers) > 0 && end.Less(sub.Read)
	return cursorStats{
		MarkDelete:        sub.MarkDelete.String(),
		Read:              sub.Read.String(),
		WaitingRead:       waiting,
		Consumed:          max(0, spans.EntriesUpTo(end)-sub.Backlog),
		Ledger:            -1,
		LedgerLast:        -1,
		Individually:      holes(sub.Holes),
		LastSwitch:        isoMillis(0),
		State:             "Open",
		Active:            len(sub.Consumers) > 0,
		SinceFirstUnacked: spans.EntriesBetween(sub.MarkDelete, end) + 1,
		Ranges:            len(sub.Holes),
		PendingRead:       waiting,
		Properties:        map[string]string{},
	}
}

// maxHoles bounds how many ranges are written out; their number is told beside.
const maxHoles = 1000

// holes writes acknowledged ranges as Pulsar does: "[(5:1..5:3],(5:6..5:7]]".
func holes(runs []edge.Run) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, run := range runs {
		if i == maxHoles {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%d:%d..%d:%d]", run.Ledger, run.First-1, run.Ledger, run.Last)
	}
	b.WriteByte(']')
	return b.String()
}
