// Package schema judges schemas: whether a definition is one, whether two mean the same,
// and whether one may follow or read the others that a topic has had. No I/O, no state.
//
// Rules is what edge.Options wants. rules.go has the strategies and what is common to all
// types; every type that has something to say about its definition has a file: avro.go
// and resolve.go for the text form that AVRO, JSON and PROTOBUF share, jsonschema.go for
// JSON's old form, native.go for descriptor sets, keyvalue.go for pairs.
//
// Definitions come from clients and are hostile until shown otherwise. The core bounds
// their length and judges one schema at a time; here nesting is bounded by maxDepth and the
// work of comparing by maxSteps. Nothing parsed is kept: equal bytes are found equal
// without parsing, so that only a schema in another text costs a parse.
//
// The judge of Avro compatibility is what a real broker uses, the grammar generator of
// the Java library, and not the specification's text, nor the library's own check of
// compatibility. They part in these ways, all watched on 4.0.7 and kept in
// testdata/avro.jsonl:
//
//   - names of records do not matter outside a union, and inside one a record of the same
//     shape will do;
//   - an enum may gain and lose symbols, with a default or without;
//   - the short names of enums and fixed count, their namespaces do not, but where a
//     branch of a union is looked for;
//   - precision and scale of decimals do not matter;
//   - aliases count by rewriting the writer's names, so they hold for every place.
package schema
