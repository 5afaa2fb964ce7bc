package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// A fill makes the contents of a buffer. It writes the elements from position first on
// to b, which holds a whole number of them.
type fill func(b []byte, first int64)

// fileFill gives back data, whose elements have size bytes.
func fileFill(data []byte, size int) fill {
	return func(b []byte, first int64) { copy(b, data[first*int64(size):]) }
}

const fillForms = "want zeros, const(X), iota, random(SEED) or random(SEED,LO,HI)"

// parseFill reads the name of a fill and its arguments.
func parseFill(t Type, s string) (fill, error) {
	name, args, call := strings.Cut(s, "(")
	var list []string
	if call {
		inner, ok := strings.CutSuffix(args, ")")
		if !ok {
			return nil, fmt.Errorf("fill %q: no closing parenthesis", s)
		}
		for _, x := range strings.Split(inner, ",") {
			list = append(list, strings.TrimSpace(x))
		}
	}
	switch {
	case name == "zeros" && !call:
		return func(b []byte, _ int64) { clear(b) }, nil
	case name == "iota" && !call:
		return elements(t, func(i int64) uint64 { return t.fromInt(i) }), nil
	case name == "const" && len(list) == 1:
		bits, err := t.parse(list[0])
		if err != nil {
			return nil, fmt.Errorf("fill %q: %w", s, err)
		}
		return elements(t, func(int64) uint64 { return bits }), nil
	case name == "random" && (!call || len(list) == 1 || len(list) == 3):
		f, err := randomFill(t, list)
		if err != nil {
			return nil, fmt.Errorf("fill %q: %w", s, err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("fill %q: %s", s, fillForms)
}

// elements makes a fill of a function from positions to bits.
func elements(t Type, bits func(i int64) uint64) fill {
	size := t.Size()
	return func(b []byte, first int64) {
		for i := first; len(b) >= size; i++ {
			t.store(b, bits(i))
			b = b[size:]
		}
	}
}

// fromInt returns the bits of i in t; integers wrap around.
func (t Type) fromInt(i int64) uint64 {
	if types[t].float {
		return t.fromFloat(float64(i))
	}
	return uint64(i)
}

// randomFill makes reproducible numbers: the same seed gives the same buffer everywhere.
// Integers have all values of their type, floats lie in [-1, 1); with bounds, both lie in
// [lo, hi).
func randomFill(t Type, args []string) (fill, error) {
	seed := uint64(1)
	if len(args) > 0 {
		var err error
		if seed, err = strconv.ParseUint(args[0], 0, 64); err != nil {
			return nil, fmt.Errorf("seed %q: want a number", args[0])
		}
	}
	// Seeds next to each other must not give the same sequence one place on.
	seed = mix(seed)
	if types[t].float {
		lo, hi := -1.0, 1.0
		if len(args) == 3 {
			var err1, err2 error
			lo, err1 = strconv.ParseFloat(args[1], 64)
			hi, err2 = strconv.ParseFloat(args[2], 64)
			if err1 != nil || err2 != nil || !(lo < hi) {
				return nil, fmt.Errorf("bounds %s and %s: want two numbers, the lower one first", args[1], args[2])
			}
		}
		// 24 bits, so that a float32 in [-1, 1) is exact.
		return elements(t, func(i int64) uint64 {
			return t.fromFloat(lo + (hi-lo)*float64(mix(seed+uint64(i))>>40)/(1<<24))
		}), nil
	}
	if len(args) < 3 {
		return elements(t, func(i int64) uint64 { return mix(seed + uint64(i)) }), nil
	}
	lo, err := t.parse(args[1])
	if err != nil {
		return nil, err
	}
	hi, err := t.parse(args[2])
	if err != nil {
		return nil, err
	}
	if types[t].signed && int64(lo) >= int64(hi) || !types[t].signed && lo >= hi {
		return nil, fmt.Errorf("bounds %s and %s: want the lower one first", args[1], args[2])
	}
	return elements(t, func(i int64) uint64 { return lo + mix(seed+uint64(i))%(hi-lo) }), nil
}

// mix is one step of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014) at position x: a bijection of 64-bit numbers.
func mix(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
