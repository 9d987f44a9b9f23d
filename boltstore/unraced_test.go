//go:build !race

package boltstore

const raced = false

func often(n int) int { return n }
