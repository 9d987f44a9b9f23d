// Command bench measures Wayside beside other brokers, run after run in turn on one machine.
//
//	bench -wayside FILE [-nats FILE] [-redis FILE] [-mosquitto FILE] [-pulsar SCRIPT] [-peers NAMES] [-cells NAMES]
//	      [-data FOLDER] [-reps 3] [-warm 1] [-secs 3] [-sizes 128,1024] [-drain 100000] [-consumers 100]
//	      [-rate 100]
//	bench memory -wayside FILE [-data FOLDER] [-clients 50] [-millions 1,10] [-topics 10000]
//	bench backlog -wayside FILE [-data FOLDER] [-gb 10] [-size 1000] [-cgroup 67108864]
//	bench null HOST:PORT                     is the broker that stores nothing
//	bench sqlite HOST:PORT FILE each|group   is the one that stores in SQLite
//
// Way of a run (compare.go): peers (peers.go) are started once each, with folders side by side on one file system; then
// every cell (cells.go) is run against every peer in turn, all of it several times, so that whatever else the machine
// does meets all of them. A ratio is taken between runs of the same repetition, next to each other in time, told as the
// median with the lowest and the highest (table.go), and set beside what is wanted (targets.go).
//
// What speaks the Pulsar protocol is driven by the official Go client (pulsar.go), which is why the null broker
// (null.go) is the ceiling: what client and machine allow. The brokers on SQLite (sqlite.go) are the null broker with a
// table behind it. JetStream, Redis and Mosquitto are driven by clients of their own (nats.go, redis.go, mqtt.go).
//
// What the disk allows, one write and one sync per group, is not a broker: boltstore's BenchmarkAppend sets the store
// against it, in process and at the same group sizes.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	mode := ""
	if len(args) > 0 {
		mode = args[0]
	}
	switch mode {
	case "null":
		if len(args) != 2 {
			return errors.New("want HOST:PORT behind null")
		}
		return serveNull(args[1], nil)
	case "sqlite":
		if len(args) != 4 {
			return errors.New("want HOST:PORT, FILE and each or group behind sqlite")
		}
		return serveSQLite(args[1], args[2], args[3])
	case "memory":
		return memory(args[1:])
	case "backlog":
		return backlog(args[1:])
	}
	return compare(args)
}
