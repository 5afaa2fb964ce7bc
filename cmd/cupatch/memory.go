package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A garbagePace sets how much garbage may pile up: much while little memory is in use,
// since most runs are then over before any need be collected, and less than is in use
// where that is a lot.
type garbagePace struct {
	percent int
	sample  []metrics.Sample
}

// garbagePercents has the percentage for GOGC up to so many bytes in use.
var garbagePercents = []struct {
	live    uint64
	percent int
}{{24 << 20, 400}, {64 << 20, 200}, {128 << 20, 100}, {^uint64(0), 40}}

// paceGarbage begins to do so, unless the user has set GOGC.
func paceGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &garbagePace{percent: garbagePercents[0].percent, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	debug.SetGCPercent(p.percent)
	runtime.SetFinalizer(p, (*garbagePace).next)
}

// next is called after each collection, which finds p in no use.
func (p *garbagePace) next() {
	metrics.Read(p.sample)
	for _, g := range garbagePercents {
		if p.sample[0].Value.Kind() == metrics.KindUint64 && p.sample[0].Value.Uint64() > g.live {
			continue
		}
		if g.percent != p.percent {
			p.percent = g.percent
			debug.SetGCPercent(g.percent)
		}
		break
	}
	runtime.SetFinalizer(p, (*garbagePace).next)
}
