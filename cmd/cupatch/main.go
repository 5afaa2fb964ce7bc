// Command cupatch reads, tunes and compares NVIDIA GPU machine code (SASS) after
// compilation: in a bare cubin, a fatbin, or the fatbins of a host object, library
// or program. It needs no GPU, no driver and no CUDA toolkit.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sort"
	"strings"
	"syscall"

	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/spf13/pflag"
)

func main() {
	paceGarbage()
	// A program that is stopped leaves no half-written file behind. A command that writes
	// files goes on when nobody reads what it says any more.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if len(os.Args) > 1 && slices.Contains(writing, os.Args[1]) {
		signal.Ignore(syscall.SIGPIPE)
	}
	go func() {
		<-stop
		patch.RemoveUnfinished()
		os.Exit(2)
	}()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// writing are the commands that write files.
var writing = []string{"apply", "extract", "patch", "replace", "revert", "sweep"}

// A command is one subcommand of cupatch.
type command struct {
	name  string
	short string // one line for the overview
	usage string // hand-written help: forms, options, defaults, examples
	run   func(e *env, args []string) error
}

// commands holds every subcommand by name. Each command's file adds its own.
var commands = map[string]*command{}

// register adds a subcommand; a name used twice is a mistake in the program.
func register(c *command) {
	if commands[c.name] != nil {
		panic("command registered twice: " + c.name)
	}
	commands[c.name] = c
}

// An env is what a command has to do with the world.
type env struct {
	stdin  io.Reader
	stdout *bufio.Writer // the answer
	stderr io.Writer     // the talk
	cmd    *command
	args   []string // of the command

	flagSet *pflag.FlagSet // of the command
	// The options that every command takes.
	quiet     bool
	jobs      int
	colorMode string
	isTTY     bool // standard output is a terminal
}

// run executes the command line args and returns the exit status: 0 done, 1 the
// answer is no, 2 trouble.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{stdin: stdin, stdout: bufio.NewWriterSize(stdout, 1<<16), stderr: stderr, isTTY: isTerminal(stdout)}
	var err error
	fault := catchFault(func() { err = e.dispatch(args) })
	err = cmp.Or(fault, err)
	if ferr := e.stdout.Flush(); ferr != nil && statusOf(err) < 2 && !errors.Is(ferr, syscall.EPIPE) {
		err = fmt.Errorf("standard output: %w", ferr)
	}
	return e.finish(err)
}

// dispatch finds the command that args name and runs it.
func (e *env) dispatch(args []string) error {
	args, err := e.leading(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		fmt.Fprint(e.stderr, overview())
		return &exitError{code: 2}
	}
	name, rest := args[0], args[1:]
	c := commands[name]
	if c == nil {
		err := usagef("no command %q", name)
		err.hint = "cupatch help lists the commands"
		if near := nearest(name, commandNames()); near != "" {
			err.hint = "did you mean cupatch " + near + "?"
		}
		return err
	}
	e.cmd, e.args = c, rest
	err = c.run(e, rest)
	if errors.Is(err, pflag.ErrHelp) {
		e.stdout.WriteString(c.usage)
		return nil
	}
	return err
}

// leading reads the options before the name of the command and returns the rest, with
// the command that --help and --version stand for in front.
func (e *env) leading(args []string) ([]string, error) {
	e.jobs = runtime.GOMAXPROCS(0)
	fs := e.commonFlags("cupatch")
	fs.SetInterspersed(false)
	help := fs.BoolP("help", "h", false, "")
	version := fs.BoolP("version", "V", false, "")
	err := fs.Parse(args)
	if err == nil {
		err = e.checkCommon()
	}
	rest := fs.Args()
	switch {
	case err != nil:
		return nil, &exitError{code: 2, err: err, hint: "see cupatch help"}
	case *version:
		rest = append([]string{"version"}, rest...)
	case *help:
		rest = append([]string{"help"}, rest...)
	}
	return rest, nil
}

// statusOf returns the exit status that err means.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	var x *exitError
	if errors.As(err, &x) {
		return x.code
	}
	return 2
}

// finish reports err and turns it into the exit status.
func (e *env) finish(err error) int {
	if err == nil {
		return 0
	}
	var x *exitError
	if !errors.As(err, &x) {
		e.report(err)
		return 2
	}
	if x.err != nil {
		e.report(err)
	}
	return x.code
}

// report writes err, and its hint if it has one, to standard error.
func (e *env) report(err error) {
	fmt.Fprintf(e.stderr, "cupatch: error: %s\n", printableLines(err.Error()))
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(e.stderr, "cupatch: hint: %s\n", hint)
	}
}

// warnf writes a warning to standard error unless -q asks for silence.
func (e *env) warnf(format string, args ...any) {
	if !e.quiet {
		fmt.Fprintf(e.stderr, "cupatch: warning: %s\n", printableLines(fmt.Sprintf(format, args...)))
	}
}

// warnEach writes the warnings about a file. What is said of a cubin as a whole is said
// of the first one, with the number of the others.
func (e *env) warnEach(file string, list []check.Warning) {
	whole := map[string]int{} // by name
	for _, w := range list {
		if w.Kernel == "" {
			whole[w.Name]++
		}
	}
	for _, w := range list {
		n := whole[w.Name]
		switch {
		case w.Kernel != "":
			e.warnf("%s: %s", file, w)
		case n == 1:
			e.warnf("%s: %s", file, w)
			delete(whole, w.Name)
		case n > 1:
			e.warnf("%s: %s (and %s)", file, w, plural(n-1, "other cubin", "other cubins"))
			delete(whole, w.Name)
		}
	}
}

// notef writes a line of talk to standard error unless -q asks for silence.
func (e *env) notef(format string, args ...any) {
	if !e.quiet {
		fmt.Fprintf(e.stderr, "cupatch: %s\n", printableLines(fmt.Sprintf(format, args...)))
	}
}

// flags returns the flag set of the command, with the options that every command takes.
func (e *env) flags() *pflag.FlagSet {
	e.flagSet = e.commonFlags(e.cmd.name)
	return e.flagSet
}

// commonFlags returns a flag set with the options that every command takes. They keep
// the values that they have, which options before the command's name gave them.
func (e *env) commonFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.BoolVarP(&e.quiet, "quiet", "q", e.quiet, "")
	fs.IntVarP(&e.jobs, "jobs", "j", e.jobs, "")
	fs.StringVar(&e.colorMode, "color", e.colorMode, "")
	return fs
}

// checkCommon checks the values of the options that every command takes.
func (e *env) checkCommon() error {
	switch e.colorMode {
	case "", "auto", "always", "never":
	default:
		return fmt.Errorf("--color=%s: want auto, always or never", e.colorMode)
	}
	if e.jobs < 1 {
		return fmt.Errorf("-j %d: want at least 1 job", e.jobs)
	}
	return nil
}

// parse reads args into fs and returns the arguments that are no options.
func (e *env) parse(fs *pflag.FlagSet, args []string) ([]string, error) {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, err
		}
		return nil, e.usageError(err)
	}
	if err := e.checkCommon(); err != nil {
		return nil, e.usageError(err)
	}
	return fs.Args(), nil
}

// usagef returns a usage error that points at the command's help.
func (e *env) usagef(format string, args ...any) error {
	return e.usageError(fmt.Errorf(format, args...))
}

func (e *env) usageError(err error) error {
	x := &exitError{code: 2, err: err, hint: "see cupatch help " + e.cmd.name}
	if e.cmd.name == "isa" && len(e.args) > 0 && isaCommands[e.args[0]] != nil {
		x.hint = "see cupatch isa " + e.args[0] + " --help"
	}
	return x
}

// overview returns the text of `cupatch help`.
func overview() string {
	var b strings.Builder
	b.WriteString("cupatch reads, tunes and compares NVIDIA GPU machine code (SASS) in cubins,\n" +
		"fatbins and host programs.\n\nusage: cupatch COMMAND [OPTIONS] [FILE…]\n\ncommands:\n")
	for _, name := range commandNames() {
		fmt.Fprintf(&b, "  %-10s %s\n", name, commands[name].short)
	}
	b.WriteString(overviewTail)
	return b.String()
}

const overviewTail = `
options of every command, before or after its name:
  -q, --quiet     no warnings and no summary, errors only
  -j, --jobs N    work on N things at once (default: one per processor)
  --color WHEN    auto, always or never; FORCE_COLOR and NO_COLOR are honored
  -h, --help      the command's own help

FILE is a cubin, a fatbin, a host object, library, program or archive with
fatbins in it, a folder of such files, or - for standard input. FILE#12 takes
entry 12 of a container, as cupatch ls numbers them; FILE#sm_90 those of an arch.

exit status: 0 done; 1 the answer is no (files differ, an expectation does not
hold, nothing matched); 2 usage, unreadable input, impossible change.
`

// commandNames returns the names of all commands in alphabetical order.
func commandNames() []string {
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
