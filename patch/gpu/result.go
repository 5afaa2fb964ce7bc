package gpu

import (
	"slices"
)

// A Result is what came of a launch of one or several programs.
type Result struct {
	Programs  []*Outcome `json:"programs"`
	Identical bool       `json:"identical"` // every program left what the first one left, every time
}

// An Outcome is what came of one program.
type Outcome struct {
	Name       string      `json:"name"`
	Arch       string      `json:"arch"`
	Kernel     string      `json:"kernel"`
	Buffers    []*Buffer   `json:"buffers"`
	Identical  bool        `json:"identical"`            // it left what the first program left the first time, every time
	Difference *Difference `json:"difference,omitempty"` // the first one
	Times      *Times      `json:"times,omitempty"`
	// GBs is the bandwidth in 10^9 bytes a second if the kernel moves every byte of
	// every buffer once, by the median time; 0 without buffers or times.
	GBs   float64 `json:"gb_per_s,omitempty"`
	Ratio *Ratio  `json:"ratio,omitempty"` // of its times to those of the first program
}

// A Buffer is what a kernel left in a buffer.
type Buffer struct {
	Arg     int    `json:"arg"` // position among the arguments, from 1
	Type    string `json:"type"`
	Count   int64  `json:"count"`
	SHA256  string `json:"sha256"`
	Changed bool   `json:"changed"` // from what was in it before
}

// A Difference is the first element that a program left other than the first program
// did the first time.
type Difference struct {
	Round int    `json:"round"` // of the check, from 1
	Arg   int    `json:"arg"`
	Index int64  `json:"index"` // of the element
	Want  string `json:"want"`  // what the first program left
	Got   string `json:"got"`
	Count int64  `json:"count"` // elements of that buffer that differ
	Of    int64  `json:"of"`
}

// Times are the times of the timed launches in microseconds, by the GPU's own clock.
type Times struct {
	Launches int     `json:"launches"`
	Min      float64 `json:"min_us"`
	Median   float64 `json:"median_us"`
	Q1       float64 `json:"q1_us"` // a quarter of the launches are faster
	Q3       float64 `json:"q3_us"` // a quarter are slower
	Max      float64 `json:"max_us"`
}

// A Ratio compares the times of two programs launched in turn: each launch of the second
// is divided by the launch of the first just before it.
type Ratio struct {
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
}

// quantile returns the value below which part q of the sorted list lies, between two
// elements by straight line.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func newTimes(us []float64) *Times {
	s := slices.Sorted(slices.Values(us))
	return &Times{
		Launches: len(s), Min: s[0], Median: quantile(s, 0.5), Q1: quantile(s, 0.25), Q3: quantile(s, 0.75), Max: s[len(s)-1],
	}
}

// newRatio divides the times of b by those of a, launch by launch; launches too short
// for the clock are left out.
func newRatio(a, b []float64) *Ratio {
	var list []float64
	for i := range a {
		if a[i] > 0 && b[i] > 0 {
			list = append(list, b[i]/a[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return &Ratio{Median: quantile(list, 0.5), Q1: quantile(list, 0.25), Q3: quantile(list, 0.75)}
}
