package admin

import (
	"maps"
	"slices"
	"sort"

	"wayside/edge"
)

// Topic metrics. Up to Options.MetricsTopics topics each has its own, with its name in
// full as the label; above it, the same families are sums per namespace without the
// label, as Pulsar exposes them with topic level metrics switched off, and there are none
// of single subscriptions; nor above Options.MetricsSubscriptions of those. Topics that are
// not loaded are told from their records: what is stored and how far the slowest
// subscription is, no rates and no clients.

// topicFigures are one topic's figures, or a namespace's sum of them.
type topicFigures struct {
	topics, subscriptions       int
	producers, consumers        int
	rateIn, rateOut             float64
	throughputIn, throughputOut float64
	messagesIn, bytesIn         int64
	stored, backlogBytes        int64
	backlog                     int64 // entries
}

func (f *topicFigures) add(o *topicFigures) {
	f.topics += o.topics
	f.subscriptions += o.subscriptions
	f.producers += o.producers
	f.consumers += o.consumers
	f.rateIn += o.rateIn
	f.rateOut += o.rateOut
	f.throughputIn += o.throughputIn
	f.throughputOut += o.throughputOut
	f.messagesIn += o.messagesIn
	f.bytesIn += o.bytesIn
	f.stored += o.stored
	f.backlogBytes += o.backlogBytes
	f.backlog += o.backlog
}

// topicColumns are the families of topics, in both forms.
var topicColumns = []struct {
	name  string
	help  string
	value func(*topicFigures) float64
}{
	{"pulsar_subscriptions_count", "Subscriptions.", func(f *topicFigures) float64 { return float64(f.subscriptions) }},
	{"pulsar_producers_count", "Connected producers.", func(f *topicFigures) float64 { return float64(f.producers) }},
	{"pulsar_consumers_count", "Connected consumers.", func(f *topicFigures) float64 { return float64(f.consumers) }},
	{"pulsar_rate_in", "Messages published per second.", func(f *topicFigures) float64 { return f.rateIn }},
	{"pulsar_rate_out", "Messages dispatched per second.", func(f *topicFigures) float64 { return f.rateOut }},
	{"pulsar_throughput_in", "Bytes published per second.", func(f *topicFigures) float64 { return f.throughputIn }},
	{"pulsar_throughput_out", "Bytes dispatched per second.", func(f *topicFigures) float64 { return f.throughputOut }},
	{"pulsar_in_messages_total", "Messages published since the topic was loaded.", func(f *topicFigures) float64 { return float64(f.messagesIn) }},
	{"pulsar_in_bytes_total", "Bytes published since the topic was loaded.", func(f *topicFigures) float64 { return float64(f.bytesIn) }},
	{"pulsar_storage_size", "Bytes stored.", func(f *topicFigures) float64 { return float64(f.stored) }},
	{"pulsar_storage_logical_size", "Bytes stored.", func(f *topicFigures) float64 { return float64(f.stored) }},
	{"pulsar_storage_backlog_size", "Bytes that the slowest subscription has not acknowledged.", func(f *topicFigures) float64 { return float64(f.backlogBytes) }},
	{"pulsar_msg_backlog", "Entries not acknowledged, over all subscriptions; estimated for a topic that is not loaded.", func(f *topicFigures) float64 { return float64(f.backlog) }},
}

// subscriptionColumns are the families of single subscriptions.
var subscriptionColumns = []struct {
	name  string
	help  string
	value func(*edge.SubscriptionStats) float64
}{
	{"pulsar_subscription_back_log", "Entries not acknowledged.", func(s *edge.SubscriptionStats) float64 { return float64(s.Backlog) }},
	{"pulsar_subscription_back_log_no_delayed", "Entries not acknowledged and not delayed.", func(s *edge.SubscriptionStats) float64 { return float64(s.Backlog - s.Delayed) }},
	{"pulsar_subscription_delayed", "Entries whose delivery is delayed.", func(s *edge.SubscriptionStats) float64 { return float64(s.Delayed) }},
	{"pulsar_subscription_in_replay", "Entries to be delivered again.", func(s *edge.SubscriptionStats) float64 { return float64(s.Replay) }},
	{"pulsar_subscription_unacked_messages", "Messages delivered and not acknowledged.", func(s *edge.SubscriptionStats) float64 { return float64(s.Unacked) }},
	{"pulsar_subscription_blocked_on_unacked_messages", "1 if too many are not acknowledged.", func(s *edge.SubscriptionStats) float64 { return oneIf(s.Blocked) }},
	{"pulsar_subscription_consumers_count", "Connected consumers.", func(s *edge.SubscriptionStats) float64 { return float64(len(s.Consumers)) }},
	{"pulsar_subscription_msg_rate_out", "Messages dispatched per second.", func(s *edge.SubscriptionStats) float64 { return s.RateOut }},
	{"pulsar_subscription_msg_throughput_out", "Bytes dispatched per second.", func(s *edge.SubscriptionStats) float64 { return s.ThroughputOut }},
	{"pulsar_out_messages_total", "Messages dispatched since the topic was loaded.", func(s *edge.SubscriptionStats) float64 { return float64(s.MsgOut) }},
	{"pulsar_out_bytes_total", "Bytes dispatched since the topic was loaded.", func(s *edge.SubscriptionStats) float64 { return float64(s.BytesOut) }},
	{"pulsar_subscription_last_acked_timestamp", "When something was last acknowledged, ms since 1970.", func(s *edge.SubscriptionStats) float64 { return float64(s.LastAck) }},
	{"pulsar_subscription_last_consumed_timestamp", "When something was last dispatched, ms since 1970.", func(s *edge.SubscriptionStats) float64 { return float64(s.LastSent) }},
	{"pulsar_subscription_last_consumed_flow_timestamp", "When permits last came, ms since 1970.", func(s *edge.SubscriptionStats) float64 { return float64(s.LastFlow) }},
	{"pulsar_subscription_last_mark_delete_advanced_timestamp", "When the mark-delete position last moved, ms since 1970.", func(s *edge.SubscriptionStats) float64 { return float64(s.LastMove) }},
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// topicFamilies are the descriptions of both forms, in the order of the columns.
type topicFamilies struct {
	count         *Family // pulsar_topics_count, always per namespace
	topic         []*Family
	namespace     []*Family
	subscriptions []*Family
}

func newTopicFamilies() topicFamilies {
	f := topicFamilies{count: &Family{Name: "pulsar_topics_count", Help: "Topics that exist, every partition counted.", Labels: []string{"namespace"}}}
	for _, c := range topicColumns {
		f.topic = append(f.topic, &Family{Name: c.name, Help: c.help, Labels: []string{"namespace", "topic"}})
		f.namespace = append(f.namespace, &Family{Name: c.name, Help: c.help, Labels: []string{"namespace"}})
	}
	for _, c := range subscriptionColumns {
		f.subscriptions = append(f.subscriptions, &Family{Name: c.name, Help: c.help, Labels: []string{"namespace", "topic", "subscription"}})
	}
	return f
}

// collectTopics tells of each topic, or of the namespaces' sums.
func (c *brokerCollector) collectTopics(out *Scrape, now *brokerNow) {
	sums := map[string]*topicFigures{}
	single := len(now.records) <= c.server.opts.MetricsTopics
	open := c.server.openTopics(single && now.stats.Subscriptions <= c.server.opts.MetricsSubscriptions)
	sort.Slice(now.records, func(i, j int) bool { return now.records[i].Name.String() < now.records[j].Name.String() })
	for i := range now.records {
		record := &now.records[i]
		ns, name := record.Name.NamespaceName(), record.Name.String()
		topic, loaded := open[record.Name]
		if !loaded {
			topic.figures = figuresOf(record)
		}
		if sums[ns] == nil {
			sums[ns] = &topicFigures{}
		}
		sums[ns].add(&topic.figures)
		if !single {
			continue
		}
		for j, column := range topicColumns {
			out.Put(c.topics.topic[j], column.value(&topic.figures), ns, name)
		}
		c.collectSubscriptions(out, ns, name, topic.subscriptions)
	}
	c.collectSums(out, sums, single)
}

func (c *brokerCollector) collectSubscriptions(out *Scrape, ns, topic string, subs map[string]edge.SubscriptionStats) {
	for _, name := range slices.Sorted(maps.Keys(subs)) {
		stats := subs[name]
		if !stats.Durable { // readers have random names, new ones each time
			continue
		}
		for j, column := range subscriptionColumns {
			out.Put(c.topics.subscriptions[j], column.value(&stats), ns, topic, name)
		}
	}
}

func (c *brokerCollector) collectSums(out *Scrape, sums map[string]*topicFigures, single bool) {
	for ns, figures := range sums {
		out.Put(c.topics.count, float64(figures.topics), ns)
		if single {
			continue
		}
		for j, column := range topicColumns {
			out.Put(c.topics.namespace[j], column.value(figures), ns)
		}
	}
}

// openTopic is what a scrape keeps of a topic that is loaded.
type openTopic struct {
	figures       topicFigures
	subscriptions map[string]edge.SubscriptionStats // nil if nobody asks for them
}

// openTopics reduces the loaded topics one by one, so that a scrape of many holds little.
func (s *Server) openTopics(subscriptions bool) map[edge.TopicName]openTopic {
	topics := s.broker.OpenTopics()
	all := make(map[edge.TopicName]openTopic, len(topics))
	for _, t := range topics {
		stats := t.Stats()
		open := openTopic{figures: figuresOfOpen(&stats)}
		if subscriptions {
			open.subscriptions = stats.Subscriptions
		}
		all[t.Name()] = open
	}
	return all
}

// figuresOf is what a record tells. The backlog in entries is the share of the entries
// that the live bytes are of all bytes.
func figuresOf(record *edge.TopicRecord) topicFigures {
	f := topicFigures{
		topics:        1,
		subscriptions: record.Subscriptions,
		stored:        record.Bytes,
		backlogBytes:  record.LiveBytes,
	}
	if record.Bytes > 0 {
		f.backlog = int64(float64(record.Entries) * float64(record.LiveBytes) / float64(record.Bytes))
	}
	return f
}

func figuresOfOpen(stats *edge.TopicStats) topicFigures {
	f := topicFigures{
		topics:        1,
		subscriptions: len(stats.Subscriptions),
		producers:     len(stats.Publishers),
		rateIn:        stats.RateIn,
		rateOut:       stats.RateOut,
		throughputIn:  stats.ThroughputIn,
		throughputOut: stats.ThroughputOut,
		messagesIn:    stats.MsgIn,
		bytesIn:       stats.BytesIn,
		stored:        stats.StorageSize,
		backlogBytes:  stats.BacklogSize,
	}
	for _, sub := range stats.Subscriptions {
		f.consumers += len(sub.Consumers)
		f.backlog += sub.Backlog
	}
	return f
}
