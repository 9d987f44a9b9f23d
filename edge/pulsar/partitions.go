package pulsar

// PARTITIONED_METADATA (protocol version 1 on; metadata_auto_creation_enabled since 21).
//
// Answers how many partitions a topic has, 0 for a plain one and for one that would be
// made when it is used. One that is to become partitioned is made here. With
// metadata_auto_creation_enabled=false, or where topics are not made by themselves, a
// missing one is TopicNotFound with an empty text. partitions is always set on success, and error and text on failure, which
// the Java client reads unasked (protocol 4, numbers 2 to 5).
//
// Deviations: the transaction coordinator's topic has one partition also where
// transactions are switched off, so that clients come to the clear refusal of
// TC_CLIENT_CONNECT_REQUEST.

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handlePartitions(c *pulsarpb.BaseCommand) error {
	m := c.GetPartitionMetadata()
	name, err := edge.ParseTopicName(m.GetTopic())
	switch n, known, bad := s.partitionsKnown(name, err); {
	case bad != nil:
		s.answerPartitions(m, 0, bad)
	case known:
		s.answerPartitions(m, n, nil)
	case s.srv.broker.AutoPartitions(name) == 0:
		s.findPartitions(s.ctx, m, name)
	default:
		return s.request(func(ctx context.Context) { s.findPartitions(ctx, m, name) })
	}
	return nil
}

// findPartitions answers for a missing topic. It waits where one is to become partitioned.
func (s *session) findPartitions(ctx context.Context, m *pulsarpb.CommandPartitionedTopicMetadata, name edge.TopicName) {
	n, err := s.srv.broker.Metadata(ctx, name, m.GetMetadataAutoCreationEnabled())
	s.answerPartitions(m, n, err)
}

func (s *session) partitionsKnown(name edge.TopicName, err error) (int, bool, error) {
	if err != nil {
		return 0, false, err
	}
	return s.srv.broker.Known(name)
}

func (s *session) answerPartitions(m *pulsarpb.CommandPartitionedTopicMetadata, n int, err error) {
	if err != nil {
		code, text := explainLookup(err)
		if errors.Is(err, edge.ErrTopicNotFound) || errors.Is(err, edge.ErrNamespaceNotFound) && !m.GetMetadataAutoCreationEnabled() {
			text = ""
		}
		s.out.reply(&pulsarpb.CommandPartitionedTopicMetadataResponse{
			RequestId: m.RequestId,
			Response:  pulsarpb.CommandPartitionedTopicMetadataResponse_Failed.Enum(),
			Error:     code.Enum(), Message: &text,
		})
		return
	}
	s.out.reply(&pulsarpb.CommandPartitionedTopicMetadataResponse{
		Partitions: proto.Uint32(uint32(n)),
		RequestId:  m.RequestId,
		Response:   pulsarpb.CommandPartitionedTopicMetadataResponse_Success.Enum(),
	})
}
