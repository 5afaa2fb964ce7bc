package code_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

const stub = "arch sm_90\nnvdisasm 13.5.37\n\nclass nop 0x918\n  text OWNNOP\n"

// TestOwnTables sees that everybody who asks for the table of a cubin gets the user's own.
func TestOwnTables(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sm_90.txt"), []byte(stub), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(code.TablesVar, dir)
	c := patchtest.OpenCubin(t, patchtest.LoadsCubin).Cubin
	nop := isa.Word{Lo: 0x7918, Hi: 0x000fc00000000000}
	table, err := code.TableOf(c)
	if err != nil {
		t.Fatal(err)
	}
	compared, err := diff.TableFor(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]*isa.Table{"code": table, "diff": compared} {
		if table == nil || table.Text(table.Decode(nop), 0) != "OWNNOP" {
			t.Errorf("%s has another table", name)
		}
	}
	tables, err := code.Tables()
	if err != nil || len(tables) != len(isa.Arches()) {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, x := range tables {
		if own := x.Text(x.Decode(nop), 0) == "OWNNOP"; own != (x.Arch() == isa.Arch{SM: 90}) {
			t.Errorf("%s: the user's own: %v", x.Arch(), own)
		}
	}
	if other, err := code.TableFor(isa.Arch{SM: 80}); err != nil || other.Text(other.Decode(nop), 0) != "NOP" {
		t.Errorf("sm_80, which the folder has not: %v", err)
	}
}

// TestBadTables sees that a folder that is not there, a damaged table and a table based on
// itself are errors: no other table takes their place.
func TestBadTables(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"sm_90": "arch sm_90\nclass\n", "sm_80": "arch sm_80\nbase sm_80\n", "sm_75": "arch sm_75\nbase sm_70\n", "sm_70": "arch sm_70\nbase sm_75\n", "sm_89": "arch sm_89\nbase sm_86\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(code.TablesVar, dir)
	for sm, want := range map[int]string{90: "sm_90.txt: ", 80: "based on itself", 75: "based on itself", 89: "sm_89.txt: line 2: base sm_86: open "} {
		if _, err := code.TableFor(isa.Arch{SM: sm}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("sm_%d: %v, want %q", sm, err, want)
		}
	}
	c := patchtest.OpenCubin(t, patchtest.LoadsCubin).Cubin
	if _, err := diff.TableFor(c); err == nil || !strings.Contains(err.Error(), "sm_90.txt: ") {
		t.Errorf("diff: %v", err)
	}
	t.Setenv(code.TablesVar, filepath.Join(dir, "none"))
	if _, err := code.TableFor(isa.Arch{SM: 90}); err == nil || !strings.Contains(err.Error(), code.TablesVar) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
