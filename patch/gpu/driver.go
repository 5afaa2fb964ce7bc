package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

// A driver is NVIDIA's library, loaded in a launcher. Names and types of its functions
// are in cuda.h of the CUDA toolkit; those with a suffix _v2 are what cuda.h makes of the
// plain name.
type driver struct {
	caller
	library string
	fn      map[string]uint64
}

// libraries are the places where the driver is looked for: what the dynamic linker
// knows, Windows' Linux, containers of Kubernetes.
var libraries = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}

// LibraryVariable is the environment variable that names the driver's library, where it
// is none of the usual ones.
const LibraryVariable = "CUPATCH_LIBCUDA"

var libcFunctions = []string{"malloc", "free", "memcpy", "strncpy"}

var driverFunctions = []string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxSynchronize", "cuGetErrorName", "cuGetErrorString",
	"cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel",
	"cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
	"cuEventCreate", "cuEventRecord", "cuEventElapsedTime",
}

// openDriver loads the library into c's process.
func openDriver(c caller) (*driver, error) {
	d := &driver{caller: c, fn: map[string]uint64{}}
	for _, name := range libcFunctions {
		addr, err := d.symbol(0, name) // RTLD_DEFAULT
		if err != nil {
			return nil, err
		}
		if addr == 0 {
			return nil, fmt.Errorf("the C library has no function %s", name)
		}
		d.fn[name] = addr
	}
	names := libraries
	if path := os.Getenv(LibraryVariable); path != "" {
		names = []string{path}
	}
	lib, err := d.load(names)
	if err != nil {
		return nil, err
	}
	for _, name := range driverFunctions {
		addr, err := d.symbol(lib, name)
		if err != nil {
			return nil, err
		}
		if addr == 0 {
			return nil, fmt.Errorf("%s: no function %s: not a driver, or one too old", d.library, name)
		}
		d.fn[name] = addr
	}
	return d, nil
}

// load opens the first library that there is, and reports the trouble with the first
// one if there is none.
func (d *driver) load(names []string) (uint64, error) {
	var first error
	for _, name := range names {
		m := d.mark()
		const now = 2 // RTLD_NOW
		out, err := d.do(call{fn: d.function(0), args: [callArgs]uint64{d.text(name), now}})
		d.release(m)
		if err != nil {
			return 0, err
		}
		if out[0] != 0 {
			d.library = name
			return out[0], nil
		}
		if first != nil {
			continue
		}
		why, err := d.do(call{fn: d.function(2)})
		if err != nil {
			return 0, err
		}
		text, err := d.read(why[0])
		if err != nil {
			return 0, err
		}
		first = fmt.Errorf("%w: %s", ErrNoDriver, text)
	}
	return 0, first
}

// symbol returns the address of a function, 0 if there is none.
func (d *driver) symbol(lib uint64, name string) (uint64, error) {
	m := d.mark()
	defer d.release(m)
	out, err := d.do(call{fn: d.function(1), args: [callArgs]uint64{lib, d.text(name)}})
	if err != nil {
		return 0, err
	}
	return out[0], nil
}

// read returns the C string at an address in the launcher, its first 400 bytes at most.
func (d *driver) read(addr uint64) (string, error) {
	if addr == 0 {
		return "", nil
	}
	m := d.mark()
	defer d.release(m)
	const size = 400
	b, at := d.alloc(size + 1)
	if _, err := d.do(call{fn: d.fn["strncpy"], args: [callArgs]uint64{at, addr, size}}); err != nil {
		return "", err
	}
	s, _, _ := bytes.Cut(b, []byte{0})
	return strings.TrimSpace(strings.ToValidUTF8(string(s), "?")), nil
}

// prepare makes a call out of a function's name and arguments.
func (d *driver) prepare(name string, args ...uint64) call {
	c := call{fn: d.fn[name]}
	copy(c.args[:], args)
	return c
}

// cu calls a function of the driver.
func (d *driver) cu(name string, args ...uint64) error {
	out, err := d.do(d.prepare(name, args...))
	if err != nil {
		return err
	}
	return d.check(name, out[0])
}

// check turns a CUresult into an error.
func (d *driver) check(name string, result uint64) error {
	code := int(int32(result))
	if code == 0 {
		return nil
	}
	e := &DriverError{Call: name, Code: code}
	var err error
	if e.Name, err = d.explain("cuGetErrorName", code); err != nil {
		return err
	}
	if e.Text, err = d.explain("cuGetErrorString", code); err != nil {
		return err
	}
	return e
}

// explain asks the driver for the name or the meaning of an error.
func (d *driver) explain(name string, code int) (string, error) {
	m := d.mark()
	defer d.release(m)
	b, at := d.alloc(8)
	if _, err := d.do(d.prepare(name, uint64(code), at)); err != nil {
		return "", err
	}
	return d.read(binary.LittleEndian.Uint64(b))
}

// get calls a function whose first argument is where its result goes.
func (d *driver) get(name string, args ...uint64) (uint64, error) {
	m := d.mark()
	defer d.release(m)
	b, at := d.alloc(8)
	err := d.cu(name, append([]uint64{at}, args...)...)
	return binary.LittleEndian.Uint64(b), err
}

// getInt is get for a result of type int.
func (d *driver) getInt(name string, args ...uint64) (int, error) {
	v, err := d.get(name, args...)
	return int(int32(v)), err
}

// loadModule loads a cubin.
func (d *driver) loadModule(image []byte) (uint64, error) {
	out, err := d.do(d.prepare("malloc", uint64(len(image))))
	if err != nil {
		return 0, err
	}
	at := out[0]
	if at == 0 {
		return 0, fmt.Errorf("no memory for a cubin of %d bytes", len(image))
	}
	buf, addr := d.data()
	for off := 0; off < len(image); off += len(buf) {
		n := copy(buf, image[off:])
		if _, err := d.do(d.prepare("memcpy", at+uint64(off), addr, uint64(n))); err != nil {
			return 0, err
		}
	}
	module, err := d.get("cuModuleLoadData", at)
	if err != nil {
		return 0, err
	}
	_, err = d.do(d.prepare("free", at))
	return module, err
}

// Attributes of a device, CUdevice_attribute.
const (
	attrProcessors   = 16
	attrL2Size       = 38
	attrMajor        = 75
	attrMinor        = 76
	attrSharedOptin  = 97
	funcMaxShared    = 8 // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	sharedWithoutAsk = 48 << 10
)

// A Device is a GPU.
type Device struct {
	Number     int    `json:"number"`
	Name       string `json:"name"`
	SM         int    `json:"sm"`         // compute capability: 90 for 9.0
	Processors int    `json:"processors"` // streaming multiprocessors
	L2         int    `json:"l2_bytes"`
	Shared     int    `json:"shared_bytes"` // most shared memory that a block may have
	Driver     string `json:"driver"`       // the CUDA version that the driver supports, such as 13.0
}

// device makes a device current and describes it.
func (d *driver) device(number int) (*Device, error) {
	if err := d.cu("cuInit", 0); err != nil {
		return nil, noDevice(err)
	}
	count, err := d.getInt("cuDeviceGetCount")
	if err != nil {
		return nil, noDevice(err)
	}
	if count == 0 {
		return nil, fmt.Errorf("%w: the driver finds no GPU", ErrNoDriver)
	}
	if number < 0 || number >= count {
		return nil, fmt.Errorf("device %d: there are devices 0 to %d", number, count-1)
	}
	handle, err := d.get("cuDeviceGet", uint64(number))
	if err != nil {
		return nil, err
	}
	ctx, err := d.get("cuDevicePrimaryCtxRetain", handle)
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", number, err)
	}
	if err := d.cu("cuCtxSetCurrent", ctx); err != nil {
		return nil, err
	}
	return d.describe(number, handle)
}

// noDevice marks the driver's way to say that it finds no GPU.
func noDevice(err error) error { return fmt.Errorf("%w that finds a GPU: %w", ErrNoDriver, err) }

func (d *driver) describe(number int, handle uint64) (*Device, error) {
	m := d.mark()
	defer d.release(m)
	const size = 256
	b, at := d.alloc(size)
	if err := d.cu("cuDeviceGetName", at, size-1, handle); err != nil {
		return nil, err
	}
	name, _, _ := bytes.Cut(b, []byte{0})
	v := &Device{Number: number, Name: string(name)}
	version, err := d.getInt("cuDriverGetVersion")
	if err != nil {
		return nil, err
	}
	v.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	var major, minor int
	for attr, p := range map[uint64]*int{attrProcessors: &v.Processors, attrL2Size: &v.L2, attrMajor: &major, attrMinor: &minor, attrSharedOptin: &v.Shared} {
		if *p, err = d.getInt("cuDeviceGetAttribute", attr, handle); err != nil {
			return nil, err
		}
	}
	v.SM = 10*major + minor
	return v, nil
}
