package pulsar

import (
	"errors"
	"net"
	"syscall"
)

// socket writes to a connection without ever waiting.
type socket struct {
	raw syscall.RawConn // nil where that cannot be done
	try func(fd uintptr) bool
	buf []byte
	n   int
	err error
}

// open finds out whether it can be done. Over TLS it cannot: what the socket does not
// take of a record could not be left to others.
func (s *socket) open(conn net.Conn) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.try = func(fd uintptr) bool {
		s.n, s.err = syscall.Write(int(fd), s.buf)
		return true
	}
}

// write writes as much of buf as there is room for, which may be nothing.
func (s *socket) write(buf []byte) (int, error) {
	s.buf = buf
	err := s.raw.Write(s.try)
	s.buf = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(s.err, syscall.EAGAIN), errors.Is(s.err, syscall.EINTR):
		return 0, nil
	}
	return max(s.n, 0), s.err
}
