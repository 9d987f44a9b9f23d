package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"wayside/edge"
)

// topicRoutes: lists of a domain, creation, deletion, unloading and termination of plain
// topics and single partitions (protocol 5.2, captures curl-topics). A name that ends
// like a partition's is created only where partition metadata promises it. Idle
// subscriptions and their backlog do not hinder a deletion, clients do unless forced.
// The deletion takes the schema along. Non-persistent topics cannot be terminated, nor
// trimmed. A trim reaches the open ledger too, which the reference leaves alone.
func (s *Server) topicRoutes(domain string) {
	ns := " /admin/v2/" + domain + "/{tenant}/{namespace}"
	s.handle("GET"+ns, func(r *http.Request) (any, error) { return s.listTopics(r, domain) })
	s.handle("GET"+ns+"/partitioned", func(r *http.Request) (any, error) { return s.listPartitioned(r, domain) })
	s.handleTopic(domain, "PUT", "", s.createTopic)
	s.handleTopic(domain, "DELETE", "", s.deleteTopic)
	s.handleTopic(domain, "PUT", "/unload", s.unloadTopic)
	s.handleTopic(domain, "POST", "/terminate", s.terminateTopic)
	s.handleTopic(domain, "POST", "/terminate/partitions", s.terminatePartitions)
	s.handleTopic(domain, "POST", "/trim", s.trimTopic)
	s.handleTopic(domain, "GET", "/lastMessageId", s.lastMessageID)
}

// messageID is an id as Pulsar's HTTP side writes it.
type messageID struct {
	Ledger     int64 `json:"ledgerId"`
	Entry      int64 `json:"entryId"`
	Partition  int   `json:"partitionIndex"`
	BatchIndex int   `json:"batchIndex"` // −1 for an entry that is no batch
	BatchSize  int   `json:"batchSize"`  // 0: never told here

	// With a batch alone, and always 0.
	Outstanding  *int `json:"outstandingAcksInSameBatch,omitempty"`
	OriginalSize *int `json:"originalBatchSize,omitempty"`
}

func idOf(name edge.TopicName, p edge.Position) messageID {
	_, index := name.Partition()
	return messageID{Ledger: p.Ledger, Entry: p.Entry, Partition: index, BatchIndex: -1}
}

// lastMessageID answers the last entry, and the last message of it if it is a batch; an
// empty topic has entry −1.
func (s *Server) lastMessageID(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); ok || !name.IsPersistent() {
		return nil, edge.ErrTopicNotFound
	}
	var id messageID
	err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		last := t.LastID()
		id = idOf(name, last.Last)
		if last.Batch {
			zero := 0
			id.BatchIndex, id.Outstanding, id.OriginalSize = int(last.Messages)-1, &zero, &zero
		}
		return nil
	})
	return id, err
}

func (s *Server) listTopics(r *http.Request, domain string) (any, error) {
	ns, err := s.existing(r)
	if err != nil {
		return nil, err
	}
	return namesIn(s.broker.Names(ns), domain), nil
}

func (s *Server) createTopic(r *http.Request, name edge.TopicName) (any, error) {
	properties, err := propertiesIn(r)
	if err != nil {
		return nil, err
	}
	if err := s.promised(name); err != nil {
		return nil, err
	}
	if err := s.broker.CreateTopic(r.Context(), name); err != nil {
		if errors.Is(err, edge.ErrLimit) { // 412 is for partitioned ones (watched on 4.0.7)
			return nil, refuse(http.StatusConflict, "Exceed maximum number of topics in namespace.")
		}
		return nil, reworded(err, edge.ErrExists, "This topic already exists")
	}
	if len(properties) == 0 {
		return nil, nil
	}
	return nil, s.changeProperties(r, name, func(have map[string]string) { maps.Copy(have, properties) })
}

// promised refuses names that end like a partition's and are none.
func (s *Server) promised(name edge.TopicName) error {
	base, index := name.Partition()
	if index < 0 {
		return nil
	}
	n, ok := s.broker.Partitions(base)
	switch {
	case !ok:
		return refuse(http.StatusPreconditionFailed,
			`Can't create topic %s with "-partition-" followed by numeric value if there isn't a partitioned topic %s created.`, name.Local, base.Local)
	case index >= n:
		return refuse(http.StatusPreconditionFailed,
			`Can't create topic %s with "-partition-" followed by a number smaller than number of partition of partitioned topic %s`, name.Local, base.Local)
	}
	return nil
}

func (s *Server) deleteTopic(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusConflict,
			"%s is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.", name)
	}
	err := s.broker.Delete(r.Context(), name, switchOn(r, "force"))
	if errors.Is(err, edge.ErrTopicNotFound) && !name.IsPersistent() {
		return nil, nil // it is not there, as wanted, once its clients have gone
	}
	if errors.Is(err, edge.ErrTopicInUse) {
		err = reworded(err, edge.ErrTopicInUse, "Topic has %d connected producers/consumers", s.clients(r.Context(), name))
	}
	return nil, err
}

// clients counts those connected to a topic; they may have left since somebody saw them.
func (s *Server) clients(ctx context.Context, name edge.TopicName) int {
	stats, err := s.broker.TopicStats(ctx, name)
	if err != nil {
		return 0
	}
	n := len(stats.Publishers) + stats.Waiting
	for _, sub := range stats.Subscriptions {
		n += len(sub.Consumers)
	}
	return n
}

// each lists what a name stands for: its partitions, or the topic itself.
func (s *Server) each(name edge.TopicName) []edge.TopicName {
	n, ok := s.broker.Partitions(name)
	if !ok {
		return []edge.TopicName{name}
	}
	names := make([]edge.TopicName, n)
	for i := range names {
		names[i] = name.WithPartition(i)
	}
	return names
}

// unloadTopic sends all clients of a topic away; they come back at once. A partition
// that was deleted on its own is passed over.
func (s *Server) unloadTopic(r *http.Request, name edge.TopicName) (any, error) {
	_, partitioned := s.broker.Partitions(name)
	for _, n := range s.each(name) {
		err := s.broker.Unload(r.Context(), n)
		if err != nil && !(partitioned && errors.Is(err, edge.ErrTopicNotFound)) {
			return nil, ofTopic(err, n)
		}
	}
	return nil, nil
}

func (s *Server) terminateTopic(r *http.Request, name edge.TopicName) (any, error) {
	if !name.IsPersistent() {
		return nil, refuse(http.StatusNotAcceptable, "Need to provide a persistent topic name")
	}
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed, "Termination of a partitioned topic is not allowed")
	}
	last, err := s.broker.Terminate(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return idOf(name, last), nil
}

func (s *Server) terminatePartitions(r *http.Request, name edge.TopicName) (any, error) {
	n, ok := s.broker.Partitions(name)
	if !ok {
		return nil, refuse(http.StatusMethodNotAllowed,
			"Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate commands")
	}
	ends := make(map[int]messageID, n)
	for i, partition := range s.each(name) {
		last, err := s.broker.Terminate(r.Context(), partition)
		if err != nil {
			return nil, ofTopic(err, partition)
		}
		ends[i] = messageID{Ledger: last.Ledger, Entry: last.Entry, Partition: -1, BatchIndex: -1}
	}
	return ends, nil
}

// trimTopic answers 200 without a body (watched on 4.0.7).
func (s *Server) trimTopic(r *http.Request, name edge.TopicName) (any, error) {
	if !name.IsPersistent() {
		return nil, refuse(http.StatusMethodNotAllowed, "Trim on a non-persistent topic is not allowed")
	}
	for _, n := range s.each(name) {
		err := s.withTopic(r.Context(), n, func(t *edge.Topic) error { return t.TrimNow(r.Context()) })
		if err != nil {
			return nil, ofTopic(err, n)
		}
	}
	return empty{}, nil
}

// attempts bounds how often a topic is asked for anew that is unloaded under our hands.
const attempts = 5

// withTopic opens an existing topic and does something with it; if it is unloaded
// meanwhile, again with the one that then is open.
func (s *Server) withTopic(ctx context.Context, name edge.TopicName, do func(*edge.Topic) error) error {
	return s.withOpened(ctx, name, false, do)
}

func (s *Server) withOpened(ctx context.Context, name edge.TopicName, create bool, do func(*edge.Topic) error) error {
	var err error
	for range attempts {
		var t *edge.Topic
		if t, err = s.broker.Open(ctx, name, create); err != nil {
			return err
		}
		if err = do(t); !errors.Is(err, edge.ErrUnloaded) {
			return err
		}
	}
	return err
}
