package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"wayside/edge"
)

// kind is a type of value: how it is written in YAML, read from text and written back.
type kind[T any] struct {
	tags   []string // YAML types that it may be written as
	wants  string   // for messages: "wants …"
	parse  func(string) (T, error)
	format func(T) string
}

func textKind(wants string, check func(string) error) kind[string] {
	parse := func(s string) (string, error) { return s, check(s) }
	return kind[string]{[]string{"!!str"}, wants, parse, func(s string) string { return s }}
}

func choiceKind(choices ...string) kind[string] {
	wants := "one of " + strings.Join(choices, ", ")
	return textKind(wants, func(s string) error {
		for _, c := range choices {
			if s == c {
				return nil
			}
		}
		if near := nearest(s, choices); near != "" {
			return fmt.Errorf("%q is not known, did you mean %s?", s, near)
		}
		return fmt.Errorf("%q is not %s", s, wants)
	})
}

func boolKind() kind[bool] {
	parse := func(s string) (bool, error) {
		if s != "true" && s != "false" {
			return false, fmt.Errorf("%q is neither true nor false", s)
		}
		return s == "true", nil
	}
	return kind[bool]{[]string{"!!bool"}, "true or false", parse, strconv.FormatBool}
}

// countKind is a whole number within bounds.
func countKind(least, most int64) kind[int64] {
	parse := func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		return n, within(n, least, most, func(n int64) string { return strconv.FormatInt(n, 10) })
	}
	return kind[int64]{[]string{"!!int"}, "a whole number", parse, func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// sizeKind is a number of bytes within bounds; orZero admits 0 below them.
func sizeKind(least, most int64, orZero bool) kind[int64] {
	parse := func(s string) (int64, error) {
		n, err := parseSize(s)
		if err != nil || n == 0 && orZero {
			return n, err
		}
		return n, within(n, least, most, formatSize)
	}
	return kind[int64]{[]string{"!!str", "!!int"}, "a size such as 512KiB, 32MiB or 2GB", parse, formatSize}
}

func durationKind(least, most time.Duration) kind[time.Duration] {
	parse := func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		if err != nil {
			return 0, err
		}
		return d, within(d, least, most, formatDuration)
	}
	return kind[time.Duration]{[]string{"!!str", "!!int"}, "a duration such as 500ms, 90s, 36h or 7d", parse, formatDuration}
}

func within[N int64 | time.Duration](n, least, most N, format func(N) string) error {
	switch {
	case n < least:
		return fmt.Errorf("%s is too small, at least %s", format(n), format(least))
	case n > most:
		return fmt.Errorf("%s is too large, at most %s", format(n), format(most))
	}
	return nil
}

func anyText(string) error { return nil }

func checkPath(s string) error {
	if s == "" {
		return errors.New("is empty, name a directory")
	}
	return nil
}

// checkEdgeID admits what can stand in a topic's name: routes put the id there.
func checkEdgeID(s string) error {
	if s != "" && !edge.ValidPart(s) {
		return fmt.Errorf("%q has other characters than letters, digits and '_-=:.': take the others out", s)
	}
	if len(s) > maxEdgeID {
		return fmt.Errorf("is %d bytes long, at most %d", len(s), maxEdgeID)
	}
	return nil
}

func checkAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT or :PORT", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", s)
	}
	if strings.ContainsAny(host, " /@") {
		return fmt.Errorf("%q has no usable host", s)
	}
	return nil
}

func checkAddressOrNone(s string) error {
	if s == "" {
		return nil
	}
	return checkAddress(s)
}

// checkAdvertised admits a host, a host with port, or a pulsar:// URL.
func checkAdvertised(s string) error {
	switch {
	case s == "":
		return nil
	case strings.Contains(s, "://"):
		return checkURL(s, "pulsar")
	case strings.ContainsAny(s, " /@"):
		return fmt.Errorf("%q is neither a host nor HOST:PORT", s)
	case strings.Contains(s, ":") && net.ParseIP(strings.Trim(s, "[]")) == nil:
		return checkAddress(s)
	}
	return nil
}

func checkUplinkURL(s string) error {
	if s == "" {
		return nil
	}
	return checkURL(s, "pulsar", "pulsar+ssl")
}

func checkURL(s string, schemes ...string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not a URL such as %s://HOST:PORT", s, schemes[0])
	}
	if u.User != nil {
		return errors.New("holds a name or password, which have no place in it")
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" {
			return nil
		}
	}
	return fmt.Errorf("%q is not a URL such as %s://HOST:PORT", s, strings.Join(schemes, "://HOST:PORT or "))
}
