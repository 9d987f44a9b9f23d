package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"wayside/edge"
)

// maxBundles bounds the number that a namespace may be created with: its answers list
// the boundaries of each.
const maxBundles = 1024

// defaultBundles is what Pulsar gives a namespace that asks for nothing.
const defaultBundles = 4

// policies is a namespace's policies object as 4.0.7 writes it (captures
// curl-namespaces). What no path here can set has its unset value.
type policies struct {
	Auth                    authPolicies      `json:"auth_policies"`
	ReplicationClusters     []string          `json:"replication_clusters"`
	AllowedClusters         []string          `json:"allowed_clusters"`
	Bundles                 bundles           `json:"bundles"`
	BacklogQuota            map[string]quota  `json:"backlog_quota_map"`
	ClusterDispatchRate     struct{}          `json:"clusterDispatchRate"`
	TopicDispatchRate       map[string]any    `json:"topicDispatchRate"`
	SubscriptionDispatch    map[string]any    `json:"subscriptionDispatchRate"`
	ReplicatorDispatchRate  struct{}          `json:"replicatorDispatchRate"`
	ClusterSubscribeRate    struct{}          `json:"clusterSubscribeRate"`
	PublishMaxMessageRate   map[string]any    `json:"publishMaxMessageRate"`
	LatencyStatsSampleRate  struct{}          `json:"latency_stats_sample_rate"`
	Deleted                 bool              `json:"deleted"`
	EncryptionRequired      bool              `json:"encryption_required"`
	SubscriptionAuthMode    string            `json:"subscription_auth_mode"`
	OffloadThreshold        int64             `json:"offload_threshold"`
	OffloadThresholdSeconds int64             `json:"offload_threshold_in_seconds"`
	SchemaAutoUpdate        *string           `json:"schema_auto_update_compatibility_strategy,omitempty"`
	SchemaCompatibility     string            `json:"schema_compatibility_strategy"`
	AllowAutoUpdateSchema   bool              `json:"is_allow_auto_update_schema"`
	SchemaEnforced          bool              `json:"schema_validation_enforced"`
	SubscriptionTypes       []string          `json:"subscription_types_enabled"`
	Properties              map[string]string `json:"properties"`
	Migrated                bool              `json:"migrated"`
	set                                       // what is not set is left out
}

// set are the rules that have no unset value in the object.
type set struct {
	Retention                *edge.Retention         `json:"retention_policies,omitempty"`
	TTL                      *int64                  `json:"message_ttl_in_seconds,omitempty"`
	Deduplication            *bool                   `json:"deduplicationEnabled,omitempty"`
	Producers                *int64                  `json:"max_producers_per_topic,omitempty"`
	Consumers                *int64                  `json:"max_consumers_per_topic,omitempty"`
	ConsumersPerSubscription *int64                  `json:"max_consumers_per_subscription,omitempty"`
	Subscriptions            *int64                  `json:"max_subscriptions_per_topic,omitempty"`
	UnackedPerConsumer       *int64                  `json:"max_unacked_messages_per_consumer,omitempty"`
	UnackedPerSubscription   *int64                  `json:"max_unacked_messages_per_subscription,omitempty"`
	DelayedDelivery          *edge.DelayedDelivery   `json:"delayed_delivery_policies,omitempty"`
	Topics                   *int64                  `json:"max_topics_per_namespace,omitempty"`
	AutoTopics               *edge.AutoTopics        `json:"autoTopicCreationOverride,omitempty"`
	AutoSubscriptions        *edge.AutoSubscriptions `json:"autoSubscriptionCreationOverride,omitempty"`
}

// authPolicies are the grants. They are kept with the namespace as they were given.
type authPolicies struct {
	Namespace    map[string][]string            `json:"namespace_auth"`
	Destination  map[string]map[string][]string `json:"destination_auth"`
	Subscription map[string][]string            `json:"subscription_auth_roles"`
}

type bundles struct {
	Boundaries []string `json:"boundaries"`
	Number     int      `json:"numBundles"`
}

// kept is what a creation may set; it is stored with the namespace.
type kept struct {
	Auth                *authPolicies     `json:"auth_policies,omitempty"`
	ReplicationClusters []string          `json:"replication_clusters,omitempty"`
	Bundles             *keptBundles      `json:"bundles,omitempty"`
	Properties          map[string]string `json:"properties,omitempty"`
}

type keptBundles struct {
	Number number `json:"numBundles"`
}

// keptNames are the members of kept.
var keptNames = []string{"auth_policies", "replication_clusters", "bundles", "properties"}

// enforced are the members of Pulsar's policies object that stand for behaviour which
// this broker does not have; anything else that is unknown is ignored as Pulsar does.
var enforced = []string{
	"allowed_clusters", "antiAffinityGroup",
	"clusterDispatchRate", "clusterSubscribeRate",
	"deduplicationSnapshotIntervalSeconds",
	"dispatcherPauseOnAckStatePersistentEnabled", "entryFilters",
	"inactive_topic_policies",
	"migrated", "offload_deletion_lag_ms", "offload_policies", "offload_threshold",
	"offload_threshold_in_seconds", "persistence", "replicatorDispatchRate",
	"resource_group_name", "subscription_auth_mode", "subscription_expiration_time_minutes",
}

// defaults are words that clients send for members that they leave at their defaults.
var defaults = map[string][]string{
	"subscription_auth_mode": {"None"},
}

// policiesIn reads the body of a creation and returns what is to be stored, nil for
// nothing, and the rules among it. Members that are null or at their default count as
// absent (clients send all of them); any other that cannot be enforced is refused rather
// than forgotten.
func (s *Server) policiesIn(r *http.Request) ([]byte, *edge.Policies, error) {
	rules := &edge.Policies{}
	var members map[string]json.RawMessage
	present, err := body(r, &members)
	if err != nil || !present {
		return nil, rules, err
	}
	for _, name := range enforced {
		if value, ok := members[name]; ok && !isDefault(name, value) {
			return nil, nil, refuse(http.StatusPreconditionFailed, "Policy %s cannot be enforced by this broker", name)
		}
	}
	if err := s.rulesIn(members, rules); err != nil {
		return nil, nil, err
	}
	kept, err := s.keep(r.PathValue("tenant"), members)
	return kept, rules, err
}

// rulesIn picks the rules out of the members of a policies object.
func (s *Server) rulesIn(members map[string]json.RawMessage, rules *edge.Policies) error {
	for _, r := range s.rules() {
		data := members[r.member]
		if r.byCluster && data != nil {
			var each map[string]json.RawMessage
			if err := json.Unmarshal(data, &each); err != nil {
				return refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
			}
			data = each[s.opts.Cluster]
		}
		if data == nil || string(data) == "null" || string(data) == "false" && r.lasting || atMostZero(data) {
			continue
		}
		if err := r.change(rules, data); err != nil {
			return err
		}
	}
	if err := schemaPoliciesIn(members, rules); err != nil {
		return err
	}
	var quotas map[string]json.RawMessage
	if data := members["backlog_quota_map"]; data != nil && json.Unmarshal(data, &quotas) != nil {
		return refuse(http.StatusBadRequest, "backlog_quota_map is not an object")
	}
	for kind, data := range quotas {
		field, err := quotaField(kind)
		if err != nil {
			return err
		}
		if *field(rules), err = quotaOf(data); err != nil {
			return err
		}
	}
	return nil
}

// atMostZero knows how clients write a number that they do not set.
func atMostZero(data []byte) bool {
	n, err := strconv.ParseFloat(string(data), 64)
	return err == nil && n <= 0
}

// keep checks and re-writes the members that are stored.
func (s *Server) keep(tenant string, members map[string]json.RawMessage) ([]byte, error) {
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !slices.Contains(keptNames, name) })
	raw, err := encode(members)
	if err != nil {
		return nil, fmt.Errorf("write policies: %w", err)
	}
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
	}
	if others := s.strangers(k.ReplicationClusters); len(others) > 0 {
		return nil, refuse(http.StatusForbidden, "Cluster [%s] is not in the list of allowed clusters list for tenant [%s]", others[0], tenant)
	}
	if k.Bundles != nil && (k.Bundles.Number < 0 || k.Bundles.Number > maxBundles) {
		return nil, refuse(http.StatusPreconditionFailed, "Number of bundles has to be from 1 to %d", maxBundles)
	}
	return encode(k)
}

// policiesOf is the object that describes a namespace with what was stored for it.
func (s *Server) policiesOf(stored []byte, rules *edge.Policies) (policies, error) {
	var k kept
	if err := json.Unmarshal(stored, &k); err != nil {
		return policies{}, fmt.Errorf("read stored policies: %w", err)
	}
	p := policies{
		ReplicationClusters:     k.ReplicationClusters,
		AllowedClusters:         []string{},
		Bundles:                 divide(defaultBundles),
		SubscriptionAuthMode:    "None",
		OffloadThreshold:        -1,
		OffloadThresholdSeconds: -1,
		EncryptionRequired:      rules.EncryptionRequired != nil && *rules.EncryptionRequired,
		SubscriptionTypes:       []string{},
		Properties:              k.Properties,
		BacklogQuota:            quotas(rules),
		TopicDispatchRate:       byCluster(s, rules.DispatchRate),
		SubscriptionDispatch:    byCluster(s, rules.SubscriptionRate),
		PublishMaxMessageRate:   byCluster(s, rules.PublishRate),
		set: set{
			rules.Retention, rules.TTL, rules.Deduplication, rules.Producers, rules.Consumers,
			rules.ConsumersPerSubscription, rules.Subscriptions, rules.UnackedPerConsumer, rules.UnackedPerSubscription,
			rules.DelayedDelivery, rules.Topics, rules.AutoTopics, rules.AutoSubscriptions,
		},
	}
	if rules.SubscriptionTypes != nil {
		p.SubscriptionTypes = *rules.SubscriptionTypes
	}
	showSchemaPolicies(&p, rules, s.broker.Options().SchemaAutoUpdate)
	if p.Properties == nil {
		p.Properties = map[string]string{}
	}
	if k.Auth != nil {
		p.Auth = *k.Auth
	}
	p.Auth.fill()
	if len(p.ReplicationClusters) == 0 {
		p.ReplicationClusters = []string{s.opts.Cluster}
	}
	if k.Bundles != nil && k.Bundles.Number > 0 {
		p.Bundles = divide(int(k.Bundles.Number))
	}
	return p, nil
}

// byCluster is an object with a rate for the one cluster, if there is one.
func byCluster[T any](s *Server, r *T) map[string]any {
	if r == nil {
		return map[string]any{}
	}
	return map[string]any{s.opts.Cluster: r}
}

// fill makes empty maps of missing ones, which JSON would write as null.
func (a *authPolicies) fill() {
	if a.Namespace == nil {
		a.Namespace = map[string][]string{}
	}
	if a.Destination == nil {
		a.Destination = map[string]map[string][]string{}
	}
	if a.Subscription == nil {
		a.Subscription = map[string][]string{}
	}
}

// divide cuts the range of hashes into n bundles of equal size.
func divide(n int) bundles {
	b := bundles{Number: n, Boundaries: make([]string, 0, n+1)}
	step := (uint64(1) << 32) / uint64(n)
	for i := range n {
		b.Boundaries = append(b.Boundaries, fmt.Sprintf("0x%08x", uint64(i)*step))
	}
	b.Boundaries = append(b.Boundaries, "0xffffffff")
	return b
}

// isDefault reports whether a member's value says nothing.
func isDefault(name string, value json.RawMessage) bool {
	word := strings.Trim(string(bytes.TrimSpace(value)), `"`)
	if slices.Contains(defaults[name], word) {
		return true
	}
	var v any
	return json.Unmarshal(value, &v) == nil && saysNothing(v)
}

// saysNothing is true for null, false, "", 0, −1 (Pulsar's "no limit") and for lists
// and objects of nothing else.
func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0 || v == -1
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !saysNothing(e) })
	case map[string]any:
		for _, e := range v {
			if !saysNothing(e) {
				return false
			}
		}
	}
	return true
}
