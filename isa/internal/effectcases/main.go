// Effectcases asks nvdisasm for the registers that a few words of every class read and
// write, and writes them to isa/liferange/testdata, where tests compare them with the
// effects tables:
//
//	go run ./isa/internal/effectcases NVDISASM OLD [ARCH…]
//
// OLD is a version 12 of nvdisasm, which knows sm_70 and sm_72. An architecture's file has
// the classes whose rules its table does not share with that of its base.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/liferange"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./isa/internal/effectcases NVDISASM OLD [ARCH…]")
		os.Exit(2)
	}
	for _, a := range isa.Arches() {
		if len(os.Args) > 3 && !slices.Contains(os.Args[3:], a.String()) {
			continue
		}
		if err := write(filepath.Join("isa", "liferange", "testdata"), a); err != nil {
			fmt.Fprintf(os.Stderr, "effectcases: %s: %v\n", a, err)
			os.Exit(1)
		}
	}
}

func write(dir string, a isa.Arch) error {
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	file, err := isa.LoadEffects(a)
	if err != nil {
		return err
	}
	own, err := ownClasses(file)
	if err != nil {
		return err
	}
	tool := os.Args[1]
	if a.SM < 75 {
		tool = os.Args[2]
	}
	o, err := liferange.Open(tool, a)
	if err != nil {
		return err
	}
	defer o.Close()
	cases, err := liferange.Record(table, file, o, func(class string) bool { return own[class] })
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, c := range cases {
		fmt.Fprintln(&b, c)
	}
	fmt.Printf("%s: %d classes, %d cases\n", a, len(own), len(cases))
	name := filepath.Join(dir, a.String()+".txt")
	if len(cases) == 0 { // all rules are those of the base
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// ownClasses returns the classes whose rules f's base does not have.
func ownClasses(f *isa.EffectsFile) (map[string]bool, error) {
	own := map[string]bool{}
	base := &isa.EffectsFile{}
	if f.Base != (isa.Arch{}) {
		var err error
		if base, err = isa.LoadEffects(f.Base); err != nil {
			return nil, err
		}
	}
	for class, rules := range f.Rules {
		old, ok := base.Rules[class]
		if !ok || isa.FormatRules(rules) != isa.FormatRules(old) {
			own[class] = true
		}
	}
	return own, nil
}
