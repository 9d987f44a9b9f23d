package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	backlogTopic  = "bench-backlog"
	shallowDepth  = 10_000           // messages of the broker that the deep one is set against
	backlogRounds = 15               // of a second each on both, in turn
	spaceReturns  = 30 * time.Second // within which the disk's space has to come back
	emptyStore    = 512 << 20        // what the files of a store without messages take at most, bytes
)

func backlogKept() topic { return topic{name: backlogTopic, subscriptions: []string{"keep"}} }

// A depth is one run of the backlog benchmark.
type depth struct {
	peer    *peer
	driver  *pulsarDriver
	size    int
	first   int           // messages that carry their number
	count   int           // all that were published
	highest *atomic.Int64 // anonymous memory since the last step began
}

// backlog fills a broker in a memory cgroup with a long backlog, kills it, starts it on cold files, consumes all, and
// tells memory, disk and times of each step.
func backlog(args []string) error {
	f := flag.NewFlagSet("backlog", flag.ExitOnError)
	wayside := f.String("wayside", "", "`FILE` of the broker")
	data := f.String("data", "", "`FOLDER` for its data (a new one, removed at the end)")
	gigabytes := f.Float64("gb", 10, "payload of the backlog, GB")
	size := f.Int("size", 1000, "payload of a message, bytes")
	limit := f.Int64("cgroup", 64<<20, "`BYTES` of memory for the broker")
	if err := f.Parse(args); err != nil {
		return err
	}
	folder, leave, err := dataFolder(*data)
	if err != nil {
		return err
	}
	defer leave()
	cage, err := newCage(*limit)
	if err != nil {
		fmt.Printf("no memory cgroup, so nothing enforces the limit: %v\n", err)
	} else {
		fmt.Printf("memory cgroup of %.0f MiB\n", mib(*limit))
	}
	defer cage.leave()
	fmt.Println(fileSystem(folder))
	p, d, err := memoryPeer(cage.around([]string{*wayside}), folder, "deep", "--set", "storage.quota=64GiB")
	if err != nil {
		return err
	}
	defer p.stop()
	shallow, sd, err := memoryPeer([]string{*wayside}, folder, "shallow", "--set", "storage.quota=64GiB")
	if err != nil {
		return err
	}
	defer shallow.stop()
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	b := &depth{peer: p, driver: d, size: *size, first: int(*gigabytes * 1e9 / float64(*size))}
	b.highest = watchPeak(ctx, &watching, p)
	if err := fill(sd, backlogKept(), shallowDepth, b.size); err != nil {
		return err
	}
	return b.run(sd)
}

func (b *depth) run(shallow *pulsarDriver) error {
	for _, step := range []struct {
		name string
		do   func() (string, error)
	}{
		{"publish", b.publish},
		{"latency", func() (string, error) { return b.latency(shallow) }},
		{"restart", b.restart},
		{"consume", b.consume},
		{"trim", b.trim},
	} {
		b.highest.Store(0)
		told, err := step.do()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-8s %s; at most %.1f MiB anonymous, files %.0f MB\n", step.name, told, mib(b.highest.Load()), float64(diskUse(b.peer.dir))/1e6)
	}
	return nil
}

// fill publishes messages that carry their number, in batches, and that nobody takes away.
func fill(d *pulsarDriver, t topic, count, size int) error {
	if err := d.prepare(t); err != nil {
		return err
	}
	p, err := d.open(t, 100)
	if err != nil {
		return err
	}
	defer p.close()
	text := payloads(size)
	var failed atomic.Int64
	for i := range count {
		data := slices.Clone(text[i%len(text)])
		binary.BigEndian.PutUint64(data, uint64(i))
		p.send(data, func(err error) {
			if err != nil {
				failed.Add(1)
			}
		})
	}
	if err := p.flush(); err != nil {
		return err
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of %d messages were not taken", n, count)
	}
	return nil
}

func (b *depth) publish() (string, error) {
	begin := time.Now()
	b.count = b.first
	err := fill(b.driver, backlogKept(), b.first, b.size)
	return fmt.Sprintf("%d messages of %d bytes, %.0f a second", b.first, b.size, float64(b.first)/time.Since(begin).Seconds()), err
}

// latency publishes one by one, in turn to the topic with the long backlog and to one with a short one.
func (b *depth) latency(shallow *pulsarDriver) (string, error) {
	var of [2][]time.Duration
	var ratios []float64
	for range backlogRounds {
		var late [2]time.Duration
		for i, d := range []*pulsarDriver{b.driver, shallow} {
			p, err := d.open(backlogKept(), 0)
			if err != nil {
				return "", err
			}
			took, err := synchronous([]publisher{p}, b.size, time.Second)
			p.close()
			if err != nil {
				return "", err
			}
			if i == 0 {
				b.count += len(took)
			}
			slices.Sort(took)
			late[i] = took[len(took)*99/100]
			of[i] = append(of[i], late[i])
		}
		ratios = append(ratios, float64(late[0])/float64(late[1]))
	}
	slices.Sort(ratios)
	for i := range of {
		slices.Sort(of[i])
	}
	n := len(ratios)
	return fmt.Sprintf("p99 of a publish %v behind all that, %v behind %d messages: %.2fx (%.2f–%.2f)",
		of[0][n/2].Round(10*time.Microsecond), of[1][n/2].Round(10*time.Microsecond), shallowDepth, ratios[n/2], ratios[n/4], ratios[n*3/4]), nil
}

// restart kills the broker and starts it when none of its files is in memory.
func (b *depth) restart() (string, error) {
	if err := b.peer.process.Process.Signal(syscall.SIGKILL); err != nil {
		return "", err
	}
	<-b.peer.ended
	syscall.Sync()
	files := "cold"
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0o200); err != nil {
		files = "warm"
	}
	begin := time.Now()
	if err := b.peer.start(); err != nil {
		return "", err
	}
	listens := time.Since(begin)
	p, err := b.driver.open(backlogKept(), 0)
	if err != nil {
		return "", err
	}
	defer p.close()
	b.count++
	if err := p.publish(make([]byte, b.size)); err != nil {
		return "", err
	}
	return fmt.Sprintf("killed, started on %s files: listens after %v, first receipt after %v", files,
		listens.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond)), nil
}

// consume takes everything and looks whether what carries a number comes in order.
func (b *depth) consume() (string, error) {
	c, err := b.driver.client()
	if err != nil {
		return "", err
	}
	defer c.Close()
	s, err := c.Subscribe(pulsar.ConsumerOptions{Topic: backlogTopic, SubscriptionName: "keep", ReceiverQueueSize: 1000})
	if err != nil {
		return "", err
	}
	defer s.Close()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for i := range b.count {
		m, err := s.Receive(ctx)
		if err != nil {
			return "", fmt.Errorf("message %d of %d: %w", i, b.count, err)
		}
		if n := binary.BigEndian.Uint64(m.Payload()); i < b.first && n != uint64(i) {
			return "", fmt.Errorf("message %d came in the place of %d", n, i)
		}
		if i%1000 == 999 || i == b.count-1 {
			if err := s.AckCumulative(m); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("all %d in order, %.0f a second", b.count, float64(b.count)/time.Since(begin).Seconds()), nil
}

// trim waits until what was consumed is gone from the disk.
func (b *depth) trim() (string, error) {
	begin := time.Now()
	answer, err := http.Post(b.driver.admin+"/admin/v2/persistent/public/default/"+backlogTopic+"/trim", "application/json", nil)
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", answer.StatusCode)
	}
	asked := time.Since(begin)
	most := int64(b.size)*int64(b.first)/10 + emptyStore
	for diskUse(b.peer.dir) > most {
		if time.Since(begin) > spaceReturns {
			return "", errors.New("the space does not come back")
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Sprintf("took %v, space is back after %v", asked.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond)), nil
}

// diskUse is what the files of a folder take on the disk, bytes.
func diskUse(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
		return nil
	})
	return n
}
