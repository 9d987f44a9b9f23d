package wiretest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// peerLimit bounds the frames a peer takes: those of the default message size.
const peerLimit = wire.DefaultMaxMessageSize + 64<<10

// Peer is one end of a connection, client or broker, that speaks frame by frame.
// All its waiting is bounded by a timeout. One goroutine may send while another
// expects.
type Peer struct {
	conn    net.Conn
	reader  *wire.Reader
	timeout time.Duration
	// Mute keeps Expect from answering PINGs.
	Mute bool

	writing sync.Mutex // held for a frame

	mu    sync.Mutex // guards what follows
	lines []string
}

// Received is a frame that a peer got.
type Received struct {
	*pulsarpb.BaseCommand
	Entry []byte // what followed the command
	Frame []byte // the whole, for wire.Dump
}

// Dial connects to a broker.
func Dial(addr string, timeout time.Duration) (*Peer, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return NewPeer(conn, timeout), nil
}

// NewPeer speaks over a connection that is there already, a TLS one for example,
// and owns it.
func NewPeer(conn net.Conn, timeout time.Duration) *Peer {
	return &Peer{conn: conn, reader: wire.NewReader(conn, peerLimit), timeout: timeout}
}

// Conn gives the connection, for what a peer cannot do.
func (p *Peer) Conn() net.Conn { return p.conn }

// Close ends the connection.
func (p *Peer) Close() error { return p.conn.Close() }

// Reset ends the connection with a reset instead of a proper end.
func (p *Peer) Reset() error { return reset(p.conn) }

// Send sends one of the Command messages.
func (p *Peer) Send(sub proto.Message) error {
	return p.SendEntry(sub, nil)
}

// SendEntry sends a SEND or MESSAGE with its entry.
func (p *Peer) SendEntry(sub proto.Message, entry []byte) error {
	frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(sub), entry)
	if err != nil {
		return err
	}
	return p.SendFrame(frame)
}

// SendFrame sends bytes as they are, whole frames or not.
func (p *Peer) SendFrame(b []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.note("> ", b)
	if err := p.conn.SetWriteDeadline(time.Now().Add(p.timeout)); err != nil {
		return err
	}
	_, err := p.conn.Write(b)
	return err
}

// Next waits for the next frame, whatever it is.
func (p *Peer) Next() (*Received, error) { return p.next(p.timeout) }

// Expect waits for the next frame that is no PING or PONG, answers the PINGs on
// the way, and wants it to be of type typ.
func (p *Peer) Expect(typ pulsarpb.BaseCommand_Type) (*Received, error) {
	for {
		got, err := p.next(p.timeout)
		if err != nil {
			return nil, fmt.Errorf("expect %s: %w", typ, err)
		}
		if got.GetType() == typ {
			return got, nil
		}
		switch got.GetType() {
		case pulsarpb.BaseCommand_PING:
			if err := p.pong(); err != nil {
				return nil, fmt.Errorf("expect %s: %w", typ, err)
			}
		case pulsarpb.BaseCommand_PONG:
		default:
			return got, fmt.Errorf("expect %s: got %s", typ, wire.Dump(got.Frame))
		}
	}
}

// ExpectQuiet wants that nothing but PING and PONG comes for the time given.
func (p *Peer) ExpectQuiet(wait time.Duration) error {
	end := time.Now().Add(wait)
	for {
		got, err := p.next(time.Until(end))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("expect nothing: %w", err)
		}
		switch got.GetType() {
		case pulsarpb.BaseCommand_PING:
			if err := p.pong(); err != nil {
				return fmt.Errorf("expect nothing: %w", err)
			}
		case pulsarpb.BaseCommand_PONG:
		default:
			return fmt.Errorf("expect nothing: got %s", wire.Dump(got.Frame))
		}
	}
}

// ExpectClose wants the other side to end the connection, by an end or a reset,
// without another frame.
func (p *Peer) ExpectClose() error {
	got, err := p.next(p.timeout)
	if err == nil {
		return fmt.Errorf("expect the end: got %s", wire.Dump(got.Frame))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("expect the end: %w", err)
	}
	return nil
}

// Connect makes the handshake of a client of protocol version 21.
func (p *Peer) Connect() (*pulsarpb.CommandConnected, error) {
	err := p.Send(&pulsarpb.CommandConnect{
		ClientVersion:   proto.String("wiretest"),
		ProtocolVersion: proto.Int32(21),
		FeatureFlags:    &pulsarpb.FeatureFlags{SupportsAuthRefresh: proto.Bool(true)},
	})
	if err != nil {
		return nil, err
	}
	got, err := p.Expect(pulsarpb.BaseCommand_CONNECTED)
	if err != nil {
		return nil, err
	}
	return got.GetConnected(), nil
}

// Accept makes the handshake of a broker and returns what the client said.
func (p *Peer) Accept() (*pulsarpb.CommandConnect, error) {
	got, err := p.Expect(pulsarpb.BaseCommand_CONNECT)
	if err != nil {
		return nil, err
	}
	return got.GetConnect(), p.Send(&pulsarpb.CommandConnected{
		ServerVersion:   proto.String("wiretest"),
		ProtocolVersion: proto.Int32(min(21, got.GetConnect().GetProtocolVersion())),
		MaxMessageSize:  proto.Int32(wire.DefaultMaxMessageSize),
		FeatureFlags:    &pulsarpb.FeatureFlags{},
	})
}

// Transcript returns all frames so far, one a line: "> " sent, "< " received.
func (p *Peer) Transcript() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *Peer) note(direction string, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, direction+wire.Dump(frame))
}

func (p *Peer) pong() error {
	if p.Mute {
		return nil
	}
	return p.SendFrame([]byte(wire.PongFrame))
}

func (p *Peer) next(wait time.Duration) (*Received, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	h, err := p.reader.Next()
	if err != nil {
		return nil, err
	}
	frame, err := readFrame(p.reader, h, nil)
	if err != nil {
		return nil, err
	}
	f, err := wire.SplitFrame(frame)
	if err != nil {
		return nil, err
	}
	p.note("< ", frame)
	c, err := wire.Decode(f.CommandBytes)
	if err != nil {
		return nil, err
	}
	return &Received{BaseCommand: c, Entry: f.Entry, Frame: frame}, nil
}

// readFrame reads the frame whose header was taken, into buf if it has room.
func readFrame(r *wire.Reader, h wire.Header, buf []byte) ([]byte, error) {
	buf = h.AppendTo(buf[:0])
	from := len(buf)
	buf = append(buf, make([]byte, h.Body())...)
	return buf, r.ReadBody(buf[from:])
}

// reset closes so that the other side sees a reset.
func reset(c net.Conn) error {
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return c.Close()
}
