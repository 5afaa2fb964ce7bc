// Package kernel says how control and values flow through the instructions of a kernel.
package kernel
