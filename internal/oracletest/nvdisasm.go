package oracletest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
// 0.3 s that a process needs to start dominate; above, a refused word costs more.
const batch = 4096

// Disassemble returns nvdisasm's answers about words for an architecture such as sm_90a.
// Each refused word costs another process, about 0.3 s.
func Disassemble[W ~Word](tb testing.TB, arch string, words []W) []Text {
	tb.Helper()
	name := "nvdisasm"
	if old(arch) {
		name = "nvdisasm12"
	}
	d := disassembler{tb: tb, tool: Tool(tb, name), arch: strings.ToUpper(strings.Replace(arch, "sm_", "SM", 1)), dir: tb.TempDir()}
	out := make([]Text, len(words))
	for a := 0; a < len(words); a += batch {
		b := min(a+batch, len(words))
		part := make([]Word, b-a)
		for i := range part {
			part[i] = Word(words[a+i])
		}
		d.ask(part, out[a:b])
	}
	return out
}

type disassembler struct {
	tb              testing.TB
	tool, arch, dir string
}

var badAddress = regexp.MustCompile(`at address 0x([0-9a-f]+)`)

// ask fills out with the answers about words; it goes on behind every refused word.
func (d *disassembler) ask(words []Word, out []Text) {
	for len(words) > 0 {
		lines, complaint := d.run(words)
		if complaint == "" {
			for addr, text := range lines {
				if i := int(addr / 16); i < len(out) {
					out[i] = Text{Text: text, PC: addr}
				}
			}
			return
		}
		bad := d.locate(words, complaint)
		out[bad].Refused = complaint
		if bad > 0 {
			d.ask(words[:bad], out[:bad])
		}
		words, out = words[bad+1:], out[bad+1:]
	}
}

// locate returns the index of the word that a complaint is about. An all-zero word is
// refused without an address: then the first zero word is meant.
func (d *disassembler) locate(words []Word, complaint string) int {
	if m := badAddress.FindStringSubmatch(complaint); m != nil {
		if addr, err := strconv.ParseUint(m[1], 16, 64); err == nil && int(addr/16) < len(words) {
			return int(addr / 16)
		}
	}
	for i, w := range words {
		if w == (Word{}) {
			return i
		}
	}
	if len(words) == 1 {
		return 0
	}
	half := len(words) / 2
	if _, c := d.run(words[:half]); c != "" {
		return d.locate(words[:half], c)
	}
	_, c := d.run(words[half:])
	return half + d.locate(words[half:], c)
}

// run disassembles words from address 0 on and returns the texts by address, or
// nvdisasm's complaint.
func (d *disassembler) run(words []Word) (map[uint64]string, string) {
	d.tb.Helper()
	raw := make([]byte, 0, 16*len(words))
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint64(raw, w.Lo)
		raw = binary.LittleEndian.AppendUint64(raw, w.Hi)
	}
	file := filepath.Join(d.dir, "words.bin")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		d.tb.Fatal(err)
	}
	cmd := exec.Command(d.tool, "-b", d.arch, "-ndf", file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c := strings.TrimSpace(stderr.String())
		if c == "" {
			c = err.Error()
		}
		return nil, strings.TrimSpace(strings.TrimPrefix(c, "nvdisasm error   :"))
	}
	lines := map[uint64]string{}
	for _, l := range strings.Split(string(out), "\n") {
		if addr, text, _, ok := splitLine(l); ok {
			lines[addr] = text
		}
	}
	return lines, ""
}
