package elfx

import (
	"bytes"
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

// makeProgram returns a library with two fatbins that it points to in one of the ways,
// and a symbol for the second. spare says whether it has a note segment.
func makeProgram(tb testing.TB, how pointing, spare bool) *madeProgram {
	tb.Helper()
	first, second := mustRead(tb, "fatbin/zstd_size.fatbin"), mustRead(tb, "fatbin/pair_zstd.fatbin")
	p := &madeProgram{writable: 0x100000}
	out := make([]byte, elfHeaderSize+4*progHeaderSize)
	pad := func(n int) int64 {
		for len(out)%n != 0 {
			out = append(out, 0)
		}
		return int64(len(out))
	}
	var headers [][]byte
	names := []byte{0}
	section := func(name string, typ uint32, flags, addr uint64, off, end int64, link, info uint32, entsize uint64) {
		h := make([]byte, sectHeaderSize)
		le.PutUint32(h, uint32(len(names)))
		names = append(append(names, name...), 0)
		le.PutUint32(h[4:], typ)
		le.PutUint64(h[8:], flags)
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], uint64(off))
		le.PutUint64(h[32:], uint64(end-off))
		le.PutUint32(h[40:], link)
		le.PutUint32(h[44:], info)
		le.PutUint64(h[48:], 8)
		le.PutUint64(h[56:], entsize)
		headers = append(headers, h)
	}
	headers = append(headers, make([]byte, sectHeaderSize))
	note := pad(8)
	out = append(out, 4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4)
	section(".note.gnu.build-id", shtNote, shfAlloc, uint64(note), note, int64(len(out)), 0, 0, 0)
	p.fatbin = pad(8)
	out = append(append(out, first...), second...)
	fatEnd := int64(len(out))
	section(".nv_fatbin", shtProgbits, shfAlloc, uint64(p.fatbin), p.fatbin, fatEnd, 0, 0, 0)
	addrs := []uint64{uint64(p.fatbin), uint64(p.fatbin) + uint64(len(first))}

	rel := pad(8)
	p.wrappers = alignUp(rel+2*relaSize, 0x1000)
	at := p.writable + uint64(p.wrappers) // address of the first wrapper
	switch how {
	case byRela:
		for i, a := range addrs {
			out = le.AppendUint64(out, at+uint64(i)*wrapperSize+8)
			out = le.AppendUint64(out, 8) // R_X86_64_RELATIVE
			out = le.AppendUint64(out, a)
		}
		section(".rela.dyn", shtRela, shfAlloc, uint64(rel), rel, int64(len(out)), 0, 0, relaSize)
	case byRelr:
		out = le.AppendUint64(out, at+8)
		out = le.AppendUint64(out, 1<<3|1) // the third word after it: 24 bytes on
		section(".relr.dyn", shtRelr, shfAlloc, uint64(rel), rel, int64(len(out)), 0, 0, 8)
	}
	textEnd := int64(len(out))
	pad(0x1000)
	for _, a := range addrs {
		out = le.AppendUint32(out, wrapperMagic)
		out = le.AppendUint32(out, 1)
		if how == byRela {
			a = 0
		}
		out = le.AppendUint64(out, a)
		out = le.AppendUint64(out, 0)
	}
	section(wrapperSection, shtProgbits, shfAlloc|1, at, p.wrappers, int64(len(out)), 0, 0, 0)
	dataEnd := int64(len(out))
	sym := pad(8)
	out = append(out, make([]byte, symbolSize)...)
	s := make([]byte, symbolSize)
	le.PutUint16(s[6:], 2)
	le.PutUint64(s[8:], addrs[1])
	le.PutUint64(s[16:], uint64(len(second)))
	out = append(out, s...)
	section(".symtab", shtSymtab, 0, 0, sym, int64(len(out)), 0, 1, symbolSize)
	str := int64(len(out))
	section(".shstrtab", shtStrtab, 0, 0, str, str+int64(len(names)+len(".shstrtab")+1), 0, 0, 0)
	out = append(out, names...)
	shoff := pad(8)
	for _, h := range headers {
		out = append(out, h...)
	}

	progs := []prog{
		{Type: ptLoad, Flags: 5, Filesz: uint64(textEnd), Memsz: uint64(textEnd), AlignVal: 0x1000},
		{Type: ptLoad, Flags: 6, Off: uint64(p.wrappers), Vaddr: at, Paddr: at, Filesz: uint64(dataEnd - p.wrappers), Memsz: uint64(dataEnd - p.wrappers), AlignVal: 0x1000},
		{Type: ptNote, Flags: 4, Off: uint64(note), Vaddr: uint64(note), Paddr: uint64(note), Filesz: 20, Memsz: 20, AlignVal: 4},
		{Type: 0x6474e551, Flags: 6}, // PT_GNU_STACK
	}
	if !spare {
		progs[2].Type = 0x6ffffffe
	}
	copy(out, elfMagic)
	typ := uint16(etDyn)
	if how == byFixed {
		typ = etExec
	}
	le.PutUint16(out[16:], typ)
	le.PutUint16(out[18:], emX86)
	le.PutUint32(out[20:], 1)
	le.PutUint64(out[32:], elfHeaderSize)
	le.PutUint64(out[40:], uint64(shoff))
	le.PutUint16(out[52:], elfHeaderSize)
	le.PutUint16(out[54:], progHeaderSize)
	le.PutUint16(out[56:], uint16(len(progs)))
	le.PutUint16(out[58:], sectHeaderSize)
	le.PutUint16(out[60:], uint16(len(headers)))
	le.PutUint16(out[62:], uint16(len(headers)-1))
	for i := range progs {
		copy(out[elfHeaderSize+i*progHeaderSize:], progs[i].encode())
	}
	p.data = out
	return p
}

// targets returns where the wrappers point to after loading at address 0.
func (p *madeProgram) targets(t *testing.T, data []byte) []uint64 {
	t.Helper()
	word := func(off int64) uint64 { return le.Uint64(data[off:]) }
	out := []uint64{word(p.wrappers + 8), word(p.wrappers + wrapperSize + 8)}
	h, err := parseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	secs, err := parseSections(data, h)
	if err != nil {
		t.Fatal(err)
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
			if n := le.Uint16(f.Data()[56:]); n != 4 && spare || n != 5 && !spare {
				t.Errorf("way %d, spare %v: %d program headers", how, spare, n)
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
	if !g.mapped(off, addr, 64) {
		t.Errorf("nothing maps 0x%x from 0x%x", addr, off)
	}
	last := uint64(0)
	for _, p := range g.progs {
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
		if back, err := file.Undo(out).Apply(b); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("the way back: %v", err)
		}
	})
}
