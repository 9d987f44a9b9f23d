package edge

import "cmp"

// SchemaPolicy is how a topic's schemas are looked after.
type SchemaPolicy struct {
	Strategy   SchemaStrategy // never StrategyUndefined
	AutoUpdate bool           // producers and consumers may bring new schemas
	Enforced   bool           // producers without a schema are refused where there is one
}

// AutoUpdateOff is the older name of a strategy which says that clients may not bring new
// schemas; see autoUpdateStrategies for the others.
const AutoUpdateOff = "AutoUpdateDisabled"

// autoUpdateStrategies are the names under which strategies once were set for clients.
var autoUpdateStrategies = map[string]SchemaStrategy{
	AutoUpdateOff: AlwaysIncompatible,
	"Backward":    Backward, "Forward": Forward, "Full": Full,
	"AlwaysCompatible":   AlwaysCompatible,
	"BackwardTransitive": BackwardTransitive, "ForwardTransitive": ForwardTransitive, "FullTransitive": FullTransitive,
}

// KnownAutoUpdate reports whether a name is one of a strategy for clients.
func KnownAutoUpdate(name string) bool {
	_, ok := autoUpdateStrategies[name]
	return ok
}

// SchemaPolicy merges what topic, namespace and broker say. A broker that enforces does
// so everywhere (watched on 4.0.7).
func (b *Broker) SchemaPolicy(name TopicName) SchemaPolicy {
	own := SchemaPolicy{b.opts.SchemaStrategy, b.opts.SchemaAutoUpdate, b.opts.SchemaEnforced}
	p := b.Effective(name)
	if p.SchemaStrategy != nil {
		own.Strategy, _ = ParseSchemaStrategy(*p.SchemaStrategy)
	} else if p.SchemaAutoUpdateStrategy != nil {
		own.Strategy = autoUpdateStrategies[*p.SchemaAutoUpdateStrategy]
	}
	own.Strategy = cmp.Or(own.Strategy, b.opts.SchemaStrategy, Full)
	if p.SchemaAutoUpdate != nil {
		own.AutoUpdate = *p.SchemaAutoUpdate
	}
	if p.SchemaEnforced != nil {
		own.Enforced = own.Enforced || *p.SchemaEnforced
	}
	return own
}
