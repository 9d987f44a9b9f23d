package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"wayside/edge/admin"
)

// Figures of the process under the names that dashboards know. What the system does not
// tell is left out.
var (
	cpuSeconds   = &admin.Family{Name: "process_cpu_seconds_total", Help: "Seconds of processor time, the system's part included.", Plain: true, Counts: true}
	openFiles    = &admin.Family{Name: "process_open_fds", Help: "File descriptors in use.", Plain: true}
	maxFiles     = &admin.Family{Name: "process_max_fds", Help: "File descriptors that may be in use.", Plain: true}
	virtualBytes = &admin.Family{Name: "process_virtual_memory_bytes", Help: "Bytes of address space.", Plain: true}
	residentSet  = &admin.Family{Name: "process_resident_memory_bytes", Help: "Bytes in memory, pages of mapped files included.", Plain: true}
	processStart = &admin.Family{Name: "process_start_time_seconds", Help: "When the process began, seconds since 1970.", Plain: true}
)

func processCollector(started float64) admin.Collector {
	return admin.Collector{
		Families: []*admin.Family{cpuSeconds, openFiles, maxFiles, virtualBytes, residentSet, processStart},
		Collect: func(to *admin.Scrape) {
			to.Put(processStart, started)
			putUsage(to)
			putFiles(to)
			putMemory(to)
		},
	}
}

func putUsage(to *admin.Scrape) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) == nil {
		to.Put(cpuSeconds, float64(usage.Utime.Nano()+usage.Stime.Nano())/1e9)
	}
}

func putFiles(to *admin.Scrape) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		to.Put(maxFiles, float64(limit.Cur))
	}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		to.Put(openFiles, float64(len(entries)))
	}
}

func putMemory(to *admin.Scrape) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	pages := strings.Fields(string(text))
	for i, f := range []*admin.Family{virtualBytes, residentSet} {
		if i < len(pages) {
			if n, err := strconv.ParseFloat(pages[i], 64); err == nil {
				to.Put(f, n*float64(os.Getpagesize()))
			}
		}
	}
}
