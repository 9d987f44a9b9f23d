package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"wayside/boltstore"
	"wayside/edge"
	"wayside/edge/admin"
	"wayside/edge/pulsar"
	"wayside/edge/schema"
	"wayside/uplink"
)

// smallHeap is GOGC while the environment does not say otherwise: the heap grows by half
// of what is alive before it is cleared, which suits a machine with little memory.
const smallHeap = 50

// server is a running broker: everything, wired together.
type server struct {
	settings
	stack
	log   *slog.Logger
	level *slog.LevelVar
	env   func(string) (string, bool)
	died  chan error // a front end that ended by itself

	data   dataDir
	ports  listeners
	store  *boltstore.Store
	broker *edge.Broker
	uplink *uplink.Uplink // nil for none
	edgeID string
	began  time.Time
	ready  bool // the start has succeeded: what it made stays
}

// start goes from the store up to the front ends. What it has started when it fails is
// on the stack. Ports are bound before the directory is made: a start that fails leaves
// nothing behind.
func (b *server) start() error {
	b.began = time.Now()
	build := thisBuild()
	b.log.Info("starting", "version", build.version, "commit", build.commit, "go", build.goes, "platform", build.platform)
	b.log.Info("configuration", "from", b.name())
	for _, step := range []func() error{
		b.claimData, b.claimPorts, b.boundMemory, b.openStore, b.identify, b.makeUplink, b.openBroker,
		b.startUplink, b.startFrontEnds,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	b.ready = true
	return nil
}

func (b *server) claimData() (err error) {
	if b.data, err = inspectDataDir(b.Storage.Path); err != nil {
		return err
	}
	if b.data.exists && b.data.inUse() {
		return b.data.refuseInUse(nil)
	}
	return nil
}

func (b *server) claimPorts() (err error) {
	if b.ports, err = bindPorts(&b.settings); err != nil {
		return err
	}
	b.push("listeners", func(context.Context) error {
		b.ports.close()
		return nil
	})
	return nil
}

// boundMemory sets the runtime's limits. They are the process's, so the stop puts them
// back.
func (b *server) boundMemory() error {
	limit := debug.SetMemoryLimit(b.Limits.Memory)
	restore := func() { debug.SetMemoryLimit(limit) }
	if text, _ := b.env("GOGC"); text == "" {
		percent := debug.SetGCPercent(smallHeap)
		restore = func() {
			debug.SetMemoryLimit(limit)
			debug.SetGCPercent(percent)
		}
	}
	b.push("memory limit", func(context.Context) error {
		restore()
		return nil
	})
	return nil
}

func (b *server) openStore() error {
	undo, err := b.data.make()
	if err != nil {
		return err
	}
	b.push("data directory", func(context.Context) error {
		if b.ready {
			return nil
		}
		return undo()
	})
	if b.store, err = boltstore.Open(b.storeOptions()); err != nil {
		return b.refuseStore(err)
	}
	b.push("store", func(context.Context) error { return b.store.Close() })
	b.tellData()
	return nil
}

func (b *server) storeOptions() boltstore.Options {
	o := boltstore.DefaultOptions()
	o.Path, o.Logger = b.data.path, b.log
	o.Quota, o.FileLimit = b.Storage.Quota, b.Storage.FileLimit
	o.CommitDelay = b.Storage.CommitDelay
	// Acknowledged data goes by whole ledgers: quarters of what is to stay readable.
	o.LedgerBytes = min(o.LedgerBytes, max(b.Storage.KeepAcked/4, 1<<20))
	o.JournalBytes = journalBytes(b.Storage.KeepAcked, o)
	return o
}

func (b *server) refuseStore(err error) error {
	switch {
	case errors.Is(err, boltstore.ErrLocked):
		return b.data.refuseInUse(err)
	case errors.Is(err, boltstore.ErrFormat):
		return failed(exitFailed, "data directory was written by another version", b.data.path, "use that version, or name another directory with --data")
	case errors.Is(err, os.ErrPermission):
		return failed(exitFailed, "cannot use the data directory", b.data.path, err.Error()+"; its files belong to somebody else, change their owner")
	}
	return failed(exitFailed, "cannot open the data directory", b.data.path, err.Error())
}

func (b *server) tellData() {
	b.log.Info("data directory", "path", b.data.path, "file_system", b.data.fileSystem,
		"free", roughSize(b.data.free), "quota", roughSize(b.Storage.Quota))
	for _, w := range b.data.warnings() {
		b.log.Warn(w, "path", b.data.path)
	}
}

// identify finds the name of this device: the configured one, or the store's.
func (b *server) identify() (err error) {
	if b.edgeID = b.Edge.ID; b.edgeID != "" {
		return nil
	}
	if b.edgeID, err = frozenEdgeID(b.store, machineName(b.log)); err != nil {
		return failed(exitFailed, "cannot use the data directory", b.data.path, err.Error())
	}
	return nil
}

func (b *server) openBroker() (err error) {
	if b.broker, err = edge.NewBroker(b.store, b.coreOptions()); err != nil {
		return failed(exitFailed, "cannot read the data directory", b.data.path, err.Error())
	}
	b.push("broker", b.broker.Close)
	return nil
}

func (b *server) coreOptions() edge.Options {
	o := edge.DefaultOptions()
	o.Logger, o.Boot = b.log, readBootID(b.log)
	o.Budget = edge.NewBudget(b.Limits.Memory)
	o.AutoCreate, o.AutoCreateNamespaces = b.Topics.AutoCreate, b.Topics.AutoCreateNamespaces
	o.AutoPartitions = int(b.Topics.AutoPartitions)
	o.Deduplication = b.Topics.Deduplication
	o.Transactions, o.Marker = b.Topics.Transactions, pulsar.Marker
	o.MaxMessageSize = int(b.Limits.MessageSize)
	o.BacklogCheckInterval = b.Topics.BacklogCheckInterval
	o.WhenFull = map[string]edge.WhenFull{
		"hold": edge.WhenFullHold, "fail": edge.WhenFullFail, "drop-oldest": edge.WhenFullDropOldest,
	}[b.Storage.WhenFull]
	o.KeepAcked = b.Storage.KeepAcked
	o.Opener = newOpener(b.Limits.MessageSize)
	o.SchemaRules = schema.Rules{}
	o.SchemaStrategy, _ = edge.ParseSchemaStrategy(b.Schemas.Compatibility)
	o.SchemaAutoUpdate, o.SchemaEnforced = b.Schemas.AutoUpdate, b.Schemas.Required
	o.OnCreate = b.reserved()
	return o
}

func (b *server) startFrontEnds() error {
	clients, err := b.startPulsar()
	if err != nil {
		return err
	}
	if err := b.startAdmin(clients); err != nil {
		return err
	}
	b.ports.tell(b.log)
	return nil
}

func (b *server) startPulsar() (*pulsar.Server, error) {
	server, err := pulsar.New(b.broker, b.clientOptions())
	if err != nil {
		return nil, failed(exitUsage, "wrong configuration", "listen.advertised", err.Error())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(b.ports.pulsar); !errors.Is(err, pulsar.ErrServerClosed) {
			b.died <- err
		}
	}()
	b.push("clients", func(ctx context.Context) error {
		err := b.closeClients(ctx, server.Close)
		<-ended
		return err
	})
	return server, nil
}

// closeClients lets clients have what they are owed. Those that do not take it are cut
// in time for the steps behind this one; what is theirs comes again.
func (b *server) closeClients(ctx context.Context, closing func(context.Context) error) error {
	own, cancel := context.WithTimeout(ctx, clientsTimeout)
	defer cancel()
	err := closing(own)
	if err != nil && own.Err() != nil && ctx.Err() == nil {
		b.log.Warn("clients that did not take what they are owed were cut", "after", clientsTimeout)
		return nil
	}
	return err
}

func (b *server) clientOptions() pulsar.Options {
	o := pulsar.DefaultOptions()
	o.Logger, o.SinceBoot = b.log, sinceBoot
	o.MaxMessageSize = int(b.Limits.MessageSize)
	o.Connections = int(b.Limits.Connections)
	o.Advertised = withPort(b.Listen.Advertised, portOf(b.ports.pulsar))
	o.ServerVersion = "Wayside " + thisBuild().version
	return o
}

func (b *server) startAdmin(clients *pulsar.Server) error {
	if b.ports.admin == nil {
		return nil
	}
	o := admin.DefaultOptions()
	o.Listener, o.Broker, o.Logger = b.ports.admin, b.broker, b.log
	o.Version = thisBuild().version
	o.PulsarPort = portOf(b.ports.pulsar)
	o.Advertised = withPort(b.Listen.Advertised, o.PulsarPort)
	o.Clients = clients.Sessions
	o.Backups = b.startBackups()
	o.Sections = map[string]func() any{"data": b.reportData, "uplink": b.reportUplink}
	o.Collectors = append(o.Collectors, processCollector(float64(b.began.UnixMilli())/1e3))
	if b.uplink != nil {
		o.Collectors = append(o.Collectors, newUplinkMetrics(b.uplink.Status))
	}
	server, err := admin.New(o)
	if err != nil {
		return failed(exitFailed, "cannot start admin", b.Listen.Admin, err.Error())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(context.Background()); err != nil {
			b.died <- err
		}
	}()
	b.push("admin", func(ctx context.Context) error {
		err := server.Close(ctx)
		<-ended
		return err
	})
	return nil
}

// withPort completes an advertised host without a port by the one that is listened on.
func withPort(advertised string, port int) string {
	if advertised == "" || strings.Contains(advertised, "://") {
		return advertised
	}
	if _, _, err := net.SplitHostPort(advertised); err == nil {
		return advertised
	}
	return net.JoinHostPort(strings.Trim(advertised, "[]"), strconv.Itoa(port))
}

// dataReport is what status says of the data directory.
type dataReport struct {
	EdgeID     string   `json:"edgeId"`
	Path       string   `json:"path"`
	FileSystem string   `json:"fileSystem"`
	Free       int64    `json:"free"`
	Warnings   []string `json:"warnings"`
}

func (b *server) reportData() any {
	now := b.data
	// What cannot be asked any more stays as it was at the start.
	if err := now.statFileSystem(now.path); err != nil {
		now = b.data
	}
	return dataReport{b.edgeID, now.path, now.fileSystem, now.free, now.warnings()}
}

// journalSlack is what the journal holds beside the acknowledged data that is to stay
// readable: so that this never has to be moved.
const journalSlack = 16 << 20

// journalBytes is the size of the journal: never more than an eighth of what the files
// may take.
func journalBytes(keep int64, o boltstore.Options) int64 {
	limit := o.FileLimit
	if limit == 0 {
		limit = 2 * o.Quota
	}
	return min(keep+journalSlack, limit/8)
}
