package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
)

// What is said of a whole cubin is said once for a file, with the number of the others;
// what is said of instructions is said of each.
func TestWarnEach(t *testing.T) {
	mercury := func(entry string) check.Warning {
		return check.Warning{Name: check.WarnMercury, Entry: entry, Msg: "other code"}
	}
	stall := check.Warning{Name: check.WarnStall, Entry: "2", Kernel: "k", PC: 16, Msg: "too low"}
	for _, c := range []struct {
		list []check.Warning
		want string
	}{
		{[]check.Warning{mercury("1")}, "lib.so: 1: other code [mercury]\n"},
		{[]check.Warning{mercury("1"), stall, mercury("2"), stall}, "lib.so: 1: other code [mercury] (and 1 other cubin)\nSTALL\nSTALL\n"},
		{[]check.Warning{mercury("1"), mercury("2"), mercury("3")}, "lib.so: 1: other code [mercury] (and 2 other cubins)\n"},
	} {
		var talk bytes.Buffer
		e := &env{stderr: &talk}
		e.warnEach("lib.so", c.list)
		want := strings.ReplaceAll(c.want, "STALL", "lib.so: "+stall.String())
		if got := strings.ReplaceAll(talk.String(), "cupatch: warning: ", ""); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
