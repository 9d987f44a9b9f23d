package wire

import "wayside/wire/pulsarpb"

// Flow is a FLOW command: the consumer has room for that many messages more.
type Flow struct {
	ConsumerID uint64
	Permits    uint32
}

// ParseFlow fills f from a serialized BaseCommand. Both fields are required.
func ParseFlow(cmd []byte, f *Flow) error {
	const typ = pulsarpb.BaseCommand_FLOW
	sub, err := subCommand(cmd, typ)
	if err != nil {
		return err
	}
	*f = Flow{}
	var x field
	var consumer, permits bool
	for all := fields(sub); ; {
		ok, bad := all.more(&x)
		if bad {
			return malformed(typ, "not protobuf")
		}
		if !ok {
			break
		}
		switch {
		case x.varint(1):
			f.ConsumerID, consumer = x.v, true
		case x.varint(2):
			f.Permits, permits = uint32(x.v), true
		}
	}
	if !consumer || !permits {
		return malformed(typ, "consumer_id or messagePermits missing")
	}
	return nil
}
