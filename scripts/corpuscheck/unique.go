package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// chunk is how many distinct words one nvdisasm process is given.
const chunk = 1 << 16

// collect adds the words of a cubin to those of its architecture.
func (c *check) collect(cubin *elfx.Cubin, arch string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.words[arch] == nil {
		c.words[arch], c.byArch[arch] = map[isa.Word]uint32{}, &counts{}
	}
	words, n := c.words[arch], c.byArch[arch]
	n.cubins++
	for _, k := range cubin.Kernels() {
		n.kernels++
		for pc := int64(0); pc < k.Size; pc += isa.WordSize {
			words[isa.LoadWord(cubin.Data()[k.Offset+pc:])]++
		}
	}
}

// compareUnique asks nvdisasm about every distinct word, once, and compares. An
// instruction counts as often as it occurs. The words lie one after the other from
// address 0 in the order of their value, so relative targets are not those of the files.
func (c *check) compareUnique() {
	for _, arch := range slices.SortedFunc(maps.Keys(c.words), byNumber) {
		words := slices.SortedFunc(maps.Keys(c.words[arch]), func(a, b isa.Word) int {
			return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi))
		})
		chunks := make(chan []isa.Word)
		var wg sync.WaitGroup
		for range c.jobs {
			wg.Go(func() {
				for part := range chunks {
					if err := c.part(arch, part); err != nil {
						c.fail(fmt.Errorf("%s: %w", arch, err))
					}
				}
			})
		}
		for part := range slices.Chunk(words, chunk) {
			chunks <- part
		}
		close(chunks)
		wg.Wait()
	}
}

// part compares one chunk of words.
func (c *check) part(arch string, words []isa.Word) error {
	texts, err := chunkTexts(arch, words)
	if err != nil || c.refOnly {
		return err
	}
	a, err := isa.ParseArch(arch)
	if err != nil {
		return err
	}
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	n := &counts{}
	var buf []byte
	for i, w := range words {
		one := &counts{}
		buf = one.instr(table, w, uint64(i)*isa.WordSize, texts[i], buf)
		one.times(int(c.words[arch][w]))
		n.add(one)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byArch[arch].add(n)
	return nil
}

// times multiplies the counts of a single instruction.
func (n *counts) times(k int) {
	for _, p := range []*int{&n.instrs, &n.sameText, &n.sameWord, &n.fromText, &n.unknown} {
		*p *= k
	}
}

// chunkTexts returns nvdisasm's texts for words from address 0 on, from the cache if they
// are there.
func chunkTexts(arch string, words []isa.Word) ([]string, error) {
	raw := make([]byte, 0, len(words)*isa.WordSize)
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint64(raw, w.Lo)
		raw = binary.LittleEndian.AppendUint64(raw, w.Hi)
	}
	sum := sha256.Sum256(raw)
	file := filepath.Join(oracle.CacheDir(), "texts", arch, hex.EncodeToString(sum[:12])+".zst")
	if packed, err := os.ReadFile(file); err == nil {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		text, err := dec.DecodeAll(packed, nil)
		return strings.Split(string(text), "\n"), err
	}
	texts, err := oracle.DisassembleCode(arch, raw)
	if err != nil {
		return nil, err
	}
	return texts, store(file, strings.Join(texts, "\n"))
}

// store writes a packed file, whole or not at all.
func store(file, text string) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	packed := enc.EncodeAll([]byte(text), nil)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), "part")
	if err != nil {
		return err
	}
	if _, err := part.Write(packed); err != nil {
		part.Close()
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
