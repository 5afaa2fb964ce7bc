package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/spf13/pflag"
)

// TestDocCommands runs every command that the README, docs, examples and the help texts show, as
// it is shown, in a folder with the files that it names. A command that needs nvdisasm or
// a GPU, or leaves something open (…), has only its flags read.
func TestDocCommands(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := docFiles(t)
	commands := docCommands(t)
	if len(commands) < 80 {
		t.Fatalf("%d commands found", len(commands))
	}
	for _, c := range commands {
		t.Run(c.where, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"testdata", "examples", "isa"} {
				if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			for name, data := range files {
				folder, _, _ := strings.Cut(name, "/")
				written := regexp.MustCompile(`(-o|-[a-z]* --report|>) ` + regexp.QuoteMeta(name) + `\b`)
				if !strings.Contains(c.text, folder) ||
					name != "k.sass" && written.MatchString(c.text) && !strings.HasPrefix(c.text, "cupatch verify") {
					continue
				}
				for part, others := range special {
					if other, ok := others[name]; ok && strings.Contains(c.text, part) {
						data = files[other]
					}
				}
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			c.run(t)
		})
	}
}

// special says which files have other contents for some commands.
var special = map[string]map[string]string{
	"revert -i r.json": {"r.json": "report of libfoo.so", "libfoo.so": "patched libfoo.so"},
	"LDG.E.CONSTANT":   {"kernel.cubin": "loads of sm_90"},
	"#sm_90a":          {"tuned.cubin": "loads of sm_90a"},
}

// A docCommand is a line of documentation: commands, joined by pipes and semicolons.
type docCommand struct{ where, text string }

var (
	docLine     = regexp.MustCompile(`^(?:  +|# +|\$ )*((?:[a-z]+ [a-z.]+; )*(?:go run \./cmd/)?cupatch(?: -|  ?[a-z]+ ).*)`)
	docBlank    = regexp.MustCompile(`\s+`)
	docOutside  = regexp.MustCompile(`^(isa (learn|check)|run|sweep .*--run)\b`) // what needs a tool or a GPU
	docSynopsis = regexp.MustCompile(`\[OPTIONS\]|-o OUT\b`)
)

// docCommands finds the lines of the documentation that are commands. One that ends with
// a backslash goes on with the next line.
func docCommands(t *testing.T) []docCommand {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "examples/*.md", "examples/*.toml"} {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(path)] = string(data)
		}
	}
	for name, c := range commands {
		texts["help "+name] = c.usage
	}
	for name, c := range isaCommands {
		texts["help isa "+name] = c.usage
	}
	var out []docCommand
	for name, text := range texts {
		text = strings.ReplaceAll(text, "\\\n", " ")
		for i, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "#") {
				continue // prose, usage
			}
			m := docLine.FindStringSubmatch(line)
			if m == nil || docSynopsis.MatchString(m[1]) {
				continue
			}
			out = append(out, docCommand{fmt.Sprintf("%s:%d", name, i+1), docBlank.ReplaceAllString(strings.TrimSpace(m[1]), " ")})
		}
	}
	slices.SortFunc(out, func(a, b docCommand) int { return strings.Compare(a.where, b.where) })
	return out
}

// run runs the command, each part with the output of the one before as its input.
func (c docCommand) run(t *testing.T) {
	var stdin, stdout []byte
	for _, words := range splitCommands(c.text) {
		if words[0] == "go" { // go run ./cmd/cupatch
			words = words[2:]
		}
		if !strings.HasSuffix(words[0], "cupatch") {
			continue // dot, jq, vi
		}
		words = words[1:]
		var target string
		for i := 0; i+1 < len(words); i++ {
			if words[i] == "<" || words[i] == ">" {
				if words[i] == ">" {
					target = words[i+1]
				} else if data, err := os.ReadFile(words[i+1]); err != nil {
					t.Fatal(err)
				} else {
					stdin = data
				}
				words = slices.Delete(words, i, i+2)
				i--
			}
		}
		if line := strings.Join(words, " "); docOutside.MatchString(line) || strings.Contains(line, "…") {
			readFlags(t, words)
			continue
		}
		var stderr string
		var status int
		var text string
		text, stderr, status = cupatch(t, stdin, words...)
		differ := slices.Contains([]string{"diff", "check"}, words[0]) || words[0] == "isa" && words[1] == "diff"
		if status > 1 || status == 1 && !differ {
			t.Errorf("cupatch %s: status %d\n%s", strings.Join(words, " "), status, stderr)
		}
		stdout = []byte(text)
		if target != "" && target != "k.sass" { // which is there, edited
			if err := os.WriteFile(target, stdout, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		stdin = stdout
	}
}

// readFlags checks that a command has the flags that are given to it.
func readFlags(t *testing.T, words []string) {
	t.Helper()
	c := commands[words[0]]
	if words[0] == "isa" {
		c, words = isaCommands[words[1]], words[1:]
	}
	if c == nil {
		t.Fatalf("no command %s", words[0])
	}
	fs := flagsOf(t, c)
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.AddFlagSet(fs)
	if err := all.Parse(words[1:]); err != nil {
		t.Error(err)
	}
}

// splitCommands splits a line of a shell into commands and their words, of which those in
// single quotes hold blanks. A word that starts with # ends it.
func splitCommands(s string) (out [][]string) {
	var words []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeft(s, " ") {
		word := ""
		switch s[0] {
		case '#':
			s = ""
			continue
		case '|', ';':
			out, words, s = append(out, words), nil, s[1:]
			continue
		}
		for s != "" && s[0] != ' ' && s[0] != ';' {
			if s[0] != '\'' {
				word, s = word+s[:1], s[1:]
				continue
			}
			text, rest, _ := strings.Cut(s[1:], "'")
			word, s = word+text, rest
		}
		if paths, err := filepath.Glob(word); strings.Contains(word, "/") && err == nil && len(paths) > 0 {
			words = append(words, paths...)
		} else {
			words = append(words, word)
		}
	}
	return append(out, words)
}

// docFiles returns the contents of the files that the documentation names.
func docFiles(t *testing.T) map[string][]byte {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	gemm := func(arch string) []byte { // the kernel has the name that the documentation gives it
		return bytes.ReplaceAll(read("testdata/cubin/new/"+arch+"/gemm.cubin"), []byte("sgemm\x00"), []byte("gemm\x00\x00"))
	}
	k90 := gemm("sm_90")
	files := map[string][]byte{
		"saxpy.cubin": read("testdata/cubin/new/sm_90/proof.cubin"), "pair.fatbin": read("testdata/fatbin/pair_lz4.fatbin"),
		"k.ptx": read("testdata/ptx/gemm.ptx"), "k80.cubin": gemm("sm_80"), "k100.cubin": gemm("sm_100"), "k90.cubin": k90,
		"loads of sm_90":  read("testdata/cubin/new/sm_90/loads.cubin"),
		"loads of sm_86":  read("testdata/cubin/new/sm_86/loads.cubin"),
		"loads of sm_90a": bytes.ReplaceAll(read("testdata/cubin/new/sm_90a/loads.cubin"), []byte("ld_b128"), []byte("my_gemm")),
		"cubins/a.cubin":  k90, "cubins/b.cubin": k90,
		"words":     []byte("0x0000000402047981 0x001ea8000c1e1900\n"),
		"tune.toml": []byte("[param.prefetch]\nvalues = [\"-\", \"LTC256B\"]\n[[rule]]\nname = \"prefetch\"\nmatch = \"LDG.E\"\nset = \"prefetch=${prefetch}\"\narch = [\"sm_90\"]\n"),
	}
	for _, name := range []string{"kernel", "k", "gemm", "old", "a"} {
		files[name+".cubin"] = k90
	}
	addContainers(t, files, t.TempDir())
	return files
}

// addContainers adds to files a library with entries of many architectures, #12 of sm_90,
// what patches make of it and of kernel.cubin, and their reports.
func addContainers(t *testing.T, files map[string][]byte, dir string) {
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) string {
		if err := os.WriteFile(path(name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	must := func(args ...string) {
		t.Helper()
		if _, stderr, status := cupatch(t, nil, args...); status != 0 {
			t.Fatalf("%q: %s", args, stderr)
		}
	}
	old := write("kernel.cubin", files["kernel.cubin"])
	must("patch", "-q", "-e", "LDG => .EF", "-o", path("tuned.cubin"), "--report", path("tune.json"), old)
	k80 := write("k80.cubin", files["k80.cubin"])
	entries := []string{
		"fatbin", "-o", path("libfoo.so"), write("k.ptx", files["k.ptx"]), "sm_100f=" + write("k100.cubin", files["k100.cubin"]),
		write("k90a.cubin", files["loads of sm_90a"]), write("k86.cubin", files["loads of sm_86"]),
	}
	for len(entries) < 3+11 {
		entries = append(entries, k80)
	}
	must(append(entries, old)...) // as #12
	must("patch", "-q", "-e", "LDG.E => .EF", "-a", "sm_90", "-o", path("tuned.so"), "--report", path("r.json"), path("libfoo.so"))
	get := func(name string) []byte {
		data, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, name := range []string{"libfoo.so", "lib.so", "old.so", "libfoo.a", "libfoo.fatbin", "old.fatbin", "a.fatbin", "b.fatbin",
		"torch-2.9.0-cp312-cp312-linux_x86_64.whl", "old/libfoo.so"} {
		files[name] = get("libfoo.so")
	}
	for _, name := range []string{"new.so", "libfoo-tuned.so", "new/libfoo.so", "patched libfoo.so"} {
		files[name] = get("tuned.so")
	}
	for _, name := range []string{"new.cubin", "tuned.cubin", "fast.cubin"} {
		files[name] = get("tuned.cubin")
	}
	files["r.json"], files["tune.json"], files["report of libfoo.so"] = get("tune.json"), get("tune.json"), get("r.json")
	listing, _, _ := cupatch(t, nil, "dis", old)
	files["k.sass"] = []byte(strings.Replace(listing, "LDG.E ", "LDG.E.EF ", 1))
	c, err := elfx.ParseCubin(files["kernel.cubin"])
	if err != nil {
		t.Fatal(err)
	}
	files["code.bin"] = c.Kernels()[0].Data()
}
