package gpu

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// An argKind says how an argument gets its value.
type argKind uint8

const (
	argScalar  argKind = iota
	argBytes           // a structure passed by value
	argBuffer          // the address of memory of its own
	argPointer         // the address of, or inside, the buffer of another argument
)

// An Arg is one argument of a kernel.
type Arg struct {
	Text string // as it was written

	kind   argKind
	typ    Type
	value  []byte // of a scalar or of bytes
	count  int64  // elements of a buffer
	fill   fill
	ref    int   // of a pointer: the position of the buffer's argument, from 1
	offset int64 // of a pointer: bytes into that buffer
}

// Size returns how many bytes the argument takes among the kernel's parameters.
func (a *Arg) Size() int {
	if a.kind == argScalar || a.kind == argBytes {
		return len(a.value)
	}
	return 8
}

// bytes returns the size of a buffer.
func (a *Arg) bytes() int64 { return a.count * int64(a.typ.Size()) }

const argForms = "want TYPE:VALUE, buf:TYPE:COUNT[:FILL], buf:TYPE:@FILE, ptr:N[+BYTES], hex:DIGITS or null"

// maxBuffer bounds one buffer: more than any GPU has.
const maxBuffer = 1 << 40

// ParseArg reads one argument:
//
//	i32:5  u64:0x10  f32:2.5  f32:0f40200000   a scalar; types are i8 u8 … i64 u64 f16 bf16 f32 f64
//	buf:f32:1048576:random(7)                  a buffer of that many elements; fills are
//	                                           zeros, const(X), iota, random(SEED), random(SEED,LO,HI)
//	buf:u8:@FILE                               a buffer with the contents of a file
//	ptr:2  ptr:2+64                            the address of argument 2's buffer, plus bytes
//	hex:0011aabb                               bytes in memory order, for a structure
//	null                                       a pointer to nothing
//
// Integers may end in K, M or G, powers of 1024. Without a fill a buffer is zeros. Files
// are read when the argument is parsed.
func ParseArg(s string) (*Arg, error) {
	a := &Arg{Text: s}
	kind, rest, found := strings.Cut(s, ":")
	var err error
	switch {
	case s == "null":
		a.value, a.typ = make([]byte, 8), U64
	case !found:
		err = fmt.Errorf("%s", argForms)
	case kind == "buf":
		err = a.parseBuffer(rest)
	case kind == "ptr":
		err = a.parsePointer(rest)
	case kind == "hex":
		a.kind = argBytes
		a.value, err = hex.DecodeString(rest)
		if err != nil || len(a.value) == 0 {
			err = fmt.Errorf("hex %q: want pairs of hex digits", rest)
		}
	default:
		err = a.parseScalar(kind, rest)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	return a, nil
}

func (a *Arg) parseScalar(typ, value string) error {
	t, err := parseType(typ)
	if err != nil {
		return fmt.Errorf("%w; %s", err, argForms)
	}
	bits, err := t.parse(value)
	if err != nil {
		return err
	}
	a.typ, a.value = t, make([]byte, t.Size())
	t.store(a.value, bits)
	return nil
}

func (a *Arg) parseBuffer(s string) error {
	a.kind = argBuffer
	typ, rest, _ := strings.Cut(s, ":")
	t, err := parseType(typ)
	if err != nil {
		return err
	}
	a.typ = t
	if path, ok := strings.CutPrefix(rest, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(data) == 0 || len(data)%t.Size() != 0 {
			return fmt.Errorf("%d bytes are not a whole number of %s", len(data), t)
		}
		a.count, a.fill = int64(len(data)/t.Size()), fileFill(data, t.Size())
		return nil
	}
	count, how, filled := strings.Cut(rest, ":")
	if a.count, err = parseCount(count); err != nil {
		return err
	}
	if a.count > maxBuffer/int64(t.Size()) {
		return fmt.Errorf("%s elements are too many", count)
	}
	if !filled {
		how = "zeros"
	}
	a.fill, err = parseFill(t, how)
	return err
}

// parseCount reads a positive number of elements.
func parseCount(s string) (int64, error) {
	v, err := parseInt(s)
	if err != nil || v.negative || v.abs < 1 || v.abs > maxBuffer {
		return 0, fmt.Errorf("count %q: want a number of elements such as 1048576 or 1M", s)
	}
	return int64(v.abs), nil
}

func (a *Arg) parsePointer(s string) error {
	a.kind = argPointer
	ref, off, plus := strings.Cut(s, "+")
	n, err := strconv.Atoi(ref)
	if err != nil || n < 1 {
		return fmt.Errorf("ptr:%s: want the position of a buffer among the arguments, from 1", s)
	}
	a.ref = n
	if plus {
		if a.offset, err = strconv.ParseInt(off, 0, 64); err != nil || a.offset < 0 {
			return fmt.Errorf("ptr:%s: want a number of bytes after +", s)
		}
	}
	return nil
}

// ParseArgs reads all arguments of a kernel and checks the pointers among them.
func ParseArgs(list []string) ([]*Arg, error) {
	var out []*Arg
	for i, s := range list {
		a, err := ParseArg(s)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out = append(out, a)
	}
	for i, a := range out {
		if a.kind != argPointer {
			continue
		}
		if a.ref > len(out) || out[a.ref-1].kind != argBuffer {
			return nil, fmt.Errorf("argument %d: %q: argument %d is no buffer", i+1, a.Text, a.ref)
		}
		if size := out[a.ref-1].bytes(); a.offset > size {
			return nil, fmt.Errorf("argument %d: %q: the buffer has %d bytes", i+1, a.Text, size)
		}
	}
	return out, nil
}
