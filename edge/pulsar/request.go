package pulsar

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// succeed answers a request by SUCCESS.
func (s *session) succeed(request uint64) {
	s.out.reply(&pulsarpb.CommandSuccess{RequestId: &request})
}

// refuseRequest answers a request by ERROR.
func (s *session) refuseRequest(request uint64, code pulsarpb.ServerError, text string) {
	s.out.reply(&pulsarpb.CommandError{RequestId: &request, Error: &code, Message: &text})
}

// failRequest answers by ERROR what the core refused.
func (s *session) failRequest(request uint64, err error) {
	code, text := s.tell(err)
	s.refuseRequest(request, code, text)
}

// tell is explain, which logs what clients should not meet.
func (s *session) tell(err error) (pulsarpb.ServerError, string) {
	code, text, known := explain(err)
	if !known {
		s.complain("a request failed for a reason that has no code", err)
	}
	return code, text
}

// properties makes a map of a list that is at most so many bytes long.
func properties(list []*pulsarpb.KeyValue, most int) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	size := 0
	m := make(map[string]string, len(list))
	for _, p := range list {
		size += len(p.GetKey()) + len(p.GetValue())
		m[p.GetKey()] = p.GetValue()
	}
	if size > most {
		return nil, fmt.Errorf("%w: metadata has a max size of %d bytes", edge.ErrBadRequest, most)
	}
	return m, nil
}

// idData is a position on the wire.
func idData(p edge.Position) *pulsarpb.MessageIdData {
	return &pulsarpb.MessageIdData{LedgerId: proto.Uint64(uint64(p.Ledger)), EntryId: proto.Uint64(uint64(p.Entry))}
}

// position is what a message id names.
func position(m *pulsarpb.MessageIdData) edge.Position {
	return edge.Position{Ledger: int64(m.GetLedgerId()), Entry: int64(m.GetEntryId())}
}

// sortedKeys lists the keys of a map in order.
func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
