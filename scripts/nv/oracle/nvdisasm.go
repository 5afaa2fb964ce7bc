package oracle

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Word is an instruction: bits 0–63 in Lo, 64–127 in Hi. isa.Word converts to it.
type Word = struct{ Lo, Hi uint64 }

// A Text is nvdisasm's answer about one word.
type Text struct {
	// Text is what it prints, without the " ;" and trailing spaces; empty when it
	// refuses the word, or accepts it and prints nothing.
	Text string
	// PC is the address at which it saw the word: relative targets depend on it.
	PC uint64
	// Refused is its complaint about a word that it refuses.
	Refused string
}

// batch is the number of words given to one nvdisasm process. Below about a thousand the
// 0.3 s that a process needs to start dominate.
const batch = 4096

// Disassemble returns nvdisasm's answers about words for an architecture such as sm_90a.
// A batch of 4,096 words in which one is refused costs one or more further processes of
// about 0.3 s. An error means that nvdisasm did not run.
func Disassemble(arch string, words []Word) ([]Text, error) {
	return disassemble(arch, words, batch)
}

func disassemble(arch string, words []Word, batch int) ([]Text, error) {
	tool, err := Lookup(Current("nvdisasm", arch))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d := disassembler{tool: tool, arch: strings.Replace(arch, "sm_", "SM", 1), dir: dir}
	out := make([]Text, len(words))
	for a := 0; a < len(words); a += batch {
		b := min(a+batch, len(words))
		if err := d.ask(words[a:b], out[a:b]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DisassembleCode returns the texts of a whole section of code, which starts at address 0.
// A word that nvdisasm refuses, or accepts and prints nothing for, has an empty text.
func DisassembleCode(arch string, code []byte) ([]string, error) {
	words := make([]Word, len(code)/16)
	for i := range words {
		words[i] = Word{binary.LittleEndian.Uint64(code[16*i:]), binary.LittleEndian.Uint64(code[16*i+8:])}
	}
	texts, err := disassemble(arch, words, max(len(words), 1))
	if err != nil {
		return nil, err
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = t.Text
	}
	return out, nil
}

type disassembler struct {
	tool, arch, dir string
}

// prefix starts nvdisasm's complaints.
const prefix = "nvdisasm error   : "

var badAddress = regexp.MustCompile(`at address 0x([0-9a-f]+)`)

// nop replaces a refused word, so that the others keep their addresses.
var nop = Word{0x0000000000007918, 0x000fc00000000000}

// ask fills out with the answers about words: it replaces the words that nvdisasm refuses
// and asks again until it refuses none.
func (d *disassembler) ask(words []Word, out []Text) error {
	words = slices.Clone(words)
	for {
		lines, complaint, err := d.run(words)
		if err != nil {
			return err
		}
		if complaint == "" {
			for addr, text := range lines {
				if i := int(addr / 16); i < len(out) && out[i].Refused == "" {
					out[i].Text = text
				}
			}
			break
		}
		bad, err := d.locate(words, complaint)
		if err != nil {
			return err
		}
		for i, c := range bad {
			words[i] = nop
			out[i].Refused = c
		}
	}
	for i := range out {
		out[i].PC = uint64(16 * i)
	}
	return nil
}

// locate returns the words that a complaint is about, with the line about each. A complaint
// names each refused word on a line, but an all-zero word is refused without an address.
func (d *disassembler) locate(words []Word, complaint string) (map[int]string, error) {
	found := map[int]string{}
	for _, line := range strings.Split(complaint, "\n") {
		if m := badAddress.FindStringSubmatch(line); m != nil {
			if addr, err := strconv.ParseUint(m[1], 16, 64); err == nil && int(addr/16) < len(words) {
				found[int(addr/16)] = strings.TrimPrefix(line, prefix)
			}
		}
	}
	for i, w := range words {
		if w == (Word{}) {
			found[i] = "all bits are zero"
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	if len(words) == 1 {
		return map[int]string{0: complaint}, nil
	}
	half := len(words) / 2
	if _, c, err := d.run(words[:half]); err != nil || c != "" {
		if err != nil {
			return nil, err
		}
		return d.locate(words[:half], c)
	}
	later, err := d.locate(words[half:], complaint)
	for i, c := range later {
		found[half+i] = c
	}
	return found, err
}

// run disassembles words from address 0 on and returns the texts by address, or
// nvdisasm's complaint.
func (d *disassembler) run(words []Word) (map[uint64]string, string, error) {
	raw := make([]byte, 0, 16*len(words))
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint64(raw, w.Lo)
		raw = binary.LittleEndian.AppendUint64(raw, w.Hi)
	}
	file := filepath.Join(d.dir, "words.bin")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, "", err
	}
	cmd := exec.Command(d.tool, "-b", d.arch, "-ndf", file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c := strings.TrimSpace(stderr.String())
		if !strings.HasPrefix(c, strings.TrimSpace(prefix)) {
			return nil, "", fmt.Errorf("nvdisasm -b %s: %w: %s", d.arch, err, c)
		}
		return nil, c, nil
	}
	lines := map[uint64]string{}
	for _, l := range strings.Split(string(out), "\n") {
		if addr, text, _, ok := splitLine(l); ok {
			lines[addr] = text
		}
	}
	return lines, "", nil
}
