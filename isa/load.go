package isa

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:generate go run ./internal/packtables

// The texts of the tables, and their index.
var (
	//go:embed tables/*.txt
	texts embed.FS
	//go:embed tables/packed/index
	tableIndex string
)

//go:embed tables/packed/*.zst
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

// A packedTable is a table of the program, made when it is first asked for.
type packedTable struct {
	once  sync.Once
	table *Table
	err   error
}

// programTables are the tables of the program.
var programTables = sync.OnceValue(func() *tableStore {
	s, err := newTableStore(tableIndex, programText)
	if err != nil {
		panic(err) // a test reads the index
	}
	return s
})

// programText returns the text of a table of the program.
func programText(a Arch) io.ReaderAt {
	f, err := texts.Open(textName(a))
	if err != nil {
		return strings.NewReader("")
	}
	return f.(io.ReaderAt) // as package embed says
}

func textName(a Arch) string { return "tables/" + a.String() + ".txt" }

// Arches returns the architectures that have a table of their own, in order.
func Arches() []Arch {
	var as []Arch
	for _, t := range programTables().texts {
		as = append(as, t.arch)
	}
	return as
}

// Load returns the table for a, which is made when it is first asked for. Where there
// is no table for just that suffix, another of the same SM number stands in: sm_90a for
// sm_90, sm_100f for sm_100a. The error for an architecture without a table is
// [*UnknownArchError].
func Load(a Arch) (*Table, error) {
	for _, suffix := range []string{a.Suffix, "a", "f", ""} {
		if t, err := programTables().load(Arch{a.SM, suffix}); t != nil || err != nil {
			return t, err
		}
	}
	return nil, &UnknownArchError{a, Arches()}
}

// LoadFile returns what the program has for just a, in the form of text: the base that
// [ParseTable] may ask for.
func LoadFile(a Arch) (*TableFile, error) {
	text, err := texts.ReadFile(textName(a))
	if err != nil {
		return nil, &UnknownArchError{a, Arches()}
	}
	return ParseTable(string(text), LoadFile)
}

// unpack returns what is packed in the program.
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
