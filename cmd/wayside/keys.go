package main

import (
	"errors"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"wayside/edge"
)

// Bounds of what may be set, each where a larger or smaller value could not work.
const (
	maxEdgeID       = 128              // it stands in every producer's and many topics' names
	minQuota        = 1 << 20          // room for one commit group
	maxDisk         = 1 << 50          // beyond any disk of an edge device: a slip of the unit
	minMessageSize  = 1 << 10          //
	maxMessageSize  = 64 << 20         // one message is held in memory whole
	minMemory       = 16 << 20         // the program itself, idle, needs half of it
	maxMemory       = 1 << 40          //
	maxConnections  = 100_000          // descriptors
	maxPartitions   = 1_024            // as the core has it
	maxCommitDelay  = 10 * time.Second // clients wait for a receipt 30 s
	minBacklogCheck = 100 * time.Millisecond
	maxBacklogCheck = time.Hour
)

// key is one setting of a T: where it stands and how it is read and written.
type key[T any] struct {
	path   string
	secret bool // only from the environment, never shown
	tags   []string
	wants  string
	set    func(*T, string) error
	get    func(*T) string
	list   func(r *reader, to *T, n *yaml.Node, path string) // in place of set, for a list
}

// bind ties a path to a field.
func bind[T, V any](path string, k kind[V], field func(*T) *V) key[T] {
	return key[T]{
		path: path, tags: k.tags, wants: k.wants,
		set: func(to *T, s string) error {
			v, err := k.parse(s)
			if err == nil {
				*field(to) = v
			}
			return err
		},
		get: func(from *T) string { return k.format(*field(from)) },
	}
}

// configKeys lists every setting, in the order in which they are shown.
func configKeys() []key[Config] {
	return slices.Concat(storageKeys(), listenKeys(), schemaKeys(), uplinkKeys(), []key[Config]{
		bind("log.level", choiceKind("debug", "info", "warn", "error"), func(c *Config) *string { return &c.Log.Level }),
		bind("log.format", choiceKind("text", "json"), func(c *Config) *string { return &c.Log.Format }),
	})
}

func storageKeys() []key[Config] {
	return []key[Config]{
		bind("edge.id", textKind("a name", checkEdgeID), func(c *Config) *string { return &c.Edge.ID }),
		bind("storage.path", textKind("a directory", checkPath), func(c *Config) *string { return &c.Storage.Path }),
		bind("storage.quota", sizeKind(minQuota, maxDisk, false), func(c *Config) *int64 { return &c.Storage.Quota }),
		bind("storage.file_limit", sizeKind(minQuota, maxDisk, true), func(c *Config) *int64 { return &c.Storage.FileLimit }),
		bind("storage.keep_acked", sizeKind(0, maxDisk, true), func(c *Config) *int64 { return &c.Storage.KeepAcked }),
		bind("storage.when_full", choiceKind("hold", "fail", "drop-oldest"), func(c *Config) *string { return &c.Storage.WhenFull }),
		bind("storage.commit_delay", durationKind(0, maxCommitDelay), func(c *Config) *time.Duration { return &c.Storage.CommitDelay }),
	}
}

func listenKeys() []key[Config] {
	return []key[Config]{
		bind("listen.pulsar", textKind("HOST:PORT or :PORT", checkAddress), func(c *Config) *string { return &c.Listen.Pulsar }),
		bind("listen.admin", textKind("HOST:PORT or :PORT", checkAddressOrNone), func(c *Config) *string { return &c.Listen.Admin }),
		bind("listen.advertised", textKind("a host or a pulsar:// URL", checkAdvertised), func(c *Config) *string { return &c.Listen.Advertised }),
		bind("limits.message_size", sizeKind(minMessageSize, maxMessageSize, false), func(c *Config) *int64 { return &c.Limits.MessageSize }),
		bind("limits.memory", sizeKind(minMemory, maxMemory, false), func(c *Config) *int64 { return &c.Limits.Memory }),
		bind("limits.connections", countKind(1, maxConnections), func(c *Config) *int64 { return &c.Limits.Connections }),
		bind("topics.auto_create", boolKind(), func(c *Config) *bool { return &c.Topics.AutoCreate }),
		bind("topics.auto_partitions", countKind(0, maxPartitions), func(c *Config) *int64 { return &c.Topics.AutoPartitions }),
		bind("topics.auto_create_namespaces", boolKind(), func(c *Config) *bool { return &c.Topics.AutoCreateNamespaces }),
		bind("topics.backlog_check_interval", durationKind(minBacklogCheck, maxBacklogCheck), func(c *Config) *time.Duration { return &c.Topics.BacklogCheckInterval }),
		bind("topics.deduplication", boolKind(), func(c *Config) *bool { return &c.Topics.Deduplication }),
		bind("topics.transactions", boolKind(), func(c *Config) *bool { return &c.Topics.Transactions }),
	}
}

func schemaKeys() []key[Config] {
	return []key[Config]{
		bind("schemas.compatibility", choiceKind(edge.SchemaStrategyNames()...), func(c *Config) *string { return &c.Schemas.Compatibility }),
		bind("schemas.auto_update", boolKind(), func(c *Config) *bool { return &c.Schemas.AutoUpdate }),
		bind("schemas.required", boolKind(), func(c *Config) *bool { return &c.Schemas.Required }),
	}
}

func uplinkKeys() []key[Config] {
	token := bind("uplink.auth.token", textKind("${NAME} from the environment", anyText), func(c *Config) *string { return &c.Uplink.Token })
	token.secret = true
	return []key[Config]{
		bind("uplink.url", textKind("a pulsar:// or pulsar+ssl:// URL", checkUplinkURL), func(c *Config) *string { return &c.Uplink.URL }),
		token,
		bind("uplink.auth.token_file", textKind("a file", anyText), func(c *Config) *string { return &c.Uplink.TokenFile }),
		bind("uplink.tls.ca_file", textKind("a file", anyText), func(c *Config) *string { return &c.Uplink.CAFile }),
		bind("uplink.rate_limit", sizeKind(1<<10, maxDisk, true), func(c *Config) *int64 { return &c.Uplink.RateLimit }),
		{path: "uplink.routes", tags: []string{"!!seq"}, wants: "a list of routes", list: readRoutes},
	}
}

// routeKeys lists the settings of one route.
func routeKeys() []key[Route] {
	required := func(s string) error {
		if s == "" {
			return errors.New("is empty")
		}
		return nil
	}
	return []key[Route]{
		bind("name", textKind("a name", required), func(r *Route) *string { return &r.Name }),
		bind("from", textKind("a topic or pattern", required), func(r *Route) *string { return &r.From }),
		bind("to", textKind("a topic, with {…} for what varies", required), func(r *Route) *string { return &r.To }),
		bind("forward", choiceKind("stored", "acknowledged"), func(r *Route) *string { return &r.Forward }),
		bind("by", textKind("a subscription", required), func(r *Route) *string { return &r.By }),
		bind("compression", choiceKind("none", "lz4", "zstd"), func(r *Route) *string { return &r.Compression }),
		bind("provenance", choiceKind("none", "id", "full"), func(r *Route) *string { return &r.Provenance }),
		bind("park", textKind("a topic, with {…} for what varies", required), func(r *Route) *string { return &r.Park }),
	}
}
