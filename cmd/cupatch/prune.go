package main

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
)

const pruneUsage = `usage: cupatch prune --keep ENTRIES [OPTIONS] FILE

Removes all GPU code from FILE except the entries that --keep names, so that the file
becomes smaller. FILE is a fatbin, a host program, library or object, an archive, or a
wheel or other zip file; a wheel's RECORD is updated. Pointers to fatbins are updated, and
programs still start. A fatbin that loses all its entries stays, empty.

      --keep ENTRIES   entries to keep, written as after FILE#: sm_90, compute_90, ptx,
                       12, 3-9; repeatable
  -o, --output OUT     write the result to OUT (- for standard output)
  -i, --in-place       change FILE itself
      --no-grow        fail if FILE would grow
      --backup SUFFIX  with -i, keep the old file as FILE+SUFFIX: --backup .orig

Only whole pages can be cut out of a program or library. Run strip before prune, not
after: if cupatch has to move the table of program headers (it says so), strip would
damage the file.

exit status: 0 done; 1 a --keep matches no entry of FILE; 2 trouble.

examples:
  cupatch prune --keep sm_90 --keep ptx -o small.so libfoo.so
  cupatch prune --keep sm_80,sm_86 -i --backup .orig libfoo.a
`

const recompressUsage = `usage: cupatch recompress --algo ALGO [OPTIONS] FILE

Changes how the GPU code in FILE is compressed: to make the file smaller, or for drivers
and tools that do not know zstd (CUDA before 12.4). The code itself stays the same.

      --algo ALGO      zstd, lz4 or none
      --level N        1 (fast) to 19 (small); the default compresses well and is slow
  -o, --output OUT     write the result to OUT (- for standard output)
  -i, --in-place       change FILE itself
      --no-grow        fail if FILE would grow
      --backup SUFFIX  with -i, keep the old file as FILE+SUFFIX: --backup .orig

FILE is anything that prune accepts. Entries that compression does not make smaller are
stored uncompressed.

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
	k := &keeping{selectors: keep, zip: len(rest) == 1 && elfx.IsZip(rest[0]), named: map[string]bool{}, none: map[string]bool{}}
	return e.rebuild(&d, rest, k.end, func(f *elfx.File) (*patch.Content, error) {
		wanted, err := k.wanted(f)
		if err != nil {
			return nil, err
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

// A keeping is what --keep names. Of the members of a zip file, one is enough to have it.
type keeping struct {
	selectors []string
	zip       bool
	named     map[string]bool // selectors that some member has entries for
	none      map[string]bool // and those that some member has none for
}

// wanted returns the entries of a file that are kept.
func (k *keeping) wanted(f *elfx.File) (map[*elfx.Entry]bool, error) {
	wanted := map[*elfx.Entry]bool{}
	for _, sel := range k.selectors {
		for _, part := range strings.Split(sel, ",") {
			list, err := f.Select(part)
			var none *elfx.NoEntryError
			switch {
			case errors.As(err, &none) && k.zip:
				k.none[part] = true
			case errors.As(err, &none):
				return nil, answerNo("%v", err)
			case err != nil:
				return nil, usagef("--keep: %v", err)
			}
			k.named[part] = k.named[part] || err == nil
			for _, x := range list {
				wanted[x] = true
			}
		}
	}
	return wanted, nil
}

// end returns the error of what no member has.
func (k *keeping) end() error {
	for _, sel := range slices.Sorted(maps.Keys(k.none)) {
		if !k.named[sel] {
			return answerNo("--keep %s: no member has such an entry", sel)
		}
	}
	return nil
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
	return e.rebuild(&d, rest, func() error { return nil }, func(f *elfx.File) (*patch.Content, error) { return patch.Recompress(f, how, level) })
}

// rebuild writes what change makes of the one file that is named, or of every member with
// GPU code of a zip file. end is called before anything is written, and can refuse it.
func (e *env) rebuild(d *destination, files []string, end func() error, change func(*elfx.File) (*patch.Content, error)) error {
	if len(files) != 1 {
		return e.usagef("%s takes one FILE", e.cmd.name)
	}
	if err := d.check(e, false); err != nil {
		return err
	}
	if elfx.IsZip(files[0]) {
		return e.rebuildZip(d, files[0], end, change)
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
	content, err := e.remake(d, f, change)
	if err == nil {
		err = end()
	}
	if err != nil {
		return err
	}
	hash, err := d.store(e, f, content, outs[0])
	if err != nil {
		return err
	}
	e.notef("%s: %d bytes, %d before", f.Name, hash.Size, f.Size)
	return nil
}

// remake makes the new content of a file.
func (e *env) remake(d *destination, f *elfx.File, change func(*elfx.File) (*patch.Content, error)) (*patch.Content, error) {
	content, err := change(f)
	if err != nil {
		return nil, err
	}
	for _, why := range content.Notes {
		e.notef("%s: %s", f.Name, why)
	}
	if d.noGrow && content.Size() > f.Size {
		return nil, usagef("%s: %d bytes instead of %d, and growing is not allowed", f.Name, content.Size(), f.Size)
	}
	return content, nil
}

// rebuildZip is rebuild for a zip file. Each member is proved when it is made, and the zip
// file, member by member, before it takes its place.
func (e *env) rebuildZip(d *destination, path string, end func() error, change func(*elfx.File) (*patch.Content, error)) error {
	outs, err := d.prepare(&pathSet{}, []string{path})
	if err != nil {
		return err
	}
	z, err := elfx.RewriteZip(path, nil, func(f *elfx.File, w io.Writer) (bool, error) {
		content, err := e.remake(d, f, change)
		if err != nil {
			return false, err
		}
		hash, err := content.StreamTo(w)
		if err != nil {
			return false, err
		}
		e.notef("%s: %d bytes, %d before", f.Name, hash.Size, f.Size)
		return true, nil
	})
	if err != nil {
		return err
	}
	defer z.Close()
	if err := end(); err != nil {
		return err
	}
	old, err := z.Info()
	if err != nil {
		return err
	}
	opt := patch.WriteOption{Mode: old.Mode(), Check: z.Check, Warn: func(s string) { e.warnf("%s", s) }}
	if outs[0] == "-" {
		return z.Write(e.stdout)
	}
	if d.inPlace {
		opt.Old = old
	}
	if d.backup != "" {
		err := copyFile(path, path+d.backup, patch.WriteOption{Mode: old.Mode(), New: true})
		if err != nil && !errors.Is(err, fs.ErrExist) { // one that is there is the same, see prepare
			return err
		}
	}
	if err := patch.WriteFile(outs[0], opt, z.Write); err != nil {
		return err
	}
	st, err := os.Stat(outs[0])
	if err == nil {
		e.notef("%s: %s changed, %d bytes, %d before", path, plural(z.Changed(), "member", "members"), st.Size(), old.Size())
	}
	return err
}

// copyFile copies a file.
func copyFile(from, to string, opt patch.WriteOption) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return patch.WriteFile(to, opt, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
}
