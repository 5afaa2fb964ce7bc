// Package repotest holds tests about the repository itself: which package may import which,
// and what may be checked in.
package repotest

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/cupatch/cupatch/"
)

// files returns the paths, relative to root and with slashes, of what is or would be
// checked in: what git lists, or, where there is no git, all files.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if list, err := cmd.Output(); err == nil {
		var out []string
		for _, path := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
			if _, err := os.Stat(filepath.Join(root, path)); err == nil { // not deleted meanwhile
				out = append(out, path)
			}
		}
		return out
	}
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// allowed maps the first folder of a package to the folders of this module and the other
// modules that it may import; the standard library is always allowed. Tests may import
// anything but a package above their own.
var allowed = map[string][]string{
	"isa":  {module + "isa", module + "internal/arch", "github.com/klauspost/compress/"},
	"elfx": {module + "elfx", module + "internal/arch", "github.com/klauspost/compress/", "github.com/pierrec/lz4/v4", "github.com/ianlancetaylor/demangle"},
	"patch": {module + "patch", module + "isa", module + "elfx",
		"github.com/pelletier/go-toml/v2", "github.com/expr-lang/expr"},
}

// rooms maps each folder below patch to those of its neighbors that it may import.
var rooms = map[string][]string{
	"internal/ascii":     nil,
	"internal/patchtest": {"code", "listing"},
	"nearest":            nil,
	"edit":               nil,
	"code":               {"internal/ascii"},
	"shape":              {"code", "edit"},
	"listing":            {"internal/ascii", "code", "edit"},
	"cfg":                {"code", "listing"},
	"stats":              {"code"},
	"check":              {"internal/ascii", "code", "edit", "listing"},
	"rule":               {"internal/ascii", "nearest", "code", "edit", "listing", "check"},
	"recipe":             {"internal/ascii", "code", "edit", "listing", "check", "rule"},
	"report":             {"code", "edit", "listing", "check", "rule"},
	"diff":               {"nearest", "code", "listing"},
	"gpu":                nil,
}

// above maps the first folder of a package to those that even its tests must not import.
var above = map[string][]string{
	"internal": {"isa", "elfx", "patch", "cmd"},
	"isa":      {"elfx", "patch", "cmd"},
	"elfx":     {"isa", "patch", "cmd"},
	"patch":    {"cmd"},
}

func TestImports(t *testing.T) {
	used := map[string]bool{} // folder and module
	for _, path := range files(t) {
		top, _, _ := strings.Cut(path, "/")
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		for _, name := range imports(t, path) {
			if why := forbidden(path, top, name); why != "" {
				t.Errorf("%s imports %s: %s", path, name, why)
			}
			if a := allowance(top, name); a != "" && !strings.HasSuffix(path, "_test.go") {
				used[top+" "+a] = true
			}
		}
	}
	for top, list := range allowed {
		for _, a := range list {
			if !strings.HasPrefix(a, module) && !used[top+" "+a] {
				t.Errorf("%s may import %s and does not: take it off the list", top, a)
			}
		}
	}
}

// forbidden says why the file path, in the folder top, may not import name, or "".
func forbidden(path, top, name string) string {
	if name == "C" {
		return "cgo is not used"
	}
	for _, a := range above[top] {
		if name == module+a || strings.HasPrefix(name, module+a+"/") {
			return fmt.Sprintf("%s lies above %s", a, top)
		}
	}
	if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "scripts/") {
		return ""
	}
	if strings.HasPrefix(name, module+"scripts/nv/oracletest") || strings.HasPrefix(name, module+"scripts/nv/corpustest") {
		return "it is for tests"
	}
	_, ok := allowed[top]
	first, _, _ := strings.Cut(name, "/")
	if !ok || !strings.Contains(first, ".") || allowance(top, name) != "" {
		return ""
	}
	return "not among what " + top + " may import"
}

// allowance returns what in allowed lets files in the folder top import name, or "".
func allowance(top, name string) string {
	for _, a := range allowed[top] {
		if name == strings.TrimSuffix(a, "/") || strings.HasPrefix(name, strings.TrimSuffix(a, "/")+"/") {
			return a
		}
	}
	return ""
}

// TestRooms sees that the packages below patch need only what rooms says, and none of them
// patch itself.
func TestRooms(t *testing.T) {
	for _, path := range files(t) {
		room, ok := strings.CutPrefix(filepath.ToSlash(filepath.Dir(path)), "patch/")
		if !ok || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		if strings.HasPrefix(room, "diff/") || strings.HasPrefix(room, "gpu/") {
			continue // helpers of their tests
		}
		may, ok := rooms[room]
		if !ok {
			t.Errorf("%s: the folder %s is not among the rooms", path, room)
			continue
		}
		for _, name := range imports(t, path) {
			if other, ok := strings.CutPrefix(name, module+"patch"); ok && !slices.Contains(may, strings.TrimPrefix(other, "/")) {
				t.Errorf("%s imports %s, which %s may not", path, name, room)
			}
		}
	}
}

// imports returns what a file imports.
func imports(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	return out
}

// Limits of what is checked in.
const (
	maxFile     = 1 << 20
	maxTestdata = 4 << 20
	maxLines    = 600
)

func TestSizes(t *testing.T) {
	var testdata int64
	for _, path := range files(t) {
		st, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > maxFile {
			t.Errorf("%s: %d bytes, more than %d", path, st.Size(), maxFile)
		}
		if strings.HasPrefix(path, "testdata/") {
			testdata += st.Size()
		}
	}
	if testdata > maxTestdata {
		t.Errorf("testdata: %d bytes, more than %d", testdata, maxTestdata)
	}
}

// TestText checks that no text file names a place on the machine where it was written, that
// no work is left marked as undone, and that Go files stay short.
func TestText(t *testing.T) {
	bad := []string{"/" + "root/", "/" + "home/", "/" + "work/", "TO" + "DO", "FIX" + "ME", "XX" + "X:"}
	for _, path := range files(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			if !strings.Contains(path, "testdata/") && !strings.Contains(path, "isa/tables/") {
				t.Errorf("%s: a binary file outside testdata", path)
			}
			continue
		}
		for _, b := range bad {
			if bytes.Contains(text, []byte(b)) {
				t.Errorf("%s: contains %q", path, b)
			}
		}
		if n := bytes.Count(text, []byte("\n")); strings.HasSuffix(path, ".go") && n > maxLines && !bytes.HasPrefix(text, []byte("// Code generated ")) {
			t.Errorf("%s: %d lines, more than %d", path, n, maxLines)
		}
	}
}
