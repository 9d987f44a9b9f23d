package admin

import (
	"net/http"
	"slices"

	"wayside/edge"
)

// rules are those that this broker obeys.
func (s *Server) rules() []rule {
	return []rule{
		ruleOf("retention", "retention", "retention_policies", func(p *edge.Policies) **edge.Retention { return &p.Retention }, retention, edge.Retention{}),
		ruleOf("messageTTL", "messageTTL", "message_ttl_in_seconds", func(p *edge.Policies) **int64 { return &p.TTL }, timeToLive, 0),
		ruleOf("compactionThreshold", "compactionThreshold", "compaction_threshold", func(p *edge.Policies) **int64 { return &p.CompactionThreshold }, compactionThreshold, 0).putOnNamespaces(),
		ruleOf("deduplication", "deduplicationEnabled", "deduplicationEnabled", func(p *edge.Policies) **bool { return &p.Deduplication }, anything, s.broker.Options().Deduplication),
		atMost("maxProducersPerTopic", "maxProducers", "max_producers_per_topic", func(p *edge.Policies) **int64 { return &p.Producers }),
		atMost("maxConsumersPerTopic", "maxConsumers", "max_consumers_per_topic", func(p *edge.Policies) **int64 { return &p.Consumers }),
		atMost("maxConsumersPerSubscription", "maxConsumersPerSubscription", "max_consumers_per_subscription",
			func(p *edge.Policies) **int64 { return &p.ConsumersPerSubscription }).answering(http.StatusNoContent),
		atMost("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic", "max_subscriptions_per_topic",
			func(p *edge.Policies) **int64 { return &p.Subscriptions }).answering(http.StatusNoContent),
		atMost("maxUnackedMessagesPerConsumer", "maxUnackedMessagesOnConsumer", "max_unacked_messages_per_consumer",
			func(p *edge.Policies) **int64 { return &p.UnackedPerConsumer }).or(s.broker.Options().UnackedPerConsumer),
		atMost("maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription", "max_unacked_messages_per_subscription",
			func(p *edge.Policies) **int64 { return &p.UnackedPerSubscription }).or(s.broker.Options().UnackedPerSubscription),
		atMost("maxTopicsPerNamespace", "", "max_topics_per_namespace", func(p *edge.Policies) **int64 { return &p.Topics }),
		ruleOf("dispatchRate", "dispatchRate", "topicDispatchRate", func(p *edge.Policies) **edge.DispatchRate { return &p.DispatchRate }, dispatchRate, edge.DispatchRate{Period: 1}).byClusters(),
		ruleOf("subscriptionDispatchRate", "subscriptionDispatchRate", "subscriptionDispatchRate",
			func(p *edge.Policies) **edge.DispatchRate { return &p.SubscriptionRate }, dispatchRate, edge.DispatchRate{Period: 1}).byClusters(),
		ruleOf("publishRate", "publishRate", "publishMaxMessageRate", func(p *edge.Policies) **edge.PublishRate { return &p.PublishRate }, anything, nil).byClusters().answering(http.StatusNoContent).orNothing(),
		ruleOf("subscriptionTypesEnabled", "subscriptionTypesEnabled", "subscription_types_enabled",
			func(p *edge.Policies) **[]string { return &p.SubscriptionTypes }, subscriptionTypes, nil).showing([]string{}),
		ruleOf("", "maxMessageSize", "", func(p *edge.Policies) **int64 { return &p.MessageSize }, s.messageSize, nil).answering(http.StatusNoContent),
		ruleOf("encryptionRequired", "", "encryption_required", func(p *edge.Policies) **bool { return &p.EncryptionRequired }, anything, nil).showing(false).forGood(),
		ruleOf("delayedDelivery", "delayedDelivery", "delayed_delivery_policies",
			func(p *edge.Policies) **edge.DelayedDelivery { return &p.DelayedDelivery }, anything, edge.DelayedDelivery{Tick: 1000, Active: true}).orNothing(),
		ruleOf("autoTopicCreation", "", "autoTopicCreationOverride", func(p *edge.Policies) **edge.AutoTopics { return &p.AutoTopics }, autoTopics, nil),
		ruleOf("autoSubscriptionCreation", "", "autoSubscriptionCreationOverride", func(p *edge.Policies) **edge.AutoSubscriptions { return &p.AutoSubscriptions }, anything, nil),
	}
}

func retention(r *edge.Retention) error {
	switch {
	case r.Minutes < -1 || r.MiB < -1:
		return refuse(http.StatusBadRequest, "Invalid retention policy: time limit and size limit must be >= -1")
	case (r.Minutes == 0) != (r.MiB == 0):
		return refuse(http.StatusBadRequest, "Invalid retention policy: to keep nothing both limits have to be 0, and -1 is no limit")
	}
	return nil
}

func compactionThreshold(bytes *int64) error {
	if *bytes < 0 {
		return refuse(http.StatusPreconditionFailed, "Invalid value for compactionThreshold")
	}
	return nil
}

func timeToLive(seconds *int64) error {
	if *seconds < 0 {
		return refuse(http.StatusPreconditionFailed, "Invalid value for message TTL, message TTL must >= 0")
	}
	return nil
}

func dispatchRate(r *edge.DispatchRate) error {
	r.Period = max(r.Period, 1)
	if r.Relative {
		return refuse(http.StatusPreconditionFailed, "A dispatch rate relative to the publish rate is not known to this broker")
	}
	return nil
}

// subscriptionTypes takes names of types, each once. No name at all enables all types.
func subscriptionTypes(names *[]string) error {
	for _, name := range *names {
		if !slices.Contains([]string{edge.Exclusive.String(), edge.Shared.String(), edge.Failover.String(), edge.KeyShared.String()}, name) {
			return refuse(http.StatusBadRequest, "Subscription type %q is not known", name)
		}
	}
	slices.Sort(*names)
	*names = slices.Compact(*names)
	return nil
}

// messageSize is at most the broker's own limit.
func (s *Server) messageSize(n *int64) error {
	if *n < 0 || *n > int64(s.broker.Options().MaxMessageSize) {
		return refuse(http.StatusPreconditionFailed, "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the broker-level")
	}
	return nil
}

// maxAutoPartitions is the reference's own bound.
const maxAutoPartitions = 1024

func autoTopics(a *edge.AutoTopics) error {
	const invalid = "Invalid configuration for autoTopicCreationOverride. the detail is "
	switch {
	case a.Type != "" && a.Type != edge.AutoPartitioned && a.Type != edge.AutoPlain:
		return refuse(http.StatusPreconditionFailed, invalid+"Unknown topic type [%s]", a.Type)
	case a.Type == edge.AutoPartitioned && a.Partitions == 0:
		return refuse(http.StatusPreconditionFailed, invalid+"[defaultNumPartitions] cannot be null when the type is partitioned.")
	case a.Partitions < 0 || a.Partitions > maxAutoPartitions:
		return refuse(http.StatusPreconditionFailed, invalid+"[defaultNumPartitions] has to be from 1 to %d", maxAutoPartitions)
	}
	return nil
}
