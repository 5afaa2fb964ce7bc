package main

import (
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	reporting "github.com/cupatch/cupatch/patch/report"
)

const verifyUsage = `usage: cupatch verify OLD NEW [--report REPORT]

Proves that NEW is OLD with exactly the edits of REPORT, or lists all other differences,
by entry, section and instruction. Without a report, NEW must equal OLD. Every byte of
both files is compared; where an entry was compressed again, what it holds is compared
instead. NEW must also have the hash that the report gives for its output.

      --report FILE    the intended edits
      --limit N        list at most N differences (default 100, 0: all)

exit status: 0 proved; 1 there are other differences, or an edit is missing; 2 trouble.

example:
  cupatch verify kernel.cubin tuned.cubin --report tune.json
`

func init() {
	register(&command{"verify", "prove that a file differs by its report alone", verifyUsage, runVerify})
}

func runVerify(e *env, args []string) error {
	fs := e.flags()
	report := fs.String("report", "", "")
	limit := fs.Int("limit", 100, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) != 2 {
		return e.usagef("verify needs two files")
	}
	old, _, err := e.openOne(files[0], nil)
	if err != nil {
		return err
	}
	defer old.Close()
	now, _, err := e.openOne(files[1], nil)
	if err != nil {
		return err
	}
	defer now.Close()
	var edits patch.Edits
	var output *reporting.Hash
	n := 0
	if *report != "" {
		if edits, output, n, err = e.reportedEdits(*report, old); err != nil {
			return planMismatch(err)
		}
	}
	diffs, err := patch.Differences(old, now, edits)
	if err != nil {
		return err
	}
	if output != nil {
		if got := reporting.HashOf(now.Data()); *got != *output {
			diffs = append(diffs, patch.Difference{Msg: fmt.Sprintf("%s says that the output has %d bytes with SHA-256 %s, not %d with %s",
				*report, output.Size, output.SHA256, got.Size, got.SHA256)})
		}
	}
	if len(diffs) == 0 {
		if n > 0 {
			e.notef("%s is %s with the %s of %s changed, and nothing else", now.Name, old.Name, plural(n, "word", "words"), *report)
		} else {
			e.notef("%s is %s", now.Name, old.Name)
		}
		return nil
	}
	for i, d := range diffs {
		if *limit > 0 && i == *limit {
			fmt.Fprintf(e.stdout, "… and %d more\n", len(diffs)-i)
			break
		}
		fmt.Fprintln(e.stdout, d)
	}
	return answerNo("%s that no edit explains", plural(len(diffs), "difference", "differences"))
}

// reportedEdits returns the edits of a report as they fit the old file, how many they are,
// and what the report says of the output.
func (e *env) reportedEdits(path string, old *elfx.File) (patch.Edits, *reporting.Hash, int, error) {
	file, err := e.openEdits(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer file.Close()
	rep, err := reporting.Read(file)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	rf, err := rep.ForFile(old.Name, reporting.HashOf(old.Data()), false)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	targets, terr := targetsOf(old, old.Entries())
	if len(targets) == 0 {
		return nil, nil, 0, terr
	}
	located, err := rf.Locate(targets, false, false)
	if err != nil {
		return nil, nil, 0, err
	}
	edits, n := editsByEntry(located)
	return edits, rf.Output, n, nil
}
