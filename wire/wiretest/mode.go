package wiretest

import "fmt"

// Mode is what a Proxy does with its connections.
type Mode int

const (
	// Pass forwards.
	Pass Mode = iota
	// Refuse does not listen: new connections are refused, present ones go on.
	Refuse
	// Reset resets all present connections, and new ones as soon as they come.
	Reset
	// AcceptClose ends new connections as soon as they come; present ones go on.
	AcceptClose
	// Blackhole swallows all bytes in both directions. Connections stay, and
	// neither side is told when the other one ends. New connections never reach
	// the server.
	Blackhole
	// SwallowUp swallows what clients say, ends of connections included.
	SwallowUp
	// SwallowDown swallows what the server says, ends of connections included.
	SwallowDown
	// HalfOpen ends the server's side of all connections without telling clients,
	// whose bytes are swallowed from then on, also after a change of mode. New
	// connections never reach the server.
	HalfOpen
	// Stall holds everything in both directions and loses nothing: it goes on
	// when the mode changes. New connections wait too.
	Stall

	modes int = iota
)

func modeNames() [modes]string {
	return [modes]string{"pass", "refuse", "reset", "accept-close", "blackhole", "swallow-up", "swallow-down",
		"half-open", "stall"}
}

// String returns the mode's name as ParseMode takes it.
func (m Mode) String() string {
	if m < 0 || int(m) >= modes {
		return fmt.Sprintf("mode %d", int(m))
	}
	return modeNames()[m]
}

// ParseMode finds a mode by its name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames() {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("proxy mode %q: there are %v", name, modeNames())
}

// Direction tells who speaks.
type Direction int

const (
	Up   Direction = iota // from client to server
	Down                  // from server to client
)

// String returns "up" or "down".
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// swallows tells whether bytes of a direction are lost.
func (m Mode) swallows(d Direction) bool {
	switch m {
	case Blackhole, HalfOpen:
		return true
	case SwallowUp:
		return d == Up
	case SwallowDown:
		return d == Down
	}
	return false
}
