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
	"os"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(w, "# Made by scripts/nv/linecases from nvdisasm -g, -gi and -gp.")
	for _, path := range os.Args[1:] {
		if err := record(w, path); err != nil {
			fmt.Fprintln(os.Stderr, "linecases:", err)
			os.Exit(1)
		}
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "linecases:", err)
		os.Exit(1)
	}
}

func record(w *bufio.Writer, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		return err
	}
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
