// Command wayside is the whole program: the broker, and the commands around it.
//
// # The way through
//
// main hands arguments, streams, environment and signals to a [Main], which runs one
// command and returns its exit code; tests start it in-process the same way. Each
// command stands in a file of its name: serve, configcmd, status, storecmd and backupcmd
// (backupjob where a running broker makes the backup), produce, consume, demo, version,
// man; usage.go says what they take beside flags. Errors for people are
// faults (fault.go): what happened, to which thing, what to do, and the exit code that it
// means.
//
// # Configuration
//
// [Config] is what the broker runs on. keys.go lists every setting once: its path, its
// kind (kinds.go: how it is written, what is admitted) and its field; all else follows
// from that list. load.go overlays the defaults with the file and the flags, reader.go
// walks the YAML's nodes and goes on after a mistake, so that all are told in one go.
// The commented default file is embedded by package configs; a test holds it against
// [Config]'s defaults.
//
// # A broker's life
//
// server.go starts it from the inside out: data directory looked at and found free
// (datadir.go), ports bound (listen.go), then the store opened, the uplink made
// (cloud.go), the broker, the uplink started, the front ends. Until the store is opened
// nothing is touched, and a start that fails takes away the directory that it made.
// What was started lies on a stack (stack.go) and is stopped in reverse order under one
// deadline; a second signal cuts it short. On SIGHUP reload.go applies what can be
// changed while running. Secrets in files are handed to the uplink as functions that
// read them again.
package main
