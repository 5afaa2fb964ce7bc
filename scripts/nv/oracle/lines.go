package oracle

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// A LineNote is what nvdisasm prints about the source in front of an instruction.
type LineNote struct {
	Section string // .text.NAME
	PC      uint64
	Lines   []string // `File "a.cu", line 3`, the inlined one first
}

// LineNotes returns the notes of `nvdisasm FLAG -c`: -g for the lines of the source, -gi for
// those with inlining, -gp for the lines of the PTX.
func LineNotes(tool, flag, cubin string) ([]LineNote, error) {
	path, err := Lookup(tool)
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd := exec.Command(path, flag, "-c", cubin)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s -c %s: %w: %s", tool, flag, cubin, err, strings.TrimSpace(stderr.String()))
	}
	return parseLineNotes(string(out)), nil
}

var (
	noteLine    = regexp.MustCompile(`^\s*//## (.*)$`)
	notedInst   = regexp.MustCompile(`^\s+/\*([0-9a-f]{4,})\*/\s`)
	textSection = regexp.MustCompile(`^\s*\.section\s+(\.text\.[^,]*),`)
)

func parseLineNotes(listing string) []LineNote {
	var out []LineNote
	var at LineNote
	for _, line := range strings.Split(listing, "\n") {
		if m := textSection.FindStringSubmatch(line); m != nil {
			at = LineNote{Section: m[1]}
		} else if m := noteLine.FindStringSubmatch(line); m != nil {
			at.Lines = append(at.Lines, m[1])
		} else if m := notedInst.FindStringSubmatch(line); m != nil && at.Lines != nil {
			at.PC, _ = strconv.ParseUint(m[1], 16, 64) // the pattern allows nothing else
			out = append(out, at)
			at.Lines = nil
		}
	}
	return out
}
