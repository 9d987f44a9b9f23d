//go:build race

package uplink

const raced = true
