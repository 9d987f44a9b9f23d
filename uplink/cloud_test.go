package uplink

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"wayside/wire/wiretest"
)

// These tests run against a real Pulsar, which scripts/uplink starts:
//
//	WAYSIDE_PULSAR      its service URL
//	WAYSIDE_PULSAR_RUN  a program that starts, stops and kills it
//	WAYSIDE_PULSAR_EDGE host:port, free, that its listener "edge" advertises
//	WAYSIDE_RUN         short or full
//	WAYSIDE_SEED        what the order of events is drawn from

// extent is how much a run does.
type extent struct {
	topics, messages int
	spread           time.Duration
	cuts             int // of each kind
	kills, restarts  int
	limit            time.Duration
}

// extents are those of the proper run and of the one that must be caught.
func extents() (proper, caught extent) {
	if os.Getenv("WAYSIDE_RUN") == "full" {
		proper = extent{topics: 10, messages: 100_000, spread: 8 * time.Minute, cuts: 10, kills: 20, restarts: 3, limit: 40 * time.Minute}
		return proper, proper
	}
	proper = extent{topics: 4, messages: 12_000, spread: 40 * time.Second, cuts: 1, kills: 3, restarts: 1, limit: 4 * time.Minute}
	return proper, extent{topics: 4, messages: 8_000, spread: 20 * time.Second, kills: 8, limit: 4 * time.Minute}
}

func seedOf(t *testing.T) uint64 {
	if s := os.Getenv("WAYSIDE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("WAYSIDE_SEED: %v", err)
		}
		return seed
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// realPulsar is the cloud, and the way to it through a meddling proxy.
type realPulsar struct {
	url   string
	run   string // program that controls it
	proxy *wiretest.Proxy
}

// edgeListener is the listener that the cloud advertises to those behind the proxy.
const edgeListener = "edge"

// findPulsar puts a proxy in front of the cloud, where the cloud tells the uplink to
// go: else the first lookup would lead around it.
func findPulsar(t *testing.T) *realPulsar {
	service, address := os.Getenv("WAYSIDE_PULSAR"), os.Getenv("WAYSIDE_PULSAR_EDGE")
	if service == "" {
		t.Skip("WAYSIDE_PULSAR names no real Pulsar: scripts/uplink starts one")
	}
	u, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	// Raw, for the sake of TCP: a connection that has lost bytes never goes on behind
	// them. Else what was sent later could be stored first, and the rest dropped.
	proxy, err := wiretest.StartProxy(wiretest.ProxyOptions{Target: u.Host, Listen: address, Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	p := &realPulsar{url: service, run: os.Getenv("WAYSIDE_PULSAR_RUN"), proxy: proxy}
	if p.run == "" || address == "" {
		t.Fatal("WAYSIDE_PULSAR_RUN and WAYSIDE_PULSAR_EDGE are missing")
	}
	return p
}

func (p *realPulsar) restart(how string) error {
	for _, verb := range []string{how, "start"} {
		cmd := exec.Command(p.run, verb)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", p.run, verb, err, out)
		}
	}
	return nil
}

// trial is one run: a broker under test that is killed, a link that is cut, a cloud
// that is restarted.
type trial struct {
	t      *testing.T
	extent extent
	seed   uint64
	rng    *rand.Rand
	cloud  *realPulsar
	config childConfig
	log    *os.File

	mu    sync.Mutex
	life  *child
	begun int // lives
}

func newTrial(t *testing.T, cloud *realPulsar, e extent, fault bool) *trial {
	seed := seedOf(t)
	r := &trial{t: t, extent: e, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), cloud: cloud}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "broker.log"))
	if err != nil {
		t.Fatal(err)
	}
	r.log = log
	t.Cleanup(func() { log.Close() })
	r.config = childConfig{
		Data: filepath.Join(dir, "data"), Listen: freeAddress(t),
		URL: "pulsar://" + r.cloud.proxy.Addr(), Listener: edgeListener, Fault: fault,
		Routes: []Route{{Name: "all", From: "trial-*", To: "{edge}-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-{1}"}},
	}
	t.Logf("seed %d", seed)
	return r
}

// freeAddress is an address that stays free while no life of the broker listens there:
// below the range from which the kernel takes ports of outgoing connections.
func freeAddress(t *testing.T) string {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(10000+rand.IntN(5000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port between 10000 and 15000")
	return ""
}

// revive starts a new life, with other bounds of batches than the last.
func (r *trial) revive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	r.config.Messages = 10 + r.rng.IntN(150)
	r.config.Bytes = 8<<10 + r.rng.IntN(60<<10)
	life, err := startChild(r.config, r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	r.life = life
}

func (r *trial) kill() {
	r.mu.Lock()
	life := r.life
	r.mu.Unlock()
	if err := life.kill(); err != nil {
		r.t.Fatal(err)
	}
}

// mishap is one thing that happens to the link, the broker or the cloud.
type mishap struct {
	name string
	do   func(*trial)
}

func (r *trial) troubles() []mishap {
	var all []mishap
	add := func(n int, name string, do func(*trial)) {
		for range n {
			all = append(all, mishap{name, do})
		}
	}
	for _, mode := range []wiretest.Mode{wiretest.Reset, wiretest.Refuse, wiretest.Blackhole, wiretest.HalfOpen} {
		add(r.extent.cuts, mode.String(), func(r *trial) { r.cut(mode) })
	}
	add(r.extent.cuts, "slow", (*trial).slow)
	add(r.extent.kills, "kill -9", func(r *trial) { r.kill(); r.revive() })
	add(r.extent.restarts, "restart of Pulsar", func(r *trial) {
		if err := r.cloud.restart([]string{"stop", "kill"}[r.rng.IntN(2)]); err != nil {
			r.t.Fatal(err)
		}
	})
	r.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// cut breaks the link in a mode for a moment or some seconds.
func (r *trial) cut(mode wiretest.Mode) {
	if err := r.cloud.proxy.SetMode(mode); err != nil {
		r.t.Error(err)
	}
	if mode == wiretest.Refuse {
		r.cloud.proxy.ResetAll()
	}
	time.Sleep(time.Duration(r.rng.IntN(4000)) * time.Millisecond)
	if err := retry(context.Background(), func() error { return r.cloud.proxy.SetMode(wiretest.Pass) }); err != nil {
		r.t.Error(err)
	}
}

// slow lets some KiB a second through.
func (r *trial) slow() {
	r.cloud.proxy.SetRate(20<<10 + r.rng.IntN(100<<10))
	time.Sleep(time.Duration(2000+r.rng.IntN(4000)) * time.Millisecond)
	r.cloud.proxy.SetRate(0)
}

// suffer spreads the troubles over the time that the load takes.
func (r *trial) suffer() {
	all := r.troubles()
	count := map[string]int{}
	begin := time.Now()
	for i, x := range all {
		due := begin.Add(r.extent.spread * time.Duration(i) / time.Duration(len(all)))
		time.Sleep(time.Until(due))
		time.Sleep(time.Duration(r.rng.IntN(500)) * time.Millisecond)
		count[x.name]++
		x.do(r)
	}
	r.t.Logf("%v", count)
}

// publish sends the whole load; it returns when everything has its receipt.
func (r *trial) publish(ctx context.Context) error {
	c, err := quietClient("pulsar://"+r.config.Listen, false)
	if err != nil {
		return err
	}
	defer c.Close()
	var wg sync.WaitGroup
	errs := make(chan error, r.extent.topics)
	for i := range r.extent.topics {
		wg.Go(func() {
			l := load{topic: r.topic(i), count: r.count(), batched: i%2 == 1, seed: r.seed + uint64(i), spread: r.extent.spread}
			errs <- l.run(ctx, c)
		})
	}
	wg.Wait()
	for range r.extent.topics {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func (r *trial) topic(i int) string { return fmt.Sprintf("trial-%d", i) }
func (r *trial) target(i int) string {
	return strings.NewReplacer("{edge}", "edge-under-test", "{1}", strconv.Itoa(i)).Replace(r.config.Routes[0].To)
}
func (r *trial) count() int { return r.extent.messages / r.extent.topics }

// run does it all and compares both sides with what was published.
func (r *trial) run() (cloud, local tally) {
	ctx, cancel := context.WithTimeout(context.Background(), r.extent.limit)
	defer cancel()
	r.holdAll(ctx)
	r.revive()
	published := make(chan error, 1)
	begin := time.Now()
	go func() { published <- r.publish(ctx) }()
	r.suffer()
	if err := <-published; err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("published and receipted %d messages in %v, %d lives", r.count()*r.extent.topics, time.Since(begin).Round(time.Second), r.begun)
	cloud = r.compareAll(ctx, r.cloud.url, r.target)
	local = r.compareAll(ctx, "pulsar://"+r.config.Listen, r.topic)
	r.t.Logf("cloud: %v; local: %v; after %v", &cloud, &local, time.Since(begin).Round(time.Second))
	if err := r.life.stop(); err != nil {
		r.t.Errorf("the broker did not stop cleanly: %v", err)
	}
	return cloud, local
}

// holdAll subscribes to every topic of the cloud, which throws away what nobody wants.
func (r *trial) holdAll(ctx context.Context) {
	c, err := quietClient(r.cloud.url, true)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	for i := range r.extent.topics {
		err := retry(ctx, func() error {
			held, err := c.Subscribe(pulsar.ConsumerOptions{
				Topic: r.target(i), SubscriptionName: "hold", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
			})
			if err == nil {
				held.Close()
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *trial) compareAll(ctx context.Context, service string, topic func(int) string) tally {
	c, err := quietClient(service, true)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	var sum tally
	for i := range r.extent.topics {
		t, err := compare(ctx, c, topic(i), r.topic(i), r.count())
		if err != nil {
			r.t.Fatal(err)
		}
		sum.add(t)
	}
	return sum
}

// showLog prints what the broker's log says of note, and its end.
func (r *trial) showLog() {
	b, err := os.ReadFile(r.log.Name())
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		for _, word := range []string{"level=ERROR", "local < remote", "set aside", "set back", "cannot be read", "damaged", "panic"} {
			if strings.Contains(line, word) {
				r.t.Log(strings.TrimSpace(line))
			}
		}
	}
	r.t.Logf("the broker's last words:\n%s", b[max(0, len(b)-20_000):])
}

// Everything that was receipted here is in the cloud once, in order and unchanged,
// whatever happened to the link, the broker and the cloud. A build that keeps no plan
// and has other bounds after each restart must be caught by the same run, or it proves
// nothing.
func TestCloud(t *testing.T) {
	pulsar := findPulsar(t)
	proper, caught := extents()
	t.Run("once in order", func(t *testing.T) {
		r := newTrial(t, pulsar, proper, false)
		if cloud, local := r.run(); !cloud.clean() || !local.clean() {
			r.showLog()
			t.Errorf("cloud: %v; local: %v", &cloud, &local)
		}
	})
	t.Run("missing plan is caught", func(t *testing.T) {
		r := newTrial(t, pulsar, caught, true)
		cloud, local := r.run()
		if !local.clean() {
			t.Errorf("local: %v", &local)
		}
		if cloud.clean() {
			t.Errorf("without a plan nothing was lost or doubled: %v", &cloud)
		}
	})
}
