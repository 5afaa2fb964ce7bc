// Package shipped reads the tables that the program has for each architecture.
package shipped

import (
	"embed"
	"fmt"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// Tables are the files tables/sm_NN.txt of a package, each read when it is first asked for.
type Tables[T any] struct {
	Files   *embed.FS
	Parse   func(text string) (*T, error)
	Missing error // for an architecture without a file

	all sync.Map // SM number → *entry[T]
}

type entry[T any] struct {
	once  sync.Once
	value *T
	err   error
}

// Load returns the table for a, whose suffix does not count. Where there is none, the error is
// t.Missing with the name of the architecture.
func (t *Tables[T]) Load(a isa.Arch) (*T, error) {
	v, _ := t.all.LoadOrStore(a.SM, &entry[T]{})
	e := v.(*entry[T])
	e.once.Do(func() {
		text, err := t.Files.ReadFile(fmt.Sprintf("tables/sm_%d.txt", a.SM))
		if err != nil {
			e.err = fmt.Errorf("%w for sm_%d", t.Missing, a.SM)
			return
		}
		e.value, e.err = t.Parse(string(text))
	})
	return e.value, e.err
}
