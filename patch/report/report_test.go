package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// planCubin plans rules on a target.
func planCubin(tb testing.TB, t *code.Target, opts rule.Options, rules ...string) ([]edit.Edit, rule.Summary) {
	tb.Helper()
	var rs []*rule.Rule
	for i, text := range rules {
		r, err := rule.Parse("", i+1, text)
		if err != nil {
			tb.Fatal(err)
		}
		rs = append(rs, r)
	}
	plan, err := rule.Plan(t, rs, opts)
	if err != nil {
		tb.Fatal(err)
	}
	edits, sum := plan.Edits, plan.Summary
	return edits, sum
}

// reportOf returns a report of edits of a target.
func reportOf(tb testing.TB, t *code.Target, edits []edit.Edit, sum rule.Summary) (*Report, []byte) {
	tb.Helper()
	after := bytes.Clone(t.Cubin.Data())
	if err := edit.Apply(after, edits); err != nil {
		tb.Fatal(err)
	}
	rep := New("test", nil, &sum)
	rf := File{File: "loads.cubin", Input: HashOf(t.Cubin.Data()), Output: HashOf(after), Kernels: Kernels(t, edits, after)}
	for _, e := range edits {
		rf.Edits = append(rf.Edits, NewEdit(e))
	}
	rep.Files = append(rep.Files, rf)
	return rep, after
}

// TestReportReplay writes a report, reads it, replays it and undoes it.
func TestReportReplay(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	edits, sum := planCubin(t, target, rule.Options{}, "LDG.E!.EF => .EF")
	if len(edits) == 0 {
		t.Fatal("no edits")
	}
	rep, after := reportOf(t, target, edits, sum)
	a, err := rep.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := rep.Marshal(); !bytes.Equal(a, b) {
		t.Error("the same report gives other bytes")
	}
	back, err := Parse(a)
	if err != nil {
		t.Fatal(err)
	}
	located, err := back.Files[0].Locate([]*code.Target{target}, false, false)
	if err != nil {
		t.Fatal(err)
	}
	got := bytes.Clone(target.Cubin.Data())
	if err := edit.Apply(got, located[0].Edits); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, after) {
		t.Error("the replayed report gives another file")
	}
	if err := edit.CheckApplied(target.Cubin.Data(), got, edits); err != nil {
		t.Error(err)
	}
	patched, err := elfx.ParseCubin(got)
	if err != nil {
		t.Fatal(err)
	}
	undone, err := back.Files[0].Locate([]*code.Target{{Cubin: patched, Table: target.Table}}, false, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := edit.Apply(got, undone[0].Edits); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, target.Cubin.Data()) {
		t.Error("revert does not give the original back")
	}
	if again, s := planCubin(t, &code.Target{Cubin: patchtest.Parse(t, after), Table: target.Table}, rule.Options{}, "LDG.E => .EF"); len(again) != 0 || s.Matched == 0 {
		t.Errorf("an absolute change applied twice makes %d edits", len(again))
	}
}

// TestReportMismatch changes a report in one place at a time; it must then not fit.
func TestReportMismatch(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	edits, sum := planCubin(t, target, rule.Options{}, "LDG.E!.EF => .EF")
	for _, test := range []struct {
		name  string
		edit  func(f *File)
		want  string
		moved bool // relocating may help
	}{
		{"old word", func(f *File) { f.Edits[0].Old.Hi ^= 1 }, "found", false},
		{"kernel", func(f *File) { f.Edits[0].Kernel += "x" }, "no such kernel", false},
		{"address", func(f *File) { f.Edits[0].PC += 16 }, "offset", true},
		{"offset", func(f *File) { *f.Edits[0].Offset += 16 }, "offset", true},
		{"no hash", func(f *File) { *f.Edits[0].Offset += 16; f.Kernels = nil }, "offset", false},
		{"entry", func(f *File) { f.Edits[0].Entry = "7"; f.Kernels[0].Entry = "7" }, "no such kernel", true},
		{"beyond", func(f *File) { f.Edits[0].PC = 1 << 30 }, "beyond", false},
		{"twice", func(f *File) { f.Edits = append(f.Edits, f.Edits[0]) }, "two edits", false},
	} {
		rep, _ := reportOf(t, target, edits, sum)
		test.edit(&rep.Files[0])
		_, err := rep.Files[0].Locate([]*code.Target{target}, false, false)
		if !errors.Is(err, edit.ErrMismatch) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		var le *LocateError
		if errors.As(err, &le) && le.Moved != test.moved {
			t.Errorf("%s: moved is %v", test.name, le.Moved)
		}
	}
}

// TestReportTexts sees that new_text and new_control beside new say the same as it, and
// that without new they say all.
func TestReportTexts(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	edits, sum := planCubin(t, target, rule.Options{}, "LDG.E!.EF if wbar != \"-\" => .EF")
	text := edits[0].NewText
	control := isa.ControlOf(edits[0].New).String()
	for _, test := range []struct {
		name    string
		without bool // new is left out
		edit    func(e *Edit)
		want    string
	}{
		{"blanks and a code", false, func(e *Edit) { e.NewText = control + "  " + strings.Replace(text, ", ", ",", 1) + " ;" }, ""},
		{"no texts", false, func(e *Edit) { e.NewText, e.NewControl = "", "" }, ""},
		{"other text", false, func(e *Edit) { e.NewText = edits[0].OldText }, "new is \"" + text + "\", new_text says \"" + edits[0].OldText + "\""},
		{"another instruction", false, func(e *Edit) { e.NewText = "NOP" }, "new_text says \"NOP\""},
		{"no text", false, func(e *Edit) { e.NewText = "LOAD" }, "new_text: "},
		{"other code", false, func(e *Edit) { e.NewControl = "[B------:R-:W5:-:S04]" }, "new has the control code " + control},
		{"bad code", false, func(e *Edit) { e.NewControl = "[B]" }, "new_control: "},
		{"two codes", true, func(e *Edit) { e.NewText = "[B------:R-:W5:-:S04] " + text }, "new_control"},
		{"text alone", true, func(e *Edit) {}, ""},
		{"text and another code", true, func(e *Edit) { e.NewControl = "[B------:R-:W5:-:S04]" }, ""},
	} {
		rep, _ := reportOf(t, target, edits[:1], sum)
		e := &rep.Files[0].Edits[0]
		if test.edit(e); test.without {
			e.New = nil
		}
		located, err := rep.Files[0].Locate([]*code.Target{target}, false, false)
		if test.want != "" {
			if !errors.Is(err, edit.ErrMismatch) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		want := edits[0].New
		if c := isa.ControlOf(want); test.name == "text and another code" {
			c.Wait, c.WBar, c.Stall = 0, 5, 4
			want = c.Set(want)
		}
		if got := located[0].Edits[0].New; got != want {
			t.Errorf("%s: new word %s, want %s", test.name, got, want)
		}
	}
}

// TestRelocate finds the kernels of a cubin in one where they stand elsewhere.
func TestRelocate(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	edits, sum := planCubin(t, target, rule.Options{}, "LDG.E!.EF => .EF")
	rep, _ := reportOf(t, target, edits, sum)
	for i := range rep.Files[0].Edits {
		*rep.Files[0].Edits[i].Offset += 0x100 // as if the report had been made for another file
		rep.Files[0].Edits[i].Entry = "3"
	}
	for i := range rep.Files[0].Kernels {
		rep.Files[0].Kernels[i].Entry = "3"
	}
	if _, err := rep.Files[0].Locate([]*code.Target{target}, false, false); !errors.Is(err, edit.ErrMismatch) {
		t.Errorf("without relocate: %v", err)
	}
	located, err := rep.Files[0].Locate([]*code.Target{target}, true, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(located) != 1 || len(located[0].Edits) != len(edits) || located[0].Edits[0].Offset != edits[0].Offset {
		t.Errorf("relocated to other places")
	}
	rep.Files[0].Kernels[0].Input = strings.Repeat("0", 64)
	if _, err := rep.Files[0].Locate([]*code.Target{target}, true, false); !errors.Is(err, edit.ErrMismatch) {
		t.Errorf("other code: %v", err)
	}
}

func TestParseReportErrors(t *testing.T) {
	for _, test := range []struct{ json, want string }{
		{`{`, "line 1: the report ends too early"},
		{"{\n\"format\":\"cupatch-report-1\",\n\"files\":[", "line 3: the report ends too early"},
		{"", "bad report: the file is empty"},
		{" \n", "bad report: the file is empty"},
		{"{\"format\":\"cupatch-report-1\",\n\"files\":[{\"edits\":[{\"kernel\":\"k\",\"pc\":1180591620717411303424}]}]}", "line 2: files.edits.pc: number 1180591620717411303424 where a whole number"},
		{`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":5}]}]}`, "files.edits.kernel: number where text belongs"},
		{`{"format":"cupatch-report-1","files":{}}`, "files: object where a list belongs"},
		{`{"format":"x","files":[]}`, `format is "x"`},
		{`{"format":"cupatch-report-1","files":[],"fles":[]}`, `unknown field "fles"`},
		{`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":0}]}]}`, "kernel, pc and old are needed"},
		{`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":0,"old":["0x1","0x2"]}]}]}`, "neither new nor new_text"},
		{`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":8,"old":["0x1","0x2"],"new_text":"NOP"}]}]}`, "no multiple of 16"},
		{`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":0,"old":["0x1"],"new_text":"NOP"}]}]}`, "want"},
		{`{"format":"cupatch-report-1","files":[]} {}`, "follows"},
		{`{"format":"cupatch-report-2","files":[{"kernels":[],"edits":[{"in":0,"pc":0,"old":["0x1","0x2"],"new_text":"NOP"}]}]}`, "in is 0, and the report has 0 kernels"},
		{`{"format":"cupatch-report-2","files":[{"edits":[{"in":0,"kernel":"k","pc":0,"old":["0x1","0x2"],"new_text":"NOP"}],"kernels":[{}]}]}`, "does not go with"},
		{"{\"format\":\"cupatch-report-2\",\n\"files\":[{\"edits\":[\n{\"in\":0},\n{\"in\":[}]}]}", "line 4: "},
		{"{\"format\":\"cupatch-report-2\",\n\"files\":[{\"edits\":[{\"pc\":0,\n\"odd\":1}]}]}", "unknown field \"odd\""},
		{"{\"files\":[{\"odd\":1}]}", "unknown field \"odd\""},
		{"[]", "array where an object belongs"},
	} {
		_, err := Parse([]byte(test.json))
		if !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.json, err, test.want)
		}
	}
}

// TestReportFormats reads what a report says of edits in both formats, and sees that format
// 2 says the name of a kernel once, however many its edits are.
func TestReportFormats(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	target.Entry = "7"
	edits, sum := planCubin(t, target, rule.Options{Allow: check.Allow{check.RefuseHazard: true}}, "* => wait=0,1")
	rep, _ := reportOf(t, target, edits, sum)
	rep.Files[0].Edits = nil
	rep.Files[0].Add(edits[:2])
	rep.Files[0].Add(edits[2:])
	var read [2]*Report
	for i, format := range []string{oldFormat, Format} {
		rep.Format = format
		b, err := rep.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		names := bytes.Count(b, []byte(`"`+edits[0].Kernel+`"`))
		if want := 1; i == 1 && names != want || i == 0 && names <= want {
			t.Errorf("%s: the kernel is named %d times", format, names)
		}
		if read[i], err = Parse(b); err != nil {
			t.Fatal(err)
		}
		read[i].Format = ""
	}
	if len(read[0].Files[0].Edits) != len(edits) || !reflect.DeepEqual(read[0], read[1]) {
		t.Errorf("the formats say different things")
	}
	if e := read[1].Files[0].Edits[0]; string(e.Kernel) != edits[0].Kernel || e.Entry != "7" || isa.Word(*e.New) != edits[0].New || *e.Offset != edits[0].Offset {
		t.Errorf("edit 1 was read as %+v", e)
	}
}

// TestReportSchema sees that the schema names every key that a report has.
func TestReportSchema(t *testing.T) {
	data, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	collectKeys(schema, known)
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	edits, sum := planCubin(t, target, rule.Options{}, "LDG.E!.EF => .EF")
	rep, _ := reportOf(t, target, edits, sum)
	rep.Relative = true
	rep.Rules = []Rule{{Relative: true, Refused: 1}}
	rep.AddWarnings("f", []check.Warning{{Entry: "1", Kernel: "k"}})
	rep.Files[0].Edits[0].Entry = "1"
	rep.Files[0].Kernels[0].Entry = "1"
	b, err := rep.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	collectKeys(doc, used)
	for k := range used {
		if !known[k] {
			t.Errorf("the schema does not know %q", k)
		}
	}
}

func collectKeys(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			keys[k] = true
			collectKeys(x, keys)
		}
	case []any:
		for _, x := range v {
			collectKeys(x, keys)
		}
	}
}
