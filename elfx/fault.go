package elfx

import (
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"
)

// mappings has the files that are mapped, by the address of their first byte.
var mappings struct {
	sync.Mutex
	list map[uintptr]mapping
}

// A mapping is a file in memory.
type mapping struct {
	name string
	size uintptr
}

// remember notes that data is the content of a mapped file, until forget is called.
func remember(name string, data []byte) (forget func()) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	mappings.Lock()
	defer mappings.Unlock()
	if mappings.list == nil {
		mappings.list = make(map[uintptr]mapping)
	}
	mappings.list[at] = mapping{name, uintptr(len(data))}
	return func() {
		mappings.Lock()
		defer mappings.Unlock()
		delete(mappings.list, at)
	}
}

// CatchFault makes an error of what would end the program: that a mapped file became
// shorter while it is read. It is for the top of a goroutine that reads files:
//
//	defer elfx.CatchFault(&err)()
//
// Other panics go on.
func CatchFault(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		r := recover()
		if r == nil {
			return
		}
		name, ok := faultIn(r)
		if !ok {
			panic(r)
		}
		*err = fmt.Errorf("%s: the file became shorter while it was read: %w", name, ErrFormat)
	}
}

// faultIn returns the mapped file that a panic's address is in.
func faultIn(r any) (name string, ok bool) {
	f, ok := r.(interface{ Addr() uintptr })
	if !ok {
		return "", false
	}
	mappings.Lock()
	defer mappings.Unlock()
	for at, m := range mappings.list {
		if a := f.Addr(); at <= a && a-at < m.size {
			return m.name, true
		}
	}
	return "", false
}
