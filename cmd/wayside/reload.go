package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// reload applies what can be changed while running and says what needs a restart. A
// configuration with errors changes nothing.
func (b *server) reload(s settings, err error) {
	if err != nil {
		for _, line := range linesOf(err) {
			b.log.Error("configuration not reloaded", "problem", line)
		}
		return
	}
	var waiting []string
	for _, path := range changedKeys(&b.Config, &s.Config) {
		if !b.apply(path, &s.Config) {
			waiting = append(waiting, path)
		}
	}
	b.log.Info("configuration reloaded", "from", s.name())
	if len(waiting) > 0 {
		b.log.Warn("changed, but takes effect only after a restart", "keys", strings.Join(waiting, ", "))
	}
}

// apply takes over one key and reports whether that was possible.
func (b *server) apply(path string, from *Config) bool {
	switch path {
	case "log.level":
		b.Log.Level = from.Log.Level
		b.level.Set(logLevel(from.Log.Level))
		return true
	case "uplink.rate_limit":
		if b.uplink == nil {
			return false
		}
		b.Uplink.RateLimit = from.Uplink.RateLimit
		b.uplink.SetRateLimit(from.Uplink.RateLimit)
		return true
	}
	return false
}

// changedKeys lists the keys in which two configurations differ.
func changedKeys(a, b *Config) []string {
	var changed []string
	for _, k := range configKeys() {
		same := k.list != nil && reflect.DeepEqual(a.Uplink.Routes, b.Uplink.Routes) || k.list == nil && k.get(a) == k.get(b)
		if !same {
			changed = append(changed, k.path)
		}
	}
	return changed
}

func linesOf(err error) []string {
	var f *fault
	if errors.As(err, &f) {
		return f.lines
	}
	return []string{fmt.Sprint(err)}
}
