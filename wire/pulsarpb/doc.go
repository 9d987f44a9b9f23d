// Package pulsarpb holds the protobuf types of the Pulsar binary protocol,
// generated from pulsar.proto by "make gen" and never edited. Its only user is
// package wire, and whoever names a command's fields.
//
// The types are registered under a proto package and a file path of our own, so
// that they can live in one binary with those of the official client. Presence
// matters on this protocol (a reply is an error because its error field is set),
// hence proto2 and its pointers.
package pulsarpb
