// Command spillcases compiles the sources of testdata again and prints what ptxas -v says
// of local memory: the cases of patch/stats/testdata/spills.txt.
//
//	go run ./scripts/nv/spillcases > patch/stats/testdata/spills.txt
//
// A line has the cubin, the kernel, and the bytes of its stack frame, of spill stores and of
// spill loads. Kernels without any have no line.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cupatch/cupatch/scripts/nv/cases"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() {
	cases.Main("spillcases", "ptxas -v: cubin, kernel, bytes of stack frame, spill stores, spill loads.", record)
}

func record(w *bufio.Writer) error {
	provenance, err := os.ReadFile("testdata/PROVENANCE")
	if err != nil {
		return err
	}
	out, err := os.MkdirTemp("", "spillcases")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	for _, line := range strings.Split(string(provenance), "\n") {
		cols := strings.Split(line, "\t")
		if len(cols) != 4 || !strings.HasPrefix(cols[2], "ptxas ") {
			continue
		}
		tool := "ptxas"
		if strings.HasPrefix(cols[2], "ptxas 12.") {
			tool = "ptxas12"
		}
		args := strings.Fields(cols[3])
		args[len(args)-1] = filepath.Join("testdata/ptx", args[len(args)-1])
		args = append([]string{"-v", "-o", filepath.Join(out, "out.cubin")}, args...)
		if err := properties(w, "testdata/"+cols[0], tool, args); err != nil {
			return err
		}
	}
	return nil
}

var property = regexp.MustCompile(`Function properties for (\S+)\n\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)

// properties prints what ptxas says of the functions that it compiles.
func properties(w *bufio.Writer, cubin, tool string, args []string) error {
	path, err := oracle.Lookup(tool)
	if err != nil {
		return err
	}
	text, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", tool, strings.Join(args, " "), err, text)
	}
	for _, m := range property.FindAllStringSubmatch(string(text), -1) {
		if m[2] != "0" || m[3] != "0" || m[4] != "0" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cubin, m[1], m[2], m[3], m[4])
		}
	}
	return nil
}
