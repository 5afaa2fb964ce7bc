package main

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// usageOption is a line of a help text that describes an option: the short name, if it
// has one, and the long name, if it has one.
var usageOption = regexp.MustCompile(`(?m)^ +(?:-(\w))?(?:, )?(?:--([a-z][a-z-]*))?\b`)

// flagsOf returns the flags of a command, which it defines before it looks at --help.
func flagsOf(t *testing.T, c *command) *pflag.FlagSet {
	t.Helper()
	e := &env{stdin: &bytes.Buffer{}, stdout: bufio.NewWriter(io.Discard), stderr: io.Discard, jobs: 1, cmd: c, args: []string{"--help"}}
	if err := c.run(e, e.args); err != pflag.ErrHelp {
		t.Fatalf("%s --help: %v", c.name, err)
	}
	return e.flagSet
}

// TestUsageNamesFlags ties the help texts, written by hand, to the flags: each flag is
// described by the help of its command, and each described one exists.
func TestUsageNamesFlags(t *testing.T) {
	common := []string{"quiet", "jobs", "color"}
	all := map[string]*command{}
	for name, c := range commands {
		if name != "isa" { // its help is an overview of its subcommands
			all[name] = c
		}
	}
	for name, c := range isaCommands {
		all["isa "+name] = c
	}
	for name, c := range all {
		fs := flagsOf(t, c)
		fs.VisitAll(func(f *pflag.Flag) {
			if slices.Contains(common, f.Name) {
				if !strings.Contains(overviewTail, "--"+f.Name) {
					t.Errorf("help: --%s is not described", f.Name)
				}
				return
			}
			if !regexp.MustCompile(`--` + f.Name + `\b(?:[^-]|$)`).MatchString(c.usage) {
				t.Errorf("%s: --%s is not described", name, f.Name)
			}
			if f.Shorthand != "" && !regexp.MustCompile(`[ \[]-`+f.Shorthand+`\b`).MatchString(c.usage) {
				t.Errorf("%s: -%s is not described", name, f.Shorthand)
			}
		})
		for _, m := range usageOption.FindAllStringSubmatch(c.usage, -1) {
			if m[2] != "" && fs.Lookup(m[2]) == nil {
				t.Errorf("%s: --%s is described and does not exist", name, m[2])
			}
			if m[1] != "" && fs.ShorthandLookup(m[1]) == nil {
				t.Errorf("%s: -%s is described and does not exist", name, m[1])
			}
		}
	}
}
