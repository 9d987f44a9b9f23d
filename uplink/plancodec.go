package uplink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The stored form of a plan, all numbers as varints: version, epoch, next, edge id,
// target; count of identities and each; count of segments and each, first as the
// distance from what went before; CRC-32C of it all, little endian.
const planVersion = 1

// Bounds of a stored plan. A plan has one segment per batch in the window, and an
// identity for each change of settings that still has open segments.
const (
	maxSegments   = 4096
	maxIdentities = 64
	maxPlanText   = 4096    // bytes of a name
	maxSpan       = 1 << 30 // messages of one segment
)

var errPlan = errors.New("uplink plan is damaged")

// encode gives the stored form.
func (p *plan) encode() []byte {
	ids, of := p.identities()
	b := make([]byte, 0, 64+len(p.edge)+len(p.target)+len(p.open)*6)
	b = append(b, planVersion)
	b = binary.AppendUvarint(b, p.epoch)
	b = binary.AppendUvarint(b, p.next)
	b = appendText(b, p.edge)
	b = appendText(b, p.target)
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = appendText(b, id.producer)
		b = appendText(b, id.target)
		b = binary.AppendUvarint(b, uint64(id.count))
	}
	b = binary.AppendUvarint(b, uint64(len(p.open)))
	from := uint64(0)
	for i, s := range p.open {
		b = binary.AppendUvarint(b, s.first-from)
		b = binary.AppendUvarint(b, s.last-s.first)
		b = binary.AppendUvarint(b, of[i]<<1|bit(s.batch))
		from = s.last + 1
	}
	return seal(b)
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// identities lists those of the open segments once each, and which is whose.
func (p *plan) identities() (ids []identity, of []uint64) {
	of = make([]uint64, len(p.open))
	for i := range p.open {
		n := 0
		for n < len(ids) && ids[n] != p.open[i].by {
			n++
		}
		if n == len(ids) {
			ids = append(ids, p.open[i].by)
		}
		of[i] = uint64(n)
	}
	return ids, of
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// decodePlan reads a stored plan. Everything in it is durable, and every single up to
// a mark may have left. nil is the plan of a new cursor.
func decodePlan(b []byte) (plan, error) {
	if len(b) == 0 {
		return plan{}, nil
	}
	if len(b) < 5 {
		return plan{}, fmt.Errorf("%w: %d bytes", errPlan, len(b))
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return plan{}, fmt.Errorf("%w: checksum", errPlan)
	}
	if body[0] != planVersion {
		return plan{}, fmt.Errorf("%w: version %d, this program knows %d", errPlan, body[0], planVersion)
	}
	r := planReader{b: body[1:]}
	p := r.plan()
	if r.bad || len(r.b) > 0 {
		return plan{}, fmt.Errorf("%w: malformed", errPlan)
	}
	return p, nil
}

// planReader takes values off a stored plan; bad is set by the first that is not there.
type planReader struct {
	b   []byte
	bad bool
}

func (r *planReader) number(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *planReader) text() string {
	n := r.number(maxPlanText)
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

const maxIndex = 1 << 62 // sequence ids are signed at the cloud

func (r *planReader) plan() plan {
	p := plan{epoch: r.number(maxIndex), next: r.number(maxIndex), edge: r.text(), target: r.text()}
	ids := make([]identity, r.number(maxIdentities))
	for i := range ids {
		ids[i] = identity{r.text(), r.text(), int(r.number(maxSpan))}
	}
	n := r.number(maxSegments)
	from := uint64(0)
	for range n {
		s := segment{first: from + r.number(maxIndex)}
		s.last = s.first + r.number(maxSpan)
		kind := r.number(maxIdentities << 1)
		if r.bad || kind>>1 >= uint64(len(ids)) || s.last > maxIndex {
			r.bad = true
			return plan{}
		}
		s.batch, s.by = kind&1 == 1, ids[kind>>1]
		s.durable, s.left, s.inherited = s.last+1, s.last+1, true
		p.open = append(p.open, s)
		from = s.last + 1
	}
	return p
}
