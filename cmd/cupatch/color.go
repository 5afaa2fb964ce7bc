package main

import (
	"bytes"
	"io"
	"os"

	"github.com/cupatch/cupatch/isa"
	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// color reports whether standard output gets colors: --color decides, then
// FORCE_COLOR, then NO_COLOR and TERM=dumb, then whether it is a terminal.
func (e *env) color() bool {
	switch e.colorMode {
	case "always":
		return true
	case "never":
		return false
	}
	if v := os.Getenv("FORCE_COLOR"); v != "" && v != "0" {
		return true
	}
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return e.isTTY
}

// ANSI sequences.
const (
	ansiReset = "\x1b[0m"
	ansiBold  = "\x1b[1m"
	ansiDim   = "\x1b[2m"
	ansiRed   = "\x1b[31m"
	ansiGreen = "\x1b[32m"
	ansiCyan  = "\x1b[36m"
)

// paint wraps s in a color when there is color.
func (e *env) paint(code, s string) string {
	if !e.color() || s == "" {
		return s
	}
	return code + s + ansiReset
}

// paintListing appends the lines of a listing with headers and labels, addresses, control
// codes, comments and words without text in colors.
func paintListing(dst, listing []byte) []byte {
	put := func(code string, s []byte) {
		if len(s) > 0 {
			dst = append(append(append(dst, code...), s...), ansiReset...)
		}
	}
	for line := range bytes.Lines(listing) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if bytes.HasPrefix(line, []byte("//##")) {
			put(ansiDim, line)
			dst = append(dst, '\n')
			continue
		}
		if !bytes.HasPrefix(line, []byte("/*")) && !bytes.HasPrefix(line, []byte("[")) {
			put(ansiBold, line)
			dst = append(dst, '\n')
			continue
		}
		if _, rest, ok := bytes.Cut(line, []byte("*/")); ok && line[0] == '/' {
			put(ansiDim, line[:len(line)-len(rest)])
			line = rest
		}
		if i := bytes.IndexByte(line, '['); i >= 0 && i <= 1 {
			n := i + bytes.IndexByte(line[i:], ']') + 1
			dst = append(dst, line[:i]...)
			put(ansiCyan, line[i:n])
			line = line[n:]
		}
		text := line
		if i := bytes.IndexByte(line, ';'); i >= 0 {
			text = line[:i+1]
		}
		if i := isa.NvidiaStart(string(text)); i >= 0 && text[len(text)-1] == ';' {
			dst = append(dst, text[:i]...)
			put(ansiCyan, text[i:len(text)-1])
			dst = append(dst, ';')
			text, line = nil, line[len(text):]
		}
		if t := bytes.TrimLeft(text, " "); len(t) > 0 && t[0] == '.' {
			put(ansiRed, text)
		} else {
			dst = append(dst, text...)
		}
		put(ansiDim, line[len(text):])
		dst = append(dst, '\n')
	}
	return dst
}
