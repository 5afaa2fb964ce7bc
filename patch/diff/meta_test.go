package diff

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// changed compares a cubin of the test data with a copy in which fn changed something.
func changed(t *testing.T, path string, fn func(c *elfx.Cubin, data []byte)) *Result {
	t.Helper()
	p := readCubin(t, pairs+path)
	q := slices.Clone(p)
	c, err := elfx.ParseCubin(p)
	if err != nil {
		t.Fatal(err)
	}
	fn(c, q)
	x, err1 := elfx.Open("old", p, nil)
	y, err2 := elfx.Open("new", q, nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	r, err := Files(x, y, Options{})
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSections changes one byte of a section and checks what is said of it.
func TestSections(t *testing.T) {
	for _, test := range []struct {
		path, section string
		at            int64
		kinds         Kinds
		says          string
	}{
		{"sm_90/calls.cubin", ".nv.constant3", 5, Data | Wrapping, "data: .nv.constant3: 1 of 16 bytes differ, the first at 0x5"},
		{"sm_90/calls.cubin", ".nv.global.init", 16, Data | Wrapping, "data: .nv.global.init: 1 of 28 bytes differ"},
		{"sm_90/calls.cubin", ".debug_frame", 60, Metadata | Wrapping, "metadata: .debug_frame: debug information differs"},
		{"sm_90/pair.cubin", ".note.nv.tkinfo", 40, Metadata | Wrapping, "metadata: .note.nv.tkinfo: "},
		{"sm_90/control.cubin", ".nv.constant2.control_switch", 0, Data | Metadata | Wrapping, "data: sm_90 control_switch"},
	} {
		r := changed(t, test.path, func(c *elfx.Cubin, data []byte) {
			s := c.Section(test.section)
			if s == nil {
				t.Fatalf("%s has no section %s", test.path, test.section)
			}
			data[s.Offset+test.at] ^= 1
		})
		text := strings.Join(r.Explain(nil), "\n")
		if r.Kinds != test.kinds || !strings.Contains(text, test.says) {
			t.Errorf("%s: found %s, want %s; explained as\n%s\nwant %q", test.section, r.Kinds, test.kinds, text, test.says)
		}
		if r.Different() != (test.kinds&Data != 0) {
			t.Errorf("%s: different %t", test.section, r.Different())
		}
	}
}

// TestModificationTime changes the time of the source file in a line table, which stands
// after its name and the number of its folder.
func TestModificationTime(t *testing.T) {
	r := changed(t, "sm_90/pair.cubin", func(c *elfx.Cubin, data []byte) {
		s := c.Section(".debug_line")
		at := bytes.Index(data[s.Offset:], []byte("pair.cu\x00"))
		if at < 0 {
			t.Fatal("no file name in .debug_line")
		}
		data[s.Offset+int64(at)+9] = 100
	})
	if text := strings.Join(r.Explain(nil), "\n"); r.Different() || !strings.Contains(text, "modification time or size of source file pair.cu: 0 → 1970-01-01 00:01:40") {
		t.Errorf("explained as\n%s", text)
	}
}

// TestAttributes changes the number of registers that a kernel asks for.
func TestAttributes(t *testing.T) {
	r := changed(t, "sm_90/pair.cubin", func(c *elfx.Cubin, data []byte) {
		for _, a := range c.Info() {
			if a.Name() == "REGCOUNT" {
				at := int(a.Offset) + 8
				binary.LittleEndian.PutUint32(data[at:], binary.LittleEndian.Uint32(data[at:])+2)
			}
		}
	})
	if r.Kinds&Resources == 0 || r.Classes[Identical] != 2 || !strings.Contains(r.String(), "resources: registers 10 → 12") {
		t.Errorf("%s", r)
	}
}

// TestAddressesInBanks compares jump tables whose targets moved with the code.
func TestAddressesInBanks(t *testing.T) {
	table := patchtest.MiniTable(t)
	a := source(t, table, program)
	b := source(t, table, strings.Replace(program, "EXIT\n", "EXIT\nNOP\nNOP\n", 1))
	d := Compare(a, b)
	bank := func(addresses ...uint32) (out []byte) {
		for _, x := range addresses {
			out = binary.LittleEndian.AppendUint32(out, x)
		}
		return out
	}
	if got := d.bankChange(bank(0x10, 0x70), bank(0x10, 0x90)); d.Class != SameCode || got != "" {
		t.Errorf("class %s, the addresses of the same instructions: %q", d.Class, got)
	}
	if got := d.bankChange(bank(0x10, 0x70), bank(0x10, 0x60)); got != "other in 1 word, the first at 0x4" {
		t.Errorf("another instruction: %q", got)
	}
}

// TestHiddenDescriptor takes two words that nvdisasm prints alike on sm_80: the register of
// the descriptor does not show.
func TestHiddenDescriptor(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 80})
	if err != nil {
		t.Skip(err)
	}
	w := isa.Word{Lo: 0x0000000418187981, Hi: 0x000ea8000c1e1500}
	x := isa.Word{Lo: 0x0000000a18187981, Hi: 0x000ea8000c1e1500}
	a, b := kernel(t, table, []isa.Word{w}), kernel(t, table, []isa.Word{x})
	if a.Text(0) != b.Text(0) {
		t.Fatalf("%s and %s are to be alike", a.Text(0), b.Text(0))
	}
	if d := both(t, a, b); d.Class != HiddenOnly {
		t.Errorf("class %s, want hidden", d.Class)
	}
}

// TestJSON checks the output against the names, types and values that the schema lists.
func TestJSON(t *testing.T) {
	text, err := os.ReadFile("../../docs/diff.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]string{
		{"cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair_maxreg.cubin"}, {"cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair.cubin"},
		{"cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair_renamed.cubin"}, {"cubin/old/sm_90/calls.cubin", "cubin/new/sm_90/loads.cubin"},
		{"fatbin/stored.fatbin", "fatbin/concat.fatbin"},
	} {
		var b bytes.Buffer
		w := NewJSONWriter(&b)
		r := compareFiles(t, p[0], p[1], Options{Visit: w.Kernel})
		if err := w.End(r); err != nil {
			t.Fatal(err)
		}
		var out any
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		for _, bad := range validate(schema, schema, out, "") {
			t.Errorf("%v: %s", p, bad)
		}
	}
}

// validate checks v against as much of JSON Schema as the schema uses.
func validate(root, s map[string]any, v any, at string) (bad []string) {
	if ref, ok := s["$ref"].(string); ok {
		def := root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return validate(root, def, v, at)
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		bad = append(bad, fmt.Sprintf("%s: %v is not among %v", at, v, list))
	}
	if c, ok := s["const"]; ok && c != v {
		bad = append(bad, fmt.Sprintf("%s: %v, want %v", at, v, c))
	}
	switch v := v.(type) {
	case []any:
		items, ok := s["items"].(map[string]any)
		if !ok {
			return append(bad, at+": no list")
		}
		for i, x := range v {
			bad = append(bad, validate(root, items, x, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		for _, name := range asList(s["required"]) {
			if _, ok := v[name.(string)]; !ok {
				bad = append(bad, fmt.Sprintf("%s: no %s", at, name))
			}
		}
		for name, x := range v {
			p, ok := props[name].(map[string]any)
			if !ok {
				p, ok = s["additionalProperties"].(map[string]any)
			}
			if !ok {
				bad = append(bad, fmt.Sprintf("%s: %s is not in the schema", at, name))
				continue
			}
			bad = append(bad, validate(root, p, x, at+"."+name)...)
		}
	default:
		want := map[string]bool{"string": isType[string](v), "integer": isType[float64](v), "number": isType[float64](v), "boolean": isType[bool](v)}
		if typ, ok := s["type"].(string); ok && !want[typ] {
			bad = append(bad, fmt.Sprintf("%s: %v is no %s", at, v, typ))
		}
	}
	return bad
}

func isType[T any](v any) bool { _, ok := v.(T); return ok }

func asList(v any) []any { l, _ := v.([]any); return l }

// TestReturnAddress moves a call whose return address a MOV holds.
func TestReturnAddress(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Skip(err)
	}
	const src = "BRA L1\nL1:\nMOV R20, L2\nMOV R21, 0x77\nCALL.REL.NOINC L3\nL2:\nEXIT\nL3:\nIADD3 R4, R4, 0x1, RZ\nRET.REL.NODEC R20 0x0"
	moved := strings.Replace(src, "BRA L1\n", "BRA L1\nNOP\nNOP\nNOP\n", 1)
	if d := both(t, source(t, table, src), source(t, table, moved)); d.Class != SameCode {
		t.Errorf("the call moved: class %s, want same-code", d.Class)
	}
	other := strings.Replace(moved, "R20, L2", "R20, L3", 1)
	if d := both(t, source(t, table, src), source(t, table, other)); d.Class != CodeDiffers {
		t.Errorf("another return address: class %s, want code", d.Class)
	}
	number := strings.Replace(moved, "0x77", "0x78", 1)
	if d := both(t, source(t, table, src), source(t, table, number)); d.Class != CodeDiffers {
		t.Errorf("another number: class %s, want code", d.Class)
	}
}
