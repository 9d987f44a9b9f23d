package edge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Policies are rules that somebody set for a namespace or a topic (protocol 3.11). What
// is nil says nothing: then the next wider rule holds, at last the broker's options. A
// value handed out is shared and is not changed any more. The names in JSON are Pulsar's.
type Policies struct {
	BacklogSize *BacklogQuota `json:"destination_storage,omitempty"`
	BacklogAge  *BacklogQuota `json:"message_age,omitempty"`
	Retention   *Retention    `json:"retention_policies,omitempty"`
	TTL         *int64        `json:"message_ttl_in_seconds,omitempty"` // 0 for none

	CompactionThreshold *int64 `json:"compaction_threshold,omitempty"` // bytes not compacted yet, 0 for by hand alone

	Deduplication *bool `json:"deduplicationEnabled,omitempty"`

	// Counts that may exist, 0 for no limit but the broker's own.
	Producers                *int64 `json:"max_producers_per_topic,omitempty"`
	Consumers                *int64 `json:"max_consumers_per_topic,omitempty"`
	ConsumersPerSubscription *int64 `json:"max_consumers_per_subscription,omitempty"`
	Subscriptions            *int64 `json:"max_subscriptions_per_topic,omitempty"`
	Topics                   *int64 `json:"max_topics_per_namespace,omitempty"` // of a namespace

	// Messages that may be out without an acknowledgement, 0 for no limit: where they say
	// nothing the options hold.
	UnackedPerConsumer     *int64 `json:"max_unacked_messages_per_consumer,omitempty"`
	UnackedPerSubscription *int64 `json:"max_unacked_messages_per_subscription,omitempty"`

	PublishRate      *PublishRate  `json:"publishMaxMessageRate,omitempty"`
	DispatchRate     *DispatchRate `json:"topicDispatchRate,omitempty"`
	SubscriptionRate *DispatchRate `json:"subscriptionDispatchRate,omitempty"`

	// SubscriptionTypes are those that consumers may have, by SubKind's names; all if nil.
	SubscriptionTypes  *[]string        `json:"subscription_types_enabled,omitempty"`
	MessageSize        *int64           `json:"maxMessageSize,omitempty"`      // bytes of an entry, 0 for none but the broker's; of a topic
	EncryptionRequired *bool            `json:"encryption_required,omitempty"` // of a namespace
	DelayedDelivery    *DelayedDelivery `json:"delayed_delivery_policies,omitempty"`

	// Schemas (see SchemaPolicy). The older strategy is a namespace's; both are names.
	SchemaStrategy           *string `json:"schema_compatibility_strategy,omitempty"`
	SchemaAutoUpdateStrategy *string `json:"schema_auto_update_compatibility_strategy,omitempty"`
	SchemaAutoUpdate         *bool   `json:"is_allow_auto_update_schema,omitempty"` // of a namespace
	SchemaEnforced           *bool   `json:"schema_validation_enforced,omitempty"`

	// Of a namespace: what comes into being by itself.
	AutoTopics        *AutoTopics        `json:"autoTopicCreationOverride,omitempty"`
	AutoSubscriptions *AutoSubscriptions `json:"autoSubscriptionCreationOverride,omitempty"`
}

// BacklogQuota bounds what waits to be acknowledged.
type BacklogQuota struct {
	Size   int64  `json:"limitSize"` // bytes; below 0 for no limit
	Time   int64  `json:"limitTime"` // seconds; ≤ 0 for no limit
	Policy string `json:"policy"`    // one of the three below
}

// What happens beyond a backlog quota.
const (
	QuotaHold  = "producer_request_hold"
	QuotaFail  = "producer_exception"
	QuotaEvict = "consumer_backlog_eviction"
)

// Retention keeps acknowledged entries readable as long as they are younger than the one
// and together smaller than the other; −1 is no limit, and 0 with 0 keeps nothing.
type Retention struct {
	Minutes int64 `json:"retentionTimeInMinutes"`
	MiB     int64 `json:"retentionSizeInMB"`
}

// PublishRate bounds what all producers of a topic publish in a second; ≤ 0 is no limit.
type PublishRate struct {
	Messages int64 `json:"publishThrottlingRateInMsg"`
	Bytes    int64 `json:"publishThrottlingRateInByte"`
}

// UnmarshalJSON leaves what is not said without a limit.
func (r *PublishRate) UnmarshalJSON(data []byte) error {
	type plain PublishRate
	p := plain{Messages: -1, Bytes: -1}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*r = PublishRate(p)
	return nil
}

// DelayedDelivery says whether messages wait for the time that their publisher wants.
type DelayedDelivery struct {
	Tick   int64 `json:"tickTime"` // ms, kept and not used: delays are exact
	Active bool  `json:"active"`
	Most   int64 `json:"maxDeliveryDelayInMillis"` // that a publisher may ask for; ≤ 0 is no limit
}

// DispatchRate bounds what is delivered in a period; ≤ 0 is no limit.
type DispatchRate struct {
	Messages int64 `json:"dispatchThrottlingRateInMsg"`
	Bytes    int64 `json:"dispatchThrottlingRateInByte"`
	Relative bool  `json:"relativeToPublishRate"` // always false: not served
	Period   int64 `json:"ratePeriodInSecond"`    // seconds, ≥ 1
}

// AutoTopics says what becomes of a topic that a client names and that is missing.
type AutoTopics struct {
	Allow      bool   `json:"allowAutoTopicCreation"`
	Type       string `json:"topicType,omitempty"`            // one of the two below, "" for the broker's
	Partitions int64  `json:"defaultNumPartitions,omitempty"` // of a partitioned one
}

// Types of topics that come into being by themselves.
const (
	AutoPartitioned = "partitioned"
	AutoPlain       = "non-partitioned"
)

// AutoSubscriptions says whether a missing durable subscription comes into being.
type AutoSubscriptions struct {
	Allow bool `json:"allowAutoSubscriptionCreation"`
}

// Bounds of policies: each value is held in memory.
const (
	maxPolicied    = 10_000 // namespaces and topics that have some of their own
	maxPolicyBytes = 16 << 10
)

// keyPolicies is followed by tenant/namespace, or by a topic's full name without partition.
const keyPolicies = "catalog/policies/"

// over gives the rules of a topic with those of its namespace where it has none.
func (p *Policies) over(wide *Policies) *Policies {
	m := *p
	m.BacklogSize, m.BacklogAge = cmp.Or(p.BacklogSize, wide.BacklogSize), cmp.Or(p.BacklogAge, wide.BacklogAge)
	m.Retention, m.TTL = cmp.Or(p.Retention, wide.Retention), cmp.Or(p.TTL, wide.TTL)
	m.CompactionThreshold = cmp.Or(p.CompactionThreshold, wide.CompactionThreshold)
	m.Deduplication = cmp.Or(p.Deduplication, wide.Deduplication)
	m.Producers, m.Consumers = cmp.Or(p.Producers, wide.Producers), cmp.Or(p.Consumers, wide.Consumers)
	m.ConsumersPerSubscription = cmp.Or(p.ConsumersPerSubscription, wide.ConsumersPerSubscription)
	m.Subscriptions, m.Topics = cmp.Or(p.Subscriptions, wide.Subscriptions), wide.Topics
	m.UnackedPerConsumer = cmp.Or(p.UnackedPerConsumer, wide.UnackedPerConsumer)
	m.UnackedPerSubscription = cmp.Or(p.UnackedPerSubscription, wide.UnackedPerSubscription)
	m.PublishRate = cmp.Or(p.PublishRate, wide.PublishRate)
	m.SubscriptionTypes = cmp.Or(p.SubscriptionTypes, wide.SubscriptionTypes)
	m.EncryptionRequired, m.DelayedDelivery = wide.EncryptionRequired, cmp.Or(p.DelayedDelivery, wide.DelayedDelivery)
	m.DispatchRate = cmp.Or(p.DispatchRate, wide.DispatchRate)
	m.SubscriptionRate = cmp.Or(p.SubscriptionRate, wide.SubscriptionRate)
	m.SchemaStrategy = cmp.Or(p.SchemaStrategy, wide.SchemaStrategy)
	m.SchemaAutoUpdateStrategy = wide.SchemaAutoUpdateStrategy
	m.SchemaAutoUpdate, m.SchemaEnforced = wide.SchemaAutoUpdate, cmp.Or(p.SchemaEnforced, wide.SchemaEnforced)
	m.AutoTopics, m.AutoSubscriptions = wide.AutoTopics, wide.AutoSubscriptions
	return &m
}

// lower gives the smaller of a limit that is set, and not 0, and the broker's own.
func lower(set *int64, own int) int {
	if set == nil || *set <= 0 {
		return own
	}
	return int(min(*set, int64(own)))
}

// unackedLimit gives a limit that is set, or the broker's own; 0 is none.
func unackedLimit(set *int64, own int) int {
	if set == nil {
		return own
	}
	return int(min(*set, math.MaxInt32))
}

// Policies returns what is set for a namespace or a topic's base name itself, never nil.
func (c *Catalog) Policies(of string) *Policies {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return cmp.Or(c.policies[of], &noPolicies)
}

// noPolicies is shared by all that have none. It is never written.
var noPolicies Policies

// effective are the rules for a topic. The same value is given to all topics that have
// none of their own.
func (c *Catalog) effective(name TopicName) *Policies {
	base, _ := name.Partition()
	wide, own := c.Policies(name.NamespaceName()), c.Policies(base.String())
	if own == &noPolicies {
		return wide
	}
	return own.over(wide)
}

func (c *Catalog) loadPolicies(of string, value []byte) error {
	p := &Policies{}
	if err := json.Unmarshal(value, p); err != nil {
		return err
	}
	c.policies[of] = p
	return nil
}

// changePolicies lets change edit a copy of what is set, and makes it durable.
func (c *Catalog) changePolicies(ctx context.Context, of string, change func(*Policies) error) error {
	c.change.Lock()
	defer c.change.Unlock()
	next := *c.Policies(of)
	if err := change(&next); err != nil {
		return err
	}
	if len(keyPolicies)+len(of) > MaxValueKey {
		return fmt.Errorf("%w: a name of %d bytes is too long for policies of its own", ErrBadRequest, len(of))
	}
	raw, err := json.Marshal(&next)
	if err != nil {
		return fmt.Errorf("write policies of %s: %w", of, err)
	}
	if next == noPolicies {
		return c.put(ctx, keyPolicies+of, nil, func() { delete(c.policies, of) })
	}
	c.mu.RLock()
	n, known := len(c.policies), c.policies[of] != nil
	c.mu.RUnlock()
	if !known && n >= maxPolicied || len(raw) > maxPolicyBytes {
		return fmt.Errorf("%w: %d namespaces and topics have policies, these take %d bytes", ErrLimit, n, len(raw))
	}
	return c.put(ctx, keyPolicies+of, raw, func() { c.policies[of] = &next })
}

// forgetPolicies drops what is set for a namespace or topic that goes.
func (c *Catalog) forgetPolicies(ctx context.Context, of string) error {
	if c.Policies(of) == &noPolicies {
		return nil
	}
	return c.changePolicies(ctx, of, func(p *Policies) error { *p = Policies{}; return nil })
}

// forget drops what is known of a topic that was deleted, so that the next of its name
// begins anew.
func (c *Catalog) forget(ctx context.Context, base TopicName) error {
	if err := c.forgetPolicies(ctx, base.String()); err != nil {
		return err
	}
	return c.ForgetSchemas(ctx, base)
}

// ChangePolicies lets change edit the rules of a namespace, "tenant/namespace", or of a
// topic by its base name. They are durable, and hold for all open topics, when it
// returns. It may wait. What change refuses is returned and nothing changes.
func (b *Broker) ChangePolicies(ctx context.Context, of string, change func(*Policies) error) error {
	if err := b.catalog.changePolicies(ctx, of, change); err != nil {
		return err
	}
	for _, t := range b.openTopics() {
		base, _ := t.name.Partition()
		if t.name.NamespaceName() == of || strings.HasPrefix(of, t.name.Domain) && base.String() == of {
			t.adopt()
		}
	}
	return nil
}

// Effective are the rules that hold for a topic, with those of its namespace.
func (b *Broker) Effective(name TopicName) *Policies { return b.catalog.effective(name) }

// adopt takes over the rules that hold now.
func (t *Topic) adopt() {
	t.policies.Store(t.broker.catalog.effective(t.name))
	t.adoptDeduplication()
	t.adoptPublishRate()
	t.adoptEncryption()
	for _, s := range *t.wakes.Load() {
		s.adopt()
		s.wake() // a rate may have gone
	}
}
