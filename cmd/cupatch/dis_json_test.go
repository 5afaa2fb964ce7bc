package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/report"
)

// A jsonInst is an instruction as dis --json prints it, without its address.
type jsonInst struct {
	Word      report.Word `json:"word"`
	Control   string      `json:"control"`
	Batch     uint8       `json:"batch,omitempty"`
	Text      string      `json:"text"`
	Guard     string      `json:"guard,omitempty"`
	Opcode    string      `json:"opcode,omitempty"`
	Modifiers []string    `json:"modifiers,omitempty"`
	Operands  []string    `json:"operands,omitempty"`
	Names     []string    `json:"names,omitempty"`
	Unknown   bool        `json:"unknown,omitempty"`
}

// TestInstJSON compares the JSON of instructions with what encoding/json makes of the
// same facts, for real code and random words.
func TestInstJSON(t *testing.T) {
	files, err := filepath.Glob(data + "cubin/*/sm_*/*.cubin")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var parts isa.Parts
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := elfx.ParseCubin(b)
		if err != nil {
			t.Fatal(err)
		}
		table, err := code.TableOf(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Kernels()) == 0 {
			continue
		}
		k := c.Kernels()[0]
		for pc := 0; pc+isa.WordSize <= len(k.Data()); pc += isa.WordSize {
			w := isa.LoadWord(k.Data()[pc:])
			if pc%64 == 0 {
				w = isa.Word{Lo: rnd.Uint64(), Hi: rnd.Uint64()}
			}
			in := table.Decode(w)
			ctl, p := isa.ControlOf(w), table.Split(in, uint64(pc))
			want, err := json.Marshal(jsonInst{
				Word: report.Word(w), Control: ctl.String(), Batch: ctl.Batch, Text: table.Text(in, uint64(pc)), Guard: p.Guard, Opcode: p.Mnemonic,
				Modifiers: p.Mods, Operands: p.Operands, Names: p.Names, Unknown: in.Status == isa.StatusUnknown,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := "{" + string(appendTextJSON(appendWordJSON(nil, w), table, in, uint64(pc), &parts))[1:]; got != string(want) {
				t.Fatalf("%s at %#x:\n%s\nwant\n%s", name, pc, got, want)
			}
		}
	}
	for _, s := range []string{"", "a b", `"`, `\\`, "<&>", "\x01", "é", "\xff", "\u2028"} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendString(nil, s)); got != string(want) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
