package isa_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// TestNvidiaOracle compares control codes with what nvdisasm 12.8 prints for sm_120, and
// reads its lines back.
func TestNvidiaOracle(t *testing.T) {
	tool := oracletest.Tool(t, "nvdisasm12")
	table, err := isa.Load(isa.Arch{SM: 120})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 12))
	var words []isa.Word
	for _, text := range []string{"FADD R0, R1, R2", "LDG.E R0, desc[UR4][R2.64]", "ATOM.E.EXCH.64.STRONG.GPU P0, R12, desc[UR4][R4.64+0x50], R10"} {
		base, err := table.Encode(text, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			c := isa.Control{Stall: uint8(r.IntN(16)), Yield: r.IntN(2) == 0, Wait: uint8(r.IntN(64)), RBar: 7, WBar: 7, Batch: uint8(r.IntN(6))}
			if text[0] != 'F' { // what takes no time sets no scoreboards, and prints none
				c.RBar, c.WBar = uint8(r.IntN(8)), uint8(r.IntN(8))
			}
			if w := c.Set(base); !table.Decode(w).BadSched {
				words = append(words, w)
			}
		}
	}
	data := make([]byte, len(words)*isa.WordSize)
	for i, w := range words {
		w.Store(data[i*isa.WordSize:])
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-c", "-ndf", "-b", "SM120", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i := 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "/*") || i == len(words) {
			continue
		}
		w := words[i]
		i++
		_, want, _ := strings.Cut(line, "*/")
		want = strings.Join(strings.Fields(want), " ") // it pads the parts to columns
		in := table.Decode(w)
		got := string(append(in.AppendNvidia([]byte(table.Text(in, 0))), ';'))
		if got != want {
			t.Fatalf("%v: got %s, nvdisasm 12.8 prints %s", w, got, want)
		}
		l, err := isa.ParseLine(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if back, err := table.EncodeLine(l, &w, nil); err != nil || back != w {
			t.Errorf("%v: %s reads back as %v, %v", w, line, back, err)
		}
	}
	if i != len(words) || i < 500 {
		t.Errorf("%d of %d words have a line", i, len(words))
	}
}
