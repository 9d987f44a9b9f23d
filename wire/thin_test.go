package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

const thinLimit = 1 << 20

// keyed makes a batch whose messages have keys, some none, one nothing in it.
func keyed(t testing.TB, kind pulsarpb.CompressionType) []byte {
	t.Helper()
	var payload []byte
	var err error
	for i, key := range []string{"a", "", "b", "a", "c"} {
		s := &pulsarpb.SingleMessageMetadata{SequenceId: proto.Uint64(uint64(i))}
		if key != "" {
			s.PartitionKey = proto.String(key)
		}
		content := fmt.Sprintf("content %d", i)
		if key == "c" {
			content = ""
		}
		if payload, err = wire.AppendSingle(payload, s, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	meta := &pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(7),
		NumMessagesInBatch: proto.Int32(5), Compression: kind.Enum(), UncompressedSize: proto.Uint32(uint32(len(payload))),
	}
	meta.ProtoReflect().SetUnknown([]byte("\xc2\x3e\x02hi")) // field 1000
	entry, err := wire.Build(meta, compress(t, kind, payload))
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func seenKeys(t testing.TB, entry []byte) (all []string) {
	t.Helper()
	var u wire.Unpacker
	defer u.Close()
	err := u.Keys(entry, thinLimit, func(k wire.Keyed) {
		all = append(all, fmt.Sprintf("%d %s has:%t null:%t", k.Index, k.Key, k.Has, k.Null))
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestThin(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			var u wire.Unpacker
			defer u.Close()
			entry := keyed(t, kind)
			want := []string{"0 a has:true null:false", "1  has:false null:false", "2 b has:true null:false",
				"3 a has:true null:false", "4 c has:true null:true"}
			if got := seenKeys(t, entry); !slices.Equal(got, want) {
				t.Fatalf("keys %q, want %q", got, want)
			}
			thin, err := u.Thin(entry, thinLimit, func(i int) bool { return i == 2 || i == 3 })
			if err != nil {
				t.Fatal(err)
			}
			if thin, err = u.Thin(thin, thinLimit, func(i int) bool { return i != 3 }); err != nil { // once more
				t.Fatal(err)
			}
			if got := seenKeys(t, thin); !slices.Equal(got, want[2:3]) {
				t.Errorf("keys of the rest %q, want %q", got, want[2:3])
			}
			checkThin(t, entry, thin)
		})
	}
}

// checkThin compares what stays of a batch with the batch.
func checkThin(t *testing.T, entry, thin []byte) {
	t.Helper()
	before, err := wire.ParseMessage(entry)
	if err != nil {
		t.Fatal(err)
	}
	after, err := wire.ParseMessage(thin)
	if err != nil {
		t.Fatal(err)
	}
	if after.NumMessages != before.NumMessages || after.Compression != before.Compression || !after.HasChecksum {
		t.Errorf("header %+v, before %+v", after, before)
	}
	var m pulsarpb.MessageMetadata
	if err := proto.Unmarshal(after.Metadata, &m); err != nil || len(m.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("the unknown field is gone: %v", err)
	}
	var got []string
	err = wire.Unpack(thin, thinLimit, func(s wire.Single) error {
		got = append(got, fmt.Sprintf("%d %q out:%t", s.Index, s.Payload, s.CompactedOut))
		return nil
	})
	want := []string{`0 "" out:true`, `1 "" out:true`, `2 "content 2" out:false`, `3 "" out:true`, `4 "" out:true`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("messages %q, %v", got, err)
	}
}

func TestKeysOfOne(t *testing.T) {
	type meta = pulsarpb.MessageMetadata
	sealed := []*pulsarpb.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}}
	for _, tc := range []struct {
		name    string
		set     func(*meta)
		payload string
		want    string
	}{
		{"plain", func(m *meta) {}, "x", "0  has:false null:false"},
		{"with a key", func(m *meta) { m.PartitionKey = proto.String("k") }, "x", "0 k has:true null:false"},
		{"empty", func(m *meta) { m.PartitionKey = proto.String("k") }, "", "0 k has:true null:true"},
		{"null", func(m *meta) { m.PartitionKey, m.NullValue = proto.String("k"), proto.Bool(true) }, "x", "0 k has:true null:true"},
		{"encrypted", func(m *meta) { m.PartitionKey, m.EncryptionKeys = proto.String("k"), sealed }, "x", "0 k has:true null:false"},
		{"encrypted and empty", func(m *meta) {
			m.PartitionKey, m.EncryptionKeys, m.UncompressedSize = proto.String("k"), sealed, proto.Uint32(0)
		}, "x", "0 k has:true null:true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &meta{ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(7)}
			tc.set(m)
			entry, err := wire.Build(m, []byte(tc.payload))
			if err != nil {
				t.Fatal(err)
			}
			if got := seenKeys(t, entry); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestThinRefuses(t *testing.T) {
	var u wire.Unpacker
	defer u.Close()
	entry := keyed(t, pulsarpb.CompressionType_LZ4)
	if _, err := u.Thin(entry, 10, func(int) bool { return true }); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := u.Keys(entry, 10, func(wire.Keyed) { t.Error("visited") }); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("keys beyond the limit: %v", err)
	}
	alone, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(7),
	}, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Thin(alone, thinLimit, func(int) bool { return true }); err == nil {
		t.Error("a message alone was thinned out")
	}
}
