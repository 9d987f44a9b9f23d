package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"wayside/edge"
)

const (
	dialTimeout      = 5 * time.Second  // to find out whether a broker is there at all
	operationTimeout = 15 * time.Second // to create a producer or a consumer
	leaveTimeout     = 5 * time.Second  // to say goodbye after a signal
	clientMemory     = 8 << 20          // bytes of messages on their way
)

// clientFlags are the flags of every command that is a client of a broker.
type clientFlags struct {
	url     string
	verbose bool
}

func (f *clientFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "url", "pulsar://localhost:6650", "`URL` of the broker, Wayside or any Pulsar")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log what the client does, to standard error")
}

// connect returns an official client. Whether somebody listens is asked first: the
// client itself would try for a long time.
func (f *clientFlags) connect(ctx context.Context, stderr io.Writer) (pulsar.Client, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" || u.Scheme != "pulsar" && u.Scheme != "pulsar+ssl" {
		return nil, failed(exitUsage, "wrong usage", "--url "+f.url, "write pulsar://HOST:PORT")
	}
	if err := reach(ctx, u); err != nil {
		return nil, failed(exitUnreachable, "no broker answers", f.url, fmt.Sprintf("%v; start one with wayside serve, or name another with --url", rootCause(err)))
	}
	logger := slog.New(slog.DiscardHandler)
	if f.verbose {
		logger = slog.New(slog.NewTextHandler(stderr, nil))
	}
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:               f.url,
		ConnectionTimeout: dialTimeout,
		OperationTimeout:  operationTimeout,
		MemoryLimitBytes:  clientMemory,
		Logger:            pulsarlog.NewLoggerWithSlog(logger),
		MetricsRegisterer: prometheus.NewRegistry(),
		Description:       "wayside",
	})
	if err != nil {
		return nil, failed(exitFailed, "cannot use the broker", f.url, err.Error())
	}
	return client, nil
}

// reach dials the hosts of a URL in turn until one takes the connection.
func reach(ctx context.Context, u *url.URL) error {
	var last error
	for _, host := range strings.Split(u.Host, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, map[string]string{"pulsar": "6650", "pulsar+ssl": "6651"}[u.Scheme])
		}
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", host)
		if err == nil {
			return conn.Close()
		}
		last = err
	}
	return last
}

// rootCause is what a network error says without its wrapping of addresses.
func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}

// topicArgument accepts a topic in any form that people write.
func topicArgument(s string) (string, error) {
	name, err := edge.ParseTopicName(s)
	if err != nil && strings.Count(s, "/") == 2 {
		return "", failed(exitUsage, "wrong topic", s, err.Error())
	}
	if err != nil {
		return "", failed(exitUsage, "wrong topic", s, "write temperature, tenant/namespace/topic or persistent://tenant/namespace/topic")
	}
	return name.String(), nil
}

// lingering ends leaveTimeout after ctx does. Sends get it, so that a signal does not take
// back what is on its way.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(leaveTimeout, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() {
		stop()
		cancel()
	}
}

// leave closes something of the client's, which may wait for a broker that is gone,
// and does not wait for ever.
func leave(closers ...func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range closers {
			c()
		}
	}()
	select {
	case <-done:
	case <-time.After(leaveTimeout):
	}
}
