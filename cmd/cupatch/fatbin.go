package main

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
)

const fatbinUsage = `usage: cupatch fatbin [OPTIONS] -o OUT.fatbin [ARCH=]FILE…

Writes a fatbin with one entry for each FILE, a cubin or PTX, in that order. Without
compression it is byte for byte what NVIDIA's fatbinary writes; like fatbinary, it removes
comments and indentation from PTX. The architecture is read from FILE unless ARCH is
given: a cubin does not record the suffix f, so sm_100f has to be.

  -o, --output OUT     the fatbin; - for standard output
      --algo ALGO      how PTX is compressed: zstd (default), lz4 or none
      --all            compress cubins too
      --force          replace OUT if it exists

exit status: 0; 2 trouble.

examples:
  cupatch fatbin -o k.fatbin k80.cubin k90.cubin k.ptx
  cupatch fatbin --algo lz4 --all -o k.fatbin sm_100f=k100.cubin
`

func init() {
	register(&command{"fatbin", "make a fatbin of cubins and PTX", fatbinUsage, runFatbin})
}

func runFatbin(e *env, args []string) error {
	var out, algo string
	var pack elfx.Packing
	var force bool
	flags := e.flags()
	flags.StringVarP(&out, "output", "o", "", "")
	flags.StringVar(&algo, "algo", "zstd", "")
	flags.BoolVar(&pack.Cubins, "all", false, "")
	flags.BoolVar(&force, "force", false, "")
	files, err := e.parse(flags, args)
	if err != nil {
		return err
	}
	var ok bool
	if pack.How, ok = compressionOf(algo); !ok {
		return e.usagef("--algo %q: want zstd, lz4 or none", algo)
	}
	if out == "" || len(files) == 0 {
		return e.usagef("fatbin needs -o OUT.fatbin and a FILE")
	}
	used := &pathSet{}
	used.writes("-o", out)
	images := make([]elfx.Image, len(files))
	for i, arg := range files {
		m := &images[i]
		m.Name = arg
		if arch, file, ok := strings.Cut(arg, "="); ok {
			if sm, suffix, _, err := elfx.ParseArch(arch); err == nil {
				m.Name, m.Target = file, elfx.Target{SM: sm, Suffix: suffix}
			}
		}
		used.reads(inputFile, m.Name)
		if m.Data, err = e.readFile(m.Name); err != nil {
			return err
		}
	}
	if err := used.check(); err != nil {
		return err
	}
	data, err := elfx.NewFatbin(images, pack)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { _, err := w.Write(data); return err }
	if out == "-" {
		return write(e.stdout)
	}
	err = patch.WriteFile(out, patch.WriteOption{New: !force}, write)
	if errors.Is(err, fs.ErrExist) {
		return existsError([]string{out})
	}
	if err != nil {
		return err
	}
	e.notef("wrote %s to %s, %d bytes", plural(len(images), "entry", "entries"), out, len(data))
	return nil
}

// compressionOf returns the compression of a name of the command line.
func compressionOf(name string) (elfx.Compression, bool) {
	how, ok := map[string]elfx.Compression{"zstd": elfx.Zstd, "lz4": elfx.LZ4, "none": elfx.Stored}[name]
	return how, ok
}
