package learn

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

//go:embed preload/forkserver.c
var forkserverSource []byte

// An Answer is what nvdisasm says of one word.
type Answer struct {
	Text string // bare text, right-trimmed; empty when refused or silent
	PC   uint64 // the address the text was printed for, in bytes
	OK   bool   // accepted
	// Class, Table and Value are set when nvdisasm refuses an undefined value: the
	// encoding class of the word, the table, and the value it does not have.
	Class, Table string
	Value        uint64
}

// Silent reports whether the word was accepted without any text.
func (a Answer) Silent() bool { return a.OK && a.Text == "" }

// An Oracle is an nvdisasm that answers questions about raw words of one
// architecture. It is not safe for concurrent use.
type Oracle struct {
	Arch      isa.Arch
	QuietNaN  bool // it calls every NaN of 16 or 32 bits quiet, as version 12 does
	Questions int  // processes forked or started
	Words     int  // words sent

	tool    string
	dir     string
	cmd     *exec.Cmd
	request *os.File
	status  *bufio.Reader
}

// nop is `NOP` with a legal schedule on every architecture.
var nop = isa.Word{Lo: 0x7918, Hi: 0x000fc00000000000}

// faddSNaN is `FADD R0, R0, +SNAN` on every architecture.
var faddSNaN = isa.Word{Lo: 0x7f80000100007421, Hi: 0x000fca0000000000}

// OpenOracle starts nvdisasm for arch. The fork server is compiled with cc into
// cache; without a compiler every question starts a process of its own.
func OpenOracle(nvdisasm string, arch isa.Arch, cache string) (*Oracle, error) {
	tool, err := exec.LookPath(nvdisasm)
	if err != nil {
		return nil, fmt.Errorf("nvdisasm: %w", err)
	}
	dir, err := os.MkdirTemp(scratch(), "cupatch-oracle-")
	if err != nil {
		return nil, err
	}
	o := &Oracle{Arch: arch, tool: tool, dir: dir}
	preload, err := buildPreload(cache)
	if err == nil {
		err = o.start(preload)
	}
	if err != nil && !errors.Is(err, errNoServer) {
		o.Close()
		return nil, err
	}
	a, err := o.ask([]isa.Word{nop, faddSNaN})
	if err != nil {
		o.Close()
		return nil, err
	}
	if !a[0].OK {
		o.Close()
		return nil, fmt.Errorf("%s does not disassemble a NOP for %s", tool, arch)
	}
	o.QuietNaN = strings.Contains(a[1].Text, "QNAN")
	return o, nil
}

// errNoServer says that questions have to be asked without the fork server.
var errNoServer = errors.New("no fork server")

// scratch is a folder in memory where there is one.
func scratch() string {
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// buildPreload compiles the fork server once per source text and returns its path.
func buildPreload(cache string) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lib := filepath.Join(cache, fmt.Sprintf("forkserver-%x.so", sha256.Sum256(forkserverSource))[:len("forkserver-")+16]+".so")
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	tmp, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	src, out := filepath.Join(tmp, "forkserver.c"), filepath.Join(tmp, "forkserver.so")
	if err := os.WriteFile(src, forkserverSource, 0o644); err != nil {
		return "", err
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if msg, err := exec.Command(cc, "-O2", "-shared", "-fPIC", "-o", out, src, "-ldl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s: %v %s", errNoServer, cc, err, msg)
	}
	return lib, os.Rename(out, lib)
}

func (o *Oracle) start(preload string) error {
	seed := filepath.Join(o.dir, "seed")
	if err := os.WriteFile(seed, pack([]isa.Word{nop}), 0o600); err != nil {
		return err
	}
	reqR, reqW, err := os.Pipe()
	if err != nil {
		return err
	}
	stR, stW, err := os.Pipe()
	if err != nil {
		return err
	}
	// Descriptors 198 and 199 of the child: ExtraFiles starts at 3.
	extra := make([]*os.File, 197)
	extra[195], extra[196] = reqR, stW
	o.cmd = exec.Command(o.tool, "-b", o.smName(), "-ndf", seed)
	// Huge pages halve what a fork costs.
	o.cmd.Env = append(os.Environ(), "LD_PRELOAD="+preload, "CUPATCH_INPUT="+seed, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
	o.cmd.ExtraFiles = extra
	err = o.cmd.Start()
	reqR.Close()
	stW.Close()
	if err != nil {
		return err
	}
	o.request, o.status = reqW, bufio.NewReader(stR)
	return nil
}

func (o *Oracle) smName() string { return fmt.Sprintf("SM%d%s", o.Arch.SM, o.Arch.Suffix) }

// Close ends nvdisasm and removes its files.
func (o *Oracle) Close() {
	if o.cmd != nil {
		o.request.Close()
		o.cmd.Process.Kill()
		o.cmd.Wait()
	}
	os.RemoveAll(o.dir)
}

func pack(words []isa.Word) []byte {
	b := make([]byte, isa.WordSize*len(words))
	for i, w := range words {
		w.Store(b[isa.WordSize*i:])
	}
	return b
}

// raw disassembles words and returns everything nvdisasm printed.
func (o *Oracle) raw(words []isa.Word) (string, error) {
	o.Questions++
	o.Words += len(words)
	in, out := filepath.Join(o.dir, "in"), filepath.Join(o.dir, "out")
	if err := os.WriteFile(in, pack(words), 0o600); err != nil {
		return "", err
	}
	if o.cmd == nil {
		text, _ := exec.Command(o.tool, "-b", o.smName(), "-ndf", in).CombinedOutput()
		return string(text), nil
	}
	if _, err := fmt.Fprintf(o.request, "%s\t%s\n", in, out); err != nil {
		return "", err
	}
	if _, err := o.status.ReadString('\n'); err != nil {
		return "", fmt.Errorf("nvdisasm stopped answering: %w", err)
	}
	text, err := os.ReadFile(out)
	return string(text), err
}

var (
	rxLine    = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*$`)
	rxAddress = regexp.MustCompile(`at address 0x([0-9a-f]+)`)
	rxUndef   = regexp.MustCompile(`Opclass '([^']+)', undefined value 0x([0-9a-f]+) for table '([^']+)'`)
)

// batch is the number of words in one question.
const batch = 40000

// Ask returns an answer for each word. A question with refused words prints nothing but
// complaints, one for each of them, so the accepted ones are asked for a second time. The
// error says that nvdisasm is gone.
func (o *Oracle) Ask(words []isa.Word) ([]Answer, error) {
	out := make([]Answer, 0, len(words))
	for len(words) > 0 {
		n := min(len(words), batch)
		part, err := o.ask(words[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
		words = words[n:]
	}
	return out, nil
}

func (o *Oracle) ask(words []isa.Word) ([]Answer, error) {
	out := make([]Answer, len(words))
	good := make([]int, 0, len(words))
	for i, w := range words {
		if !w.IsZero() { // refused, without an address
			good = append(good, i)
		}
	}
	for len(good) > 0 {
		part := make([]isa.Word, len(good))
		for k, i := range good {
			part[k] = words[i]
		}
		text, err := o.raw(part)
		if err != nil {
			return nil, err
		}
		bad := complaints(text, good, out)
		switch {
		case strings.Contains(text, "nvdisasm fatal"):
			return out, o.askHalves(part, good, out)
		case len(bad) > 0:
			good = remove(good, bad)
		case refused(text):
			k, err := o.bisect(part)
			if err != nil {
				return nil, err
			}
			good = remove(good, map[int]bool{good[k]: true})
		default:
			fill(text, good, out)
			return out, nil
		}
	}
	return out, nil
}

// askHalves asks for the two halves of words, of which one ends nvdisasm and is not named:
// a word that two classes fit, say. The answers go where good says.
func (o *Oracle) askHalves(words []isa.Word, good []int, out []Answer) error {
	if len(words) == 1 {
		return nil
	}
	half := len(words) / 2
	for _, at := range [][2]int{{0, half}, {half, len(words)}} {
		answers, err := o.ask(words[at[0]:at[1]])
		if err != nil {
			return err
		}
		for k, a := range answers {
			out[good[at[0]+k]] = a
		}
	}
	return nil
}

func refused(text string) bool {
	return strings.Contains(text, "nvdisasm error")
}

// complaints reads the lines that name an address, records what they say in out, and
// returns the words refused.
func complaints(text string, idx []int, out []Answer) map[int]bool {
	if !strings.Contains(text, "at address 0x") {
		return nil
	}
	bad := map[int]bool{}
	for _, l := range strings.Split(text, "\n") {
		m := rxAddress.FindStringSubmatch(l)
		if m == nil || strings.Contains(l, "fatal") { // the address of a fatal error is always 0
			continue
		}
		addr, _ := strconv.ParseUint(m[1], 16, 64)
		k := int(addr / isa.WordSize)
		if k >= len(idx) || bad[idx[k]] {
			continue
		}
		bad[idx[k]] = true
		if u := rxUndef.FindStringSubmatch(l); u != nil {
			v, _ := strconv.ParseUint(u[2], 16, 64)
			out[idx[k]] = Answer{Class: u[1], Table: u[3], Value: v}
		}
	}
	return bad
}

func remove(s []int, drop map[int]bool) []int {
	kept := s[:0]
	for _, i := range s {
		if !drop[i] {
			kept = append(kept, i)
		}
	}
	return kept
}

// bisect finds the first refused word of a list when nvdisasm names no address.
func (o *Oracle) bisect(words []isa.Word) (int, error) {
	lo, hi := 0, len(words) // words[:lo] are accepted, words[:hi] are not
	for lo+1 < hi {
		mid := (lo + hi) / 2
		text, err := o.raw(words[:mid])
		if err != nil {
			return 0, err
		}
		if refused(text) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, nil
}

// fill matches the printed lines with the words by address, so that a word without
// text leaves a silent answer.
func fill(text string, idx []int, out []Answer) {
	for n, i := range idx {
		out[i] = Answer{OK: true, PC: uint64(n) * isa.WordSize}
	}
	for _, l := range strings.Split(text, "\n") {
		m := rxLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		addr, _ := strconv.ParseUint(m[1], 16, 64)
		if n := int(addr / isa.WordSize); n < len(idx) {
			out[idx[n]].Text = Normalize(m[2])
		}
	}
}

// Normalize makes texts comparable: where ???N stands as an operand, nvdisasm's
// padding depends on what it printed before, so runs of spaces count as one.
func Normalize(text string) string {
	if !strings.Contains(text, "???") {
		return text
	}
	for strings.Contains(text, "  ") {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	return text
}
