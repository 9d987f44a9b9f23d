package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"wayside/wire/pulsarpb"
)

// PingFrame and PongFrame are whole frames: a type and an empty command.
const (
	PingFrame = "\x00\x00\x00\x09\x00\x00\x00\x05\x08\x12\x92\x01\x00"
	PongFrame = "\x00\x00\x00\x09\x00\x00\x00\x05\x08\x13\x9a\x01\x00"
)

// Fields are written in the order of their numbers, as every peer does, so that
// equal values give equal bytes.

// AppendSendReceipt appends a SEND_RECEIPT. Sequence and highest are those of the
// SEND, highest 0 if it had none; ledger and entry are -1 for a duplicate.
func AppendSendReceipt(dst []byte, producer uint64, sequence, highest, ledger, entry int64) []byte {
	id := 2 + protowire.SizeVarint(uint64(ledger)) + protowire.SizeVarint(uint64(entry))
	size := 4 + protowire.SizeVarint(producer) + protowire.SizeVarint(uint64(sequence)) +
		protowire.SizeBytes(id) + protowire.SizeVarint(uint64(highest))
	dst = appendHead(dst, pulsarpb.BaseCommand_SEND_RECEIPT, size, 0)
	dst = appendVarint(dst, 1, producer)
	dst = appendVarint(dst, 2, uint64(sequence))
	dst = appendLength(dst, 3, id)
	dst = appendVarint(dst, 1, uint64(ledger))
	dst = appendVarint(dst, 2, uint64(entry))
	return appendVarint(dst, 4, uint64(highest))
}

// MessageHead is a MESSAGE command, without the entry.
type MessageHead struct {
	ConsumerID      uint64
	Ledger, Entry   int64
	Partition       int32   // -1 if the topic is none
	RedeliveryCount uint32  // left out when 0
	AckSet          []int64 // what remains of a partly acknowledged batch
	ConsumerEpoch   int64   // left out unless HasEpoch
	HasEpoch        bool
}

// AppendMessage appends the frame of a MESSAGE up to where its entry begins, which
// has entryLength bytes and is to be written behind it.
func AppendMessage(dst []byte, h *MessageHead, entryLength int) []byte {
	id := 3 + protowire.SizeVarint(uint64(h.Ledger)) + protowire.SizeVarint(uint64(h.Entry)) +
		protowire.SizeVarint(uint64(h.Partition))
	dst = appendHead(dst, pulsarpb.BaseCommand_MESSAGE, h.size(id), entryLength)
	dst = appendVarint(dst, 1, h.ConsumerID)
	dst = appendLength(dst, 2, id)
	dst = appendVarint(dst, 1, uint64(h.Ledger))
	dst = appendVarint(dst, 2, uint64(h.Entry))
	dst = appendVarint(dst, 3, uint64(h.Partition))
	if h.RedeliveryCount > 0 {
		dst = appendVarint(dst, 3, uint64(h.RedeliveryCount))
	}
	for _, w := range h.AckSet {
		dst = appendVarint(dst, 4, uint64(w))
	}
	if h.HasEpoch {
		dst = appendVarint(dst, 5, uint64(h.ConsumerEpoch))
	}
	return dst
}

// size returns the length of the CommandMessage, whose message id has id bytes.
func (h *MessageHead) size(id int) int {
	n := 2 + protowire.SizeVarint(h.ConsumerID) + protowire.SizeBytes(id)
	if h.RedeliveryCount > 0 {
		n += 1 + protowire.SizeVarint(uint64(h.RedeliveryCount))
	}
	for _, w := range h.AckSet {
		n += 1 + protowire.SizeVarint(uint64(w))
	}
	if h.HasEpoch {
		n += 1 + protowire.SizeVarint(uint64(h.ConsumerEpoch))
	}
	return n
}

// AppendAckResponse appends an ACK_RESPONSE. It is a failure if there is a text,
// by which the Go client decides; code is left out otherwise.
func AppendAckResponse(dst []byte, consumer, request uint64, code pulsarpb.ServerError, text string) []byte {
	size := 2 + protowire.SizeVarint(consumer) + protowire.SizeVarint(request)
	if text != "" {
		size += 2 + protowire.SizeVarint(uint64(code)) + protowire.SizeBytes(len(text))
	}
	dst = appendHead(dst, pulsarpb.BaseCommand_ACK_RESPONSE, size, 0)
	dst = appendVarint(dst, 1, consumer)
	if text != "" {
		dst = appendVarint(dst, 4, uint64(code))
		dst = appendLength(dst, 5, len(text))
		dst = append(dst, text...)
	}
	return appendVarint(dst, 6, request)
}

// appendHead appends size fields, type, and the head of the command of size bytes.
func appendHead(dst []byte, typ pulsarpb.BaseCommand_Type, size, entry int) []byte {
	command := protowire.SizeTag(1) + protowire.SizeVarint(uint64(typ)) +
		protowire.SizeTag(protowire.Number(typ)) + protowire.SizeBytes(size)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	putPrefix(dst[at:], command, entry)
	dst = appendVarint(dst, 1, uint64(typ))
	return appendLength(dst, protowire.Number(typ), size)
}

func appendVarint(dst []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendLength(dst []byte, num protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.BytesType), uint64(size))
}
