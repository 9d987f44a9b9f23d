package boltstore

import (
	"strings"

	"wayside/edge"
)

// Summary is what a data directory holds.
type Summary struct {
	Format       int64
	Topics       []edge.TopicRecord // by name
	Entries      int64
	LiveBytes    int64 // that some subscription has not acknowledged
	FileBytes    int64 // of all files, the journal's too
	JournalBytes int64
	Volumes      int
	Findings     []Finding // of opening: Check finds more
}

// Summary reads what a status would show.
func (i *Inspection) Summary() Summary {
	sum := Summary{Format: i.s.format, Volumes: len(i.s.volumes), Findings: i.findings}
	for _, e := range i.names {
		info, err := e.Info()
		if err != nil {
			continue
		}
		_, _, data := parseFileName(e.Name())
		journal := strings.HasSuffix(e.Name(), ".seg")
		if data || journal {
			sum.FileBytes += info.Size()
		}
		if journal {
			sum.JournalBytes += info.Size()
		}
	}
	for _, t := range i.sorted() {
		if p := i.picture(t); p.err != nil {
			sum.Findings = append(sum.Findings, Finding{What: "a topic cannot be read as a whole", To: t.name.String(), Do: "run wayside store check"})
		}
		r := t.record()
		sum.Topics = append(sum.Topics, r)
		sum.Entries += r.Entries
		sum.LiveBytes += r.LiveBytes
	}
	return sum
}
