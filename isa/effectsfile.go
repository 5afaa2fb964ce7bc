package isa

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An EffectsFile says which registers the instructions of an architecture read and write.
//
//	arch sm_90a
//	nvdisasm 13.5.37
//	class ldg_memdesc__Ra64 w:R16:23{73:75 1*5 2 4 1} r:R24:31*2 r:UR32:37*2 r:P64:66~
//	class nop_
//
// Behind the class stands a rule for each field that names registers: r, w or rw for read
// and written, the file, and the bits of the field; ~ where it holds the complement, +N
// where a number is added, /mask where it is a mask of registers; P=0*7 stands for P0 to P6
// whatever the fields hold. What follows is how many
// registers it is, 1 if nothing: *N, or by the values of other bits {BITS,… COUNTS}. As in
// the instruction tables a test is a run of bits, or 64:71=255. The counts stand by value,
// 0 first, 1*5 for five times 1; or as patterns of bits, of which the first that fits
// counts: {75:77,90 1-0.1=2 000.-=4 1}, a pattern for each test, its highest bit first.
//
// With base the file holds only what differs from another architecture's: classes that are
// new or changed, and drop CLASS. A line that starts with two blanks belongs to the one
// above it; # starts a comment.
type EffectsFile struct {
	Arch  Arch
	Tool  string // version of the nvdisasm that was asked
	Base  Arch   // zero for none
	Rules map[string][]AccessRule
}

// LoadEffects returns the effects that the program has for a. The error for an
// architecture without any is [*UnknownArchError].
func LoadEffects(a Arch) (*EffectsFile, error) {
	text, err := unpack(a.String() + ".effects")
	if err != nil {
		return nil, &UnknownArchError{a, Arches()}
	}
	return ParseEffects(string(text), LoadEffects)
}

// ParseEffects reads an effects file; base returns that of another architecture.
func ParseEffects(text string, base func(Arch) (*EffectsFile, error)) (*EffectsFile, error) {
	f := &EffectsFile{Rules: map[string][]AccessRule{}}
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines); n++ {
		line, at := lines[n], n+1
		for n+1 < len(lines) && strings.HasPrefix(lines[n+1], "  ") {
			n++
			line += lines[n][1:]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if err := f.line(line, base); err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
	}
	switch {
	case f.Arch == (Arch{}):
		return nil, errors.New(`no line "arch sm_XX" says which architecture this is for`)
	case f.Tool == "":
		return nil, errors.New(`no line "nvdisasm VERSION" says which nvdisasm was asked`)
	}
	return f, nil
}

func (f *EffectsFile) line(line string, base func(Arch) (*EffectsFile, error)) error {
	what, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	if name == "" {
		return fmt.Errorf("%q alone", what)
	}
	var err error
	switch what {
	case "arch":
		f.Arch, err = ParseArch(name)
	case "nvdisasm":
		f.Tool = name
	case "base":
		if f.Base, err = ParseArch(name); err != nil {
			return err
		}
		b, err := base(f.Base)
		if err != nil {
			return err
		}
		f.Rules = maps.Clone(b.Rules)
	case "drop":
		delete(f.Rules, name)
	case "class":
		if f.Rules[name], err = ParseRules(rest); err != nil {
			return fmt.Errorf("class %s: %w", name, err)
		}
	default:
		return fmt.Errorf("%q is no kind of line", what)
	}
	return err
}

// ParseRules reads the rules of a class as a class line has them.
func ParseRules(s string) ([]AccessRule, error) {
	rules := []AccessRule{}
	for s != "" {
		var r AccessRule
		var err error
		if r, s, err = parseRule(s); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parseRule reads a rule at the start of s and returns what follows it.
func parseRule(s string) (r AccessRule, rest string, err error) {
	end := strings.IndexAny(s, " {")
	if end < 0 {
		end = len(s)
	}
	head, counts := s[:end], ""
	rest = s[end:]
	if strings.HasPrefix(rest, "{") {
		if counts, rest, _ = strings.Cut(rest[1:], "}"); counts == "" {
			return r, "", fmt.Errorf("rule %q without counts", s)
		}
	}
	rest = strings.TrimPrefix(rest, " ")
	mode, place, ok := strings.Cut(head, ":")
	r.Reads, r.Writes = strings.HasPrefix(mode, "r"), strings.HasSuffix(mode, "w")
	if !ok || mode != "r" && mode != "w" && mode != "rw" {
		return r, "", fmt.Errorf("rule %q has none of r:, w: and rw: in front", head)
	}
	place, r.Mask = strings.CutSuffix(place, "/mask")
	r.Counts = []uint8{1}
	if p, n, ok := strings.Cut(place, "*"); ok {
		c, err := strconv.ParseUint(n, 10, 8)
		if err != nil {
			return r, "", fmt.Errorf("rule %q: %q is no count", head, n)
		}
		place, r.Counts[0] = p, uint8(c)
	}
	if p, n, ok := strings.Cut(place, "+"); ok {
		if r.Add, err = strconv.Atoi(n); err != nil {
			return r, "", fmt.Errorf("rule %q: %q is no number", head, n)
		}
		place = p
	}
	place, r.Invert = strings.CutSuffix(place, "~")
	bits := strings.TrimLeft(place, "RUPB")
	file := slices.Index(fileNames[:], place[:len(place)-len(bits)])
	if file < 0 {
		return r, "", fmt.Errorf("rule %q names no register file", head)
	}
	r.File = RegFile(file)
	if n, fixed := strings.CutPrefix(bits, "="); fixed {
		r.Add, err = strconv.Atoi(n)
		return r, rest, err
	}
	if r.Field, err = ParseField(bits); err != nil {
		return r, "", err
	}
	if r.Field.Width() > 8 {
		return r, "", fmt.Errorf("rule %q has a field of more than 8 bits", head)
	}
	if counts != "" {
		err = r.parseCounts(counts)
	}
	if err == nil {
		err = r.check()
	}
	return r, rest, err
}

// parseCounts reads what stands between braces.
func (r *AccessRule) parseCounts(s string) error {
	words := strings.Fields(s)
	if len(words) < 2 {
		return fmt.Errorf("{%s} has no counts", s)
	}
	bits := 0
	for _, t := range strings.Split(words[0], ",") {
		place, arg, isEq := strings.Cut(t, "=")
		f, err := ParseField(place)
		if err != nil {
			return err
		}
		test := Test{Field: f}
		if isEq {
			test.Kind = TestEq
			if test.Arg, err = strconv.ParseUint(arg, 10, 64); err != nil {
				return fmt.Errorf("%q is no number", arg)
			}
		}
		bits += int(test.width())
		r.Tests = append(r.Tests, test)
	}
	if bits > maxEffectBits {
		return fmt.Errorf("a count by %d bits", bits)
	}
	if strings.Contains(s, ".") || strings.Count(s, "=") > strings.Count(words[0], "=") {
		return r.parsePatterns(words[1:], bits)
	}
	r.Counts = r.Counts[:0]
	for _, w := range words[1:] {
		count, times, many := strings.Cut(w, "*")
		n := uint64(1)
		c, err := strconv.ParseUint(count, 10, 8)
		if err == nil && many {
			n, err = strconv.ParseUint(times, 10, maxEffectBits)
		}
		if err != nil || len(r.Counts)+int(n) > 1<<bits {
			return fmt.Errorf("%q is no count, or one too many", w)
		}
		r.Counts = append(r.Counts, bytes.Repeat([]byte{uint8(c)}, int(n))...)
	}
	return nil
}

// parsePatterns fills the counts of an index of so many bits from patterns.
func (r *AccessRule) parsePatterns(words []string, bits int) error {
	r.Counts = make([]uint8, 1<<bits)
	for k := len(words) - 1; k >= 0; k-- {
		pattern, count, ok := strings.Cut(words[k], "=")
		if !ok {
			pattern, count = "", words[k]
		}
		n, err := strconv.ParseUint(count, 10, 8)
		if err != nil {
			return fmt.Errorf("%q is no count", words[k])
		}
		c, err := r.pattern(pattern)
		if err != nil {
			return err
		}
		c.each(func(i uint32) bool { r.Counts[i] = uint8(n); return true })
	}
	return nil
}

// pattern reads a pattern; the empty one fits everything.
func (r *AccessRule) pattern(s string) (cube, error) {
	var c cube
	out := 0
	parts := strings.Split(s, ".")
	if s != "" && len(parts) != len(r.Tests) {
		return c, fmt.Errorf("pattern %q is not for %d tests", s, len(r.Tests))
	}
	for i := range r.Tests {
		n := int(r.Tests[i].width())
		digits := strings.Repeat("-", n)
		if s != "" && parts[i] != "-" {
			digits = parts[i]
		}
		if len(digits) != n {
			return c, fmt.Errorf("pattern %q: %q has not %d bits", s, digits, n)
		}
		for b := range n {
			switch digits[n-1-b] {
			case '-':
				c.free |= 1 << (out + b)
			case '1':
				c.value |= 1 << (out + b)
			case '0':
			default:
				return c, fmt.Errorf("pattern %q has more than 0, 1 and -", s)
			}
		}
		out += n
	}
	return c, nil
}

// FormatEffects writes f as text; base is the file that f.Base names, or nil.
func FormatEffects(f, base *EffectsFile) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "arch %s\nnvdisasm %s\n", f.Arch, f.Tool)
	old := map[string][]AccessRule{}
	if base != nil {
		fmt.Fprintf(&b, "base %s\n", base.Arch)
		old = base.Rules
	}
	b.WriteString("\n")
	for _, class := range slices.Sorted(maps.Keys(old)) {
		if _, ok := f.Rules[class]; !ok {
			fmt.Fprintf(&b, "drop %s\n", class)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(f.Rules)) {
		words := []string{"class", class}
		for i := range f.Rules[class] {
			words = append(words, strings.Split(f.Rules[class][i].String(), " ")...)
		}
		text := strings.Join(words, " ")
		if rules, ok := old[class]; ok && FormatRules(rules) == FormatRules(f.Rules[class]) {
			continue
		}
		for i, l := range wrap(text, 120) {
			if i > 0 {
				l = "  " + l
			}
			b.WriteString(l + "\n")
		}
	}
	return b.Bytes()
}

// FormatRules writes rules as a class line has them.
func FormatRules(rules []AccessRule) string {
	texts := make([]string, len(rules))
	for i := range rules {
		texts[i] = rules[i].String()
	}
	return strings.Join(texts, " ")
}

// wrap breaks s at blanks into lines of at most width bytes where it can.
func wrap(s string, width int) []string {
	var lines []string
	for len(s) > width {
		i := strings.LastIndexByte(s[:width], ' ')
		if i < 0 {
			break
		}
		lines, s = append(lines, s[:i]), s[i+1:]
	}
	return append(lines, s)
}

// String returns r as a class line has it.
func (r *AccessRule) String() string {
	mode := "rw"
	if !r.Writes {
		mode = "r"
	} else if !r.Reads {
		mode = "w"
	}
	s := mode + ":" + r.File.String() + r.Field.String()
	if r.Invert {
		s += "~"
	}
	switch {
	case len(r.Field) == 0:
		s += "=" + strconv.Itoa(r.Add)
	case r.Add != 0:
		s += "+" + strconv.Itoa(r.Add)
	}
	switch {
	case r.Mask:
		return s + "/mask"
	case len(r.Tests) == 0 && r.Counts[0] == 1:
		return s
	case len(r.Tests) == 0:
		return s + "*" + strconv.Itoa(int(r.Counts[0]))
	}
	tests := make([]string, len(r.Tests))
	for i := range r.Tests {
		tests[i] = r.Tests[i].Field.String()
		if r.Tests[i].Kind == TestEq {
			tests[i] += "=" + strconv.FormatUint(r.Tests[i].Arg, 10)
		}
	}
	return s + "{" + strings.Join(tests, ",") + " " + r.countsText() + "}"
}

// countsText returns the shorter one of both ways to write the counts.
func (r *AccessRule) countsText() string {
	var values []string
	for i := 0; i < len(r.Counts); {
		n := 1
		for i+n < len(r.Counts) && r.Counts[i+n] == r.Counts[i] {
			n++
		}
		s := strconv.Itoa(int(r.Counts[i]))
		if n > 1 {
			s += "*" + strconv.Itoa(n)
		}
		values = append(values, s)
		i += n
	}
	table := make([]uint16, len(r.Counts))
	for i, c := range r.Counts {
		table[i] = uint16(c)
	}
	var patterns []string
	for _, c := range cover(table) {
		patterns = append(patterns, r.patternText(c))
	}
	a, b := strings.Join(values, " "), strings.Join(patterns, " ")
	if len(b) < len(a) && len(r.Counts) > 8 {
		return b
	}
	return a
}

func (r *AccessRule) patternText(c cube) string {
	count := strconv.Itoa(int(c.entry))
	if c.free == uint32(len(r.Counts)-1) {
		return count
	}
	parts := make([]string, len(r.Tests))
	out := 0
	for i := range r.Tests {
		n := int(r.Tests[i].width())
		for b := n - 1; b >= 0; b-- {
			parts[i] += string(c.digit(out + b))
		}
		if strings.Trim(parts[i], "-") == "" {
			parts[i] = "-"
		}
		out += n
	}
	return strings.Join(parts, ".") + "=" + count
}
