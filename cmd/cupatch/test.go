package main

import (
	"fmt"
)

const testUsage = `usage: cupatch test RECIPE…

Runs the [[test]] sections of recipes. Each has a listing, and the listing that the rules
must turn it into or the error that they must give. No cubin is needed.

  -v, --verbose    also name the tests that pass

exit status: 0 all pass; 1 a test fails; 2 a recipe cannot be read, or has no tests.

example:
  cupatch test examples/*.toml
`

func init() {
	register(&command{"test", "run the tests of recipes", testUsage, runTest})
}

func runTest(e *env, args []string) error {
	fs := e.flags()
	verbose := fs.BoolP("verbose", "v", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("test needs a RECIPE")
	}
	status, passed, failed := 0, 0, 0
	for _, name := range files {
		rc, err := loadRecipe(e, name)
		if err == nil && len(rc.Tests) == 0 {
			err = fmt.Errorf("%s: no [[test]]", name)
		}
		if err != nil {
			e.report(err)
			status = 2
			continue
		}
		for i := range rc.Tests {
			t := &rc.Tests[i]
			if err := rc.RunTest(t); err != nil {
				fmt.Fprintf(e.stdout, "FAIL %s: %s\n%v\n", name, t.Name, err)
				failed++
				continue
			}
			passed++
			if *verbose {
				fmt.Fprintf(e.stdout, "ok   %s: %s\n", name, t.Name)
			}
		}
	}
	e.notef("%s, %d fail", plural(passed, "test passes", "tests pass"), failed)
	if failed > 0 {
		status = worse(status, 1)
	}
	return silent(status)
}
