# Each target is a script of the same purpose in scripts/, which can be run alone and says at its head what it does
# and which settings it takes.

.DEFAULT_GOAL := help
.PHONY: run test long build dist check fuzz crash conformance differ bench gen cover help

run: ## start a broker on the playground's settings, with sensors that publish to it
	@scripts/playground

test: ## all that CI runs, on a bare machine
	@scripts/test

long: build ## full crash, uplink, comparison and fuzz runs; SEED=… repeats one
	@scripts/long $(SEED)

build: ## bin/wayside for this machine
	@scripts/build

dist: ## stripped, reproducible binaries for every platform, with checksums
	@scripts/dist

check: ## what every change must pass: lint, vulnerabilities, import arrows, unit tests
	@scripts/check

fuzz: ## every fuzz target for FUZZTIME (10m)
	@scripts/fuzz $(FUZZTIME)

crash: build ## kill the broker at random moments, ROUNDS (20) times; SEED=… repeats a run
	@scripts/crash $(or $(ROUNDS),20) $(SEED)

conformance: build ## unmodified Python, Java, Node and Go clients against the built broker
	@scripts/conform

differ: build ## the same programs against the built broker and a real Pulsar, compared step by step
	@scripts/differ

bench: build ## publishers against Wayside, a broker that stores nothing, and NATS JetStream; more with scripts/bench/run
	@scripts/bench/run

gen: ## generate what is generated
	@scripts/gen

cover: ## how much the unit tests reach
	@scripts/cover

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "make %-12s %s\n", $$1, $$2 }'
