package elfx

import (
	"bytes"
	"debug/elf"
	"errors"
	"slices"
	"strings"
	"testing"
)

// pointing is the way in which a made program finds its fatbins.
type pointing int

const (
	byRela  pointing = iota // RELATIVE relocations, the words are zero
	byRelr                  // RELR: the words hold the addresses
	byFixed                 // no relocations: the words hold the addresses
)

// A madeProgram is a host program made without a compiler, and where things are in it.
type madeProgram struct {
	data     []byte
	fatbin   int64 // offset and address of .nv_fatbin
	wrappers int64 // offset of .nvFatBinSegment
	writable uint64
}

// A programWriter puts a program together section by section.
type programWriter struct {
	out     []byte
	headers []byte
	names   []byte
}

// align pads the file and returns its length.
func (w *programWriter) align(n int) int64 {
	for len(w.out)%n != 0 {
		w.out = append(w.out, 0)
	}
	return int64(len(w.out))
}

// section adds a header for what was written from off on.
func (w *programWriter) section(name string, typ uint32, flags, addr uint64, off int64, info uint32, entsize uint64) {
	h := make([]byte, sectHeaderSize)
	le.PutUint32(h, uint32(len(w.names)))
	w.names = append(append(w.names, name...), 0)
	le.PutUint32(h[4:], typ)
	le.PutUint64(h[8:], flags)
	le.PutUint64(h[16:], addr)
	le.PutUint64(h[24:], uint64(off))
	le.PutUint64(h[32:], uint64(int64(len(w.out))-off))
	le.PutUint32(h[44:], info)
	le.PutUint64(h[48:], 8)
	le.PutUint64(h[56:], entsize)
	w.headers = append(w.headers, h...)
}

// makeProgram returns a library with two fatbins that it points to in one of the ways,
// and a symbol for the second. spare says whether it has a note segment.
func makeProgram(tb testing.TB, how pointing, spare bool) *madeProgram {
	tb.Helper()
	first, second := mustRead(tb, "fatbin/zstd_size.fatbin"), mustRead(tb, "fatbin/pair_zstd.fatbin")
	p := &madeProgram{writable: 0x100000}
	w := &programWriter{
		out: make([]byte, elfHeaderSize+4*progHeaderSize), headers: make([]byte, sectHeaderSize), names: []byte{0},
	}
	note := w.align(8)
	w.out = append(w.out, 4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4)
	w.section(".note.gnu.build-id", uint32(elf.SHT_NOTE), shfAlloc, uint64(note), note, 0, 0)
	p.fatbin = w.align(8)
	w.out = append(append(w.out, first...), second...)
	w.section(".nv_fatbin", shtProgbits, shfAlloc, uint64(p.fatbin), p.fatbin, 0, 0)
	addrs := []uint64{uint64(p.fatbin), uint64(p.fatbin) + uint64(len(first))}
	textEnd := w.pointers(p, how, addrs)
	dataEnd := int64(len(w.out))

	sym := w.align(8)
	w.out = append(w.out, make([]byte, 2*symbolSize)...)
	s := w.out[sym+symbolSize:]
	le.PutUint16(s[6:], 2)
	le.PutUint64(s[8:], addrs[1])
	le.PutUint64(s[16:], uint64(len(second)))
	w.section(".symtab", shtSymtab, 0, 0, sym, 1, symbolSize)
	str := int64(len(w.out))
	w.out = append(append(w.out, w.names...), ".shstrtab\x00"...)
	w.section(".shstrtab", shtStrtab, 0, 0, str, 0, 0)

	at := p.writable + uint64(p.wrappers)
	progs := []prog{
		{Type: ptLoad, Flags: 5, Filesz: uint64(textEnd), Memsz: uint64(textEnd), AlignVal: 0x1000},
		{Type: ptLoad, Flags: 6, Off: uint64(p.wrappers), Vaddr: at, Paddr: at, Filesz: uint64(dataEnd - p.wrappers), Memsz: uint64(dataEnd - p.wrappers), AlignVal: 0x1000},
		{Type: ptNote, Flags: 4, Off: uint64(note), Vaddr: uint64(note), Paddr: uint64(note), Filesz: 20, Memsz: 20, AlignVal: 4},
		{Type: 0x6474e551, Flags: 6}, // PT_GNU_STACK
	}
	if !spare {
		progs[2].Type = 0x6ffffffe
	}
	w.finish(how, progs)
	p.data = w.out
	return p
}

// pointers writes relocations and wrappers, and returns where the first segment ends.
func (w *programWriter) pointers(p *madeProgram, how pointing, addrs []uint64) int64 {
	rel := w.align(8)
	p.wrappers = alignUp(rel+2*relaSize, 0x1000)
	at := p.writable + uint64(p.wrappers) // address of the first wrapper
	switch how {
	case byRela:
		for i, a := range addrs {
			w.out = le.AppendUint64(w.out, at+uint64(i)*wrapperSize+8)
			w.out = le.AppendUint64(w.out, 8) // R_X86_64_RELATIVE
			w.out = le.AppendUint64(w.out, a)
		}
		w.section(".rela.dyn", shtRela, shfAlloc, uint64(rel), rel, 0, relaSize)
	case byRelr:
		w.out = le.AppendUint64(w.out, at+8)
		w.out = le.AppendUint64(w.out, 1<<3|1) // the third word after it: 24 bytes on
		w.section(".relr.dyn", shtRelr, shfAlloc, uint64(rel), rel, 0, 8)
	}
	end := int64(len(w.out))
	w.align(0x1000)
	for _, a := range addrs {
		w.out = le.AppendUint32(w.out, wrapperMagic)
		w.out = le.AppendUint32(w.out, 1)
		if how == byRela {
			a = 0
		}
		w.out = le.AppendUint64(w.out, a)
		w.out = le.AppendUint64(w.out, 0)
	}
	w.section(wrapperSection, shtProgbits, shfAlloc|1, at, p.wrappers, 0, 0)
	return end
}

// finish writes the section headers, the program headers and the file header.
func (w *programWriter) finish(how pointing, progs []prog) {
	shoff := w.align(8)
	w.out = append(w.out, w.headers...)
	b := w.out
	copy(b, elfMagic)
	le.PutUint16(b[16:], etDyn)
	if how == byFixed {
		le.PutUint16(b[16:], etExec)
	}
	n := len(w.headers) / sectHeaderSize
	le.PutUint16(b[18:], emX86)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], elfHeaderSize)
	le.PutUint64(b[40:], uint64(shoff))
	le.PutUint16(b[52:], elfHeaderSize)
	le.PutUint16(b[54:], progHeaderSize)
	le.PutUint16(b[56:], uint16(len(progs)))
	le.PutUint16(b[58:], sectHeaderSize)
	le.PutUint16(b[60:], uint16(n))
	le.PutUint16(b[62:], uint16(n-1))
	for i := range progs {
		copy(b[elfHeaderSize+i*progHeaderSize:], progs[i].encode())
	}
}

// targets returns where the wrappers point to after loading at address 0.
func (p *madeProgram) targets(t *testing.T, data []byte) []uint64 {
	t.Helper()
	word := func(off int64) uint64 { return le.Uint64(data[off:]) }
	var out []uint64
	h, err := parseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	secs, err := parseSections(data, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secs {
		if s.Name == wrapperSection && out == nil {
			out = []uint64{word(s.Offset + 8), word(s.Offset + wrapperSize + 8)}
		}
	}
	for _, s := range secs {
		if s.Type == shtRela {
			out = []uint64{word(s.Offset + 16), word(s.Offset + relaSize + 16)}
		}
	}
	return out
}

// TestGrowProgram grows a program three times. Its pointers must lead to the
// containers, in memory that a segment maps from where the containers are in the file.
func TestGrowProgram(t *testing.T) {
	for _, how := range []pointing{byRela, byRelr, byFixed} {
		for _, spare := range []bool{true, false} {
			p := makeProgram(t, how, spare)
			f := mustOpen(t, "lib.so", p.data)
			for round := range 3 {
				f = growOnce(t, f, int64(round))
				containers := slices.Collect(f.containers())
				for i, addr := range p.targets(t, f.Data()) {
					c := containers[i]
					want := c.Region.Addr + uint64(c.Offset-c.Region.Offset)
					if addr != want || c.Region.Addr <= p.writable {
						t.Errorf("way %d, spare %v, round %d: wrapper %d points to 0x%x, the container is at 0x%x", how, spare, round, i, addr, want)
					}
					checkMapped(t, f.Data(), addr, c.Offset)
				}
				checkSymbol(t, f, containers[1])
			}
			// One more for the new segment, one for the cut; the first is larger by the cut.
			if n, cut := le.Uint16(f.Data()[56:]), int64(len(p.data))-f.Regions[0].Offset; n != 6 || cut < 0 {
				t.Errorf("way %d, spare %v: %d program headers, the fatbins are at 0x%x of a file of 0x%x", how, spare, n, f.Regions[0].Offset, len(p.data))
			}
		}
	}
}

// checkMapped sees that a segment maps addr from off, and that segments are in order.
func checkMapped(t *testing.T, data []byte, addr uint64, off int64) {
	t.Helper()
	f := mustOpen(t, "x", data)
	g, err := f.newHostELF()
	if err != nil {
		t.Fatal(err)
	}
	maps := func(p prog) bool {
		return p.Type == ptLoad && uint64(off) >= p.Off && uint64(off)+64 <= p.Off+p.Filesz && addr-p.Vaddr == uint64(off)-p.Off
	}
	if !slices.ContainsFunc(g.old, maps) {
		t.Errorf("nothing maps 0x%x from 0x%x", addr, off)
	}
	last := uint64(0)
	for _, p := range g.old {
		if p.Type != ptLoad {
			continue
		}
		if p.Vaddr < last || p.Vaddr%p.AlignVal != p.Off%p.AlignVal {
			t.Errorf("segment at 0x%x from 0x%x is out of order or line", p.Vaddr, p.Off)
		}
		last = p.Vaddr + p.Memsz
	}
}

func checkSymbol(t *testing.T, f *File, c *Container) {
	t.Helper()
	h, _ := parseELFHeader(f.Data())
	secs, err := parseSections(f.Data(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secs {
		if s.Type != shtSymtab {
			continue
		}
		b := f.Data()[s.Offset+symbolSize:]
		want := c.Region.Addr + uint64(c.Offset-c.Region.Offset)
		if v, n := le.Uint64(b[8:]), le.Uint64(b[16:]); v != want || n != uint64(c.Size) {
			t.Errorf("the symbol is at 0x%x, size %d; want 0x%x, %d", v, n, want, c.Size)
		}
	}
}

// What cannot be followed is refused.
func TestGrowRefused(t *testing.T) {
	for name, damage := range map[string]func(p *madeProgram){
		"found nothing that points": func(p *madeProgram) { clear(p.data[p.wrappers : p.wrappers+2*wrapperSize]) },
		"ELF machine 40":            func(p *madeProgram) { le.PutUint16(p.data[18:], 40) },
		"absurd program headers":    func(p *madeProgram) { le.PutUint64(p.data[elfHeaderSize+48:], 0x1003) },
	} {
		p := makeProgram(t, byFixed, true)
		damage(p)
		f := mustOpen(t, "prog", p.data)
		e := f.Entries()[0]
		_, _, err := f.Rewrite(map[*Entry][]byte{e: noise(t, entryBytes(t, e), 50, 1)}, RewriteOptions{})
		if !errors.Is(err, ErrGrow) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}

// FuzzGrow lets damaged programs grow: an error or a file that can be read again, no
// panic, and not one of unbounded size.
func FuzzGrow(f *testing.F) {
	for _, how := range []pointing{byRela, byRelr, byFixed} {
		f.Add(makeProgram(f, how, how == byRela).data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open("fuzz", data, &Options{MaxEntry: 1 << 18})
		if err != nil || len(data) > 1<<17 {
			return
		}
		changes := make(map[*Entry][]byte)
		for _, e := range file.Entries() {
			if d, err := e.Data(); err == nil && len(changes) < 2 && e.Parent == nil && len(d) > 0 {
				changes[e] = append(bytes.Clone(d), data[:min(len(data), 4096)]...)
			}
		}
		out, _, err := file.Rewrite(changes, RewriteOptions{})
		if err != nil || len(changes) == 0 {
			return
		}
		if out.Size() > int64(4*len(data)+1<<21) {
			t.Fatalf("%d bytes written for an input of %d", out.Size(), len(data))
		}
		b := out.Bytes()
		if back, err := file.Undo(out).Apply(b); err != nil || !bytes.Equal(back.Bytes(), data) {
			t.Fatalf("the way back: %v", err)
		}
	})
}
