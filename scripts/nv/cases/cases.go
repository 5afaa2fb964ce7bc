// Package cases is what the commands have in common that record the answers of NVIDIA's
// tools about cubins.
package cases

import (
	"bufio"
	"fmt"
	"os"

	"github.com/cupatch/cupatch/elfx"
)

// Main writes heading and calls record to write to standard output, and ends the program
// with status 1 where that fails; name is that of the program.
func Main(name, heading string, record func(w *bufio.Writer) error) {
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(w, "# Made by scripts/nv/"+name+" from "+heading)
	err := record(w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// OfCubins is Main for a program whose arguments are the paths of cubins.
func OfCubins(name, heading string, record func(w *bufio.Writer, path string, c *elfx.Cubin) error) {
	Main(name, heading, func(w *bufio.Writer) error {
		for _, path := range os.Args[1:] {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c, err := elfx.ParseCubin(data)
			if err == nil {
				err = record(w, path, c)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	})
}
