package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/listing"
)

// schemaKeys adds the names of all properties that a schema has to keys.
func schemaKeys(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for k := range props {
				keys[k] = true
			}
		}
		for _, x := range v {
			schemaKeys(x, keys)
		}
	case []any:
		for _, x := range v {
			schemaKeys(x, keys)
		}
	}
}

// jsonKeys adds the keys of every object in v to keys, except those of the objects named in
// free.
func jsonKeys(v any, free map[string]bool, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			keys[k] = true
			if !free[k] {
				jsonKeys(x, free, keys)
			}
		}
	case []any:
		for _, x := range v {
			jsonKeys(x, free, keys)
		}
	}
}

func readJSON(t *testing.T, path string) any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// TestSweepSchema sees that the published schema names exactly the keys that a manifest
// can have.
func TestSweepSchema(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "r.toml")
	text := "allow = \"hazard\"\n[param.set]\nvalues = [\"stall=1\", \"stall=1 stall+=0\", \"evict=INVALID6\"]\n" +
		"[[rule]]\nname = \"a\"\nmatch = \"LDG.E\"\nset = \"${set}\"\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, talk, status := cupatch(t, nil, "sweep", "-q", "-f", recipe, "-o", out, "../../testdata/cubin/new/sm_90/loads.cubin"); status != 1 {
		t.Fatalf("status %d, %s", status, talk)
	}
	known, used := map[string]bool{}, map[string]bool{}
	schemaKeys(readJSON(t, "../../docs/sweep.schema.json"), known)
	jsonKeys(readJSON(t, filepath.Join(out, "manifest.json")), map[string]bool{"params": true, "warnings": true}, used)
	for k := range used {
		if !known[k] {
			t.Errorf("the schema does not know %q", k)
		}
	}
	for k := range known {
		if !used[k] {
			t.Errorf("no manifest has %q", k)
		}
	}
}

// TestDisSchema validates what dis --json prints of every kind of code.
func TestDisSchema(t *testing.T) {
	checkSchema(t, "dis", []string{"dis", "-q", "--json", "--lines=inline", "--blocks", "--live"}, [][]string{
		{data + "cubin/new/sm_90/inline.cubin"}, {data + "cubin/old/sm_75/names.cubin"}, {data + "cubin/new/sm_120/control.cubin"},
		{data + "cubin/new/sm_90/gemm.cubin", "-m", "STG"}, {data + "fatbin/zstd.fatbin"}, {unknownWords(t)},
	})
}

// TestCfgSchema does the same for cfg.
func TestCfgSchema(t *testing.T) {
	checkSchema(t, "cfg", []string{"cfg", "--json"}, [][]string{
		{data + "cubin/new/sm_90/inline.cubin"}, {data + "cubin/old/sm_75/names.cubin"}, {data + "cubin/new/sm_120/control.cubin"},
		{data + "fatbin/zstd.fatbin"}, {unknownWords(t)}, {irreducible(t)},
	})
}

// TestStatsSchema does the same for stats.
func TestStatsSchema(t *testing.T) {
	checkSchema(t, "stats", []string{"stats", "--json", "--full", "--detail"}, [][]string{
		{data + "cubin/new/sm_90/inline.cubin"}, {data + "cubin/old/sm_75/names.cubin"}, {data + "cubin/new/sm_120/control.cubin"},
		{data + "cubin/new/sm_75/spills.cubin"}, {data + "cubin/new/sm_90/atomics.cubin"}, {data + "fatbin/zstd.fatbin"}, {unknownWords(t)},
	})
}

// checkSchema validates what a command prints, one document a line, by docs/NAME.schema.json,
// which names no key that it never prints.
func checkSchema(t *testing.T, name string, command []string, inputs [][]string) {
	t.Helper()
	schema, ok := readJSON(t, "../../docs/"+name+".schema.json").(map[string]any)
	if !ok {
		t.Fatal("the schema is no object")
	}
	known, used := map[string]bool{}, map[string]bool{}
	schemaKeys(schema, known)
	for _, args := range inputs {
		out, talk, status := cupatch(t, nil, append(slices.Clone(command), args...)...)
		if status != 0 || out == "" {
			t.Fatalf("%s: status %d, %s", args, status, talk)
		}
		for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			if err := validate(schema, schema, v, ""); err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			jsonKeys(v, nil, used)
		}
	}
	for k := range known {
		if !used[k] {
			t.Errorf("no output has %q", k)
		}
	}
}

// TestCheckSchema validates what check --json prints by the published schema, which names no
// key that check never prints, and sees that the code of testdata is free of findings.
func TestCheckSchema(t *testing.T) {
	schema := readJSON(t, "../../docs/check.schema.json").(map[string]any)
	known, used := map[string]bool{}, map[string]bool{}
	schemaKeys(schema, known)
	dir := t.TempDir()
	for _, x := range []struct{ file, rule string }{
		{"cubin/new/sm_90/gemm.cubin", "FADD => stall=1"}, {"cubin/new/sm_80/gemm.cubin", "* => wait=-"}, {"fatbin/zstd.fatbin", "* => wbar=-"},
	} {
		out := filepath.Join(dir, "out")
		if _, talk, status := cupatch(t, nil, "patch", "-q", "--allow", "hazard", "-a", "sm_90", "-a", "sm_80", "-e", x.rule, "-o", out, data+x.file); status != 0 {
			t.Fatalf("%s: status %d, %s", x.file, status, talk)
		}
		lines, talk, status := cupatch(t, nil, "check", "--json", out)
		if status != 1 || lines == "" {
			t.Fatalf("%s: status %d, %s", x.file, status, talk)
		}
		for _, line := range strings.Split(strings.TrimSuffix(lines, "\n"), "\n") {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			if err := validate(schema, schema, v, ""); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			jsonKeys(v, nil, used)
		}
	}
	for k := range known {
		if !used[k] {
			t.Errorf("no output has %q", k)
		}
	}
	if out, talk, status := cupatch(t, nil, "check", data+"cubin"); status != 0 || out != "" {
		t.Errorf("testdata: status %d, %s%s", status, out, talk)
	}
}

// changedCubin writes a cubin of testdata whose first kernel change has changed, and
// returns its path.
func changedCubin(t *testing.T, change func(code []byte)) string {
	t.Helper()
	b, err := os.ReadFile(data + "cubin/new/sm_90/proof.cubin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := elfx.ParseCubin(b)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Clone(b)
	change(b[c.Kernels()[0].Offset:])
	path := filepath.Join(t.TempDir(), "changed.cubin")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// unknownWords returns the path of a cubin with a word that no table knows and one with a
// batch number.
func unknownWords(t *testing.T) string {
	t.Helper()
	return changedCubin(t, func(code []byte) {
		isa.Word{Lo: 0xfff}.Store(code)
		c := isa.Control{Stall: 1, Yield: true, WBar: isa.NoBar, RBar: isa.NoBar, Batch: 1}
		c.Set(isa.LoadWord(code[isa.WordSize:])).Store(code[isa.WordSize:])
	})
}

// irreducible returns the path of a cubin with a cycle that is entered in two places.
func irreducible(t *testing.T) string {
	t.Helper()
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	words, err := listing.Assemble(table, "k", "@P0 BRA 0x20\nNOP\nNOP\n@P1 BRA 0x10\nBRX R2 -0x50")
	if err != nil {
		t.Fatal(err)
	}
	return changedCubin(t, func(code []byte) { copy(code, words) })
}

// validate checks v against a schema of the words that ours use.
func validate(root, schema map[string]any, v any, where string) error {
	if ref, ok := schema["$ref"].(string); ok {
		def := root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return validate(root, def, v, where)
	}
	if c, ok := schema["const"]; ok && c != v {
		return fmt.Errorf("%s: %v, want %v", where, v, c)
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Errorf("%s: %v, want one of %v", where, v, list)
	}
	switch x := v.(type) {
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(x) {
			return fmt.Errorf("%s: %q does not match %s", where, x, pattern)
		}
	case float64:
		if x != math.Trunc(x) && schema["type"] == "integer" {
			return fmt.Errorf("%s: %v, want a whole number", where, x)
		}
		low, ok1 := schema["minimum"].(float64)
		high, ok2 := schema["maximum"].(float64)
		if ok1 && x < low || ok2 && x > high {
			return fmt.Errorf("%s: %v is out of range", where, x)
		}
	case []any:
		low, ok1 := schema["minItems"].(float64)
		high, ok2 := schema["maxItems"].(float64)
		if ok1 && len(x) < int(low) || ok2 && len(x) > int(high) {
			return fmt.Errorf("%s: %d items", where, len(x))
		}
		for i, item := range x {
			if err := validate(root, schema["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return validateObject(root, schema, x, where)
	}
	return validateType(schema, v, where)
}

func validateObject(root, schema map[string]any, x map[string]any, where string) error {
	required, _ := schema["required"].([]any)
	for _, k := range required {
		if _, ok := x[k.(string)]; !ok {
			return fmt.Errorf("%s: no %s", where, k)
		}
	}
	props, _ := schema["properties"].(map[string]any)
	for k, v := range x {
		sub, ok := props[k].(map[string]any)
		if !ok {
			if sub, ok = schema["additionalProperties"].(map[string]any); !ok {
				return fmt.Errorf("%s: the schema does not know %q", where, k)
			}
		}
		if err := validate(root, sub, v, where+"."+k); err != nil {
			return err
		}
	}
	return validateType(schema, x, where)
}

func validateType(schema map[string]any, v any, where string) error {
	kind := "null"
	switch v.(type) {
	case string:
		kind = "string"
	case float64:
		kind = "integer"
	case bool:
		kind = "boolean"
	case []any:
		kind = "array"
	case map[string]any:
		kind = "object"
	}
	if want, ok := schema["type"]; ok && want != kind {
		return fmt.Errorf("%s: a value of type %s, want %v", where, kind, want)
	}
	return nil
}
