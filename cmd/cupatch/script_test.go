package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cupatch": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as a user would, one behavior a script.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CUBIN", filepath.Join(root, "testdata", "cubin"))
			e.Setenv("PTX", filepath.Join(root, "testdata", "ptx"))
			e.Setenv("FATBIN", filepath.Join(root, "testdata", "fatbin"))
			e.Setenv("EXAMPLES", filepath.Join(root, "examples"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mode": scriptMode, "links": scriptLinks, "zip": scriptZip, "status": scriptStatus, "damage": scriptDamage,
			"pipe": scriptPipe,
		},
	})
}

// scriptMode checks the permission bits of a file: mode 0755 FILE.
func scriptMode(ts *testscript.TestScript, neg bool, args []string) {
	st, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := st.Mode().Perm().String(); got != args[0] {
		ts.Fatalf("mode of %s is %s, want %s", args[1], got, args[0])
	}
}

// scriptLinks makes a hard link: links OLD NEW.
func scriptLinks(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Link(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

// scriptZip makes a zip file of files under their last names: zip OUT FILE….
func scriptZip(ts *testscript.TestScript, neg bool, args []string) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range args[1:] {
		data, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		w, err := z.Create(filepath.Base(name))
		ts.Check(err)
		_, err = w.Write(data)
		ts.Check(err)
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), buf.Bytes(), 0o666))
}

// scriptStatus runs a program that must end with that status: status 1 PROGRAM ARG….
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// scriptDamage copies a file with bytes overwritten: damage NEW OLD OFFSET COUNT.
func scriptDamage(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	off, err := strconv.Atoi(args[2])
	ts.Check(err)
	n, err := strconv.Atoi(args[3])
	ts.Check(err)
	for i := range n {
		data[off+i] ^= 0xa5
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

// scriptPipe runs cupatch on an input without end: pipe 2 cupatch ARG….
func scriptPipe(ts *testscript.TestScript, neg bool, args []string) {
	var out, talk bytes.Buffer
	if got := run(args[2:], endless{}, &out, &talk); strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s: %s", got, args[0], &talk)
	}
	// An echo makes it what the script's stderr looks at.
	ts.Check(os.WriteFile(ts.MkAbs("talk"), talk.Bytes(), 0o666))
	ts.Check(ts.Exec("sh", "-c", "cat talk >&2"))
}

// endless is input that goes on for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
