// Packtables writes the packed form of the instruction tables. It runs in the folder
// of package isa: go generate ./isa
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/isa/internal/pack"
)

func main() {
	if err := run("tables", filepath.Join("tables", "packed")); err != nil {
		fmt.Fprintln(os.Stderr, "packtables:", err)
		os.Exit(1)
	}
}

// run packs the tables in src into dst, and removes what lies there no longer needed.
func run(src, dst string) error {
	files, err := pack.Tables(src)
	if err != nil {
		return err
	}
	old, err := os.ReadDir(dst)
	if err != nil {
		return err
	}
	for _, e := range old {
		if files[e.Name()] == nil {
			if err := os.Remove(filepath.Join(dst, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dst, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
