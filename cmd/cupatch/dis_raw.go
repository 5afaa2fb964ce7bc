package main

import (
	"fmt"
	"strconv"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/spf13/pflag"
)

// A rawCode says what a file is that holds instructions and nothing else.
type rawCode struct{ arch, base string }

func (c *rawCode) flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.arch, "raw", "", "")
	fs.StringVar(&c.base, "base", "0", "")
}

// raw lists files of instructions.
func (r *disRun) raw(c *rawCode, files []string) error {
	for _, name := range []string{"arch", "kernel", "match", "labels", "lines", "blocks", "live", "stable", "json", "max-entry"} {
		if r.flagSet.Changed(name) {
			return r.usagef("--%s does not go with --raw, whose file has no kernels", name)
		}
	}
	if c.arch == "" {
		return r.usagef("--base goes with --raw ARCH")
	}
	base, err := strconv.ParseUint(c.base, 0, 64)
	if err != nil || base%isa.WordSize != 0 {
		return r.usagef("--base %s: want an address, a multiple of %d such as 0x200", c.base, isa.WordSize)
	}
	arch, err := isa.ParseArch(c.arch)
	if err != nil {
		return r.usagef("--raw: %v", err)
	}
	table, err := code.TableFor(arch)
	if err != nil {
		return err
	}
	p := &listing.Printer{Style: r.style, Table: table}
	for _, name := range files {
		data, err := r.readFile(name)
		if err != nil {
			return err
		}
		if len(data)%isa.WordSize != 0 {
			return fmt.Errorf("%s: %d bytes are no whole number of instructions, which have %d each", name, len(data), isa.WordSize)
		}
		if len(files) > 1 {
			r.stdout.WriteString("// file " + name + "\n")
		}
		if err := r.rawFile(p, data, base); err != nil {
			return err
		}
	}
	r.found = true
	return r.end(0)
}

// rawFile lists the instructions of one file, a piece at a time.
func (r *disRun) rawFile(p *listing.Printer, data []byte, base uint64) error {
	r.words += len(data) / isa.WordSize
	var text, painted []byte
	for pc := 0; pc < len(data); pc += chunkSize {
		text = text[:0]
		for off := pc; off < min(pc+chunkSize, len(data)); off += isa.WordSize {
			var status isa.Status
			if text, status = p.AppendLine(text, isa.LoadWord(data[off:]), base+uint64(off)); status == isa.StatusUnknown {
				r.unknown++
			}
		}
		out := text
		if r.color() {
			painted = paintListing(painted[:0], text)
			out = painted
		}
		if _, err := r.stdout.Write(out); err != nil {
			return &exitError{code: 2, err: fmt.Errorf("standard output: %w", err)}
		}
	}
	return nil
}
