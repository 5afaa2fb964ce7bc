package isa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// The program carries the instruction tables as the texts in isa/tables, and an index of
// them, so that a table is ready before a line of its text is read:
//
//	magic, number of texts
//	for each text: name, u32 place and number of its classes, u32 place and number of its
//	         variants, u32 size of what comes before its classes
//	class:   56 bytes, see the functions below
//	variant: u32 class, in its lower half, of the text in its upper half; all variants of the
//	         architecture in their order, then, as u32 again, their numbers in the order
//	         in which they are tried
//	names of classes and instructions
//
// Numbers are little-endian. Names of texts take 16 bytes, with zeros behind.
const (
	indexMagic  = "cupatch-tables-1"
	indexName   = 16
	indexFile   = indexName + 5*4
	indexHead   = len(indexMagic) + 4
	indexClass  = 56
	indexNumber = 4
)

// An indexRecord is what the index says of a class of a text.
type indexRecord struct {
	mask, value Word
	// Where the lines below the class line are in the text, and in the index the name of
	// the class and those of the instructions, with blanks between them.
	body, class, names [2]uint32
	sched              Sched
	guard              Guard
	rank               uint8
}

func (r *indexRecord) append(dst []byte) []byte {
	for _, x := range [...]uint64{r.mask.Lo, r.mask.Hi, r.value.Lo, r.value.Hi} {
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	for _, x := range [...]uint32{r.body[0], r.body[1], r.class[0], r.names[0]} {
		dst = binary.LittleEndian.AppendUint32(dst, x)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(r.class[1]))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(r.names[1]))
	return append(dst, byte(r.sched), byte(r.guard), r.rank, 0)
}

// readRecord reads what append writes.
func readRecord(s string) (r indexRecord) {
	_ = s[indexClass-1]
	r.mask, r.value = Word{get64(s), get64(s[8:])}, Word{get64(s[16:]), get64(s[24:])}
	r.body = [2]uint32{get32(s[32:]), get32(s[36:])}
	sizes := get32(s[48:])
	r.class, r.names = [2]uint32{get32(s[40:]), sizes & 0xffff}, [2]uint32{get32(s[44:]), sizes >> 16}
	r.sched, r.guard, r.rank = Sched(s[52]), Guard(s[53]), s[54]
	return r
}

func get64(s string) uint64 { return uint64(get32(s)) | uint64(get32(s[4:]))<<32 }

func get32(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// A tableStore reads tables by an index of their texts.
type tableStore struct {
	index string
	open  func(a Arch) io.ReaderAt // a text
	texts []*tableText
	tried map[Arch]int // number of the text of an architecture's own
}

// A tableText is one of the texts, and its classes, which tables share.
type tableText struct {
	store *tableStore
	arch  Arch
	entry string // of the index

	once     sync.Once
	variants []Variant
	pending  []pending

	listsOnce sync.Once
	lists     map[string]*list
	listsErr  error
	table     packedTable
}

// newTableStore returns the tables of which index tells.
func newTableStore(index string, open func(a Arch) io.ReaderAt) (*tableStore, error) {
	s := &tableStore{index: index, open: open, tried: map[Arch]int{}}
	if len(index) < indexHead || index[:len(indexMagic)] != indexMagic {
		return nil, errors.New("no index of instruction tables")
	}
	for i := range int(get32(index[len(indexMagic):])) {
		entry := index[indexHead+i*indexFile:][:indexFile]
		a, err := ParseArch(strings.TrimRight(entry[:indexName], "\x00"))
		if err != nil {
			return nil, fmt.Errorf("index of instruction tables: %w", err)
		}
		s.texts = append(s.texts, &tableText{store: s, arch: a, entry: entry[indexName:]})
		s.tried[a] = i
	}
	return s, nil
}

// load returns the table for a, or nil where it has none of its own.
func (s *tableStore) load(a Arch) (*Table, error) {
	i, ok := s.tried[a]
	if !ok {
		return nil, nil
	}
	p := &s.texts[i].table
	p.once.Do(func() { p.table = s.texts[i].newTable() })
	return p.table, p.err
}

// classes returns the classes of the text.
func (t *tableText) classes() []Variant {
	t.once.Do(func() {
		at, n := get32(t.entry), get32(t.entry[4:])
		records := t.store.index[at:]
		t.variants, t.pending = make([]Variant, n), make([]pending, n)
		for i := range t.variants {
			r := readRecord(records[i*indexClass:])
			v, p := &t.variants[i], &t.pending[i]
			v.Class, v.Mask, v.Value, v.Sched, v.Guard, v.Rank = t.store.name(r.class), r.mask, r.value, r.sched, r.guard, r.rank
			p.text, p.place, p.names = t, r.body, t.store.name(r.names)
		}
	})
	return t.variants
}

func (s *tableStore) name(at [2]uint32) string { return s.index[at[0] : at[0]+at[1]] }

// newTable returns the table of the architecture.
func (t *tableText) newTable() *Table {
	at, n := get32(t.entry[8:]), int(get32(t.entry[12:]))
	numbers := t.store.index[at:]
	table := &Table{arch: t.arch, variants: make([]*Variant, n), byVariant: make([]*candidate, n), cands: make([]candidate, n)}
	tried := numbers[n*indexNumber:]
	for i := range table.cands {
		number := int(get32(tried[i*indexNumber:]))
		place := get32(numbers[number*indexNumber:])
		text := t.store.texts[place>>16]
		v := &text.classes()[place&0xffff]
		table.variants[number] = v
		table.put(i, number, &text.pending[place&0xffff], v)
	}
	table.fill()
	return table
}

// read returns a part of the text.
func (t *tableText) read(at [2]uint32) (string, error) {
	b := make([]byte, at[1])
	if _, err := t.store.open(t.arch).ReadAt(b, int64(at[0])); err != nil && err != io.EOF {
		return "", err
	}
	return string(b), nil
}

// named returns the lists that classes of the text may name: those of the text, and of
// the text that it changes.
func (t *tableText) named() (map[string]*list, error) {
	t.listsOnce.Do(func() { t.lists, t.listsErr = t.readLists() })
	return t.lists, t.listsErr
}

func (t *tableText) readLists() (map[string]*list, error) {
	text, err := t.read([2]uint32{0, get32(t.entry[16:])})
	if err != nil {
		return nil, err
	}
	r := newTableReader(nil)
	r.lazy = true
	for r.next(&text) {
		if base, ok := strings.CutPrefix(r.cur, "base "); ok {
			if err := r.inherit(t.store, base); err != nil {
				return nil, err
			}
			continue
		}
		if !strings.HasPrefix(r.cur, "list ") && !(strings.HasPrefix(r.cur, "  ") && r.listName != "") {
			if err := r.finish(); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.parseLine(); err != nil {
			return nil, err
		}
	}
	return r.file.lists, r.finish()
}

// inherit takes over the lists of another text.
func (r *tableReader) inherit(s *tableStore, name string) error {
	a, err := ParseArch(name)
	if err != nil {
		return err
	}
	i, ok := s.tried[a]
	if !ok {
		return &UnknownArchError{Arch: a}
	}
	lists, err := s.texts[i].named()
	for name, l := range lists {
		r.file.lists[name] = l
	}
	return err
}

// IndexTables returns the index of the texts of instruction tables, by the names of their
// architectures, which [FormatTable] has written; the program carries it beside them.
func IndexTables(texts map[string]string) ([]byte, error) {
	x := &indexWriter{texts: map[Arch]string{}, files: map[Arch]*TableFile{}, at: map[*Variant]uint32{}, heap: map[string]uint32{}}
	for name, text := range texts {
		a, err := ParseArch(name)
		if err != nil {
			return nil, err
		}
		x.texts[a] = text
		x.archs = append(x.archs, a)
	}
	slices.SortFunc(x.archs, Arch.Compare)
	for i, a := range x.archs {
		if _, err := x.parse(a); err != nil {
			return nil, err
		}
		if err := x.classes(uint32(i), x.texts[a]); err != nil {
			return nil, fmt.Errorf("table of %s: %w", a, err)
		}
	}
	return x.bytes(), nil
}

// An indexWriter makes an index.
type indexWriter struct {
	texts   map[Arch]string
	archs   []Arch
	files   map[Arch]*TableFile
	records [][]indexRecord     // by text
	heads   []int               // by text: size of what comes before its classes
	at      map[*Variant]uint32 // text and class
	heap    map[string]uint32   // names and their places among the names
	names   []byte
}

// parse reads the text of a, and the one that it changes first, so that both have the
// same variants.
func (x *indexWriter) parse(a Arch) (*TableFile, error) {
	if f := x.files[a]; f != nil {
		return f, nil
	}
	text, ok := x.texts[a]
	if !ok {
		return nil, &UnknownArchError{Arch: a}
	}
	f, err := ParseTable(text, x.parse)
	if err != nil {
		return nil, fmt.Errorf("table of %s: %w", a, err)
	}
	x.files[a] = f
	return f, nil
}

// classes notes the classes of a text, the number of which is given.
func (x *indexWriter) classes(number uint32, text string) error {
	byKey := map[string]*Variant{}
	for _, v := range x.files[x.archs[number]].Variants {
		byKey[variantKey(v)] = v
	}
	var records []indexRecord
	const word = "\nclass "
	x.heads = append(x.heads, len(text))
	if i := strings.Index(text, word); i >= 0 {
		x.heads[number] = i
	}
	for at := strings.Index(text, word); at >= 0; {
		head, rest, _ := strings.Cut(text[at+len(word):], "\n")
		body := at + len(word) + len(head) + 1
		next := strings.Index(rest, word)
		end := len(text)
		if at = next; next >= 0 {
			at += body
			end = at + 1
		}
		r := newTableReader(nil)
		if err := r.parseClass(head); err != nil {
			return err
		}
		v := byKey[variantKey(r.v)]
		if len(records) > 0xffff || v == nil || end < body {
			return fmt.Errorf("class %s does not fit an index", head)
		}
		x.at[v] = number<<16 | uint32(len(records))
		records = append(records, indexRecord{
			mask: v.Mask, value: v.Value, sched: v.Sched, guard: v.Guard, rank: v.Rank, body: [2]uint32{uint32(body), uint32(end - body)},
			class: x.name(v.Class), names: x.name(strings.Join(v.Mnemonics(), " ")),
		})
	}
	x.records = append(x.records, records)
	return nil
}

// name puts a name among the names.
func (x *indexWriter) name(s string) [2]uint32 {
	at, ok := x.heap[s]
	if !ok {
		at = uint32(len(x.names))
		x.heap[s] = at
		x.names = append(x.names, s...)
	}
	return [2]uint32{at, uint32(len(s))}
}

// bytes returns the index.
func (x *indexWriter) bytes() []byte {
	size := indexHead + len(x.archs)*indexFile
	head := binary.LittleEndian.AppendUint32([]byte(indexMagic), uint32(len(x.archs)))
	for i, a := range x.archs {
		var name [indexName]byte
		copy(name[:], a.String())
		head = append(head, name[:]...)
		classes, variants := len(x.records[i]), len(x.files[a].Variants)
		for _, n := range [...]int{size, classes, size + classes*indexClass, variants, x.heads[i]} {
			head = binary.LittleEndian.AppendUint32(head, uint32(n))
		}
		size += classes*indexClass + 2*variants*indexNumber
	}
	for i, a := range x.archs {
		for _, r := range x.records[i] {
			r.class[0] += uint32(size)
			r.names[0] += uint32(size)
			head = r.append(head)
		}
		vs := x.files[a].Variants
		for _, v := range vs {
			head = binary.LittleEndian.AppendUint32(head, x.at[v])
		}
		for _, n := range triedOrder(vs) {
			head = binary.LittleEndian.AppendUint32(head, uint32(n))
		}
	}
	return append(head, x.names...)
}
