package main

import (
	"github.com/cupatch/cupatch/isa/schedule/assign"
	"github.com/cupatch/cupatch/patch"
)

const scheduleUsage = `usage: cupatch schedule -n | -o OUT | -i  [OPTIONS] FILE…

Makes the control codes of kernels anew from their instructions: stall counts,
scoreboards, waits and yields. Nothing else changes, and cupatch check finds nothing in
the result; if no safe control codes are found, that is an error, and nothing is written.
What is safe, and what ptxas would do, is learned from code of ptxas: docs/schedule.md.

      --profile NAME    ptxas (default): as ptxas would; tight: the shortest stalls seen
  -o, --output OUT      write the result to OUT, a folder for several files; - is
                        standard output
  -i, --in-place        replace FILE itself
      --backup SUFFIX   with -i, keep the old file as FILE+SUFFIX: --backup .orig
  -n, --dry-run         write nothing, show what would change
  -U, --context N       lines around each change in the diff (default 3)
  -a, --arch ARCH       only cubins for ARCH; repeatable
  -k, --kernel GLOB     only kernels of this mangled, C++ or bare name; repeatable
      --report FILE     write the edits as JSON, for apply, revert and verify; with -n too
      --keep-original   with --report FILE: keep the overwritten bytes in FILE.original,
                        so that revert restores the file byte for byte
      --no-grow         fail if the file would grow
      --max-entry N     refuse entries larger than N when decompressed

exit status: 0 done; 1 -a, -k and FILE#ENTRY select nothing; 2 trouble, or too little is
known of the architecture.

examples:
  cupatch schedule -n -q kernel.cubin
  cupatch schedule --profile tight -k gemm -o tight.cubin kernel.cubin
`

func init() {
	register(&command{"schedule", "make control codes anew from the instructions", scheduleUsage, runSchedule})
}

func runSchedule(e *env, args []string) error {
	r := &patchRun{env: e, allowNoMatch: true}
	fs := e.flags()
	r.narrowing.flags(fs)
	r.target.flags(fs)
	r.target.keepFlag(fs)
	fs.BoolVarP(&r.dryRun, "dry-run", "n", false, "")
	r.context.flag(fs)
	outFlag(fs, &r.report, "report", "")
	profile := fs.String("profile", "ptxas", "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	r.timing = &patch.Rescheduler{Kernel: r.kernelFilter()}
	switch {
	case len(files) == 0:
		return e.usagef("schedule needs a FILE")
	case *profile == "tight":
		r.timing.Profile = assign.Tight
	case *profile != "ptxas":
		return e.usagef("--profile is ptxas or tight, not %q", *profile)
	}
	if err := r.checkOutput(); err != nil {
		return err
	}
	return r.change(files)
}
