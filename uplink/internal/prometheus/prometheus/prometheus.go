// Package prometheus stands in for the library in which the official client counts. It
// counts nothing.
package prometheus

// Labels are names and values of labels.
type Labels map[string]string

// Collector is something that is counted.
type Collector interface{ collector() }

// Registerer takes collectors.
type Registerer interface {
	Register(Collector) error
	Unregister(Collector) bool
}

// Registry forgets what it is given.
type Registry struct{}

// NewRegistry makes a Registry.
func NewRegistry() *Registry { return &Registry{} }

// Register takes everything.
func (*Registry) Register(Collector) error { return nil }

// Unregister knows nothing.
func (*Registry) Unregister(Collector) bool { return false }

// DefaultRegisterer is a Registry.
var DefaultRegisterer Registerer = NewRegistry()

// AlreadyRegisteredError never comes.
type AlreadyRegisteredError struct{ ExistingCollector Collector }

// Error is never read.
func (AlreadyRegisteredError) Error() string { return "already registered" }

// CounterOpts, GaugeOpts and HistogramOpts describe what is counted.
type (
	CounterOpts struct {
		Name, Help  string
		ConstLabels Labels
	}
	GaugeOpts     = CounterOpts
	HistogramOpts struct {
		Name, Help  string
		ConstLabels Labels
		Buckets     []float64
	}
)

// Counter, Gauge and Observer are what values are given to.
type (
	Counter interface {
		Collector
		Inc()
		Add(float64)
	}
	Gauge interface {
		Counter
		Dec()
		Sub(float64)
		Set(float64)
	}
	Observer interface{ Observe(float64) }
)

// nothing is all of them.
type nothing struct{}

func (nothing) collector()      {}
func (nothing) Inc()            {}
func (nothing) Dec()            {}
func (nothing) Add(float64)     {}
func (nothing) Sub(float64)     {}
func (nothing) Set(float64)     {}
func (nothing) Observe(float64) {}

// CounterVec, GaugeVec and HistogramVec are families of them.
type (
	CounterVec   struct{ nothing }
	GaugeVec     struct{ nothing }
	HistogramVec struct{ nothing }
)

// NewCounterVec makes a family of counters.
func NewCounterVec(CounterOpts, []string) *CounterVec { return &CounterVec{} }

// NewGaugeVec makes a family of gauges.
func NewGaugeVec(GaugeOpts, []string) *GaugeVec { return &GaugeVec{} }

// NewHistogramVec makes a family of histograms.
func NewHistogramVec(HistogramOpts, []string) *HistogramVec { return &HistogramVec{} }

// NewCounter makes a counter.
func NewCounter(CounterOpts) Counter { return nothing{} }

// NewGauge makes a gauge.
func NewGauge(GaugeOpts) Gauge { return nothing{} }

// With is a member of the family.
func (*CounterVec) With(Labels) Counter { return nothing{} }

// With is a member of the family.
func (*GaugeVec) With(Labels) Gauge { return nothing{} }

// With is a member of the family.
func (*HistogramVec) With(Labels) Observer { return nothing{} }
