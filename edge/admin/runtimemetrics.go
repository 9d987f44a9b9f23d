package admin

import (
	"runtime"
	"runtime/debug"
)

// runtimeCollector tells of the Go runtime under the names that its dashboards know.
func runtimeCollector() Collector {
	gauge := func(name, help string) *Family { return &Family{Name: name, Help: help, Plain: true} }
	count := func(name, help string) *Family { return &Family{Name: name, Help: help, Plain: true, Counts: true} }
	info := &Family{Name: "go_info", Help: "The Go environment.", Plain: true, Labels: []string{"version"}}
	columns := []struct {
		family *Family
		value  func(*runtime.MemStats) float64
	}{
		{gauge("go_goroutines", "Goroutines that exist."), func(*runtime.MemStats) float64 { return float64(runtime.NumGoroutine()) }},
		{gauge("go_threads", "Threads made."), func(*runtime.MemStats) float64 { n, _ := runtime.ThreadCreateProfile(nil); return float64(n) }},
		{gauge("go_sched_gomaxprocs_threads", "Threads that may run Go code at once."), func(*runtime.MemStats) float64 { return float64(runtime.GOMAXPROCS(0)) }},
		{gauge("go_gc_gomemlimit_bytes", "The runtime's soft limit of memory."), func(*runtime.MemStats) float64 { return float64(debug.SetMemoryLimit(-1)) }},
		{count("go_gc_cycles_total", "Collections of garbage since start."), func(f *runtime.MemStats) float64 { return float64(f.NumGC) }},
		{count("go_gc_pause_seconds_total", "Time that collections stopped everything."), func(f *runtime.MemStats) float64 { return float64(f.PauseTotalNs) / 1e9 }},
		{gauge("go_memstats_alloc_bytes", "Bytes of objects on the heap."), func(f *runtime.MemStats) float64 { return float64(f.Alloc) }},
		{count("go_memstats_alloc_bytes_total", "Bytes allocated since start."), func(f *runtime.MemStats) float64 { return float64(f.TotalAlloc) }},
		{count("go_memstats_mallocs_total", "Objects allocated since start."), func(f *runtime.MemStats) float64 { return float64(f.Mallocs) }},
		{count("go_memstats_frees_total", "Objects freed since start."), func(f *runtime.MemStats) float64 { return float64(f.Frees) }},
		{gauge("go_memstats_sys_bytes", "Bytes taken from the system."), func(f *runtime.MemStats) float64 { return float64(f.Sys) }},
		{gauge("go_memstats_heap_alloc_bytes", "Bytes of objects on the heap."), func(f *runtime.MemStats) float64 { return float64(f.HeapAlloc) }},
		{gauge("go_memstats_heap_sys_bytes", "Bytes of the heap taken from the system."), func(f *runtime.MemStats) float64 { return float64(f.HeapSys) }},
		{gauge("go_memstats_heap_idle_bytes", "Bytes of the heap that hold nothing."), func(f *runtime.MemStats) float64 { return float64(f.HeapIdle) }},
		{gauge("go_memstats_heap_inuse_bytes", "Bytes of the heap that hold something."), func(f *runtime.MemStats) float64 { return float64(f.HeapInuse) }},
		{gauge("go_memstats_heap_released_bytes", "Bytes of the heap given back to the system."), func(f *runtime.MemStats) float64 { return float64(f.HeapReleased) }},
		{gauge("go_memstats_heap_objects", "Objects on the heap."), func(f *runtime.MemStats) float64 { return float64(f.HeapObjects) }},
		{gauge("go_memstats_stack_inuse_bytes", "Bytes of stacks."), func(f *runtime.MemStats) float64 { return float64(f.StackInuse) }},
		{gauge("go_memstats_stack_sys_bytes", "Bytes of stacks taken from the system."), func(f *runtime.MemStats) float64 { return float64(f.StackSys) }},
		{gauge("go_memstats_mspan_inuse_bytes", "Bytes of the heap's spans."), func(f *runtime.MemStats) float64 { return float64(f.MSpanInuse) }},
		{gauge("go_memstats_mspan_sys_bytes", "Bytes of spans taken from the system."), func(f *runtime.MemStats) float64 { return float64(f.MSpanSys) }},
		{gauge("go_memstats_mcache_inuse_bytes", "Bytes of the heap's caches."), func(f *runtime.MemStats) float64 { return float64(f.MCacheInuse) }},
		{gauge("go_memstats_mcache_sys_bytes", "Bytes of caches taken from the system."), func(f *runtime.MemStats) float64 { return float64(f.MCacheSys) }},
		{gauge("go_memstats_buck_hash_sys_bytes", "Bytes of profiling."), func(f *runtime.MemStats) float64 { return float64(f.BuckHashSys) }},
		{gauge("go_memstats_gc_sys_bytes", "Bytes of the collector's own."), func(f *runtime.MemStats) float64 { return float64(f.GCSys) }},
		{gauge("go_memstats_other_sys_bytes", "Bytes of the rest."), func(f *runtime.MemStats) float64 { return float64(f.OtherSys) }},
		{gauge("go_memstats_next_gc_bytes", "Bytes of the heap at which the next collection begins."), func(f *runtime.MemStats) float64 { return float64(f.NextGC) }},
		{gauge("go_memstats_last_gc_time_seconds", "When the last collection ended, seconds since 1970."), func(f *runtime.MemStats) float64 { return float64(f.LastGC) / 1e9 }},
	}
	all := Collector{Families: []*Family{info}}
	for _, c := range columns {
		all.Families = append(all.Families, c.family)
	}
	all.Collect = func(to *Scrape) {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		to.Put(info, 1, runtime.Version())
		for _, c := range columns {
			to.Put(c.family, c.value(&now))
		}
	}
	return all
}
