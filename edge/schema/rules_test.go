package schema

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/edge"
)

const (
	recA    = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	recADoc = ` {"name":"R","doc":"x","type":"record","fields":[{"type":"int","name":"a"}]}`
	recAB   = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string","default":""}]}`
	recABx  = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}`
	recS    = `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`
)

func of(kind int32, data string) edge.Schema { return edge.Schema{Type: kind, Data: []byte(data)} }

func TestStrategies(t *testing.T) {
	a, ab, abx, s, asJSON := of(typeAvro, recA), of(typeAvro, recAB), of(typeAvro, recABx), of(typeAvro, recS), of(typeJSON, recA)
	all := []edge.SchemaStrategy{
		edge.AlwaysIncompatible, edge.AlwaysCompatible, edge.Backward, edge.Forward, edge.Full,
		edge.BackwardTransitive, edge.ForwardTransitive, edge.FullTransitive,
	}
	// One letter for each strategy of all, in that order: + or - (watched on 4.0.7).
	for _, c := range []struct {
		name           string
		have           []edge.Schema
		next           edge.Schema
		follows, reads string
	}{
		{"the first", nil, a, "++++++++", ""},
		{"the same", []edge.Schema{a}, a, "+++++ +++", "-+++++++"},
		{"with a default more", []edge.Schema{a}, ab, "-+++++++", "-+++++++"},
		{"without a default more", []edge.Schema{a}, abx, "-+-+--+-", "-+------"},
		{"another type of a field", []edge.Schema{a}, s, "-+------", "-+------"},
		{"another type", []edge.Schema{a}, asJSON, "-+------", "-+------"},
		{"fits the latest alone", []edge.Schema{a, ab}, abx, "-++++-+-", "-++++-+-"},
	} {
		for i, strategy := range all {
			check := func(what, wants string, err error) {
				if wants = strings.ReplaceAll(wants, " ", ""); wants != "" && (err == nil) != (wants[i] == '+') {
					t.Errorf("%s %s under %s: %v", c.name, what, strategy, err)
				}
				if err != nil && !errors.Is(err, edge.ErrSchema) {
					t.Errorf("%s %s under %s: %v is no ErrSchema", c.name, what, strategy, err)
				}
			}
			check("follows", c.follows, Rules{}.Follows(&c.next, c.have, strategy))
			if len(c.have) > 0 {
				check("reads", c.reads, Rules{}.Reads(&c.next, c.have, strategy))
			}
		}
	}
}

func TestFind(t *testing.T) {
	have := []edge.Schema{of(typeAvro, recA), of(typeAvro, recAB), of(typeString, ""), of(typeKeyValue, "x")}
	for _, c := range []struct {
		s    edge.Schema
		want int
	}{
		{of(typeAvro, recAB), 1}, {of(typeAvro, recADoc), 0}, {of(typeJSON, recA), -1}, {of(typeString, ""), 2},
		{of(typeString, "null"), -1}, {of(typeAvro, "garbage"), -1},
		{edge.Schema{Type: typeKeyValue, Data: []byte("x"), Properties: map[string]string{"key.schema.type": "STRING"}}, 3},
	} {
		if got := (Rules{}).Find(&c.s, have); got != c.want {
			t.Errorf("%d %s is at %d, want %d", c.s.Type, c.s.Data, got, c.want)
		}
	}
}

func TestWhatIsNoDefinition(t *testing.T) {
	for _, c := range []struct {
		s    edge.Schema
		good bool
	}{
		{of(typeNone, "anything"), true}, {of(typeString, ""), true}, {of(typeString, "null"), true}, {of(typeString, "x"), false},
		{of(8, ""), true}, {of(8, "x"), false}, {of(typeLocalDateTime, ""), true}, {of(typeAutoConsume, ""), false},
		{of(99, ""), false}, {of(-1, ""), false}, {of(typeAvro, `"int"`), true}, {of(typeAvro, `["int","string"]`), false},
		{of(typeJSON, `["int","string"]`), true}, {of(typeAvro, `{"type":"object"}`), false},
		{of(typeJSON, `{"type":"object","id":"x","properties":{}}`), true}, {of(typeJSON, `{"nonsense":1}`), false},
		{of(typeProtobuf, recA), true}, {of(typeProtobuf, `{"type":"object"}`), false}, {of(typeAvro, recA+"{}"), false},
		{of(typeKeyValue, ""), false}, {of(typeProtobufNative, "{}"), false},
	} {
		err := Rules{}.Validate(&c.s)
		if (err == nil) != c.good || err != nil && !errors.Is(err, edge.ErrSchemaForm) {
			t.Errorf("%d %q: %v", c.s.Type, c.s.Data, err)
		}
	}
}

func TestOldFormOfJSON(t *testing.T) {
	old := func(id, property string) edge.Schema {
		return of(typeJSON, fmt.Sprintf(`{"type":"object","id":%q,"properties":{%q:{"type":"integer"}}}`, id, property))
	}
	for _, c := range []struct {
		name      string
		had, next edge.Schema
		good      bool
	}{
		{"one id", old("urn:x", "a"), old("urn:x", "b"), true},
		{"another id", old("urn:x", "a"), old("urn:y", "a"), false},
		{"the new form behind it", old("urn:x", "a"), of(typeJSON, recA), true},
		{"behind the new form", of(typeJSON, recA), old("urn:x", "a"), true},
	} {
		if err := (Rules{}).Follows(&c.next, []edge.Schema{c.had}, edge.Full); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// pairOf is a definition for a key and a value.
func pairOf(keyType, key, valueType, value string) edge.Schema {
	data := binary.BigEndian.AppendUint32(nil, uint32(len(key)))
	data = binary.BigEndian.AppendUint32(append(data, key...), uint32(len(value)))
	return edge.Schema{Type: typeKeyValue, Data: append(data, value...), Properties: map[string]string{
		"key.schema.type": keyType, "value.schema.type": valueType, "kv.encoding.type": "SEPARATED",
	}}
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name      string
		had, next edge.Schema
		good      bool
	}{
		{"both follow", pairOf("STRING", "", "AVRO", recA), pairOf("STRING", "", "AVRO", recAB), true},
		{"the value does not", pairOf("STRING", "", "AVRO", recA), pairOf("STRING", "", "AVRO", recS), false},
		{"the key does not", pairOf("AVRO", recA, "INT32", ""), pairOf("AVRO", recS, "INT32", ""), false},
		{"another type of value", pairOf("STRING", "", "AVRO", recA), pairOf("STRING", "", "JSON", recAB), false},
	} {
		for _, s := range []*edge.Schema{&c.had, &c.next} {
			if err := (Rules{}).Validate(s); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := (Rules{}).Follows(&c.next, []edge.Schema{c.had}, edge.Full); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	bare := pairOf("STRING", "anything", "JSON", "nonsense")
	bare.Properties = nil
	for _, c := range []struct {
		s    edge.Schema
		good bool
	}{
		{bare, true}, // both are bytes
		{pairOf("STRING", "x", "INT32", ""), false}, {pairOf("STRING", "", "AVRO", "x"), false},
		{pairOf("ODD", "", "INT32", ""), false}, {pairOf("STRING", "", "KEY_VALUE", ""), false},
		{of(typeKeyValue, "\x00\x00\x00\x09x"), false}, {of(typeKeyValue, "\xff\xff\xff\xff"), false},
	} {
		if err := (Rules{}).Validate(&c.s); (err == nil) != c.good {
			t.Errorf("%q %v: %v", c.s.Data, c.s.Properties, err)
		}
	}
}

// nativeOf describes a file with a message, that has one nested, in a package.
func nativeOf(root, file string, depends ...string) edge.Schema {
	bytesField := func(to []byte, number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), value)
	}
	nested := bytesField(nil, messageName, "Inner")
	message := bytesField(bytesField(nil, messageName, "Outer"), messageNested, string(nested))
	f := bytesField(bytesField(nil, fileName, "a.proto"), filePackage, "my.pkg")
	for _, d := range depends {
		f = bytesField(f, fileDependency, d)
	}
	f = bytesField(f, fileMessage, string(message))
	set := base64.StdEncoding.EncodeToString(bytesField(nil, setFile, string(f)))
	text, _ := json.Marshal(map[string]string{"fileDescriptorSet": set, "rootMessageTypeName": root, "rootFileDescriptorName": file})
	return of(typeProtobufNative, string(text))
}

func TestDescriptorSets(t *testing.T) {
	for _, c := range []struct {
		s    edge.Schema
		good bool
	}{
		{nativeOf("my.pkg.Outer", "a.proto"), true}, {nativeOf("my.pkg.Outer.Inner", "a.proto"), true},
		{nativeOf("my.pkg.Other", "a.proto"), false}, {nativeOf("my.pkg.Outer.Other", "a.proto"), false},
		{nativeOf("my.pkg.Outer", "b.proto"), false}, {nativeOf("my.pkg.Outer", "a.proto", "missing.proto"), false},
		{nativeOf("", "a.proto"), false}, {of(typeProtobufNative, `{"fileDescriptorSet":"!"}`), false},
		{of(typeProtobufNative, `{"fileDescriptorSet":"////","rootMessageTypeName":"x","rootFileDescriptorName":""}`), false},
	} {
		if err := (Rules{}).Validate(&c.s); (err == nil) != c.good {
			t.Errorf("%s: %v", c.s.Data, err)
		}
	}
	outer, inner := nativeOf("my.pkg.Outer", "a.proto"), nativeOf("my.pkg.Outer.Inner", "a.proto")
	again := outer
	again.Data = append([]byte(" "), outer.Data...)
	if err := (Rules{}).Follows(&again, []edge.Schema{outer}, edge.Full); err != nil {
		t.Error(err)
	}
	if err := (Rules{}).Follows(&inner, []edge.Schema{outer}, edge.Full); !errors.Is(err, edge.ErrSchema) {
		t.Errorf("another root: %v", err)
	}
}

// hostile are definitions of up to 128 KiB that were made to take long or to hold much.
func hostile() map[string]string {
	const size = 100 << 10
	var fields, wide []string
	for i := range 1500 {
		fields = append(fields, fmt.Sprintf(`{"name":"f%d","type":["null",{"type":"record","name":"N%d","fields":[{"name":"x","type":"R"}]}]}`, i, i))
		wide = append(wide, fmt.Sprintf(`{"type":"record","name":"N%d","fields":[{"name":"x","type":"R"}]}`, i))
	}
	return map[string]string{
		"brackets":      strings.Repeat("[", size),
		"objects":       strings.Repeat(`{"type":`, size/8),
		"arrays":        strings.Repeat(`{"type":"array","items":`, size/30) + `"int"` + strings.Repeat("}", size/30),
		"arrays, fewer": strings.Repeat(`{"type":"array","items":`, 450) + `"int"` + strings.Repeat("}", 450),
		"a long string": `"` + strings.Repeat("x", size) + `"`,
		"many fields":   `{"type":"record","name":"R","fields":[` + strings.Join(fields, ",") + `]}`,
		"a wide union":  `{"type":"record","name":"R","fields":[{"name":"u","type":[` + strings.Join(wide, ",") + `]}]}`,
		"numbers":       `{"type":"record","name":"R","fields":[],"p":[` + strings.Repeat("1e99999999,", size/11) + `1]}`,
	}
}

func TestHostileDefinitionsAreHarmless(t *testing.T) {
	for name, text := range hostile() {
		for _, kind := range []int32{typeAvro, typeJSON, typeProtobufNative} {
			begin := time.Now()
			s, had := of(kind, text), of(kind, strings.Replace(text, `"R"`, `"Q"`, 1))
			_ = Rules{}.Validate(&s)
			_ = Rules{}.Find(&s, []edge.Schema{had})
			_ = Rules{}.Follows(&s, []edge.Schema{had}, edge.FullTransitive)
			if took := time.Since(begin); took > 10*time.Second { // a few hundred ms, on a busy machine too
				t.Errorf("%s takes %v", name, took)
			}
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, text := range []string{recA, recAB, `["int"]`, `{"type":"object"}`, "\x00\x00\x00\x00\x00\x00\x00\x00", `{"type":"enum","name":"E","symbols":["A"]}`} {
		f.Add(int32(typeAvro), text, recA)
		f.Add(int32(typeKeyValue), text, text)
		f.Add(int32(typeProtobufNative), text, text)
	}
	f.Fuzz(func(t *testing.T, kind int32, one, two string) {
		a, b := of(kind, one), of(kind, two)
		if (Rules{}).Validate(&a) != nil || (Rules{}).Validate(&b) != nil {
			return
		}
		if (Rules{}).Find(&a, []edge.Schema{a}) != 0 {
			t.Error("a definition is not equal to itself")
		}
		same := (Rules{}).Find(&a, []edge.Schema{b}) == 0
		if err := (Rules{}).Follows(&a, []edge.Schema{b}, edge.Full); same && err != nil && usesAvro(kind) && !errors.Is(err, errSteps) {
			t.Errorf("equal definitions do not fit: %v", err)
		}
	})
}
