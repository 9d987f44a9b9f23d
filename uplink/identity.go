package uplink

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// maxProducerName bounds the name in bytes; a longer one is hashed. Every message that
// goes singly carries it over the link.
const maxProducerName = 64

// producerName names the producer of one source topic in one epoch of its route.
// Everything that would make equal ids mean other messages is part of it: the device,
// the topic, the birth of its ledger, the route and the epoch.
func producerName(edgeID, topic, birth, route string, epoch uint64) string {
	rest := topic + ":" + birth + ":" + route + "." + strconv.FormatUint(epoch, 10)
	if name := edgeID + ":" + rest; len(name) <= maxProducerName {
		return name
	}
	sum := sha256.Sum256([]byte(edgeID + ":" + rest))
	return edgeID[:min(len(edgeID), maxProducerName/2)] + ":" + base64.RawURLEncoding.EncodeToString(sum[:20])
}
