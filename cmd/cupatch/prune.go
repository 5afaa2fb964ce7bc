package main

import (
	"errors"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
)

const pruneUsage = `usage: cupatch prune --keep ENTRIES [OPTIONS] FILE

Removes GPU code from FILE: a fatbin, a host program, library or object, or an archive.
What is not kept is taken out, what points to the rest follows, and the file becomes
smaller. The program still starts; a fatbin without entries stays as an empty one.

      --keep ENTRIES   what stays: sm_90, compute_90, ptx, 12, 3-9, as after FILE#;
                       repeatable
  -o, --output OUT     write the result to OUT (- for standard output)
  -i, --in-place       change FILE itself
      --no-grow        refuse a result that is larger than FILE
      --backup SUFFIX  with -i: keep the old FILE under its name with SUFFIX
                       appended: --backup .orig

Of a program or library whole pages are cut out. Strip it before, not after: where cupatch
has to move the table of program headers, which it says, strip damages the file.

exit status: 0; 1 if --keep names nothing that FILE has; 2 trouble.

examples:
  cupatch prune --keep sm_90 --keep ptx -o small.so libfoo.so
  cupatch prune --keep sm_80,sm_86 -i --backup .orig libfoo.a
`

const recompressUsage = `usage: cupatch recompress --algo ALGO [OPTIONS] FILE

Compresses the GPU code in FILE in another way: to make it smaller, or for a driver or
tool that does not know zstd (CUDA before 12.4). The code itself stays the same.

      --algo ALGO      zstd, lz4 or none
      --level N        1 (fast) to 19 (small); without it a good one that takes time
  -o, --output OUT     write the result to OUT (- for standard output)
  -i, --in-place       change FILE itself
      --no-grow        refuse a result that is larger than FILE
      --backup SUFFIX  with -i: keep the old FILE under its name with SUFFIX appended

What does not become smaller is stored. FILE is what prune takes.

examples:
  cupatch recompress --algo zstd -o small.so libfoo.so
  cupatch recompress --algo none -o plain.fatbin libfoo.fatbin
`

func init() {
	register(&command{"prune", "remove architectures from a file", pruneUsage, runPrune})
	register(&command{"recompress", "compress GPU code in another way", recompressUsage, runRecompress})
}

func runPrune(e *env, args []string) error {
	var keep []string
	var d destination
	fs := e.flags()
	d.flags(fs)
	fs.StringSliceVar(&keep, "keep", nil, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(keep) == 0 {
		return e.usagef("prune needs --keep: sm_90, ptx, …")
	}
	return e.rebuild(&d, rest, func(f *elfx.File) (*patch.Content, error) {
		wanted := map[*elfx.Entry]bool{}
		for _, sel := range keep {
			list, err := f.Select(sel)
			var none *elfx.NoEntryError
			if errors.As(err, &none) {
				return nil, answerNo("%v", err)
			}
			if err != nil {
				return nil, usagef("--keep: %v", err)
			}
			for _, x := range list {
				wanted[x] = true
			}
		}
		content, kept, err := patch.Prune(f, func(x *elfx.Entry) bool { return wanted[x] })
		if err != nil {
			return nil, err
		}
		e.notef("%s: kept %d of %s", f.Name, len(kept), plural(len(f.Entries()), "entry", "entries"))
		e.warnEmptied(f, kept)
		return content, nil
	})
}

// warnEmptied warns of fatbins that lose everything: what they were for has no code.
func (e *env) warnEmptied(f *elfx.File, kept []*elfx.Entry) {
	all, left := map[*elfx.Container]bool{}, map[*elfx.Container]bool{}
	for _, x := range f.Entries() {
		all[x.Container] = true
	}
	for _, x := range kept {
		left[x.Container] = true
	}
	if n := len(all) - len(left); n > 0 {
		e.warnf("%s: nothing is left in %d of %s, the kernels in them cannot run", f.Name, n, plural(len(all), "fatbin", "fatbins"))
	}
}

func runRecompress(e *env, args []string) error {
	var algo string
	var level int
	var d destination
	fs := e.flags()
	d.flags(fs)
	fs.StringVar(&algo, "algo", "", "")
	fs.IntVar(&level, "level", 0, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	how, ok := compressionOf(algo)
	if !ok {
		return e.usagef("--algo %q: want zstd, lz4 or none", algo)
	}
	if fs.Changed("level") && (level < 1 || level > 19 || how == elfx.Stored) {
		return e.usagef("--level %d: want 1 to 19, of zstd or lz4", level)
	}
	return e.rebuild(&d, rest, func(f *elfx.File) (*patch.Content, error) { return patch.Recompress(f, how, level) })
}

// rebuild writes what change makes of the one file that is named.
func (e *env) rebuild(d *destination, files []string, change func(*elfx.File) (*patch.Content, error)) error {
	if len(files) != 1 {
		return e.usagef("%s takes one FILE", e.cmd.name)
	}
	if err := d.check(e, false); err != nil {
		return err
	}
	f, entries, err := e.openOne(files[0], nil)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(entries) != len(f.Entries()) {
		return e.usagef("%s: want a file and not some of its entries", files[0])
	}
	outs, err := d.prepare(&pathSet{}, []string{f.Name})
	if err != nil {
		return err
	}
	content, err := change(f)
	if err != nil {
		return err
	}
	for _, why := range content.Notes {
		e.notef("%s: %s", f.Name, why)
	}
	if d.noGrow && content.Size() > f.Size {
		return usagef("%s: %d bytes instead of %d, and growing is not allowed", f.Name, content.Size(), f.Size)
	}
	hash, err := d.store(e, f, content, outs[0])
	if err != nil {
		return err
	}
	e.notef("%s: %d bytes, %d before", f.Name, hash.Size, f.Size)
	return nil
}
