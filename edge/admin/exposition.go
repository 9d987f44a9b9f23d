package admin

import (
	"bytes"
	"compress/gzip"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Family describes a metric. Its name may be shared by families of one collector that
// differ in their labels.
type Family struct {
	Name, Help string
	Counts     bool     // a counter; else a gauge
	Plain      bool     // without the cluster as a label
	Labels     []string // beside it
}

// Collector is a part of the broker with metrics of its own. Collect is called for every
// scrape, from any goroutine; it puts values of the named families and no others.
type Collector struct {
	Families []*Family
	Collect  func(*Scrape)
}

// Scrape is one answer in the making: Prometheus' text form, version 0.0.4.
type Scrape struct {
	cluster  string
	families map[string]*bytes.Buffer
}

// NewScrape begins an answer. The cluster is a label of all families but plain ones.
func NewScrape(cluster string) *Scrape { return &Scrape{cluster, map[string]*bytes.Buffer{}} }

// Put adds a value with the values of the family's labels. Names of topics and
// subscriptions are any bytes; what is not UTF-8 in them is replaced.
func (s *Scrape) Put(f *Family, value float64, labels ...string) {
	b := s.families[f.Name]
	if b == nil {
		b = &bytes.Buffer{}
		s.families[f.Name] = b
		b.WriteString("# HELP " + f.Name + " " + helpEscapes.Replace(f.Help) + "\n# TYPE " + f.Name)
		b.WriteString(map[bool]string{true: " counter\n", false: " gauge\n"}[f.Counts])
	}
	b.WriteString(f.Name)
	comma := "{"
	if !f.Plain {
		b.WriteString(comma + `cluster="` + labelEscapes.Replace(s.cluster) + `"`)
		comma = ","
	}
	for i, name := range f.Labels {
		b.WriteString(comma + name + `="` + labelEscapes.Replace(strings.ToValidUTF8(labels[i], "\uFFFD")) + `"`)
		comma = ","
	}
	if comma == "," {
		b.WriteByte('}')
	}
	b.WriteByte(' ')
	b.Write(strconv.AppendFloat(b.AvailableBuffer(), value, 'g', -1, 64))
	b.WriteByte('\n')
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Text is the whole answer, families by name. The scrape is over then.
func (s *Scrape) Text() []byte {
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		all.Write(s.families[name].Bytes())
		delete(s.families, name)
	}
	return all.Bytes()
}

// scrapes bounds how many answers of /metrics are made at once.
const scrapes = 2

// exposition answers scrapes.
type exposition struct {
	cluster    string
	collectors []Collector
	slots      chan struct{}
}

func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	default:
		http.Error(w, "Others are being answered already, try again later.", http.StatusServiceUnavailable)
		return
	}
	scrape := NewScrape(e.cluster)
	for _, c := range e.collectors {
		c.Collect(scrape)
	}
	text := scrape.Text()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text) // that the client is gone by then is nobody's error
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(text)
	_ = z.Close()
}
