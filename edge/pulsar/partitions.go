package pulsar

// PARTITIONED_METADATA (protocol version 1 on; metadata_auto_creation_enabled since 21).
//
// Answers how many partitions a topic has, 0 for a plain one and for one that would be
// made when it is used. With metadata_auto_creation_enabled=false, or where topics are
// not made by themselves, a missing one is TopicNotFound with an empty text. Nothing is
// made here. partitions is always set on success, and error and text on failure, which
// the Java client reads unasked (protocol 4, numbers 2 to 5).
//
// Deviations: the transaction coordinator's topic has one partition, so that clients
// come to the clear refusal of TC_CLIENT_CONNECT_REQUEST.

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handlePartitions(c *pulsarpb.BaseCommand) error {
	m := c.GetPartitionMetadata()
	n, err := s.countPartitions(m.GetTopic(), m.GetMetadataAutoCreationEnabled())
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
		return nil
	}
	s.out.reply(&pulsarpb.CommandPartitionedTopicMetadataResponse{
		Partitions: proto.Uint32(uint32(n)),
		RequestId:  m.RequestId,
		Response:   pulsarpb.CommandPartitionedTopicMetadataResponse_Success.Enum(),
	})
	return nil
}

func (s *session) countPartitions(topic string, autoCreate bool) (int, error) {
	name, err := edge.ParseTopicName(topic)
	if err != nil {
		return 0, err
	}
	if isCoordinator(name) {
		return 1, nil
	}
	return s.srv.broker.Metadata(name, autoCreate)
}

// isCoordinator knows the topic by which clients find the transaction coordinator.
func isCoordinator(name edge.TopicName) bool {
	const local = "transaction_coordinator_assign"
	base, _ := name.Partition()
	return base.NamespaceName() == "pulsar/system" && base.Local == local
}
