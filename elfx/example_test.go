package elfx_test

import (
	"fmt"
	"log"
	"os"

	"github.com/cupatch/cupatch/elfx"
)

func ExampleParseCubin() {
	data, err := os.ReadFile("../testdata/cubin/new/sm_90/calls.cubin")
	if err != nil {
		log.Fatal(err)
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Arch, "CUDA", c.Toolkit)
	for _, k := range c.Kernels() {
		fmt.Printf("%s: 0x%x, %d instructions, %d registers\n", k.Name, k.Offset, k.Instructions(), k.Regs)
	}
	// Output:
	// sm_90 CUDA 13.5
	// calls_indirect: 0x1080, 40 instructions, 24 registers
	// calls_direct: 0x1300, 64 instructions, 24 registers
	// calls_system: 0x1700, 72 instructions, 24 registers
}

// The entries of a library, whatever they are compressed with.
func ExampleOpenFile() {
	f, err := elfx.OpenFile("../testdata/fatbin/zstd.fatbin", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, e := range f.Entries() {
		fmt.Printf("#%d %s %s, %s: %d of %d bytes\n", e.Number, e.Kind, e.Target(), e.Compression, e.StoredSize, e.Size)
	}
	// Output:
	// #1 elf sm_75, zstd: 2297 of 9384 bytes
	// #2 elf sm_80, zstd: 2075 of 9256 bytes
	// #3 elf sm_90, zstd: 2414 of 10568 bytes
	// #4 ptx compute_90, zstd: 1184 of 3417 bytes
}

// A change of one instruction, written back into its container.
func ExampleFile_Rewrite() {
	f, err := elfx.OpenFile("../testdata/fatbin/stored.fatbin", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	e := f.Entries()[2]
	c, err := e.Cubin()
	if err != nil {
		log.Fatal(err)
	}
	data := append([]byte(nil), c.Data()...)
	data[c.Kernels()[0].Offset+13] ^= 0x80 // some bit of the first instruction
	out, report, err := f.Rewrite(map[*elfx.Entry][]byte{e: data}, elfx.RewriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Changes[0].How, out.Size() == f.Size)

	// The way back is byte for byte.
	old, err := f.Undo(out).Apply(out.Bytes())
	fmt.Println(string(old.Bytes()) == string(f.Data()), err)
	// Output:
	// in place true
	// true <nil>
}

// Where an instruction comes from, through the calls that were inlined.
func ExampleCubin_Lines() {
	f, err := elfx.OpenFile("../testdata/cubin/new/sm_90/inline.cubin", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	c, err := f.Entries()[0].Cubin()
	if err != nil {
		log.Fatal(err)
	}
	table, err := c.Lines(elfx.SourceLines)
	if err != nil {
		log.Fatal(err)
	}
	row, _ := elfx.LineAt(table.Rows(&c.Kernels()[0]), 0xd0)
	for s := row.Source; s != nil; s = s.Caller {
		fmt.Printf("%s:%d %s\n", s.File, s.Line, elfx.Demangle(s.Function))
	}
	// Output:
	// include/norm.h:5 square(float)
	// include/norm.h:12 norm(float, float)
	// src/norms.cu:11
}
