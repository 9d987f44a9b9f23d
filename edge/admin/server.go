package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// maxHeader bounds a request's head: a topic name of 2 KiB, encoded twice, takes 18.
const maxHeader = 32 << 10

// maxSegments bounds the depth of a path, and with it the work of finding a route.
const maxSegments = 32

// Server answers HTTP for one broker.
type Server struct {
	opts    Options
	broker  *edge.Broker
	log     *slog.Logger
	mux     *http.ServeMux
	http    *http.Server
	started time.Time // monotonic
	closing atomic.Bool
	cancel  context.CancelFunc // ends the work on all requests
}

// New makes a server; nothing is served before Serve. It fails when the metrics handed
// in contradict each other.
func New(o Options) (*Server, error) {
	s := &Server{opts: o, broker: o.Broker, log: o.Logger, mux: http.NewServeMux(), started: time.Now()}
	metrics, err := s.metricsHandler()
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	s.mux.Handle("GET /metrics", metrics)
	s.healthRoutes()
	s.statusRoutes()
	s.backupRoutes()
	s.brokerRoutes()
	s.clusterRoutes()
	s.tenantRoutes()
	s.namespaceRoutes()
	s.lookupRoutes()
	s.schemaRoutes()
	s.schemaPolicyRoutes()
	s.ruleRoutes()
	s.backlogRoutes()
	s.transactionRoutes()
	for _, domain := range []string{edge.Persistent, edge.NonPersistent} {
		s.topicRoutes(domain)
		s.partitionRoutes(domain)
		s.subscriptionRoutes(domain)
		s.statsRoutes(domain)
		s.propertyRoutes(domain)
		s.messageRoutes(domain)
		s.compactionRoutes(domain)
		s.expiryRoutes(domain)
	}
	base, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.http = &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: o.HeaderTimeout,
		ReadTimeout:       o.ReadTimeout,
		WriteTimeout:      o.ReadTimeout + o.RequestTimeout + o.HeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Serve answers requests until Close is called, the context ends or the listener
// fails. Only the last is an error.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.cancel()
		_ = s.http.Close()
	})
	defer stop()
	err := s.http.Serve(limit(s.opts.Listener, s.opts.Connections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve admin: %w", err)
}

// Close stops accepting, lets the requests under way finish until the context ends, and
// cuts the rest. From its call on the broker reports that it is not ready.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Store(true)
	defer s.cancel()
	err := s.http.Shutdown(ctx)
	_ = s.opts.Listener.Close() // Serve may never have been called
	if err != nil {
		s.cancel()
		_ = s.http.Close()
		return fmt.Errorf("stop admin: %w", err)
	}
	return nil
}

// ServeHTTP finds the route. The mux answers in its own words what has none, so that is
// done here.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	r, ok := tidied(r)
	if !ok {
		s.answer(w, r, refuse(http.StatusNotFound, "Not found"))
		return
	}
	route, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	var probe probe
	route.ServeHTTP(&probe, r)
	if allow := probe.Header().Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		s.answer(w, r, refuse(http.StatusMethodNotAllowed, "Method %s is not allowed here", r.Method))
		return
	}
	s.answer(w, r, refuse(http.StatusNotFound, "Not found"))
}

// tidied drops one slash at the end of the path, as Pulsar does. Paths with empty or
// dotted parts are nowhere: the mux would redirect them, and clients that follow lose
// method and body.
func tidied(r *http.Request) (*http.Request, bool) {
	escaped := r.URL.EscapedPath()
	trimmed := strings.TrimSuffix(escaped, "/")
	if !strings.HasPrefix(trimmed, "/") || path.Clean(trimmed) != trimmed || strings.Count(trimmed, "/") > maxSegments {
		return r, false
	}
	if trimmed == escaped {
		return r, true
	}
	clone, u := *r, *r.URL
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	clone.URL = &u
	return &clone, true
}

// probe takes what the mux says about a request without a route.
type probe struct{ header http.Header }

func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(int)             {}

// handler does the work of one route. Its value goes out as write says.
type handler func(r *http.Request) (any, error)

// handle registers a route.
func (s *Server) handle(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.opts.RequestTimeout)
		defer cancel()
		value, err := h(r.WithContext(ctx))
		if err == nil {
			err = write(w, value)
		}
		if err != nil {
			s.answer(w, r, err)
			return
		}
		s.note(r)
	})
}

// topicHandler does the work of a route below a topic's name.
type topicHandler func(r *http.Request, name edge.TopicName) (any, error)

// handleTopic registers a route below the topics of a domain: method and rest of the
// path.
func (s *Server) handleTopic(domain, method, rest string, h topicHandler) {
	s.handle(method+" /admin/v2/"+domain+"/{tenant}/{namespace}/{topic}"+rest, func(r *http.Request) (any, error) {
		name, err := topicOf(r, domain)
		if err != nil {
			return nil, err
		}
		value, err := h(r, name)
		return value, ofTopic(err, name)
	})
}

// note logs what changed something.
func (s *Server) note(r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.log.Info("admin request", "method", r.Method, "path", r.URL.EscapedPath(), "from", r.RemoteAddr)
	}
}

// answer writes a refusal, and logs those that are not the request's fault.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, err error) {
	verdict := judge(err)
	if verdict.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Warn("admin request failed", "method", r.Method, "path", r.URL.EscapedPath(), "err", err)
	}
	body, err := encode(reason{verdict.reason})
	if err != nil { // a struct of one string
		body = []byte("{}")
	}
	writeBytes(w, verdict.status, "application/json", body)
}
