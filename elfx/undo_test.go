package elfx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// Ways back one after another, and ones that make no sense.
func TestUndo(t *testing.T) {
	f := mustOpen(t, "f.fatbin", mustRead(t, "fatbin/zstd_size.fatbin"))
	e := f.Entries()[0]
	out, _, err := f.Rewrite(map[*Entry][]byte{e: noise(t, entryBytes(t, e), 60, 1)}, RewriteOptions{})
	if err != nil || out.Size() <= f.Size {
		t.Fatalf("%d bytes became %d, %v", f.Size, out.Size(), err)
	}
	var text bytes.Buffer
	for range 2 {
		if err := f.Undo(out).Write(&text); err != nil {
			t.Fatal(err)
		}
	}
	now := out.Bytes()
	d := json.NewDecoder(&text)
	for range 2 {
		u, err := ReadUndo(d)
		if err != nil {
			t.Fatal(err)
		}
		if !u.Of(now) || u.Of(f.Data()) {
			t.Error("the way back does not know where it starts")
		}
		old, err := u.Apply(now)
		if err != nil || !bytes.Equal(old.Bytes(), f.Data()) {
			t.Errorf("undone: %v", err)
		}
	}
	if _, err := ReadUndo(d); err != io.EOF {
		t.Errorf("at the end: %v, want %v", err, io.EOF)
	}
	good := f.Undo(out)
	for want, steps := range map[string][]UndoStep{
		"the result has SHA-256":  {},
		"step 0: bytes":           {{From: -1, Size: 1}},
		"step 1: bytes":           {{Data: []byte{1}}, {From: 1, Size: int64(len(now))}},
		"step 1: more than the":   {{Size: int64(len(now))}, {Size: 1}},
		"step 0: bytes 0x0 to 0x": {{Size: -1}},
	} {
		bad := *good
		bad.Steps = steps
		if out, err := bad.Apply(now); out != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := ReadUndo(json.NewDecoder(strings.NewReader(`{"no": 1}`))); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("an unknown key: %v", err)
	}
}
