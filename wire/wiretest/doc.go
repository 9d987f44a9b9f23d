// Package wiretest holds what tests of the protocol share.
//
// [ReadGolden] reads frames that were recorded between official clients and a
// real broker. A [Peer] is one end of a connection that says and expects what a
// script wants, well-formed or not; a [Listener] gives peers that play the broker.
// A [Proxy] stands between two ends and misbehaves as networks do: it refuses,
// resets, swallows, stalls and slows, on command and while it runs.
//
// Nothing here knows of package testing, so that programs can use it too; all
// return errors. Only a Proxy has goroutines, and Close waits for them.
package wiretest
