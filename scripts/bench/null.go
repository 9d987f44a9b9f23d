package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// The commands that a publisher needs, by their BaseCommand.Type in PulsarApi.proto. For all but PING and PONG, which
// are empty, the command itself is the field of BaseCommand with the number that follows.
const (
	cmdConnect, fieldConnect                     = 2, 2
	cmdConnected, fieldConnected                 = 3, 3
	cmdProducer, fieldProducer                   = 5, 5
	cmdSend, fieldSend                           = 6, 6
	cmdSendReceipt, fieldSendReceipt             = 7, 7
	cmdSuccess, fieldSuccess                     = 13, 13
	cmdCloseProducer, fieldCloseProducer         = 15, 15
	cmdProducerSuccess, fieldProducerSuccess     = 17, 17
	cmdPing                                      = 18
	cmdPong, fieldPong                           = 19, 19
	cmdPartitions, fieldPartitions               = 21, 21
	cmdPartitionsResponse, fieldPartitionsAnswer = 22, 22
	cmdLookup, fieldLookup                       = 23, 23
	cmdLookupResponse, fieldLookupAnswer         = 24, 24
)

// maxFrame is a little more than the 5 MiB that CONNECTED promises.
const maxFrame = 5<<20 + 10<<10

// A keeper stores what is published, in the order of its calls, and then calls done. Nil stores nothing.
type keeper func(entry []byte, done func())

// serveNull listens at address and receipts every message when keep has it: at once when there is none, and then what
// the official client reaches against it is what client and machine allow at most.
func serveNull(address string, keep keeper) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			s := newNullSession(c, "pulsar://"+address, keep)
			_ = s.run() // ends with the client
		}()
	}
}

type nullSession struct {
	r     *bufio.Reader
	url   string
	keep  keeper
	frame []byte
	entry uint64

	mu      sync.Mutex // of what follows, since done is called by the keeper
	w       *bufio.Writer
	written chan struct{} // wakes who flushes for the keeper
}

func newNullSession(c net.Conn, url string, keep keeper) *nullSession {
	return &nullSession{
		r: bufio.NewReaderSize(c, 256<<10), w: bufio.NewWriterSize(c, 64<<10), url: url, keep: keep, written: make(chan struct{}, 1),
	}
}

// run answers frames until the client goes. Answers are written when no further frame has arrived yet.
func (s *nullSession) run() error {
	if s.keep != nil {
		var flusher sync.WaitGroup
		ended := make(chan struct{})
		flusher.Go(func() { s.flushKept(ended) })
		defer flusher.Wait()
		defer close(ended)
	}
	for {
		if s.r.Buffered() == 0 {
			if err := s.flush(); err != nil {
				return err
			}
		}
		command, rest, err := s.next()
		if err != nil {
			return err
		}
		s.answer(command, rest)
	}
}

func (s *nullSession) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Flush()
}

// flushKept writes the receipts that the keeper has called for, as many at once as there are.
func (s *nullSession) flushKept(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-s.written:
		}
		_ = s.flush() // run meets the error too
	}
}

// next reads a frame, total size, command size, command, and returns its command and what is behind it: headers and
// payload.
func (s *nullSession) next() (command, rest []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return nil, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > maxFrame {
		return nil, nil, fmt.Errorf("frame of %d bytes", size)
	}
	if int(size) > cap(s.frame) {
		s.frame = make([]byte, size)
	}
	frame := s.frame[:size]
	if _, err := io.ReadFull(s.r, frame); err != nil {
		return nil, nil, err
	}
	length := binary.BigEndian.Uint32(frame)
	if length > size-4 {
		return nil, nil, fmt.Errorf("command of %d bytes in a frame of %d", length, size)
	}
	return frame[4 : 4+length], frame[4+length:], nil
}

func (s *nullSession) answer(command, rest []byte) {
	switch number(command, 1) {
	case cmdConnect:
		s.write(cmdConnected, fieldConnected, message{}.text(1, "null").number(2, 21).number(3, 5<<20))
	case cmdPartitions:
		s.write(cmdPartitionsResponse, fieldPartitionsAnswer, message{}.number(1, 0).number(2, number(part(command, fieldPartitions), 2)).number(3, 0))
	case cmdLookup:
		s.write(cmdLookupResponse, fieldLookupAnswer,
			message{}.text(1, s.url).number(3, 1).number(4, number(part(command, fieldLookup), 2)).number(5, 1))
	case cmdProducer:
		s.write(cmdProducerSuccess, fieldProducerSuccess, message{}.number(1, number(part(command, fieldProducer), 3)).text(2, "null").number(3, ^uint64(0)))
	case cmdSend:
		s.entry++
		send := part(command, fieldSend)
		id := message{}.number(1, 1).number(2, s.entry)
		receipt := message{}.number(1, number(send, 1)).number(2, number(send, 2)).text(3, string(id))
		if s.keep == nil {
			s.write(cmdSendReceipt, fieldSendReceipt, receipt)
			return
		}
		s.keep(bytes.Clone(rest), func() {
			s.write(cmdSendReceipt, fieldSendReceipt, receipt)
			select {
			case s.written <- struct{}{}:
			default:
			}
		})
	case cmdCloseProducer:
		s.write(cmdSuccess, fieldSuccess, message{}.number(1, number(part(command, fieldCloseProducer), 2)))
	case cmdPing:
		s.write(cmdPong, fieldPong, nil)
	}
}

// write leaves errors to the next Flush, which returns the first one.
func (s *nullSession) write(kind uint64, field protowire.Number, m message) {
	command := message{}.number(1, kind).text(field, string(m))
	head := binary.BigEndian.AppendUint32(nil, uint32(len(command)+4))
	head = binary.BigEndian.AppendUint32(head, uint32(len(command)))
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write(head)
	_, _ = s.w.Write(command)
}

// message is an encoded protobuf message that grows field by field.
type message []byte

func (m message) number(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) text(field protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

// number returns a numeric field of an encoded message, 0 if it is not there.
func number(m []byte, field protowire.Number) uint64 {
	v, _ := protowire.ConsumeVarint(value(m, field, protowire.VarintType))
	return v
}

// part returns an embedded message, empty if it is not there.
func part(m []byte, field protowire.Number) []byte {
	v, _ := protowire.ConsumeBytes(value(m, field, protowire.BytesType))
	return v
}

// value returns what follows the tag of a field; nil if there is none of that type, or the message is damaged before it.
func value(m []byte, field protowire.Number, kind protowire.Type) []byte {
	for len(m) > 0 {
		f, t, n := protowire.ConsumeTag(m)
		if n < 0 {
			return nil
		}
		m = m[n:]
		if f == field && t == kind {
			return m
		}
		if n = protowire.ConsumeFieldValue(f, t, m); n < 0 {
			return nil
		}
		m = m[n:]
	}
	return nil
}
