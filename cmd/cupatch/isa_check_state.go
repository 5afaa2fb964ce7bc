package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/check"
)

// A checkState keeps the batches that isa check has compared, one JSON object a line, so
// that a run goes on where an earlier one stopped. The first line says what was compared.
type checkState struct {
	*os.File
	err error // of the first write that failed
}

// A checkHeader says what a state is of.
type checkHeader struct {
	Arch string `json:"arch"`
	Of   string `json:"of"` // a hash of the options, the table and the words
}

// fingerprint returns the header for this run, in which words are those of real code.
func (r *checkRun) fingerprint(words []isa.Word) checkHeader {
	h := fnv.New64a()
	fmt.Fprintln(h, r.opt.Seed, r.opt.Samples, r.opt.Words, r.opt.Examples)
	for _, v := range r.table.Variants() {
		fmt.Fprintln(h, isa.FormatVariant(v))
	}
	for _, ws := range [][]isa.Word{words, r.opt.Start} {
		fmt.Fprintln(h, len(ws))
		for _, w := range ws {
			fmt.Fprintln(h, w)
		}
	}
	return checkHeader{r.table.Arch().String(), fmt.Sprintf("%016x", h.Sum64())}
}

// openCheckState reads the state at path into opt, and has opt add to it.
func openCheckState(path string, header checkHeader, opt *check.Options) (*checkState, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	s := &checkState{File: f}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<28)
	if sc.Scan() {
		var old checkHeader
		if json.Unmarshal(sc.Bytes(), &old) != nil || old != header {
			f.Close()
			return nil, fmt.Errorf("%s is the state of another run: use the same options, table and files, or remove it", path)
		}
	} else {
		s.write(header)
	}
	for sc.Scan() {
		var b check.Batch
		if json.Unmarshal(sc.Bytes(), &b) == nil { // else an interruption cut it short
			opt.Before = append(opt.Before, b)
		}
	}
	opt.Done = func(b check.Batch) { s.write(b) }
	if err := sc.Err(); err != nil {
		f.Close()
		return nil, err
	}
	return s, s.err
}

// write adds v as a line.
func (s *checkState) write(v any) {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = s.Write(append(line, '\n'))
	}
	if s.err == nil {
		s.err = err
	}
}
