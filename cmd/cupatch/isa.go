package main

import (
	"errors"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/spf13/pflag"
)

const isaUsage = `usage: cupatch isa ls | show | diff | decode | encode | check | learn [OPTIONS] …

The instruction tables: what the 128 bits of an instruction mean on each
architecture.

  isa ls [--arch A]                  architectures, or the instructions of one
  isa show MNEMONIC --arch A         bits, fields and modifier groups
  isa diff A B                       what differs between two architectures
  isa decode --arch A [LO HI [PC]]   words to text
  isa encode --arch A [TEXT]         text to words
  isa check --arch A FILE…           compare with nvdisasm
  isa learn --arch A -o FILE         learn a table from nvdisasm

cupatch isa COMMAND --help describes each. If the environment variable CUPATCH_TABLES
names a folder, its tables (sm_90.txt, …) replace those of the program.

examples:
  cupatch isa show LDG --arch sm_90
  cupatch isa decode --arch sm_90 0x0000000402047981 0x001ea8000c1e1900
  cupatch isa encode --arch sm_90 '[B------:R-:W2:-:S04] LDG.E R4, desc[UR4][R2.64]'
`

func init() {
	register(&command{"isa", "the instruction tables: show, decode, encode, check", isaUsage, runIsa})
}

// isaCommands holds the subcommands of isa by name; each one's file adds its own.
var isaCommands = map[string]*command{}

func registerIsa(c *command) { isaCommands[c.name] = c }

func runIsa(e *env, args []string) error {
	if len(args) == 0 {
		return e.usagef("what to do? one of %s", strings.Join(isaNames(), ", "))
	}
	c := isaCommands[args[0]]
	if c == nil {
		if args[0] == "-h" || args[0] == "--help" {
			return pflag.ErrHelp
		}
		return e.usagef("no command isa %s; there are %s", args[0], strings.Join(isaNames(), ", "))
	}
	err := c.run(e, args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		e.stdout.WriteString(c.usage)
		return nil
	}
	return err
}

func isaNames() []string {
	var names []string
	for n := range isaCommands {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// archFlag adds --arch to fs.
func archFlag(fs *pflag.FlagSet) *string { return fs.StringP("arch", "a", "", "") }

// table returns the table for what --arch says.
func (e *env) table(arch string) (*isa.Table, error) {
	if arch == "" {
		return nil, e.usagef("which architecture? say --arch sm_90")
	}
	return e.tableOf(arch)
}

// tableOf returns the table for an architecture as people spell it.
func (e *env) tableOf(arch string) (*isa.Table, error) {
	a, err := isa.ParseArch(arch)
	if err != nil {
		return nil, e.usageError(err)
	}
	t, err := code.TableFor(a)
	if code.Unsupported(err) {
		return nil, e.usageError(err)
	}
	return t, err
}
