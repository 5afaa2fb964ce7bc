package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set at link time (-ldflags "-X main.version=…") or empty.
var version string

const helpUsage = `usage: cupatch help [COMMAND [SUBCOMMAND]]

Prints the help of COMMAND, or the list of commands. cupatch help isa show is the same as
cupatch isa show --help.
`

const versionUsage = `usage: cupatch version

Prints the version of cupatch, the Go version that built it, and the commit when it was
built from a checkout.
`

func init() {
	register(&command{"help", "help on a command", helpUsage, runHelp})
	register(&command{"version", "the version of this program", versionUsage, runVersion})
}

func runHelp(e *env, args []string) error {
	rest, err := e.parse(e.flags(), args)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		e.stdout.WriteString(overview())
		return nil
	}
	c := commands[rest[0]]
	if rest[0] == "isa" && len(rest) == 2 {
		if c = isaCommands[rest[1]]; c == nil {
			return e.usagef("no command isa %s; there are %s", rest[1], strings.Join(isaNames(), ", "))
		}
		rest = rest[:1]
	}
	if len(rest) > 1 {
		return e.usagef("help takes one command")
	}
	if c == nil {
		err := usagef("no command %q", rest[0])
		if near := nearest(rest[0], commandNames()); near != "" {
			err.hint = "did you mean " + near + "?"
		}
		return err
	}
	e.stdout.WriteString(c.usage)
	return nil
}

func runVersion(e *env, args []string) error {
	rest, err := e.parse(e.flags(), args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return e.usagef("version takes no arguments")
	}
	v, commit := versionInfo()
	fmt.Fprintf(e.stdout, "cupatch %s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if commit != "" {
		fmt.Fprintf(e.stdout, " commit %s", commit)
	}
	fmt.Fprintln(e.stdout)
	return nil
}

// versionInfo returns the program's version and the commit it was built from.
func versionInfo() (v, commit string) {
	v = version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		if v == "" {
			v = "(unknown)"
		}
		return v, ""
	}
	if v == "" {
		v = info.Main.Version
	}
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return v, commit
}
