package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

const lsUsage = `usage: cupatch ls [OPTIONS] FILE…

Lists the GPU code in FILE: sections, fatbins, entries, kernels. FILE is a cubin, a
fatbin, a host program, library or object (ELF or PE), an archive, a wheel or other
zip file, a directory of these, or - for standard input. FILE#12, FILE#3-9,
FILE#sm_90 and FILE#ptx name single entries; ARCHIVE.zip!MEMBER one member.

  -s, --short          entries only, no kernels
  -a, --arch ARCH      only entries for ARCH (sm_90a, 90a, …); repeatable
  -k, --kernel GLOB    only kernels whose mangled, C++ or bare name (gemm) fits GLOB,
                       and the entries that have one; repeatable
      --for ARCH       show what a driver loads on a device: a cubin, PTX that it
                       compiles, or nothing
      --mangled        print mangled kernel names
      --json           print JSON: {"files": […], "totals": {…}}
      --max-entry SIZE refuse entries larger than SIZE when decompressed (default 4G),
                       and more than SIZE from a pipe (default 1G)

Every byte of a fatbin section is accounted for. An entry that cannot be read is
listed with its error and the others follow.

exit status: 0 done; 1 if -a, -k and FILE#ENTRY select nothing; 2 trouble, even with only
one of the entries.

examples:
  cupatch ls libfoo.so
  cupatch ls -s torch-2.9.0-cp312-cp312-linux_x86_64.whl
  cupatch ls --for sm_89 libfoo.so
  cupatch ls -k '*gemm*' -a sm_90a libfoo.so --json
`

func init() {
	register(&command{"ls", "list containers, entries and kernels", lsUsage, runLs})
}

// An lsRun is one run of ls: its options and what it has counted.
type lsRun struct {
	*env
	narrowing
	short, json, mangled bool
	device               int // for --for; 0 without
	totals               lsTotals
	contents             contentHash
	seen                 map[contentSum]string    // content → the first entry that has it
	read                 map[*elfx.Entry]*lsCubin // of the file at hand
	only                 string                   // name of the file, if there is only one argument
	current              string                   // name of the file at hand
	first                error                    // the first of totals.Errors
	status               int
	files                int
}

// lsTotals are the sums over all files.
type lsTotals struct {
	Files      int            `json:"files"`
	Containers int            `json:"containers"`
	Entries    int            `json:"entries"`
	Kinds      map[string]int `json:"kinds"`
	Kernels    int            `json:"kernels"`
	Functions  int            `json:"functions"`
	Duplicates int            `json:"duplicates"`
	Errors     int            `json:"errors"`
	Stored     int64          `json:"stored_bytes"`
	Size       int64          `json:"bytes"`
}

func runLs(e *env, args []string) error {
	r := &lsRun{env: e, contents: newContentHash(), seen: make(map[contentSum]string)}
	r.totals.Kinds = make(map[string]int)
	fs := e.flags()
	r.narrowing.flags(fs)
	var device string
	fs.BoolVarP(&r.short, "short", "s", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.mangled, "mangled", false, "")
	fs.StringVar(&device, "for", "", "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("ls needs a FILE")
	}
	if device != "" {
		if r.device, _, _, err = elfx.ParseArch(device); err != nil {
			return usagef("--for: %v", err)
		}
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	if len(files) == 1 {
		r.only, _ = elfx.CutSelector(files[0])
	}
	r.begin()
	status, err := e.eachFile(files, opt, r.file)
	if err != nil {
		return err
	}
	r.end()
	if r.totals.Errors > 0 {
		r.report(fmt.Errorf("%s in the listing, the first: %w", plural(r.totals.Errors, "error", "errors"), r.first))
	}
	if r.totals.Entries == 0 && status == 0 && r.status == 0 && (len(r.arches) > 0 || len(r.kernels) > 0) {
		return r.nothing("entry")
	}
	return silent(worse(status, r.status))
}

// file lists one file.
func (r *lsRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	r.current = f.Name
	r.read = r.readCubins(f, selected)
	file := r.describeFile(f, selected)
	if r.filtered(selected) && len(file.Members) == 0 && len(file.Sections) == 0 {
		r.missed(f, selected)
		return nil
	}
	r.totals.Files++
	if r.json {
		return r.writeJSON(file)
	}
	r.writeFile(file, 0)
	return nil
}

// filtered reports whether the user asked for less than everything.
func (r *lsRun) filtered(selected map[*elfx.Entry]bool) bool {
	return selected != nil || len(r.arches) > 0 || len(r.kernels) > 0
}

// begin writes what comes before the first file.
func (r *lsRun) begin() {
	if r.json {
		fmt.Fprint(r.stdout, "{\"files\": [")
	}
}

// problem counts an error and returns its text for the listing. Kinds of entry that
// this program knows but does not decode are no error.
func (r *lsRun) problem(err error) string {
	if err == nil {
		return ""
	}
	if !errors.Is(err, elfx.ErrUnsupported) {
		if r.totals.Errors++; r.first == nil {
			if r.first = err; !strings.HasPrefix(err.Error(), r.current) {
				r.first = fmt.Errorf("%s: %w", r.current, err)
			}
		}
		r.status = worse(r.status, 2)
	}
	return err.Error()
}
