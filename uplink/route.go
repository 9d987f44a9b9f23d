package uplink

import (
	"fmt"
	"strings"

	"wayside/edge"
)

// Forward says which messages of a topic go to the cloud.
type Forward string

// What goes.
const (
	ForwardStored       Forward = "stored"       // everything that is stored
	ForwardAcknowledged Forward = "acknowledged" // what Route.By has acknowledged, in order: a hole waits
)

// Compression is how the client compresses what it sends.
type Compression string

// The kinds. Zstd takes about 3.3 MB of memory for each topic that is sending.
const (
	CompressionNone Compression = "none"
	CompressionLZ4  Compression = "lz4"
	CompressionZstd Compression = "zstd"
)

// Provenance says which properties are added to each message.
type Provenance string

// What is added. All names begin with "wayside".
const (
	ProvenanceNone Provenance = "none"
	ProvenanceID   Provenance = "id"   // wayside: birth id of the topic and index of the message
	ProvenanceFull Provenance = "full" // also device, topic, entry, publish time, producer and its sequence
)

// Route says what of the local topics goes where. The zero value of all but From is
// usable.
type Route struct {
	// Name names the route's cursors: a route of another name begins at the earliest
	// message. Default: From, with . for / and "any" for *.
	Name string
	// From is a topic or a pattern: topic, tenant/namespace/topic or the full name, with
	// * for one or more characters within a part. All partitions of a topic match.
	From string
	// To is the cloud topic, with {edge}, {tenant}, {namespace}, {topic}, and {1}, {2} …
	// for what the stars captured. Default: {tenant}/{namespace}/{topic}.
	To string
	// Forward is stored by default; acknowledged wants By, a subscription.
	Forward Forward
	By      string
	// Compression is none by default.
	Compression Compression
	// Provenance is id by default.
	Provenance Provenance
	// MixOrderingKeys lets messages of different ordering keys share a batch, which is
	// better for the link. Consumers of the cloud with a Key_Shared subscription then
	// see a key's messages with whoever gets the batch.
	MixOrderingKeys bool
	// Park is the local topic for messages that the cloud will never take, written as
	// To. Default: {tenant}/{namespace}/wayside.parked.
	Park string
}

const (
	subscriptionPrefix = "wayside.uplink."
	parkedSubscription = "wayside.parked"
	defaultTo          = "{tenant}/{namespace}/{topic}"
	defaultPark        = "{tenant}/{namespace}/wayside.parked"
)

// route is a Route that was checked.
type route struct {
	Route
	from     pattern
	to, park template
}

// subscription is the name of the reserved subscription on each of its topics.
func (r *route) subscription() string { return subscriptionPrefix + r.Name }

func parseRoute(r Route) (*route, error) {
	c := &route{Route: r}
	c.setDefaults()
	if err := c.parse(); err != nil {
		return nil, fmt.Errorf("route %s: %w", c.Name, err)
	}
	return c, nil
}

func (r *route) setDefaults() {
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&r.Name, strings.NewReplacer("/", ".", "*", "any").Replace(strings.TrimPrefix(r.From, edge.Persistent+"://")))
	set(&r.To, defaultTo)
	set(&r.Park, defaultPark)
	set((*string)(&r.Forward), string(ForwardStored))
	set((*string)(&r.Compression), string(CompressionNone))
	set((*string)(&r.Provenance), string(ProvenanceID))
}

// maxRouteName keeps names of subscriptions within what the core takes.
const maxRouteName = 256

func (r *route) parse() (err error) {
	switch {
	case r.From == "":
		return fmt.Errorf("from is missing: the topic or pattern to forward")
	case len(r.Name) > maxRouteName || strings.ContainsAny(r.Name, "/ \t\n"):
		return fmt.Errorf("name: at most %d characters, no blank and no slash", maxRouteName)
	}
	if r.from, err = parsePattern(r.From); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if r.to, err = parseTemplate(r.To, r.from.stars); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	if r.park, err = parseTemplate(r.Park, r.from.stars); err != nil {
		return fmt.Errorf("park: %w", err)
	}
	return r.checkWords()
}

func (r *route) checkWords() error {
	switch r.Forward {
	case ForwardStored:
		if r.By != "" {
			return fmt.Errorf("by goes with forward: acknowledged only")
		}
	case ForwardAcknowledged:
		if r.By == "" {
			return fmt.Errorf("by is missing: the subscription whose acknowledgements count")
		}
		if strings.HasPrefix(r.By, subscriptionPrefix) {
			return fmt.Errorf("by: %s is an uplink's own subscription", r.By)
		}
	default:
		return fmt.Errorf("forward: %q is neither stored nor acknowledged", r.Forward)
	}
	switch r.Compression {
	case CompressionNone, CompressionLZ4, CompressionZstd:
	default:
		return fmt.Errorf("compression: %q is none of none, lz4, zstd", r.Compression)
	}
	switch r.Provenance {
	case ProvenanceNone, ProvenanceID, ProvenanceFull:
	default:
		return fmt.Errorf("provenance: %q is none of none, id, full", r.Provenance)
	}
	return nil
}
