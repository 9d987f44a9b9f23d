// Package configs holds the configuration files that come with the broker:
//
//   - wayside.yaml, every key with its default and what it does; embedded in the
//     binary and printed by `wayside config default`
//   - playground.yaml, for `make run`
//   - gateway.yaml, a small gateway with an uplink over TLS and a token
//   - conformance.yaml, what the official clients' suites expect of a broker
package configs
