package report

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Name is the name of a kernel as the cubin has it: bytes that need not be UTF-8. In JSON
// a byte 0xNN that is part of no character is written as \udcNN, half of a surrogate pair,
// as Python's surrogateescape does.
type Name string

// MarshalJSON writes the name as a string.
func (n Name) MarshalJSON() ([]byte, error) {
	out := []byte{'"'}
	for s := string(n); s != ""; {
		valid := 0
		for valid < len(s) {
			r, size := utf8.DecodeRuneInString(s[valid:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			valid += size
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s[:valid]); err != nil {
			return nil, err
		}
		out = append(out, b.Bytes()[1:b.Len()-2]...) // without quotes and line feed
		if s = s[valid:]; s != "" {
			out = append(append(out, `\udc`...), hex.EncodeToString([]byte{s[0]})...)
			s = s[1:]
		}
	}
	return append(out, '"'), nil
}

// UnmarshalJSON reads what MarshalJSON writes, and any other string.
func (n *Name) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(text) < 2 || text[0] != '"' {
		return json.Unmarshal(b, (*string)(n)) // which says what is wrong
	}
	var name strings.Builder
	part := func(s string) error {
		var v string
		err := json.Unmarshal([]byte(`"`+s+`"`), &v)
		name.WriteString(v)
		return err
	}
	text = text[1 : len(text)-1]
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, ok := codeUnit(text[i:])
		switch {
		case !ok:
			i++ // another escape
		case unit >= 0xdc80 && unit <= 0xdcff:
			if err := part(text[from:i]); err != nil {
				return err
			}
			name.WriteByte(byte(unit))
			i += 5
			from = i + 1
		case unit >= 0xd800 && unit < 0xdc00: // the first half of a pair: the second is no byte
			i += 5
			if _, ok := codeUnit(text[i+1:]); ok {
				i += 6
			}
		default:
			i += 5
		}
	}
	if err := part(text[from:]); err != nil {
		return err
	}
	*n = Name(name.String())
	return nil
}

// codeUnit returns what an escape \uNNNN at the start of s means.
func codeUnit(s string) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	return v, err == nil
}
