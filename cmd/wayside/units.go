package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unit is a named multiple, of bytes or of nanoseconds.
type unit struct {
	name string
	size int64
}

// sizeUnits go from small to large. KiB counts in powers of two, KB in powers of ten.
func sizeUnits() []unit {
	return []unit{
		{"B", 1}, {"kB", 1e3}, {"KB", 1e3}, {"KiB", 1 << 10}, {"MB", 1e6}, {"MiB", 1 << 20},
		{"GB", 1e9}, {"GiB", 1 << 30}, {"TB", 1e12}, {"TiB", 1 << 40},
	}
}

func durationUnits() []unit {
	return []unit{
		{"ms", int64(time.Millisecond)}, {"s", int64(time.Second)}, {"m", int64(time.Minute)},
		{"h", int64(time.Hour)}, {"d", 24 * int64(time.Hour)},
	}
}

// parseSize reads a number of bytes: "512KiB", "1.5GiB", "2MB", or a bare number.
func parseSize(s string) (int64, error) {
	number, name := splitQuantity(s)
	if name == "" && number != "" {
		return scale(number, 1)
	}
	u, ok := findUnit(sizeUnits(), name)
	if number == "" || !ok {
		return 0, badQuantity(s, number, name, sizeUnits(), "a size such as 512KiB, 32MiB or 2GB")
	}
	return scale(number, u.size)
}

// parseDuration reads "500ms", "90s", "36h", "7d", or several of these in a row; a
// bare 0 needs no unit.
func parseDuration(s string) (time.Duration, error) {
	const wanted = "a duration such as 500ms, 90s, 36h or 7d"
	if s == "0" {
		return 0, nil
	}
	var sum int64
	for rest := s; ; {
		number, tail := splitQuantity(rest)
		name := tail[:letters(tail)]
		u, ok := findUnit(durationUnits(), name)
		if number == "" || !ok {
			return 0, badQuantity(s, number, name, durationUnits(), wanted)
		}
		n, err := scale(number, u.size)
		if err != nil || sum > math.MaxInt64-n {
			return 0, fmt.Errorf("%q is too large", s)
		}
		sum += n
		if rest = tail[len(name):]; rest == "" {
			return time.Duration(sum), nil
		}
	}
}

// splitQuantity parts the leading decimal number from what follows it.
func splitQuantity(s string) (number, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimPrefix(s[i:], " ")
}

func letters(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	if n < 0 {
		return len(s)
	}
	return n
}

func findUnit(units []unit, name string) (unit, bool) {
	for _, u := range units {
		if u.name == name {
			return u, true
		}
	}
	return unit{}, false
}

// scale multiplies in integers where it can, so that large sizes stay exact.
func scale(number string, by int64) (int64, error) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/by {
			return 0, fmt.Errorf("%s is too large", number)
		}
		return n * by, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", number)
	}
	if f*float64(by) >= math.MaxInt64 {
		return 0, fmt.Errorf("%s is too large", number)
	}
	return int64(f * float64(by)), nil
}

// badQuantity says what is wrong with s and, when only the unit's case is off, which
// units may be meant.
func badQuantity(s, number, name string, units []unit, wanted string) error {
	if number == "" || name == "" {
		return fmt.Errorf("%q is not %s", s, wanted)
	}
	var meant []string
	for _, u := range units {
		full, short := strings.ToLower(u.name), strings.ToLower(strings.Replace(u.name, "i", "", 1))
		given := strings.ToLower(name)
		if u.name != "kB" && (strings.HasPrefix(full, given) || strings.HasPrefix(short, given)) {
			meant = append(meant, u.name)
		}
	}
	if len(meant) == 0 {
		return fmt.Errorf("%q is not %s", s, wanted)
	}
	return fmt.Errorf("%q has no known unit, did you mean %s?", s, strings.Join(meant, " or "))
}

// formatSize writes bytes in the largest unit that divides them, binary units first.
func formatSize(n int64) string {
	units := sizeUnits()
	for _, binary := range []bool{true, false} {
		for i := len(units) - 1; i > 0; i-- {
			u := units[i]
			if strings.Contains(u.name, "i") == binary && u.name != "kB" && n >= u.size && n%u.size == 0 {
				return strconv.FormatInt(n/u.size, 10) + u.name
			}
		}
	}
	return strconv.FormatInt(n, 10)
}

// formatDuration writes a duration in the largest unit that divides it.
func formatDuration(d time.Duration) string {
	units := durationUnits()
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; d != 0 && int64(d)%u.size == 0 {
			return strconv.FormatInt(int64(d)/u.size, 10) + u.name
		}
	}
	if d == 0 {
		return "0s"
	}
	return d.String()
}

// roughSize writes bytes for people, with one digit behind the point.
func roughSize(n int64) string {
	value, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for value >= 1024 && i < len(names)-1 {
		value /= 1024
		i++
	}
	if i == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + names[i]
}
