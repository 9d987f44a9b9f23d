package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
)

// listeners are bound before the data directory is touched, so that a port that is
// taken leaves nothing behind.
type listeners struct {
	pulsar net.Listener
	admin  net.Listener // nil for none
}

func bindPorts(s *settings) (listeners, error) {
	var l listeners
	var err error
	if l.pulsar, err = bindOne(s.Listen.Pulsar, "listen.pulsar", "--listen"); err != nil {
		return l, err
	}
	if s.Listen.Admin == "" {
		return l, nil
	}
	if l.admin, err = bindOne(s.Listen.Admin, "listen.admin", "--admin"); err != nil {
		l.close()
	}
	return l, err
}

func bindOne(address, key, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failed(exitFailed, "port is taken", address, fmt.Sprintf("another program listens there, stop it or set %s with %s", key, flag))
	case errors.Is(err, syscall.EACCES):
		return nil, failed(exitFailed, "may not listen", address, "ports under 1024 need the right to, set "+key+" with "+flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, failed(exitFailed, "no such address on this machine", address, "set "+key+" with "+flag)
	}
	return nil, failed(exitFailed, "cannot listen", address, fmt.Sprintf("%v, set %s with %s", rootCause(err), key, flag))
}

func (l listeners) close() {
	for _, each := range []net.Listener{l.pulsar, l.admin} {
		if each != nil {
			_ = each.Close() // nobody has connected that would be told
		}
	}
}

// tell logs where clients are awaited, and whether from elsewhere too.
func (l listeners) tell(log *slog.Logger) {
	for _, each := range []struct {
		name string
		l    net.Listener
	}{{"pulsar", l.pulsar}, {"admin", l.admin}} {
		if each.l != nil {
			log.Info("listening", "for", each.name, "address", each.l.Addr().String(), "reach", reachOf(each.l.Addr()), "auth", "off")
		}
	}
}

func reachOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case ok && tcp.IP.IsLoopback():
		return "this machine only"
	case ok && tcp.IP.IsUnspecified():
		return "all addresses"
	}
	return "one address"
}

func portOf(l net.Listener) int {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}
