package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// idsName is the side file that notes the lease of ledger ids and the number of the
// main file beside the main file itself, so that its loss brings no id back.
const idsName = "wayside.ids"

// idLease is the number of ledger ids taken in advance.
const idLease = 1000

// idSlot is the distance of the two copies in the side file, which are written in
// turn: a torn write leaves the other.
const idSlot = pageSize

const idMagic = 0x73646977 // "wids"

// ids hands out ledger ids, each once in the life of a directory.
type ids struct {
	file  *os.File
	turn  int64 // number of the next write, names the slot
	main  uint64
	free  int64 // next id
	end   int64 // ids below it are leased
	noted int64 // the lease that the main file has
}

// openIDs opens or makes the side file. What it cannot read counts as not noted.
func openIDs(dir string) (*ids, error) {
	f, err := os.OpenFile(filepath.Join(dir, idsName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open id file: %w", err)
	}
	i := &ids{file: f}
	i.read()
	if st, err := f.Stat(); err == nil && st.Size() == 0 { // both have their place before the disk is full
		_, err = f.WriteAt(make([]byte, 2*idSlot), 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make id file: %w", err), f.Close())
		}
	}
	return i, nil
}

// read takes the newer of the two notes.
func (i *ids) read() {
	for slot := range int64(2) {
		var b [40]byte
		if _, err := i.file.ReadAt(b[:], slot*idSlot); err != nil {
			continue
		}
		v, err := unseal(b[:36])
		if err != nil || binary.LittleEndian.Uint64(v) != idMagic {
			continue
		}
		if turn := int64(binary.LittleEndian.Uint64(v[8:])); turn > i.turn {
			i.turn = turn
			i.end = int64(binary.LittleEndian.Uint64(v[16:]))
			i.main = binary.LittleEndian.Uint64(v[24:])
		}
	}
}

// write notes lease and main file durably.
func (i *ids) write(end int64, main uint64) error {
	b := binary.LittleEndian.AppendUint64(nil, idMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(i.turn+1))
	b = binary.LittleEndian.AppendUint64(b, uint64(end))
	b = seal(binary.LittleEndian.AppendUint64(b, main))
	page := make([]byte, idSlot)
	copy(page, b)
	if _, err := i.file.WriteAt(page, (i.turn+1)%2*idSlot); err != nil {
		return fmt.Errorf("note ids: %w", err)
	}
	if err := syscall.Fdatasync(int(i.file.Fd())); err != nil {
		return fmt.Errorf("note ids: %w", err)
	}
	i.turn++
	i.end, i.main = end, main
	return nil
}

// start continues behind every id that may have been handed out.
func (i *ids) start(used int64) {
	i.free = max(i.end, used, 1)
	i.end = i.free
}

// next hands out an id and takes a new lease when the old one is used up. The lease
// is noted in the side file at once, in the main file with the commit under way.
func (i *ids) next() (int64, error) {
	if i.free >= i.end {
		if err := i.write(i.free+idLease, i.main); err != nil {
			return 0, err
		}
	}
	i.free++
	return i.free - 1, nil
}
