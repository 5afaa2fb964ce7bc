package elfx

import "fmt"

// redirect lets everything that points into the moved sections follow them.
func (g *hostELF) redirect() error {
	for i := range g.secs {
		s := &g.secs[i]
		if !s.HasData() || s.Flags&shfCompressed != 0 {
			continue
		}
		switch s.Type {
		case shtRela:
			if s.Flags&shfAlloc != 0 {
				g.redirectRela(s)
			}
		case shtRelr:
			if err := g.redirectRelr(s); err != nil {
				return err
			}
		case shtSymtab, shtDynsym:
			g.redirectSymbols(s)
		}
	}
	g.redirectWrappers()
	for _, m := range g.moved {
		if m.refs == 0 && m.shifts() {
			return fmt.Errorf("found nothing that points to section %s, so it cannot move: %w", m.sec.Name, ErrGrow)
		}
	}
	return nil
}

// target maps an address inside one of the moved sections.
func (g *hostELF) target(old uint64) (addr uint64, m *movedSection) {
	for _, m := range g.moved {
		if a, ok := m.addr(old); ok {
			return a, m
		}
	}
	return 0, nil
}

// fileOffset returns where the eight bytes at an address lie in the file, or -1.
func (g *hostELF) fileOffset(addr uint64) int64 {
	for i := range g.old {
		p := &g.old[i]
		if p.Type == ptLoad && addr >= p.Vaddr && addr-p.Vaddr+8 <= p.Filesz && p.Off+p.Filesz <= uint64(g.f.Size) {
			return int64(p.Off + addr - p.Vaddr)
		}
	}
	return -1
}

// redirectWord changes a pointer in the data, once.
func (g *hostELF) redirectWord(off int64, done map[int64]bool) {
	if off < 0 || done[off] || off+8 > g.f.Size {
		return
	}
	if addr, m := g.target(le.Uint64(g.f.data[off:])); m != nil {
		done[off] = true
		m.refs++
		g.splice.put64(off, addr)
	}
}

// redirectRela changes the addends of relative relocations, and the words that they
// apply to, which linkers fill in with the same value.
func (g *hostELF) redirectRela(s *Section) {
	relative := relativeReloc[g.h.Machine]
	for at := s.Offset; at+relaSize <= s.end(); at += relaSize {
		b := g.f.data[at : at+relaSize]
		if uint32(le.Uint64(b[8:])) != relative {
			continue
		}
		old := le.Uint64(b[16:])
		addr, m := g.target(old)
		if m == nil {
			continue
		}
		m.refs++
		g.splice.put64(at+16, addr)
		if off := g.fileOffset(le.Uint64(b)); off >= 0 && le.Uint64(g.f.data[off:]) == old {
			g.redirectWord(off, g.done)
		}
	}
}

// redirectRelr changes the words that compact relative relocations apply to: an even
// word is the address of one, an odd word a bitmap of the 63 words that follow.
func (g *hostELF) redirectRelr(s *Section) error {
	if s.EntrySize != 8 && s.EntrySize != 0 {
		return fmt.Errorf("section %s has entries of %d bytes: %w", s.Name, s.EntrySize, ErrGrow)
	}
	var base uint64
	for at := s.Offset; at+8 <= s.end(); at += 8 {
		w := le.Uint64(g.f.data[at:])
		if w&1 == 0 {
			g.redirectWord(g.fileOffset(w), g.done)
			base = w + 8
			continue
		}
		for i := uint64(0); i < 63; i++ {
			if w>>(i+1)&1 != 0 {
				g.redirectWord(g.fileOffset(base+8*i), g.done)
			}
		}
		base += 63 * 8
	}
	return nil
}

// redirectSymbols changes the values of symbols defined in a moved section, and the
// sizes of those that stand for a whole container.
func (g *hostELF) redirectSymbols(s *Section) {
	for at := s.Offset; at+symbolSize <= s.end(); at += symbolSize {
		b := g.f.data[at : at+symbolSize]
		for _, m := range g.moved {
			if int(le.Uint16(b[6:])) != m.sec.Index {
				continue
			}
			old, size := le.Uint64(b[8:]), le.Uint64(b[16:])
			addr, ok := m.addr(old)
			if !ok {
				if old != m.sec.Addr+m.sec.Size {
					continue
				}
				addr = m.newAddr + uint64(m.body.size) // a symbol for the end
			}
			g.splice.put64(at+8, addr)
			if end, ok := m.addr(old + size); ok && size > 0 {
				g.splice.put64(at+16, end-addr)
			} else if size > 0 && old+size == m.sec.Addr+m.sec.Size {
				g.splice.put64(at+16, m.newAddr+uint64(m.body.size)-addr)
			}
		}
	}
}

// redirectWrappers changes the pointers of programs that are linked to a fixed
// address and therefore have no relocations: +8 of each wrapper, and the lists of
// prelinked fatbins at +16 of version 2, which end with 0.
func (g *hostELF) redirectWrappers() {
	for i := range g.secs {
		s := &g.secs[i]
		if s.Name != wrapperSection || !s.HasData() {
			continue
		}
		for at := s.Offset; at+wrapperSize <= s.end(); at += wrapperSize {
			b := g.f.data[at : at+wrapperSize]
			if le.Uint32(b) != wrapperMagic {
				continue
			}
			g.redirectWord(at+8, g.done)
			if list := le.Uint64(b[16:]); le.Uint32(b[4:]) == 2 && list != 0 {
				for off := g.fileOffset(list); off >= 0 && off+8 <= g.f.Size && le.Uint64(g.f.data[off:]) != 0; off += 8 {
					g.redirectWord(off, g.done)
				}
			}
		}
	}
}
