package main

import (
	"time"

	"wayside/edge"
)

// Config is what the broker runs on: defaults, overlaid by the file, overlaid by
// flags. Sizes are in bytes. keys.go names the fields as people write them.
type Config struct {
	Edge struct {
		ID string // "" until the store has given the frozen one
	}
	Storage struct {
		Path        string
		Quota       int64
		FileLimit   int64 // 0: twice the quota
		KeepAcked   int64
		WhenFull    string // hold, fail or drop-oldest
		CommitDelay time.Duration
	}
	Listen struct {
		Pulsar     string
		Admin      string // "": none
		Advertised string // "": clients stay on the address they dialled
	}
	Limits struct {
		MessageSize int64
		Memory      int64
		Connections int64
	}
	Topics struct {
		AutoCreate           bool
		AutoPartitions       int64
		AutoCreateNamespaces bool
		BacklogCheckInterval time.Duration
		Deduplication        bool
		Transactions         bool
	}
	Schemas struct {
		Compatibility string // name of a strategy
		AutoUpdate    bool
		Required      bool
	}
	Uplink struct {
		URL       string // "": no uplink
		Token     string
		TokenFile string
		CAFile    string
		RateLimit int64 // bytes per second, 0 for none
		Routes    []Route
	}
	Log struct {
		Level  string
		Format string
	}
}

// Route is one entry of uplink.routes.
type Route struct {
	Name        string // "": made of From by the uplink
	From        string
	To          string
	Forward     string // stored or acknowledged
	By          string // subscription, with acknowledged only
	Compression string
	Provenance  string
	Park        string
}

// defaultConfig is what holds where neither file nor flag say otherwise. The same
// values stand in configs/wayside.yaml; a test compares them.
func defaultConfig() Config {
	var c Config
	c.Storage.Path = "/var/lib/wayside"
	c.Storage.Quota = 1 << 30
	c.Storage.KeepAcked = 32 << 20
	c.Storage.WhenFull = "hold"
	c.Listen.Pulsar = ":6650"
	c.Listen.Admin = "127.0.0.1:8080"
	c.Limits.MessageSize = 5 << 20
	c.Limits.Memory = 32 << 20
	c.Limits.Connections = 1000
	c.Topics.AutoCreate = true
	c.Topics.BacklogCheckInterval = 5 * time.Second
	c.Topics.Transactions = true
	c.Schemas.Compatibility = edge.Full.String()
	c.Schemas.AutoUpdate = true
	c.Log.Level = "info"
	c.Log.Format = "text"
	return c
}

func defaultRoute() Route {
	return Route{
		To: "{tenant}/{namespace}/{topic}", Forward: "stored", Compression: "none", Provenance: "id",
		Park: "{tenant}/{namespace}/wayside.parked",
	}
}
