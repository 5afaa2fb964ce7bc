package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// A listing maps a kernel's name to the texts of its instructions.
type listing map[string][]string

// reference returns what NVIDIA's disassembler prints for a cubin, from the cache if it
// is there. It is cuobjdump's text; where cuobjdump refuses the cubin, nvdisasm's for the
// bare words.
func reference(cubin *elfx.Cubin, arch string, sum [32]byte) (listing, error) {
	file := filepath.Join(oracle.CacheDir(), "listings", arch, hex.EncodeToString(sum[:12])+".zst")
	if packed, err := os.ReadFile(file); err == nil {
		return unpack(packed)
	}
	ref, err := fromCuobjdump(cubin, arch)
	if err != nil || !ref.covers(cubin) {
		if ref, err = fromNvdisasm(cubin, arch); err != nil {
			return nil, err
		}
	}
	return ref, store(file, ref.String())
}

// covers reports whether the listing has a text for each instruction of a cubin.
func (l listing) covers(cubin *elfx.Cubin) bool {
	for _, k := range cubin.Kernels() {
		if len(l[k.Name]) != int(k.Size/16) {
			return false
		}
	}
	return true
}

func fromCuobjdump(cubin *elfx.Cubin, arch string) (listing, error) {
	tool, err := oracle.Lookup(oracle.Current("cuobjdump", arch))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "corpuscheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "k.cubin")
	if err := os.WriteFile(file, cubin.Data(), 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command(tool, "-sass", file).Output()
	if err != nil {
		return nil, fmt.Errorf("cuobjdump: %w", err)
	}
	instrs, err := oracle.ParseSass(out)
	if err != nil {
		return nil, err
	}
	ref := listing{}
	for _, in := range instrs {
		for uint64(len(ref[in.Kernel]))*16 < in.PC {
			ref[in.Kernel] = append(ref[in.Kernel], "")
		}
		ref[in.Kernel] = append(ref[in.Kernel], in.Text)
	}
	return ref, nil
}

func fromNvdisasm(cubin *elfx.Cubin, arch string) (listing, error) {
	ref := listing{}
	for _, k := range cubin.Kernels() {
		texts, err := oracle.DisassembleCode(arch, cubin.Data()[k.Offset:k.Offset+k.Size])
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		ref[k.Name] = texts
	}
	return ref, nil
}

// String returns the listing as text: a line "=NAME" for each kernel, then its texts.
func (l listing) String() string {
	var b strings.Builder
	for name, texts := range l {
		b.WriteString("=" + name + "\n")
		for _, t := range texts {
			b.WriteString(t + "\n")
		}
	}
	return b.String()
}

// unpack reads what store wrote of a listing.
func unpack(packed []byte) (listing, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	text, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	l, name := listing{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "="); ok {
			name = n
			l[name] = nil
		} else {
			l[name] = append(l[name], line)
		}
	}
	return l, nil
}
