package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wayside/edge"
)

// drawFacts makes any facts.
func drawFacts(t *rapid.T) edge.Facts {
	text := rapid.StringN(0, 20, 60)
	raw := rapid.SliceOfN(rapid.Byte(), 0, 300)
	maybe := func(name string) []byte {
		if rapid.Bool().Draw(t, name) {
			return raw.Draw(t, name)
		}
		return nil
	}
	n := rapid.Int64()
	f := edge.Facts{
		Producer: text.Draw(t, "producer"), Sequence: n.Draw(t, "sequence"), Highest: n.Draw(t, "highest"),
		Messages: rapid.Int32Range(1, 1<<31-1).Draw(t, "messages"), Batch: rapid.Bool().Draw(t, "batch"),
		Slot: rapid.Uint16().Draw(t, "slot"), Key: maybe("key"), KeyBinary: rapid.Bool().Draw(t, "binary"),
		Tombstone: rapid.Bool().Draw(t, "tombstone"), Encrypted: rapid.Bool().Draw(t, "encrypted"),
		Marker: rapid.Int32().Draw(t, "marker"), InTxn: rapid.Bool().Draw(t, "txn"),
		Txn:     edge.TxnID{Most: rapid.Uint64().Draw(t, "most"), Least: rapid.Uint64().Draw(t, "least")},
		Publish: n.Draw(t, "publish"), Event: n.Draw(t, "event"), DeliverAt: n.Draw(t, "deliver"),
		Receive: n.Draw(t, "receive"), ReceiveMono: n.Draw(t, "mono"), Boot: rapid.Uint64().Draw(t, "boot"),
		Schema: maybe("schema"),
	}
	if rapid.Bool().Draw(t, "chunk") {
		f.Chunk = edge.Chunk{UUID: text.Draw(t, "uuid"), ID: rapid.Int32().Draw(t, "id"), Of: rapid.Int32Min(1).Draw(t, "of")}
	}
	if rapid.Bool().Draw(t, "copy") {
		f.Origin = &edge.Origin{Position: edge.Position{Ledger: n.Draw(t, "ledger"), Entry: n.Draw(t, "entry")}, Index: rapid.Uint64().Draw(t, "index")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "tail") {
		f.Tail = appendTag(f.Tail, rapid.Uint64Min(tagOrigin+1).Draw(t, "tag"), raw.Draw(t, "value"))
	}
	return f
}

func TestFactsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		if !validTail(f.Tail) {
			t.Fatal("a tail of whole fields is refused")
		}
		b := appendFacts(nil, &f)
		got, err := decodeFacts(b, &interned{})
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("%+v\ncame back as %+v (%v)", f, got, err)
		}
		if again := appendFacts(nil, &got); !bytes.Equal(again, b) {
			t.Fatalf("written again as %x, was %x", again, b)
		}
	})
}

// TestFactsFormat holds the bytes of the first format: they have to be read for ever.
func TestFactsFormat(t *testing.T) {
	f := edge.Facts{
		Producer: "p", Sequence: 1, Highest: 3, Messages: 3, Batch: true, Slot: 300,
		Publish: 1000, Receive: 1001, ReceiveMono: 5, Boot: 7, Key: []byte("k"), Chunk: edge.Chunk{UUID: "u", ID: 1, Of: 2},
		Marker: 4, InTxn: true, Txn: edge.TxnID{Most: 1, Least: 2}, Event: 6, DeliverAt: 8, Schema: []byte{9},
		Origin: &edge.Origin{Position: edge.Position{Ledger: 10, Entry: 11}, Index: 12},
		Tail:   []byte{100, 1, 42},
	}
	const want = "1101700204" + "03ac02d00f02" + "0a0700000000000000" +
		"01016b" + "0203020475" + "030108" + "041001000000000000000200000000000000" + "05010c" + "060110" + "070109" + "080314160c" + "64012a"
	got := fmt.Sprintf("%x", appendFacts(nil, &f))
	if got != want {
		t.Fatalf("facts are written as\n%s, the format is\n%s", got, want)
	}
}

func TestChunkSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []edge.Entry
		p := edge.Position{Ledger: rapid.Int64Min(1).Draw(t, "ledger"), Entry: rapid.Int64Range(0, 1<<40).Draw(t, "entry")}
		index := rapid.Uint64Max(1<<60).Draw(t, "index")
		next := index
		for i := range rapid.IntRange(1, 70).Draw(t, "n") {
			f := edge.Facts{Messages: rapid.Int32Range(1, 1000).Draw(t, "messages"), Producer: "p", Publish: int64(i)}
			if i%7 == 0 {
				f = drawFacts(t)
				f.Messages = 1
			}
			entries = append(entries, edge.Entry{
				Position: edge.Position{Ledger: p.Ledger, Entry: p.Entry + int64(i)}, Index: next, Facts: f,
				Data: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data"),
			})
			next += uint64(f.Messages)
		}
		v := appendChunk([]byte("before"), p, index, len(entries), func(i int) (*edge.Facts, []byte) { return &entries[i].Facts, entries[i].Data })[6:]
		c, err := openChunk(p.Ledger, p.Entry, mapped(v))
		if err != nil || c.last() != entries[len(entries)-1].Position.Entry || c.messages != next-index {
			t.Fatalf("opened as %+v (%v)", c, err)
		}
		from := rapid.IntRange(0, len(entries)-1).Draw(t, "from")
		walk := c.at(p.Entry + int64(from))
		for _, want := range entries[from:] {
			f, ok := walk.read()
			got, err := c.open(f, &interned{})
			if !ok || err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("entry %+v came back as %+v (%v)", want, got, err)
			}
		}
		if walk.more() {
			t.Fatal("there are more")
		}
		if _, err := openChunk(p.Ledger, p.Entry+1, mapped(v)); err == nil {
			t.Fatal("a chunk in a wrong place is not seen")
		}
	})
}

// TestDamagedChunk damages each byte of a chunk: it costs at most the entries up to
// the next mark, and none comes back changed.
func TestDamagedChunk(t *testing.T) {
	const n = 40
	entry := func(i int) (*edge.Facts, []byte) {
		return &edge.Facts{Messages: 1, Producer: "p", Sequence: int64(i)}, fmt.Appendf(nil, "data %d", i)
	}
	clean := appendChunk(nil, edge.Position{Ledger: 3, Entry: 10}, 100, n, entry)
	head := chunkFixed + 2*chunkMark + 4
	for i := range clean {
		v := bytes.Clone(clean)
		v[i] ^= 0xff
		c, err := openChunk(3, 10, mapped(v))
		if (err != nil) != (i < head) {
			t.Fatalf("byte %d: open says %v", i, err)
		}
		if err != nil {
			continue
		}
		good := 0
		for walk := c.at(10); walk.more(); {
			f, ok := walk.read()
			if !ok {
				continue
			}
			if e, err := c.open(f, nil); err == nil {
				k := int(e.Position.Entry - 10)
				if want, data := entry(k); e.Index != uint64(100+k) || e.Facts.Sequence != want.Sequence || !bytes.Equal(e.Data, data) {
					t.Fatalf("byte %d: entry %d came back as %+v", i, k, e)
				}
				good++
			}
		}
		if good < n-chunkStride || good == n {
			t.Fatalf("byte %d: %d of %d entries are left", i, good, n)
		}
	}
}

func TestCursorPagesAreStable(t *testing.T) {
	s := edge.CursorState{MarkDelete: edge.Position{Ledger: 1, Entry: 5}}
	for i := range int64(60_000) {
		s.Holes = append(s.Holes, edge.Run{Ledger: 7, First: 10 + i*3, Last: 10 + i*3 + i%2})
	}
	before := map[string]string{}
	for _, p := range encodePages(&s) {
		before[string(p.key)] = string(p.value)
	}
	if len(before) < 4 {
		t.Fatalf("%d pages", len(before))
	}
	s.Holes = append(append([]edge.Run(nil), s.Holes[:30_000]...), s.Holes[30_002:]...)
	changed := 0
	for _, p := range encodePages(&s) {
		if before[string(p.key)] != string(p.value) {
			changed++
		}
	}
	if changed == 0 || changed > 2 {
		t.Fatalf("%d of %d pages changed with two holes", changed, len(before))
	}
}

// decoders are fed anything: they answer or refuse, without a panic and without
// memory beyond the input's size, and what they accept is written back the same.
var decoders = map[string]func(b []byte) error{
	"facts": func(b []byte) error {
		f, err := decodeFacts(b, &interned{})
		if err != nil {
			return err
		}
		g, err := decodeFacts(appendFacts(nil, &f), nil)
		return same(f, g, err)
	},
	"cursor": func(b []byte) error {
		s, err := decodeCursor(seal(b))
		if err != nil {
			return err
		}
		v, fits := encodeCursor(&s)
		if !fits {
			return nil
		}
		u, err := decodeCursor(v)
		return same(s, u, err)
	},
	"head":     func(b []byte) error { _, err := decodePaged(seal(b), nil); return err },
	"page":     func(b []byte) error { return decodePage(b) },
	"record":   func(b []byte) error { _, _, err := decodeRecord(seal(b)); return err },
	"place":    func(b []byte) error { _, err := decodePlace(seal(b)); return err },
	"sequence": func(b []byte) error { _, err := decodeSequence(seal(b)); return err },
	"volume":   func(b []byte) error { _, err := decodeVolume(1, seal(b)); return err },
	"chunk":    func(b []byte) error { return walkChunk(b) },
	"file":     func(b []byte) error { return checkBytes(b) },
}

func same(a, b any, err error) error {
	if err != nil || !reflect.DeepEqual(a, b) {
		panic(fmt.Sprintf("%+v came back as %+v (%v)", a, b, err))
	}
	return nil
}

func decodePage(b []byte) error {
	if len(b) == 0 {
		return errDamaged
	}
	s := edge.CursorState{}
	d := decoder{b: b[1:]}
	d.items(b[0], &s)
	return d.err()
}

// walkChunk opens a value whose header sums are made right, so that what lies behind
// them is reached.
func walkChunk(b []byte) error {
	c := chunk{ledger: 1, first: 5}
	if len(b) < 2 {
		return errDamaged
	}
	c.count = 1 + int(b[0])
	marks := min((c.count-1)/chunkStride*chunkMark, len(b)-1)
	if marks < (c.count-1)/chunkStride*chunkMark {
		_, err := openChunk(1, 5, mapped(b))
		return err
	}
	c.marks = b[1 : 1+marks]
	v := append(make([]byte, c.start()), b[1+marks:]...)
	c.value, c.length = mapped(v), len(v)-c.start()
	for walk := c.at(5 + int64(b[1])%int64(c.count)); walk.more(); {
		before := walk.next
		if f, ok := walk.read(); ok {
			f.sum = placedSum(1, f.entry, f.body)
			if _, err := c.open(f, nil); err != nil {
				continue
			}
		}
		if walk.next <= before {
			panic("the walk stands still")
		}
	}
	return nil
}

// checkBytes checks a file whose meta page is made right.
func checkBytes(b []byte) error {
	m := metaPage{root: 2, high: uint64(len(b) / pageSize)}
	return checkState(bytes.NewReader(b), int64(len(b)), m)
}

func FuzzDecoders(f *testing.F) {
	facts := edge.Facts{Messages: 1, Key: []byte("k"), Schema: []byte("s"), Tail: []byte{50, 1, 1}, Chunk: edge.Chunk{UUID: "u", Of: 2}}
	f.Add(appendFacts(nil, &facts))
	v, _ := encodeCursor(&edge.CursorState{
		Holes: []edge.Run{{Ledger: 1, First: 2, Last: 3}}, Rests: []edge.BatchRest{{Words: []uint64{1}}},
		Counts: []edge.RedeliveryCount{{Count: 1}}, Properties: map[string]string{"a": "b"},
	})
	f.Add(v[:len(v)-4])
	rec := record{}
	enc := rec.encode(crashName("x"))
	f.Add(enc[:len(enc)-4])
	q := storedSequence{}
	f.Add(q.encode())
	f.Add(append([]byte{3}, appendChunk(nil, edge.Position{Ledger: 1, Entry: 5}, 0, 3, func(int) (*edge.Facts, []byte) { return &facts, []byte("d") })...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range decoders {
			_ = decode(b) // an error is an answer
		}
	})
}

// FuzzCheckedFile changes a sound file: what the check accepts, bbolt and the store
// must be able to open and read.
func FuzzCheckedFile(f *testing.F) {
	o := testOptions(f)
	s := mustOpen(f, o)
	l := mustLedger(f, s, "a", "sub")
	mustAppend(f, l, "one", "two", string(make([]byte, 2000)))
	if err := errors.Join(await(l.Roll), s.Close()); err != nil {
		f.Fatal(err)
	}
	clean, err := os.ReadFile(mainPath(f, o.Path))
	if err != nil {
		f.Fatal(err)
	}
	clean = clean[:usedPages(clean)*pageSize]
	f.Add(uint32(2*pageSize), []byte{0})
	f.Add(uint32(5*pageSize+16), []byte{1, 2, 3, 4})
	path := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		b := bytes.Clone(clean)
		copy(b[2*pageSize+int(at)%(len(b)-2*pageSize):], change)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readMeta(bytes.NewReader(b), int64(newerMeta(b)))
		if err != nil || checkState(bytes.NewReader(b), int64(len(b)), m) != nil {
			return
		}
		db, err := openWritable(path, 0)
		if err != nil {
			t.Fatalf("the check accepts what bbolt refuses: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestInternedTexts(t *testing.T) {
	var names interned
	for _, s := range []string{"a", "b", "a", "c", "d", "e", "a", "", strings.Repeat("x", 100)} {
		if got := names.text([]byte(s)); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	}
}
