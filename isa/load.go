package isa

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:generate go run ./internal/packtables

//go:embed tables/packed
var packed embed.FS

// An UnknownArchError says that there is no table for an architecture.
type UnknownArchError struct {
	Arch  Arch
	Known []Arch
}

func (e *UnknownArchError) Error() string {
	names := make([]string, len(e.Known))
	for i, a := range e.Known {
		names[i] = a.String()
	}
	return fmt.Sprintf("no instruction table for %s; known are %s", e.Arch, strings.Join(names, " "))
}

// A packedTable is a table of the program, unpacked when it is first asked for.
type packedTable struct {
	once  sync.Once
	file  *TableFile
	table *Table
	err   error
}

// packedTables returns the tables of the program by architecture.
var packedTables = sync.OnceValue(func() map[Arch]*packedTable {
	m := map[Arch]*packedTable{}
	index, err := packed.ReadFile("tables/packed/index")
	if err != nil {
		return m
	}
	for _, line := range strings.Split(string(index), "\n") {
		if a, err := ParseArch(line); err == nil { // the first line is a comment
			m[a] = &packedTable{}
		}
	}
	return m
})

// Arches returns the architectures that have a table of their own, in order.
func Arches() []Arch {
	var as []Arch
	for a := range packedTables() {
		as = append(as, a)
	}
	slices.SortFunc(as, func(a, b Arch) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	return as
}

// Load returns the table for a, which is read when it is first asked for. Where there
// is no table for just that suffix, another of the same SM number stands in: sm_90a for
// sm_90, sm_100f for sm_100a. The error for an architecture without a table is
// [*UnknownArchError].
func Load(a Arch) (*Table, error) {
	for _, suffix := range []string{a.Suffix, "a", "f", ""} {
		if p := packedTables()[Arch{a.SM, suffix}]; p != nil {
			p.load(Arch{a.SM, suffix})
			return p.table, p.err
		}
	}
	return nil, &UnknownArchError{a, Arches()}
}

// LoadFile returns what the program has for just a, in the form of text: the base that
// [ParseTable] may ask for.
func LoadFile(a Arch) (*TableFile, error) {
	if packedTables()[a] == nil {
		return nil, &UnknownArchError{a, Arches()}
	}
	text, err := unpack(a.String())
	if err != nil {
		return nil, err
	}
	return ParseTable(string(text), LoadFile)
}

// lazyFile is LoadFile for tables that are read when they are needed.
func lazyFile(a Arch) (*TableFile, error) {
	p := packedTables()[a]
	if p == nil {
		return nil, &UnknownArchError{a, Arches()}
	}
	p.load(a)
	return p.file, p.err
}

func (p *packedTable) load(a Arch) {
	p.once.Do(func() {
		var text []byte
		if text, p.err = unpack(a.String()); p.err != nil {
			return
		}
		if p.file, p.err = parseLazy(string(text), lazyFile); p.err != nil {
			p.err = fmt.Errorf("table of %s: %w", a, p.err)
			return
		}
		p.table = newTable(a, p.file.Variants, p.file.pending)
	})
}

// unpack returns the text of a table of the program.
func unpack(name string) ([]byte, error) {
	data, err := packed.ReadFile("tables/packed/" + name + ".zst")
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<28))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(data, nil)
}
