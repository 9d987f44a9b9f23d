//go:build !race

package uplink

const raced = false
