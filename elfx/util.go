package elfx

import "strconv"

func itoa(i int) string { return strconv.Itoa(i) }

// alignUp rounds n up to a multiple of a power of two.
func alignUp[T int | int64 | uint64](n, align T) T { return (n + align - 1) &^ (align - 1) }
