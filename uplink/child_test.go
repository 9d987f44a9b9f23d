package uplink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wayside/boltstore"
	"wayside/edge"
	"wayside/edge/pulsar"
)

// childVariable holds a childConfig where the test binary is to be a broker.
const childVariable = "WAYSIDE_UPLINK_CHILD"

func TestMain(m *testing.M) {
	if config := os.Getenv(childVariable); config != "" {
		if err := runChild(config); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// childConfig is what a life of the broker under test differs in.
type childConfig struct {
	Data, Listen  string
	URL, Listener string
	Routes        []Route
	Fault         bool // no plan is kept
	Messages      int  // of a batch
	Bytes         int  // of a batch
}

// childOptions are the uplink's with all times scaled down.
func (c *childConfig) options() Options {
	o := DefaultOptions()
	o.URL, o.Listener, o.Routes, o.EdgeID, o.fault = c.URL, c.Listener, c.Routes, "edge-under-test", c.Fault
	o.BatchMessages, o.BatchBytes = c.Messages, c.Bytes
	o.ReceiptTimeout = 2 * time.Second
	o.ConnectTimeout, o.OperationTimeout, o.KeepAlive = time.Second, 2*time.Second, 2*time.Second
	o.BackoffMin, o.BackoffMax, o.RefusedMax = 50*time.Millisecond, 500*time.Millisecond, 2*time.Second
	o.ReconnectSpan = 2 * time.Second
	o.IdleClose = 2 * time.Second
	return o
}

// runChild is a broker with an uplink, up to the end of its standard input.
func runChild(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	o := c.options()
	o.Logger = log
	up, err := New(o)
	if err != nil {
		return err
	}
	so := boltstore.DefaultOptions()
	so.Path, so.Logger, so.SaveInterval = c.Data, log, 100*time.Millisecond
	store, err := boltstore.Open(so)
	if err != nil {
		return err
	}
	bo := edge.DefaultOptions()
	bo.Logger, bo.Deduplication, bo.AutoCreateNamespaces, bo.OnCreate = log, true, true, up.Reserved
	bo.Budget = edge.NewBudget(32 << 20)
	broker, err := edge.NewBroker(store, bo)
	if err != nil {
		return err
	}
	po := pulsar.DefaultOptions()
	po.Logger = log
	server, err := pulsar.New(broker, po)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	up.Start(broker)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = errors.Join(server.Close(ctx), up.Close(ctx), broker.Close(ctx), store.Close())
	<-served
	return err
}

// child is a running life.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan error
}

// startChild runs a broker and waits until it serves. Its log goes to out.
func startChild(c childConfig, out *os.File) (*child, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(config))
	cmd.Stderr = out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		return nil, fmt.Errorf("child did not come up: %w", errors.Join(err, cmd.Wait()))
	}
	k := &child{cmd: cmd, stdin: stdin, ended: make(chan error, 1)}
	go func() { k.ended <- cmd.Wait() }()
	return k, nil
}

// kill ends it as a power cut ends a process.
func (k *child) kill() error {
	if err := k.cmd.Process.Kill(); err != nil {
		return err
	}
	<-k.ended
	return nil
}

// stop ends it cleanly.
func (k *child) stop() error {
	k.stdin.Close()
	return <-k.ended
}
