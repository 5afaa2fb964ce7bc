package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
)

const extractUsage = `usage: cupatch extract [OPTIONS] FILE…
       cupatch extract --rebuild OUT.fatbin [OPTIONS] FILE…

Writes each cubin and PTX of FILE to a file of its own. FILE is anything that ls reads;
FILE#12, FILE#3-9, FILE#sm_90 and FILE#ptx select entries.

  -o, --output DIR     folder for the files, created if needed (default: this one);
                       - writes the single selected entry to standard output
      --list           print the names and write nothing
  -a, --arch ARCH      only entries for ARCH (sm_90a, 90a, …); repeatable
  -k, --kernel GLOB    only cubins with a kernel of this mangled, C++ or bare name
      --kind LIST      elf, ptx, lto-ir, unknown, … (default elf,ptx, and with
                       FILE#ENTRY all but concat)
      --force          overwrite existing files
      --rebuild OUT    write one .fatbin with the chosen entries of one FILE and no
                       others, all kinds unless --kind is given
      --max-entry SIZE refuse entries larger than SIZE when decompressed (default 4G)

Names are FILE.NUMBER.ARCH.cubin or .ptx, with only letters, digits and . _ - in them;
NUMBER is the one that ls shows. An entry that cannot be read is reported, and the others
are written.

exit status: 0 done; 1 no entry is selected; 2 trouble, even with only one of the entries.

examples:
  cupatch extract -o cubins libfoo.so
  cupatch extract -k '*gemm*' -a sm_90a -o - libfoo.so > gemm.cubin
  cupatch extract --rebuild small.fatbin -a sm_90 libfoo.so
`

func init() {
	register(&command{"extract", "write cubins and PTX to files", extractUsage, runExtract})
}

// An extraction is one run of extract.
type extraction struct {
	*env
	narrowing
	dir      string
	list     bool
	force    bool
	kinds    []string
	rebuild  string
	chosen   bool              // --kind was given
	inputs   map[string]string // no output may take their place, even with --force
	names    map[string]bool
	status   int
	written  int
	bytes    int64
	thin     *os.File // what --rebuild has so far
	thinFrom string   // the file that it is from
}

func runExtract(e *env, args []string) error {
	x := &extraction{env: e, names: make(map[string]bool), inputs: map[string]string{}}
	fs := e.flags()
	x.narrowing.flags(fs)
	x.dir = "."
	outFlag(fs, &x.dir, "output", "o")
	fs.BoolVar(&x.list, "list", false, "")
	fs.BoolVar(&x.force, "force", false, "")
	fs.StringSliceVar(&x.kinds, "kind", []string{"elf", "ptx"}, "")
	fs.StringVar(&x.rebuild, "rebuild", "", "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("extract needs a FILE")
	}
	if x.chosen = fs.Changed("kind"); x.chosen {
		x.miss.extra = "--kind " + strings.Join(x.kinds, ",")
	}
	for _, k := range x.kinds {
		if !knownKind(k) {
			return e.usagef("--kind %s: want elf, ptx, lto-ir, concat, old-cubin or unknown", k)
		}
	}
	if x.rebuild != "" && (x.list || fs.Changed("output")) {
		return e.usagef("--rebuild goes with neither --list nor -o")
	}
	if err := e.notEmpty("output", "rebuild"); err != nil {
		return err
	}
	if name := filepath.Base(x.rebuild); hostName().MatchString(name) {
		return e.usagef("--rebuild writes a fatbin, %s is the name of another kind of file", name)
	}
	opt, err := x.options()
	if err != nil {
		return err
	}
	for _, arg := range files {
		path, _ := elfx.CutSelector(arg)
		x.inputs[realName(path, true)] = path
	}
	defer x.close()
	status, err := e.eachFile(files, opt, x.file)
	if err != nil {
		return err
	}
	return x.end(worse(status, x.status))
}

// hostName fits the names of files that hold fatbins and are none.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\.(so(\.[0-9.]+)?|o|a|obj|lib|dll|exe|whl|zip|cubin|ptx)$`)
})

// knownKind reports whether entries can have a kind of that name.
func knownKind(name string) bool {
	for k := elfx.KindUnknown; k <= elfx.KindConcat; k++ {
		if k.String() == name {
			return true
		}
	}
	return false
}

// file extracts from one file.
func (x *extraction) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	x.inputs[realName(f.Name, true)] = f.Name
	if err := f.Damage(); err != nil {
		x.fail(err)
	}
	var want []*elfx.Entry
	for _, e := range f.Entries() {
		if (selected == nil || selected[e]) && x.archWanted(e) && x.kindWanted(e, selected != nil) && x.hasKernel(e) {
			want = append(want, e)
		}
	}
	if len(want) == 0 {
		x.missed(f, selected)
	}
	switch {
	case x.rebuild != "":
		return x.addThin(want)
	case x.dir == "-" && !x.list:
		return x.toStdout(want)
	}
	jobs := make([]extractJob, len(want))
	for i, e := range want {
		jobs[i] = extractJob{entry: e, name: x.fileName(f, e)}
	}
	if x.list {
		for _, j := range jobs {
			fmt.Fprintln(x.stdout, j.name)
		}
		x.written += len(jobs)
		return nil
	}
	return x.writeAll(jobs)
}

// close removes what is temporary.
func (x *extraction) close() {
	if x.thin != nil {
		x.thin.Close()
		os.Remove(x.thin.Name())
	}
}

// fail reports an error that does not end the run.
func (x *extraction) fail(err error) {
	x.report(err)
	x.status = worse(x.status, 2)
}

// kindWanted applies --kind, without which an entry that is named is wanted whatever its
// kind. A concatenation is extracted by its parts.
func (x *extraction) kindWanted(e *elfx.Entry, named bool) bool {
	if named && !x.chosen && x.rebuild == "" {
		return e.Kind != elfx.KindConcat
	}
	if x.rebuild != "" && !x.chosen {
		return e.Parent == nil || len(x.arches) > 0
	}
	for _, k := range x.kinds {
		if k == e.Kind.String() {
			return true
		}
	}
	return false
}

// hasKernel applies -k.
func (x *extraction) hasKernel(e *elfx.Entry) bool {
	if len(x.kernels) == 0 {
		return true
	}
	if e.Kind != elfx.KindELF {
		return false
	}
	c, err := e.Cubin()
	if err != nil {
		x.fail(err)
		return false
	}
	kernels := c.Kernels()
	for i := range kernels {
		if x.kernelWanted(&kernels[i]) {
			return true
		}
	}
	return false
}

// extension returns the usual ending of a file with that kind of content.
func extension(k elfx.Kind) string {
	switch k {
	case elfx.KindELF, elfx.KindOldCubin:
		return "cubin"
	case elfx.KindPTX:
		return "ptx"
	case elfx.KindLTOIR:
		return "ltoir"
	}
	return "bin"
}

// fileName returns a name for the entry that no other has had and that stays in the
// output folder whatever the names in the input are.
func (x *extraction) fileName(f *elfx.File, e *elfx.Entry) string {
	base := safeName(filepath.Base(strings.ReplaceAll(f.Name, elfx.MemberSeparator, "/")))
	arch := e.Target()
	if arch == "" {
		arch = "any"
	}
	name := fmt.Sprintf("%s.%d.%s.%s", base, e.Number, arch, extension(e.Kind))
	for n := 2; x.names[name]; n++ {
		name = fmt.Sprintf("%s-%d.%d.%s.%s", base, n, e.Number, arch, extension(e.Kind))
	}
	x.names[name] = true
	return name
}

// safeName keeps letters, digits and . _ - of a name, at most 100 of them.
func safeName(s string) string {
	var b strings.Builder
	for _, r := range s {
		ok := r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._-", r))
		if !ok {
			r = '_'
		}
		if b.Len() < 100 {
			b.WriteRune(r)
		}
	}
	s = strings.TrimLeft(b.String(), ".-")
	if s == "" {
		return "stdin"
	}
	return s
}

func (x *extraction) toStdout(want []*elfx.Entry) error {
	if len(want) == 0 {
		return nil
	}
	if len(want)+x.written != 1 {
		err := usagef("-o - needs exactly one entry, there are %d", len(want)+x.written)
		err.hint = "cupatch ls shows the numbers: FILE#12"
		return err
	}
	data, err := entryData(want[0], nil)
	if err != nil {
		return err
	}
	x.written++
	_, err = x.stdout.Write(data)
	return err
}

// entryData returns what is written for an entry: PTX without the zeros after it.
// buf is memory that may be used.
func entryData(e *elfx.Entry, buf []byte) ([]byte, error) {
	data, err := e.DataIn(buf)
	if err == nil && e.Kind == elfx.KindPTX {
		for len(data) > 0 && data[len(data)-1] == 0 {
			data = data[:len(data)-1]
		}
	}
	return data, err
}

// addThin appends the chosen entries to the fatbin of --rebuild. It grows in a temporary
// file, since each input is closed before the next.
func (x *extraction) addThin(want []*elfx.Entry) error {
	if len(want) == 0 {
		return nil
	}
	containers := map[*elfx.Container]bool{}
	for _, e := range want {
		containers[e.Container] = true
	}
	if file := want[0].File.Name; x.thin != nil {
		x := usagef("%s and %s have chosen entries, --rebuild writes the fatbins of one file", x.thinFrom, file)
		x.hint = "cupatch fatbin makes one fatbin of several cubins"
		return x
	} else if x.thinFrom = file; len(containers) > 1 {
		x.warnf("%s has %d fatbins, one for each that the entries come from; what is given the file loads the first", x.rebuild, len(containers))
	}
	out, err := elfx.BuildFatbin(want)
	if err != nil {
		return err
	}
	if x.thin == nil {
		if x.thin, err = os.CreateTemp("", "cupatch-"); err != nil {
			return err
		}
	}
	x.written += len(want)
	n, err := out.WriteTo(x.thin)
	x.bytes += n
	return err
}

// end says what was done.
func (x *extraction) end(status int) error {
	if x.written == 0 {
		if status == 0 {
			return x.nothing("entry")
		}
		return silent(status)
	}
	if x.rebuild != "" {
		if err := x.writeRebuilt(); err != nil {
			return err
		}
		x.notef("wrote %s to %s, %d bytes", plural(x.written, "entry", "entries"), x.rebuild, x.bytes)
	} else if !x.list && x.dir != "-" {
		x.notef("wrote %s to %s, %d bytes", plural(x.written, "file", "files"), x.dir, x.bytes)
	}
	return silent(status)
}

// writeRebuilt writes the fatbin of --rebuild.
func (x *extraction) writeRebuilt() error {
	write := func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(x.thin, 0, x.bytes))
		return err
	}
	if x.rebuild == "-" {
		return write(x.stdout)
	}
	err := x.create(x.rebuild, write)
	if errors.Is(err, fs.ErrExist) {
		return existsError([]string{x.rebuild})
	}
	return err
}

// create writes a new file, which has its name when it is complete. What exists is not
// touched without --force.
func (x *extraction) create(path string, write func(io.Writer) error) error {
	if x.force {
		if in := x.inputs[realName(path, false)]; in != "" {
			return usagef("%s would overwrite the input %s", path, in)
		}
	}
	return patch.WriteFile(path, patch.WriteOption{New: !x.force}, write)
}
