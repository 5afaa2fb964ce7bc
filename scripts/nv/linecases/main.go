// Command linecases prints what nvdisasm says of the source lines of cubins: the cases of
// patch/listing/testdata/lines.txt.
//
//	go run ./scripts/nv/linecases testdata/cubin/*/*/{inline,lineinfo,debug}.cubin > patch/listing/testdata/lines.txt
//
// A line has the cubin, the flag of nvdisasm, the section, the address of the instruction
// and the comments in front of it, separated by bars.
package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/cases"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() { cases.OfCubins("linecases", "nvdisasm -g, -gi and -gp.", record) }

func record(w *bufio.Writer, path string, c *elfx.Cubin) error {
	for _, flag := range []string{"-g", "-gi", "-gp"} {
		notes, err := oracle.LineNotes(oracle.Current("nvdisasm", c.Arch), flag, path)
		if err != nil {
			return err
		}
		for _, n := range notes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%x\t%s\n", path, flag, n.Section, n.PC, strings.Join(n.Lines, "|"))
		}
	}
	return nil
}
