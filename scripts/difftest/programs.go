package main

import "slices"

// The connections of programs.
const (
	a conn = "a"
	b conn = "b"
	c conn = "c"
)

// earliest and exclusive are fields that most programs need.
const (
	earliest  = "initialPosition:Earliest"
	reader    = "durable:false"
	fromStart = "durable:false start_message_id{ledgerId:18446744073709551615 entryId:18446744073709551615}"
	first     = "ledgerId:18446744073709551615 entryId:18446744073709551615"
	last      = "ledgerId:9223372036854775807 entryId:9223372036854775807"
)

// programs are all that are written, in the order of what they are about.
func programs() []program {
	return slices.Concat(
		handshakes(), malformed(), lookups(), lists(),
		producing(), sending(), refusedSends(), accessModes(), epochs(), deduplicated(),
		subscribing(), refusedSubscribes(), sharing(), sharedReturns(), priorities(), limits(),
		failovers(), keyShared(), sticky(), acknowledging(), batchAcks(), redelivering(), permits(),
		seeking(), seekingOdd(), readers(), lastIDs(), unsubscribing(), consumerStats(), schemas(), operated(),
		transacting(), compacted(), delayed(), watching(), nonPersistent(), limited(), trimmed(), levels(),
	)
}
