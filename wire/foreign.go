package wire

import (
	"bytes"
	"fmt"
)

// ForeignError tells that a connection does not begin with Pulsar's protocol but
// with one that can be recognized.
type ForeignError struct {
	Protocol string // "TLS", "HTTP", …
	Hint     string // what the owner of the client should do
	Err      error  // what is wrong with the bytes as a frame
}

// Error says what was received and what to do about it.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("wire: this is %s, not the Pulsar protocol: %s", e.Protocol, e.Hint)
}

// Unwrap returns what is wrong with the bytes as a frame.
func (e *ForeignError) Unwrap() error { return e.Err }

// foreign explains the refusal of a first frame by what its buffered bytes look
// like. As sizes, all of them are above any limit, so that no frame is mistaken.
func (r *Reader) foreign(err error) error {
	if r.used {
		return err
	}
	protocol, hint := recognize(r.buf[r.r:r.w])
	if protocol == "" {
		return err
	}
	return &ForeignError{Protocol: protocol, Hint: hint, Err: err}
}

func recognize(b []byte) (protocol, hint string) {
	switch {
	case b[0] == 0x16 && b[1] == 0x03: // handshake record, major version 3
		return "TLS", "use the TLS port, or pulsar:// instead of pulsar+ssl://"
	case isHTTP(b):
		return "HTTP", "the admin address speaks HTTP, this port does not"
	case isMQTT(b):
		return "MQTT", "this port speaks Pulsar only"
	case bytes.HasPrefix(b, []byte("PROXY")), bytes.HasPrefix(b, []byte("\r\n\r\n")):
		return "a proxy's PROXY header", "switch the PROXY protocol off for this port"
	case bytes.HasPrefix(b, []byte("SSH-")):
		return "SSH", "wrong port"
	case bytes.HasPrefix(b, []byte("AMQP")):
		return "AMQP", "wrong port"
	}
	return "", ""
}

// isHTTP knows a request by four letters of its method, HTTP/2 by its preface.
func isHTTP(b []byte) bool {
	methods := [...]string{"GET ", "POST", "PUT ", "HEAD", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "}
	for _, m := range methods {
		if string(b[:len(m)]) == m {
			return true
		}
	}
	return false
}

// isMQTT knows a CONNECT: its type, one or more length bytes, then the protocol's
// name with a two-byte length.
func isMQTT(b []byte) bool {
	if b[0] != 0x10 {
		return false
	}
	rest := b[1:]
	for len(rest) > 0 && rest[0] >= 0x80 {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	rest = rest[1:]
	return bytes.HasPrefix(rest, []byte("\x00\x04MQTT")) || bytes.HasPrefix(rest, []byte("\x00\x06MQIsdp"))
}
