package learn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cupatch/cupatch/isa"
)

// recordedAnswers holds what nvdisasm 13.5 says of the words that learning the opcodes of
// recordedSeeds asks about, one a line: the word, and +TEXT where it is accepted, -CLASS
// TABLE VALUE where it is refused. It is compressed. With CUPATCH_RECORD=1 the tests that
// read it ask nvdisasm, and write it.
var recordedAnswers = filepath.Join("testdata", "answers.zst")

// recordedSeeds are words of a few opcodes of sm_90.
var recordedSeeds = []isa.Word{
	{Lo: 0x0000000502047221, Hi: 0x000fca0000000000}, // FADD R4, R2, R5
	{Lo: 0x0000000000007946, Hi: 0x000fe20003800000}, // YIELD
	{Lo: 0x0000000000003d5a, Hi: 0x000fc40008000000}, // NANOTRAP, which does not print
}

// recorded answers from a recording, or adds to one.
type recorded struct {
	answers map[isa.Word]Answer
	live    Asker // nil when answering
}

var errNotRecorded = errors.New("a word that was not recorded: run the test with CUPATCH_RECORD=1 and nvdisasm")

func (r *recorded) Ask(words []isa.Word) ([]Answer, error) {
	if r.live != nil {
		out, err := r.live.Ask(words)
		for i, a := range out {
			r.answers[words[i]] = a
		}
		return out, err
	}
	out := make([]Answer, len(words))
	for i, w := range words {
		a, ok := r.answers[w]
		if !ok {
			return nil, fmt.Errorf("%v: %w", w, errNotRecorded)
		}
		out[i] = a
	}
	return out, nil
}

// openRecorded returns a session with the recording.
func openRecorded(t *testing.T) *session {
	t.Helper()
	arch := isa.Arch{SM: 90}
	r := &recorded{answers: map[isa.Word]Answer{}}
	if os.Getenv("CUPATCH_RECORD") != "" {
		r.live = openOracle(t, "nvdisasm", arch)
		t.Cleanup(func() {
			if err := r.save(); err != nil {
				t.Error(err)
			}
		})
	} else if err := r.load(); err != nil {
		t.Fatal(err)
	}
	return &session{Arch: arch, asker: r}
}

func (r *recorded) save() error {
	var b bytes.Buffer
	words := make([]isa.Word, 0, len(r.answers))
	for w := range r.answers {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b isa.Word) int { return strings.Compare(a.String(), b.String()) })
	for _, w := range words {
		if a := r.answers[w]; a.OK {
			fmt.Fprintf(&b, "%v +%s\n", w, a.Text)
		} else {
			fmt.Fprintf(&b, "%v -%s %s %d\n", w, a.Class, a.Table, a.Value)
		}
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer enc.Close()
	return os.WriteFile(recordedAnswers, enc.EncodeAll(b.Bytes(), nil), 0o644)
}

func (r *recorded) load() error {
	data, err := os.ReadFile(recordedAnswers)
	if err != nil {
		return err
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		return err
	}
	defer dec.Close()
	text, err := dec.DecodeAll(data, nil)
	if err != nil {
		return err
	}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		w, said, err := isa.ParseWord(sc.Text())
		if err != nil {
			return err
		}
		said = strings.TrimPrefix(said, " ")
		a := Answer{}
		if accepted, ok := strings.CutPrefix(said, "+"); ok {
			a = Answer{OK: true, Text: accepted}
		} else if f := strings.Split(strings.TrimPrefix(said, "-"), " "); len(f) == 3 {
			a.Class, a.Table = f[0], f[1]
			fmt.Sscan(f[2], &a.Value)
		}
		r.answers[w] = a
	}
	return nil
}

// Three opcodes are learned from what nvdisasm says of words, and then print and encode what
// it prints.
func TestLearnRecorded(t *testing.T) {
	o := openRecorded(t)
	var done []string
	opt := Options{Arch: o.Arch, Seeds: recordedSeeds, Tests: 100, Done: func(r Result) { done = append(done, r.Class) }}
	out, err := newRun(opt, false).learn([]*session{o})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(done)
	if want := []string{"fadd__RRR_RR", "nanotrap__U", "yield_inst_"}; !slices.Equal(done, want) {
		t.Errorf("learned %q, want %q", done, want)
	}
	var vs []*isa.Variant
	for _, r := range out.Results {
		if r.Variant == nil || r.Misses != 0 {
			t.Fatal(r)
		}
		vs = append(vs, r.Variant)
	}
	table := isa.NewTable(o.Arch, vs)
	for text, w := range map[string]isa.Word{
		"FADD R4, R2, R5":                 recordedSeeds[0],
		"FADD.FTZ.RZ R4, -R2, |R5|.reuse": {Lo: 0x4000000502047221, Hi: 0x100fe2000001c100},
		"YIELD":                           recordedSeeds[1],
		".silent 0x0000000000003d5a, 0x000fc40008000000": recordedSeeds[2],
	} {
		if got := table.Text(table.Decode(w), 0); got != text {
			t.Errorf("%v prints %q, want %q", w, got, text)
		}
	}
}
