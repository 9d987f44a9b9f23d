package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

const hangup = syscall.SIGHUP

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, hangup)
	m := &Main{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv, Signals: signals}
	os.Exit(m.Run(context.Background(), os.Args[1:]))
}
