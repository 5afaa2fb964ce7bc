package kernel_test

import (
	"fmt"
	"log"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// Find the loads that feed an HMMA: each register that it reads is followed back to the
// instructions that may have written it.
func ExampleDefs_Reaching() {
	arch, err := isa.ParseArch("sm_90")
	if err != nil {
		log.Fatal(err)
	}
	table, err := isa.Load(arch)
	if err != nil {
		log.Fatal(err)
	}
	code := kernel.Code{Table: table}
	for _, text := range []string{
		"LDSM.16.M88.4 R4, [R2]",
		"@P0 LDS.64 R8, [R3]",
		"MOV R9, R10",
		"HMMA.16816.F32 R12, R4, R8, R12",
		"BRA 0x10",
	} {
		w, err := table.Encode(text, uint64(len(code.Data)), nil)
		if err != nil {
			log.Fatal(err)
		}
		code.Data = append(code.Data, make([]byte, isa.WordSize)...)
		w.Store(code.Data[len(code.Data)-isa.WordSize:])
	}

	graph := kernel.New(code)
	defs := graph.Defs()
	for i := range len(code.Data) / isa.WordSize {
		in := graph.Inst(i)
		if in.Mnemonic() != "HMMA" {
			continue
		}
		loads := map[int]bool{}
		for _, a := range in.Accesses(nil) {
			for n := a.First; a.Reads && n < a.First+a.Count; n++ {
				for _, s := range defs.Reaching(i, a.File, n) {
					if s.Inst >= 0 && graph.Inst(s.Inst).Memory().Op == isa.MemoryLoad {
						loads[s.Inst] = true
					}
				}
			}
		}
		for k := range i {
			if loads[k] {
				fmt.Printf("%#x: %s\n", k*isa.WordSize, table.Text(graph.Inst(k), 0))
			}
		}
	}
	// Output:
	// 0x0: LDSM.16.M88.4 R4, [R2]
	// 0x10: @P0 LDS.64 R8, [R3]
}
