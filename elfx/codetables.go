package elfx

import (
	"slices"
)

// Attributes that list instructions beside those of Attr.InstrOffsets.
const (
	attrExitOffsets  = 0x1c
	attrCoopOffsets  = 0x28
	attrCoopRegs     = 0x29
	attrUnusedLoad   = 0x44 // pairs of offset and mask of bytes
	attrAnnotations  = 0x55 // pairs of kind and offset
	annotationRefill = 1    // SpillRefill
)

// plainAttrs has the attributes of a kernel with data of their own that hold no place in
// code, by their names in cuobjdump.
var plainAttrs = map[string]bool{
	"CTAIDZ_USED": true, "MAX_THREADS": true, "PARAM_CBANK": true, "SMEM_PARAM_OFFSETS": true, "CBANK_PARAM_OFFSETS": true,
	"SYNC_STACK": true, "TEXID_SAMPID_MAP": true, "EXTERNS": true, "REQNTID": true, "FRAME_SIZE": true, "MIN_STACK_SIZE": true,
	"BINDLESS_IMAGE_OFFSETS": true, "KPARAM_INFO": true, "SMEM_PARAM_SIZE": true, "CRS_STACK_SIZE": true, "MAX_STACK_SIZE": true,
	"COOP_GROUP_MASK_REGIDS": true, "REGCOUNT": true, "SHARED_SCRATCH": true, "SW_WAR": true, "CUDA_API_VERSION": true,
	"SAM_REGION_STACK_SIZE": true, "CTA_PER_CLUSTER": true, "MAX_CLUSTER_RANK": true, "RESERVED_SMEM_0_SIZE": true, "KPARAM_INFO_V2": true,
	"AT_ENTRY_FRAGMENTS": true, "SPARSE_MMA_MASK": true, "LANGUAGE": true, "NVSAL_SW_WAR": true, "GRID_ATTRIBUTES": true, "CUDA_REQ": true,
	"MIN_PER_CTA_MEMORY_SIZE": true, "STUB_FUNCTION_KIND": true, "SANITIZE": true, "IMAGE_SLOT": true, "IMAGE_OFFSET": true, "IMAGE_SIZE": true,
}

// places calls fn with each word of an attribute that holds the offset of an instruction,
// with the words of the record that it belongs to. It returns false for an attribute that
// is not understood.
func (a Attr) places(fn func(word, record, size int, off uint64)) bool {
	if a.Format != fmtSized {
		return true
	}
	n := len(a.Data) / 4
	each := func(size, at int) bool {
		if n%size != 0 || len(a.Data)%4 != 0 {
			return false
		}
		for i := 0; i < n; i += size {
			fn(i+at, i, size, uint64(le.Uint32(a.Data[4*(i+at):])))
		}
		return true
	}
	switch a.ID {
	case attrMbarrier:
		return each(4, 0)
	case attrEmulRegMap, attrUnusedLoad:
		return each(2, 0)
	case attrAnnotations:
		for i := 0; i+1 < n; i += 2 {
			if le.Uint32(a.Data[4*i:]) != annotationRefill {
				return false
			}
		}
		return each(2, 1)
	case attrCoroutine:
		return each(2, 1)
	}
	some := false
	a.InstrOffsets(func(word int, off uint64) {
		some = true
		fn(word, word, 1, off)
	})
	return some || plainAttrs[a.Name()] || len(a.Data) == 0
}

// attributes moves what the kernel's attributes say of instructions. What they say of one
// that is gone goes with it.
func (w *codeMover) attributes() error {
	if w.kernel.info == 0 {
		return nil
	}
	s := &w.cubin.sections[w.kernel.info]
	var out []byte
	var coop []int // entries of the list of cooperative instructions that are gone
	attrs := w.kernel.Info()
	for _, a := range attrs {
		if a.ID == attrCoopOffsets {
			a.places(func(word, _, _ int, off uint64) {
				if _, ok := w.to(w.Inst, off); !ok {
					coop = append(coop, word)
				}
			})
		}
	}
	exits := false
	for _, a := range attrs {
		exits = exits || a.ID == attrExitOffsets
		b, err := w.attribute(a, coop)
		if err != nil {
			return err
		}
		out = append(out, b...)
	}
	if len(w.Exits) > 0 && !exits {
		out = appendAttr(out, attrExitOffsets, w.exitWords(nil))
	}
	if !slices.Equal(out, w.cubin.SectionData(s)) {
		w.contents[s.Index] = out
	}
	return nil
}

func appendAttr(out []byte, id uint8, words []uint32) []byte {
	out = append(out, fmtSized, id)
	out = le.AppendUint16(out, uint16(4*len(words)))
	for _, x := range words {
		out = le.AppendUint32(out, x)
	}
	return out
}

// attribute returns a record as it is to be, nothing where all that it lists is gone.
func (w *codeMover) attribute(a Attr, coop []int) ([]byte, error) {
	raw := w.cubin.data[a.Offset:]
	if a.Format != fmtSized {
		return raw[:4], nil
	}
	raw = raw[:4+len(a.Data)]
	if a.ID == attrBranchTargets {
		return w.branchAttr(a)
	}
	words := a.Words()
	gone := make([]bool, len(words))
	listed := 0
	var bad uint64
	odd := false
	known := a.places(func(word, record, size int, off uint64) {
		listed++
		to, ok := w.to(w.Inst, off)
		if end := uint64(len(w.Inst) * w.Step); off%uint64(w.Step) != 0 || off >= end {
			bad, odd = off, true
		}
		words[word] = uint32(to)
		for i := record; !ok && i < record+size; i++ {
			gone[i] = true
		}
	})
	if a.ID == attrCoopRegs && len(coop) > 0 {
		listed = len(words)
		for _, i := range coop {
			if i < len(gone) {
				gone[i] = true
			}
		}
	}
	switch {
	case !known:
		return nil, w.cannot("attribute %s", a.Name())
	case odd:
		return nil, w.cannot("attribute %s lists %#x, which is no instruction", a.Name(), bad)
	case listed == 0:
		return raw, nil
	}
	kept := words[:0]
	for i, x := range words {
		if !gone[i] {
			kept = append(kept, x)
		}
	}
	if a.ID == attrExitOffsets {
		kept = w.exitWords(kept)
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return appendAttr(nil, a.ID, kept), nil
}

// exitWords adds the new exits to a list of their offsets, which stays in order if it was.
func (w *codeMover) exitWords(list []uint32) []uint32 {
	sorted := slices.IsSorted(list)
	for _, x := range w.Exits {
		list = append(list, uint32(x*w.Step))
	}
	if sorted {
		slices.Sort(list)
	}
	return list
}

// branchAttr moves the list of the targets of indirect branches.
func (w *codeMover) branchAttr(a Attr) ([]byte, error) {
	var out []uint32
	words := a.Words()
	var err error
	at := 0
	branchTargets(words, func(branch uint64, targets []uint32) {
		head := words[at : at+3]
		at += 3 + len(targets)
		from, ok := w.to(w.Inst, branch)
		if !ok {
			return
		}
		out = append(out, uint32(from), head[1], head[2])
		for _, t := range targets {
			to, ok := w.to(w.Label, uint64(t))
			if !ok {
				err = w.cannot("the indirect branch at %#x goes to %#x", branch, t)
			}
			out = append(out, uint32(to))
		}
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return appendAttr(nil, a.ID, out), nil
}

// tables moves the addresses in the kernel's constants that ptxas made: tables of jumps,
// which hold the targets of an indirect branch in the order in which its attribute lists
// them, and of functions.
func (w *codeMover) tables() error {
	s := w.cubin.Section(".nv.constant2." + w.kernel.Name)
	if s == nil || !s.HasData() {
		return nil
	}
	data := w.cubin.SectionData(s)
	taken := make([]bool, len(data)/4)
	var lists [][]uint32
	for _, a := range w.kernel.Info() {
		if a.ID == attrBranchTargets {
			branchTargets(a.Words(), func(_ uint64, targets []uint32) { lists = append(lists, targets) })
		}
	}
	slices.SortStableFunc(lists, func(a, b []uint32) int { return len(b) - len(a) })
	for i, list := range lists {
		if i > 0 && slices.Equal(list, lists[i-1]) {
			continue // two branches by one table, or by two equal ones
		}
		found, err := w.jumpTable(s, data, list, taken)
		if err != nil {
			return err
		}
		if !found {
			return w.cannot("the table of an indirect branch to %#x is not in %s", list[:min(len(list), 4)], s.Name)
		}
	}
	if w.FuncTable {
		return w.functionTable(s, data, taken)
	}
	return nil
}

// sureTable is from how many targets on numbers that are those of a branch, in order, are
// a table for certain.
const sureTable = 3

// jumpTable moves the targets of one branch where they stand among the constants. Words
// that are taken belong to another table.
func (w *codeMover) jumpTable(s *Section, data []byte, list []uint32, taken []bool) (found bool, err error) {
	var places []int
	for at := 0; at+4*len(list) <= len(data); at += 4 {
		if !tableAt(data[at:], list) {
			continue
		}
		found = true
		if !slices.Contains(taken[at/4:at/4+len(list)], true) {
			places = append(places, at)
		}
	}
	if len(places) > 1 && len(list) < sureTable {
		return found, w.cannot("%s: the table of a jump to %#x may be at %#x or at %#x", s.Name, list, places[0], places[1])
	}
	for _, at := range places {
		for k, x := range list {
			to, ok := w.to(w.Label, uint64(x))
			if !ok {
				return found, w.cannot("%s: a jump to %#x", s.Name, x)
			}
			le.PutUint32(w.content(s.Index)[at+4*k:], uint32(to))
			taken[at/4+k] = true
		}
	}
	return found, nil
}

func tableAt(data []byte, list []uint32) bool {
	for i, x := range list {
		if le.Uint32(data[4*i:]) != x {
			return false
		}
	}
	return len(list) > 0
}

// functionTable moves the addresses of functions among constants: 64-bit numbers that are
// where a function of the section starts.
func (w *codeMover) functionTable(s *Section, data []byte, taken []bool) error {
	starts := map[uint64]bool{}
	for _, f := range w.kernel.Functions() {
		starts[f.Offset] = f.Offset > 0
	}
	found := false
	for at := 0; at+8 <= len(data); at += 8 {
		v := le.Uint64(data[at:])
		if !starts[v] || taken[at/4] || taken[at/4+1] {
			continue
		}
		found = true
		to, ok := w.to(w.Label, v)
		if !ok {
			return w.cannot("%s: a function at %#x", s.Name, v)
		}
		le.PutUint64(w.content(s.Index)[at:], to)
	}
	if !found && len(starts) > 1 {
		return w.cannot("it calls functions through a register, and %s has no address of one", s.Name)
	}
	return nil
}
