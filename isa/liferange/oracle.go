// Package liferange finds out which registers instructions read and write, by asking
// nvdisasm for the life ranges of prepared code. It learns the effects tables of package
// isa, and compares them with nvdisasm's answers.
//
// What nvdisasm shows are R, UR, P and UP; barrier registers, memory and what a mask
// selects (P2R, R2P) it does not show.
package liferange

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An Oracle is an nvdisasm that answers for the instructions of one architecture. It is
// not safe for concurrent use.
type Oracle struct {
	Arch  isa.Arch
	Runs  int // of nvdisasm
	Words int // sent

	tool, dir string
	layout    layout
}

// Open returns an oracle that runs the program nvdisasm: version 13 for sm_75 and later,
// version 12.8 for sm_70 and sm_72.
func Open(nvdisasm string, arch isa.Arch) (*Oracle, error) {
	tool, err := exec.LookPath(nvdisasm)
	if err != nil {
		return nil, fmt.Errorf("nvdisasm: %w", err)
	}
	dir, err := os.MkdirTemp("", "cupatch-liferange-")
	if err != nil {
		return nil, err
	}
	o := &Oracle{Arch: arch, tool: tool, dir: dir, layout: newLayout}
	if arch.SM < 75 {
		o.layout = oldLayout
	}
	answers, err := o.Ask([][]isa.Word{{probe}})
	if err == nil && (!answers[0][0].OK || answers[0][0].Effects != probeEffects) {
		err = fmt.Errorf("%s shows no life ranges for %s", tool, arch)
	}
	if err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close removes the oracle's files.
func (o *Oracle) Close() { os.RemoveAll(o.dir) }

var (
	exit = isa.Word{Lo: 0x794d, Hi: 0x000fea0003800000} // EXIT on every architecture
	nop  = isa.Word{Lo: 0x7918, Hi: 0x000fc00000000000} // NOP on every architecture
	// probe is `FADD R0, R0, +SNAN` on every architecture.
	probe        = isa.Word{Lo: 0x7f80000100007421, Hi: 0x000fca0000000000}
	probeEffects = func() (e isa.Effects) {
		e.Reads.Add(isa.FileR, 0, 1)
		e.Writes.Add(isa.FileR, 0, 1)
		return e
	}()
)

// An Answer is what nvdisasm says of an instruction.
type Answer struct {
	OK bool // it answered
	isa.Effects
	Complaint string // where it did not
}

// batch is the number of words in one run of nvdisasm. Its tables take some 600 bytes an
// instruction and 10,000 a kernel.
const batch = 12000

// kernelCost is what a kernel of one word takes, counted in words.
const kernelCost = 8

// Ask returns an answer for every word of every kernel. The words of a kernel stand one
// behind the other, an EXIT after the last. Where nvdisasm refuses a kernel, its words are
// asked for in smaller ones, down to one word.
func (o *Oracle) Ask(kernels [][]isa.Word) ([][]Answer, error) {
	out := make([][]Answer, len(kernels))
	for start := 0; start < len(kernels); {
		end, cost := start, 0
		for end < len(kernels) && (end == start || cost+len(kernels[end])+kernelCost <= batch) {
			cost += len(kernels[end]) + kernelCost
			out[end] = make([]Answer, len(kernels[end]))
			end++
		}
		if err := o.ask(kernels[start:end], out[start:end]); err != nil {
			return nil, err
		}
		start = end
	}
	return out, nil
}

func (o *Oracle) ask(kernels [][]isa.Word, out [][]Answer) error {
	complaint, err := o.run(kernels, out)
	if err != nil || complaint == "" {
		return err
	}
	if bad := located(complaint, kernels); len(bad) > 0 {
		rest := slices.Clone(kernels)
		for _, b := range bad {
			rest[b[0]] = slices.Clone(rest[b[0]])
			rest[b[0]][b[1]] = nop
		}
		if err := o.ask(rest, out); err != nil {
			return err
		}
		for _, b := range bad {
			out[b[0]][b[1]] = Answer{Complaint: complaint}
		}
		return nil
	}
	if len(kernels) > 1 {
		half := len(kernels) / 2
		if err := o.ask(kernels[:half], out[:half]); err != nil {
			return err
		}
		return o.ask(kernels[half:], out[half:])
	}
	if n := len(kernels[0]); n > 1 {
		half := n / 2
		return o.ask([][]isa.Word{kernels[0][:half], kernels[0][half:]}, [][]Answer{out[0][:half], out[0][half:]})
	}
	out[0][0] = Answer{Complaint: complaint}
	return nil
}

var named = regexp.MustCompile(`Section '\.text\.k([0-9]+)', pc= 0x([0-9a-f]+)`)

// located returns the words that a complaint names, as kernel and number.
func located(complaint string, kernels [][]isa.Word) [][2]int {
	var bad [][2]int
	for _, m := range named.FindAllStringSubmatch(complaint, -1) {
		k, err1 := strconv.Atoi(m[1])
		pc, err2 := strconv.ParseUint(m[2], 16, 64)
		if i := int(pc / isa.WordSize); err1 == nil && err2 == nil && k < len(kernels) && i < len(kernels[k]) {
			bad = append(bad, [2]int{k, i})
		}
	}
	return bad
}

// run asks nvdisasm once. It returns its complaint, or fills out.
func (o *Oracle) run(kernels [][]isa.Word, out [][]Answer) (string, error) {
	o.Runs++
	codes := make([][]byte, len(kernels))
	for i, words := range kernels {
		o.Words += len(words)
		codes[i] = make([]byte, isa.WordSize*(len(words)+1))
		for k, w := range words {
			w.Store(codes[i][isa.WordSize*k:])
		}
		exit.Store(codes[i][isa.WordSize*len(words):])
	}
	file := filepath.Join(o.dir, "code.cubin")
	if err := os.WriteFile(file, cubin(o.Arch, o.layout, codes), 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command(o.tool, "-plr", "-lrm", "narrow", "-c", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	bad := Parse(stdout, func(r Row) error {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Section, "k"))
		if k := int(r.PC / isa.WordSize); err == nil && n >= 0 && n < len(out) && k < len(out[n]) {
			out[n][k] = Answer{OK: true, Effects: r.Marks}
		}
		return nil
	})
	if bad != nil {
		cmd.Process.Kill()
	}
	err = cmd.Wait()
	complaint := strings.TrimSpace(stderr.String())
	switch {
	case bad != nil:
		return "", fmt.Errorf("%s: %w", o.tool, bad)
	case err != nil && complaint == "":
		complaint = err.Error()
	case err == nil:
		complaint = ""
	}
	return complaint, nil
}
