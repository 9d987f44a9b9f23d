package pulsarpb_test

import (
	"testing"

	_ "github.com/apache/pulsar-client-go/pulsar" // registers its own pulsar.proto
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"wayside/wire/pulsarpb"
)

// That this test binary starts at all proves that the official client's types and
// ours can be linked together: a name registered twice panics before any test.

// TestSameAsOfficial compares every message and enum of ours with the official
// client's: same numbers, names, types, labels and defaults.
func TestSameAsOfficial(t *testing.T) {
	ours := pulsarpb.File_wayside_wire_pulsar_proto
	messages := ours.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		t.Run(string(m.Name()), func(t *testing.T) {
			compareMessages(t, m, official(t, m.Name()).(protoreflect.MessageDescriptor))
		})
	}
	enums := ours.Enums()
	for i := range enums.Len() {
		e := enums.Get(i)
		compareEnums(t, e, official(t, e.Name()).(protoreflect.EnumDescriptor))
	}
}

// newer lists what protocol version 21 has and the official Go client, which stops
// at 20, does not know.
var newer = map[protoreflect.FullName]bool{
	"Schema.AutoConsume":           true,
	"v21":                          true,
	"CommandConnect.proxy_version": true,
	"FeatureFlags.supports_get_partitioned_metadata_without_auto_creation": true,
	"FeatureFlags.supports_repl_dedup_by_lid_and_eid":                      true,
	"CommandPartitionedTopicMetadata.metadata_auto_creation_enabled":       true,
}

// isNewer takes a field or enum value of ours.
func isNewer(d protoreflect.Descriptor) bool {
	const prefix = len("wayside.wire.v1.")
	return newer[d.FullName()[prefix:]]
}

func official(t *testing.T, name protoreflect.Name) protoreflect.Descriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("pulsar.proto." + protoreflect.FullName(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func compareMessages(t *testing.T, ours, theirs protoreflect.MessageDescriptor) {
	for i := range ours.Fields().Len() {
		f := ours.Fields().Get(i)
		g := theirs.Fields().ByNumber(f.Number())
		if isNewer(f) {
			continue
		}
		if g == nil {
			t.Errorf("%s: not in the official client", f.Name())
			continue
		}
		if f.Name() != g.Name() || f.Kind() != g.Kind() || f.Cardinality() != g.Cardinality() || f.IsPacked() != g.IsPacked() {
			t.Errorf("ours: %v, theirs: %v", f, g)
		}
		if f.HasDefault() != g.HasDefault() || f.Default().String() != g.Default().String() {
			t.Errorf("%s: default %v, theirs %v", f.Name(), f.Default(), g.Default())
		}
		if f.Message() != nil && f.Message().Name() != g.Message().Name() || f.Enum() != nil && f.Enum().Name() != g.Enum().Name() {
			t.Errorf("%s: other type than theirs", f.Name())
		}
	}
	for i := range theirs.Fields().Len() {
		if g := theirs.Fields().Get(i); ours.Fields().ByNumber(g.Number()) == nil && g.Cardinality() == protoreflect.Required {
			t.Errorf("%s: required by the official client, not in ours", g.Name())
		}
	}
	for i := range ours.Enums().Len() {
		e := ours.Enums().Get(i)
		compareEnums(t, e, theirs.Enums().ByName(e.Name()))
	}
}

func compareEnums(t *testing.T, ours, theirs protoreflect.EnumDescriptor) {
	t.Helper()
	if theirs == nil {
		t.Fatalf("%s: not in the official client", ours.Name())
	}
	for i := range ours.Values().Len() {
		v := ours.Values().Get(i)
		w := theirs.Values().ByNumber(v.Number())
		if isNewer(v) {
			continue
		}
		if w == nil || w.Name() != v.Name() {
			t.Errorf("%s.%s = %d: theirs is %v", ours.Name(), v.Name(), v.Number(), w)
		}
	}
}
