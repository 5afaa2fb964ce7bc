package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
)

const replaceUsage = `usage: cupatch replace [OPTIONS] FILE#ENTRY NEW.cubin

Replaces an entry of FILE by NEW.cubin. FILE is a cubin, a fatbin, a host program, library
or object, or an archive. ENTRY is the number that ls shows, or anything else that selects
one entry: FILE#12, FILE#sm_90. - is standard input.

  -o, --output OUT     write the result to OUT (- for standard output)
  -i, --in-place       change FILE itself
      --backup SUFFIX  with -i, keep the old file as FILE+SUFFIX: --backup .orig
      --force          even if NEW.cubin is for another architecture
      --no-grow        fail if FILE would grow

A cubin for another architecture is refused. There are warnings about kernels that are
missing or new. The entry is compressed as before. If it does not fit, the container is
rebuilt and FILE may grow.

examples:
  cupatch replace -i --backup .orig libfoo.so#12 tuned.cubin
  cupatch replace -o new.fatbin old.fatbin#sm_90a tuned.cubin
`

func init() {
	register(&command{"replace", "put a cubin back into a container", replaceUsage, runReplace})
}

func runReplace(e *env, args []string) error {
	var d destination
	var force bool
	fs := e.flags()
	d.flags(fs)
	fs.BoolVar(&force, "force", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return e.usagef("replace needs FILE#ENTRY and NEW.cubin")
	}
	if err := d.check(e, false); err != nil {
		return err
	}
	data, err := e.readFile(rest[1])
	if err != nil {
		return err
	}
	f, entries, err := e.openOne(rest[0], nil)
	if err != nil {
		return err
	}
	defer f.Close()
	x, err := theEntry(f, entries)
	if err != nil {
		return err
	}
	if err := e.checkReplacement(x, rest[1], data, force); err != nil {
		return err
	}
	used := &pathSet{}
	used.reads("new cubin", rest[1])
	outs, err := d.prepare(used, []string{f.Name})
	if err != nil {
		return err
	}
	return e.replaceEntry(&d, f, x, data, outs[0])
}

// theEntry returns the one cubin among the entries.
func theEntry(f *elfx.File, entries []*elfx.Entry) (*elfx.Entry, error) {
	var cubins []*elfx.Entry
	for _, x := range entries {
		if x.Kind == elfx.KindELF {
			cubins = append(cubins, x)
		}
	}
	if len(cubins) != 1 {
		err := usagef("%s: want one cubin to replace, the selector names %d", f.Name, len(cubins))
		err.hint = "cupatch ls shows the numbers: FILE#12"
		return nil, err
	}
	return cubins[0], nil
}

// checkReplacement compares the new cubin with the one that it replaces.
func (e *env) checkReplacement(x *elfx.Entry, name string, data []byte, force bool) error {
	now, err := elfx.ParseCubin(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !x.Fits(now) {
		if !force {
			err := answerNo("%s is for %s, entry %s is for %s", name, now.Arch, x.Tag(), x.Arch())
			err.hint = "--force replaces it anyway"
			return err
		}
		e.warnf("%s is for %s, entry %s is for %s", name, now.Arch, x.Tag(), x.Arch())
	}
	old, err := x.Cubin()
	if err != nil {
		e.warnf("the cubin to be replaced cannot be read: %v", err)
		return nil
	}
	if old.Type != now.Type {
		e.warnf("%s is %s, entry %s is %s", name, linkState(now), x.Tag(), linkState(old))
	}
	missing, added := differentKernels(old, now)
	if len(missing) > 0 {
		e.warnf("%s has no %s", name, strings.Join(missing, ", "))
	}
	if len(added) > 0 {
		e.warnf("entry %s has no %s", x.Tag(), strings.Join(added, ", "))
	}
	return nil
}

func linkState(c *elfx.Cubin) string {
	if c.Type == 1 {
		return "relocatable"
	}
	return "linked"
}

// differentKernels returns the kernels that only one of two cubins has.
func differentKernels(old, now *elfx.Cubin) (missing, added []string) {
	names := func(c *elfx.Cubin) []string {
		var out []string
		for _, k := range c.Kernels() {
			out = append(out, k.Name)
		}
		slices.Sort(out)
		return out
	}
	a, b := names(old), names(now)
	for _, n := range a {
		if _, ok := slices.BinarySearch(b, n); !ok {
			missing = append(missing, n)
		}
	}
	for _, n := range b {
		if _, ok := slices.BinarySearch(a, n); !ok {
			added = append(added, n)
		}
	}
	return missing, added
}

// replaceEntry writes the file with the new cubin and reads it back.
func (e *env) replaceEntry(d *destination, f *elfx.File, x *elfx.Entry, data []byte, out string) error {
	content, c, err := patch.Replace(f, x, data, elfx.RewriteOptions{NoGrow: d.noGrow})
	if err != nil {
		return err
	}
	for _, why := range content.Notes {
		e.notef("%s: %s", f.Name, why)
	}
	if _, err := d.store(e, f, content, out); err != nil {
		return err
	}
	e.notef("entry %s %s: %d bytes stored, %d before", x.Tag(), c.How, c.New, c.Old)
	return nil
}
