// Package gpu launches kernels of cubins on an NVIDIA GPU, through the driver that the
// machine has: it answers whether a patched kernel still computes the same, bit by bit,
// and how long it takes.
//
// The driver is NVIDIA's libcuda.so.1. It is a C library, which a statically linked
// program cannot load; and cupatch stays statically linked, so that it runs where there is
// no C library at all. Package gpu therefore starts a launcher, a program of 4 kilobytes
// that it makes itself (launcher.txt is its code), which loads the library and calls in
// it what it is told to. A launcher is also a fence: a kernel that faults or never ends,
// and a driver that crashes, end the launcher and nothing else. Each [Session] has its
// own.
//
// # Limits
//
// Linux on x86-64 with the GNU C library, which NVIDIA's driver needs itself. Elsewhere
// [Open] says so. Kernels are launched one at a time, without clusters, cooperative
// groups across blocks, textures or surfaces.
//
// # Security
//
// A kernel is run as it is. It cannot reach beyond the GPU's memory of its own process.
package gpu
