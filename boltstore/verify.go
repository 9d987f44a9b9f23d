package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"wayside/edge"
)

// Checked counts what a check has read.
type Checked struct {
	Topics  int
	Entries int64
	Damaged int // findings that are no notes
}

// Check reads everything and tells what is not as it should be, in no special order. An
// error says that it could not go on.
func (i *Inspection) Check(tell func(Finding)) (Checked, error) {
	v := verifier{i: i, tell: tell}
	for _, f := range i.findings {
		v.find(f)
	}
	if i.tree == nil {
		return v.sum, nil
	}
	if err := v.volumes(); err != nil {
		return v.sum, err
	}
	v.values()
	for _, t := range i.sorted() {
		v.topic(t)
	}
	for _, name := range i.aside {
		if !i.isVolume(name) {
			v.find(Finding{What: "a damaged file was set aside", To: name, Do: "delete it when nothing in it is missed any more", Note: true})
		}
	}
	return v.sum, nil
}

// isVolume reports whether a file serves as a volume.
func (i *Inspection) isVolume(name string) bool {
	for _, v := range i.s.volumes {
		if v.name == name {
			return true
		}
	}
	return false
}

// verifier is one check under way.
type verifier struct {
	i     *Inspection
	tell  func(Finding)
	sum   Checked
	names interned
}

func (v *verifier) find(f Finding) {
	if !f.Note {
		v.sum.Damaged++
	}
	v.tell(f)
}

// volumes walks the pages of every volume but for those known to be damaged.
func (v *verifier) volumes() error {
	for n, held := range v.i.s.volumes {
		f, err := os.Open(filepath.Join(v.i.s.opts.Path, held.name))
		if errors.Is(err, os.ErrNotExist) {
			v.i.damaged[n] = true
			continue // it was told
		}
		if err != nil {
			return err
		}
		_, _, err = servedState(f)
		if cerr := f.Close(); cerr != nil {
			return cerr
		}
		if err == nil {
			continue
		}
		v.i.damaged[n] = true
		if strings.Contains(held.name, asideMark) {
			v.find(Finding{What: "a damaged file serves as a volume", To: held.name, Do: "nothing, it goes with its last ledger", Note: true})
		} else {
			v.find(Finding{What: "a volume is damaged", To: fmt.Sprintf("%s, %v", held.name, err), Do: doNothing})
		}
	}
	return nil
}

// values verifies the broker's small values.
func (v *verifier) values() {
	b, err := v.i.tree.find(bucketValues)
	if err != nil {
		return // the file's tree is damaged, which was told
	}
	for c := v.i.tree.seek(b, nil); c.valid(); c.next() {
		sealed, err := c.value(maxRescued)
		var raw []byte
		if err == nil {
			raw, err = unseal(unbind(0, c.key(), sealed))
		}
		if err == nil && (len(raw) == 0 || raw[0] == valueLarge && !v.large(c.key())) {
			err = errDamaged
		}
		if err != nil {
			v.find(Finding{What: "a value of the broker is damaged", To: fmt.Sprintf("%q", c.key()), Do: "set again what it says: policies, tenants, schemas"})
		}
	}
}

func (v *verifier) large(key []byte) bool {
	b, err := v.i.tree.find(bucketLarge, key)
	if err != nil {
		return false
	}
	c := v.i.tree.seek(b, keyValue)
	if !c.valid() {
		return false
	}
	sealed, err := c.value(edge.MaxValue + pageSize)
	if err == nil {
		_, err = unseal(unbind(0, key, sealed))
	}
	return err == nil
}

// topic verifies one with all that lies below it.
func (v *verifier) topic(t *topic) {
	v.sum.Topics++
	name := "topic " + t.name.String()
	p := v.i.picture(t)
	if p.err != nil {
		f := Finding{What: "a topic cannot be read as a whole", To: fmt.Sprintf("%s, %v", name, p.err), Do: doNothing}
		f.Mends = v.i.damaged[v.i.s.main.number]
		v.find(f)
	}
	for _, cursor := range p.broken {
		v.find(Finding{What: "the state of a subscription is damaged", To: fmt.Sprintf("%s, subscription %s", name, cursor), Do: "nothing, it starts again at the first message"})
	}
	v.sequences(t, name)
	if b, err := v.i.tree.find(topicKey(t.key), bucketProps); err == nil {
		if c := v.i.tree.seek(b, keyValue); c.valid() {
			sealed, err := c.value(maxRescued)
			if err == nil {
				_, err = unseal(unbind(t.key, keyValue, sealed))
			}
			if err != nil {
				v.find(Finding{What: "the properties of a topic are damaged", To: name, Do: "set them again"})
			}
		}
	}
	w := p.led.view.Load()
	for n := range w.spans.Len() {
		span := w.spans.At(n)
		if span.Entries() == 0 {
			continue
		}
		whole := edge.Range{First: span.Start().Next(), Last: span.End()}
		whole.First.Entry = span.First
		for part := range w.parts(whole) {
			e := stretch{v: v, name: name, p: &p, part: part, closed: n < len(w.where), file: w.file(n)}
			e.walk(w, n)
		}
	}
}

func (v *verifier) sequences(t *topic, name string) {
	b, err := v.i.tree.find(topicKey(t.key), bucketSequences)
	if err != nil {
		return
	}
	for c := v.i.tree.seek(b, nil); c.valid(); c.next() {
		value, err := c.value(maxRescued)
		if err == nil {
			_, err = decodeSequence(unbind(t.key, c.key(), value))
		}
		if err != nil {
			v.find(Finding{What: "the last sequence of a producer is damaged", To: fmt.Sprintf("%s, producer %s", name, c.key()), Do: "nothing, what it sends again may be stored twice once"})
		}
	}
}

// stretch is a piece of a ledger that lies whole in a file or whole in the journal.
type stretch struct {
	v      *verifier
	name   string
	p      *picture
	part   edge.Range
	closed bool
	file   uint64
	rotten bool       // something before next was there and damaged
	lost   edge.Range // not told yet
	next   edge.Position
}

// walk reads every entry of it.
func (e *stretch) walk(w *view, n int) {
	e.next, e.lost = e.part.First, edge.Range{Last: edge.Earliest}
	err := e.p.led.viewPiece(w, n, e.part, func(src chunkSource) error {
		return eachChunk(src, e.part, func(c *chunk, err error, covers edge.Range) error {
			e.gap(covers.First)
			if e.rotten = err != nil; err == nil {
				e.chunk(c, covers)
			}
			return nil
		})
	})
	e.rotten = e.rotten || err != nil
	e.gap(e.part.Last.Next())
	e.tell()
}

// gap tells what lies before a position and was not met.
func (e *stretch) gap(upTo edge.Position) {
	if !e.next.Less(upTo) {
		return
	}
	hole := edge.Range{First: e.next, Last: upTo.Before()}
	e.next = upTo
	loose := !hole.First.Less(e.p.led.view.Load().filed)
	if e.rotten || loose || !e.closed || e.v.i.damaged[e.file] {
		e.lose(hole)
		return
	}
	e.v.find(Finding{What: "entries are not there", To: e.where(hole), Do: "nothing, their space was won back when every subscription had acknowledged them, or they were lost before", Note: true})
}

func (e *stretch) chunk(c *chunk, covers edge.Range) {
	walk := c.at(covers.First.Entry)
	for e.next.Entry <= covers.Last.Entry && walk.more() {
		f, ok := walk.read()
		if !ok {
			upTo := edge.Position{Ledger: c.ledger, Entry: min(c.first+int64(walk.next), covers.Last.Entry+1)}
			e.lose(edge.Range{First: e.next, Last: upTo.Before()})
			e.next = upTo
			continue
		}
		if f.entry < e.next.Entry {
			continue
		}
		if _, err := c.open(f, &e.v.names); err != nil {
			e.lose(edge.Range{First: e.next, Last: e.next})
		} else {
			e.v.sum.Entries++
		}
		e.next = e.next.Next()
	}
}

// lose puts runs together before they are told.
func (e *stretch) lose(r edge.Range) {
	if !e.lost.Empty() && e.lost.Last.Next() == r.First {
		e.lost.Last = r.Last
		return
	}
	e.tell()
	e.lost = r
}

func (e *stretch) tell() {
	if e.lost.Empty() {
		return
	}
	e.v.find(Finding{What: "entries are damaged", To: e.where(e.lost), Do: doSkipped})
	e.lost = edge.Range{Last: edge.Earliest}
}

func (e *stretch) where(r edge.Range) string {
	return fmt.Sprintf("%s, ledger %d, entries %d to %d", e.name, r.First.Ledger, r.First.Entry, r.Last.Entry)
}
