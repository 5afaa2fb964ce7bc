// Command lifecases prints, for each section of cubins without calls and returns, which
// registers are in use at its instructions according to nvdisasm's life ranges: the cases
// of patch/code/testdata/life.txt.
//
//	go run ./scripts/nv/lifecases testdata/cubin/*/*/*.cubin > patch/code/testdata/life.txt
//
// A line has the cubin, the section, the number of instructions that nvdisasm shows, the
// greatest number of registers of the files R, UR, P and UP, and the sum of all sets; see
// [liferange.Sum]; then the number of registers at each instruction. R1 is left out: nvdisasm takes it to be in use everywhere.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/liferange"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/scripts/nv/cases"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() { cases.OfCubins("lifecases", "nvdisasm -plr.", record) }

func record(w *bufio.Writer, path string, c *elfx.Cubin) error {
	table, err := code.TableOf(c)
	if err != nil {
		return err
	}
	sums := map[string]*liferange.Sum{}
	for i := range c.Kernels() {
		if k := &c.Kernels()[i]; alone(table, k.Data()) {
			sums[k.Name] = &liferange.Sum{}
		}
	}
	out, err := listing(c, path)
	if err != nil {
		return err
	}
	var r1 isa.RegSet
	r1.Add(isa.FileR, 1, 1)
	err = liferange.Parse(bytes.NewReader(out), func(r liferange.Row) error {
		if s := sums[r.Section]; s != nil {
			s.Add(r.PC, r.InUse.Minus(r1))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range c.Kernels() {
		name := c.Kernels()[i].Name
		if s := sums[name]; s != nil && s.Rows > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", path, name, s, liferange.FormatCounts(s.Counts))
		}
	}
	return nil
}

// listing returns what nvdisasm prints of a cubin with life ranges.
func listing(c *elfx.Cubin, path string) ([]byte, error) {
	name := "nvdisasm"
	if c.Layout == elfx.LayoutOld {
		name = "nvdisasm12"
	}
	tool, err := oracle.Lookup(name)
	if err != nil {
		return nil, err
	}
	return exec.Command(tool, "-plr", "-lrm", "narrow", "-c", path).Output()
}

// alone reports whether code neither calls nor returns.
func alone(t *isa.Table, data []byte) bool {
	for off := 0; off < len(data); off += isa.WordSize {
		switch t.Decode(isa.LoadWord(data[off:])).Flow().Kind {
		case isa.FlowCall, isa.FlowReturn:
			return false
		}
	}
	return true
}
