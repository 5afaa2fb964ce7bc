// Corpuscheck compares every instruction of real binaries with NVIDIA's disassembler:
//
//	go run ./scripts/corpuscheck [flags] [FILE or FOLDER…]
//
// Without arguments it takes the packages that scripts/corpus has downloaded. For each
// architecture it prints how many instructions there are, how many have the text of
// `cuobjdump -sass`, how many are encoded back into the same word, and how many into the
// same word from the text alone. The exit status is 1 if a text or a re-encoded word differs.
//
// With -unique the reference is nvdisasm's text of every distinct word, asked once; that is
// the same text, relative targets aside, and for code in which most words occur many times
// a tenth of the work.
//
// What NVIDIA's tools print is kept, packed, in the cache folder: the first run takes about
// half a minute for a million instructions, later ones a few seconds in total.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() {
	jobs := flag.Int("j", runtime.NumCPU(), "cubins worked on at once")
	archs := flag.String("arch", "", "only these architectures, such as sm_90,sm_90a")
	shown := flag.Int("show", 5, "kinds of differences shown for each architecture")
	unique := flag.Bool("unique", false, "ask nvdisasm about every distinct word once, rather than cuobjdump about every file")
	refOnly := flag.Bool("reference", false, "only fill the cache with the reference texts")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = []string{filepath.Join(oracle.CacheDir(), "corpus")}
	}
	c := &check{jobs: *jobs, refOnly: *refOnly, seen: map[[32]byte]bool{}, byArch: map[string]*counts{}, shown: *shown}
	if *unique {
		c.words = map[string]map[isa.Word]uint32{}
	}
	if *archs != "" {
		c.only = map[string]bool{}
		for _, a := range strings.Split(*archs, ",") {
			c.only[a] = true
		}
	}
	for _, p := range paths {
		if err := c.walk(p); err != nil {
			fmt.Fprintln(os.Stderr, "corpuscheck:", err)
			os.Exit(2)
		}
	}
	c.compareUnique()
	if !c.report(os.Stdout) {
		os.Exit(1)
	}
}

// A check is a run over all files.
type check struct {
	jobs    int
	refOnly bool
	only    map[string]bool // architectures; nil: all
	shown   int

	mu     sync.Mutex
	words  map[string]map[isa.Word]uint32 // with -unique: how often each word occurs, by architecture
	seen   map[[32]byte]bool              // cubins by content
	byArch map[string]*counts
	errs   []error
}

// walk checks all files at or below path.
func (c *check) walk(path string) error {
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return c.file(name)
	})
}

// file checks the cubins of one file.
func (c *check) file(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := elfx.Open(name, data, nil)
	if err != nil {
		if !errors.Is(err, elfx.ErrNoCode) {
			c.fail(err)
		}
		return nil
	}
	entries := make(chan *elfx.Entry)
	var wg sync.WaitGroup
	for range c.jobs {
		wg.Go(func() {
			for e := range entries {
				if err := c.entry(e); err != nil {
					c.fail(err)
				}
			}
		})
	}
	for _, e := range f.Entries() {
		if e.Kind == elfx.KindELF && e.InstructionSize() == isa.WordSize {
			entries <- e
		}
	}
	close(entries)
	wg.Wait()
	return nil
}

func (c *check) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// entry checks one cubin, unless the same one has been checked already.
func (c *check) entry(e *elfx.Entry) error {
	cubin, err := e.Cubin()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(cubin.Data())
	arch := cubin.Arch
	if cubin.Suffix == "" {
		arch += e.Suffix
	}
	c.mu.Lock()
	known := c.seen[sum] || c.only != nil && !c.only[arch]
	c.seen[sum] = true
	c.mu.Unlock()
	if known {
		return nil
	}
	if c.words != nil {
		c.collect(cubin, arch)
		return nil
	}
	ref, err := reference(cubin, arch, sum)
	if err != nil {
		return fmt.Errorf("%s: %w", e.ID(), err)
	}
	n := &counts{cubins: 1}
	if !c.refOnly {
		if err := n.compare(cubin, arch, ref); err != nil {
			return fmt.Errorf("%s: %w", e.ID(), err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byArch[arch] == nil {
		c.byArch[arch] = &counts{}
	}
	c.byArch[arch].add(n)
	return nil
}
