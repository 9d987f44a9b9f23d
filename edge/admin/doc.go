// Package admin is the broker's HTTP side: health, metrics, and the part of Pulsar's
// admin REST API (protocol, section 5) that this broker's core can honour.
//
// A request's way: Server.ServeHTTP tidies the path and finds the route; the route's
// handler, in the file named after the resource, takes names and body apart (request.go),
// calls the core (package edge) and returns either a value, which reply.go writes as
// JSON, or an error, which the one table in errors.go turns into a status and
// {"reason": …}. Handlers hold no state and no locks; whatever waits for the disk waits
// under the request's deadline.
//
// The files by resource: tenants, namespaces (and what their policies look like,
// policies), topics, partitions, subscriptions, schemas, lookup, brokers, clusters,
// rules and backlogquotas for the policies that can be set one by one, properties,
// messages, stats and internalstats for what describes a topic, health, metrics
// (metrictopics for the families with a topic label), status for our own summary that
// `wayside status` reads, backup for those of the running store.
//
// What differs from Apache Pulsar 4.0.7, on purpose:
//
//   - Every refusal is {"reason": …}. There are no HTML pages, and bad input never is
//     answered with 500.
//   - Bodies need not name a content type; forms and XML are refused (415).
//   - Paths that do not exist here are 404 whatever Pulsar has there. A policy that
//     cannot be enforced is not accepted: setting it is 501.
//   - Statistics are taken at the moment of the request, not sampled once a minute.
//   - Bundles exist in answers alone: one broker owns everything.
package admin
