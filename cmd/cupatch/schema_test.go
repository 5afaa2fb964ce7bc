package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
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
	text := "[param.set]\nvalues = [\"stall=1\", \"stall=1 stall+=0\", \"evict=INVALID6\"]\n" +
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
