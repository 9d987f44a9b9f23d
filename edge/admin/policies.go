package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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
	BacklogQuota            struct{}          `json:"backlog_quota_map"`
	ClusterDispatchRate     struct{}          `json:"clusterDispatchRate"`
	TopicDispatchRate       struct{}          `json:"topicDispatchRate"`
	SubscriptionDispatch    struct{}          `json:"subscriptionDispatchRate"`
	ReplicatorDispatchRate  struct{}          `json:"replicatorDispatchRate"`
	ClusterSubscribeRate    struct{}          `json:"clusterSubscribeRate"`
	PublishMaxMessageRate   struct{}          `json:"publishMaxMessageRate"`
	LatencyStatsSampleRate  struct{}          `json:"latency_stats_sample_rate"`
	Deleted                 bool              `json:"deleted"`
	EncryptionRequired      bool              `json:"encryption_required"`
	SubscriptionAuthMode    string            `json:"subscription_auth_mode"`
	OffloadThreshold        int64             `json:"offload_threshold"`
	OffloadThresholdSeconds int64             `json:"offload_threshold_in_seconds"`
	SchemaCompatibility     string            `json:"schema_compatibility_strategy"`
	AllowAutoUpdateSchema   bool              `json:"is_allow_auto_update_schema"`
	SchemaEnforced          bool              `json:"schema_validation_enforced"`
	SubscriptionTypes       []string          `json:"subscription_types_enabled"`
	Properties              map[string]string `json:"properties"`
	Migrated                bool              `json:"migrated"`
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
	"allowed_clusters", "antiAffinityGroup", "autoSubscriptionCreationOverride", "autoTopicCreationOverride",
	"backlog_quota_map", "clusterDispatchRate", "clusterSubscribeRate", "compaction_threshold",
	"deduplicationEnabled", "deduplicationSnapshotIntervalSeconds", "delayed_delivery_policies",
	"dispatcherPauseOnAckStatePersistentEnabled", "encryption_required", "entryFilters",
	"inactive_topic_policies", "is_allow_auto_update_schema", "max_consumers_per_subscription",
	"max_consumers_per_topic", "max_producers_per_topic", "max_subscriptions_per_topic",
	"max_topics_per_namespace", "max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription",
	"message_ttl_in_seconds", "migrated", "offload_deletion_lag_ms", "offload_policies", "offload_threshold",
	"offload_threshold_in_seconds", "persistence", "publishMaxMessageRate", "replicatorDispatchRate",
	"resource_group_name", "retention_policies", "schema_auto_update_compatibility_strategy",
	"schema_compatibility_strategy", "schema_validation_enforced", "subscriptionDispatchRate",
	"subscription_auth_mode", "subscription_expiration_time_minutes", "subscription_types_enabled",
	"topicDispatchRate",
}

// defaults are words that clients send for members that they leave at their defaults.
var defaults = map[string][]string{
	"subscription_auth_mode":                    {"None"},
	"schema_compatibility_strategy":             {"UNDEFINED"},
	"schema_auto_update_compatibility_strategy": {"Full"},
	"is_allow_auto_update_schema":               {"true"},
}

// policiesIn reads the body of a creation and returns what is to be stored, nil for
// nothing. Members that are null or at their default count as absent (clients send all
// of them); any other that cannot be enforced is refused rather than forgotten.
func (s *Server) policiesIn(r *http.Request) ([]byte, error) {
	var members map[string]json.RawMessage
	present, err := body(r, &members)
	if err != nil || !present {
		return nil, err
	}
	for _, name := range enforced {
		if value, ok := members[name]; ok && !isDefault(name, value) {
			return nil, refuse(http.StatusPreconditionFailed, "Policy %s cannot be enforced by this broker", name)
		}
	}
	return s.keep(r.PathValue("tenant"), members)
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
func (s *Server) policiesOf(stored []byte) (policies, error) {
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
		SchemaCompatibility:     "UNDEFINED",
		AllowAutoUpdateSchema:   true,
		SubscriptionTypes:       []string{},
		Properties:              k.Properties,
	}
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
