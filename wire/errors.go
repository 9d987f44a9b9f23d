package wire

import "errors"

// What can be wrong with the bytes of a peer. Errors of this package wrap one of
// these with the details; a [ForeignError] and what a connection returned stand
// for themselves.
var (
	// ErrTooLarge: a size is above its limit. Nothing was allocated for it.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed: a frame or command that no Pulsar peer sends. The protocol's
	// answer is to close the connection.
	ErrMalformed = errors.New("malformed")
	// ErrChecksum: an entry's CRC-32C does not match its bytes.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrMetadata: an entry's header cannot be read.
	ErrMetadata = errors.New("malformed metadata")
	// ErrCount: a batch does not hold the number of messages its header claims.
	ErrCount = errors.New("batch count mismatch")
	// ErrEncrypted: the entry can only be opened by those who have its keys.
	ErrEncrypted = errors.New("encrypted")
	// ErrCompression: the payload does not decompress to the size announced.
	ErrCompression = errors.New("malformed compression")
)
