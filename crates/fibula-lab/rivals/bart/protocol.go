package main

// The side of the program in the protocol of rival/external/mod.rs: reads requests, answers each before the next.

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/gaissmai/bart"
)

// route is a prefix and its next hop.
type route struct {
	prefix  netip.Prefix
	nextHop uint32
}

// table is one of bart's tables. Its methods hold the loops, so that a loop calls one table's lookup directly.
type table interface {
	insert(routes []route)
	// change makes a table of each change, as bart's documentation says for tables with readers. Next hop 0 removes a route.
	change(routes []route)
	// answer looks up all keys and keeps every answer.
	answer(keys []netip.Addr, dependent bool, answers []uint32)
	// pass looks up all keys and keeps what the compiler must not drop.
	pass(keys []netip.Addr, dependent bool)
}

// nothing is always 0, which the compiler does not know.
var nothing uint32

// sink keeps lookups from being dropped.
var sink uint32

func main() {
	// One thread is timed by its own clock.
	runtime.LockOSThread()
	server := server{in: bufio.NewReaderSize(os.Stdin, 1<<20), out: bufio.NewWriterSize(os.Stdout, 1<<20)}
	for {
		line, err := server.in.ReadString('\n')
		if err == io.EOF && line == "" {
			return
		}
		if err == nil {
			err = server.serve(strings.TrimSpace(line))
		}
		if err == nil {
			err = server.out.Flush()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

type server struct {
	in    *bufio.Reader
	out   *bufio.Writer
	width int
	table table
	keys  []netip.Addr
}

func (s *server) serve(line string) error {
	var (
		name, family, shape         string
		count, batch, first, passes int
	)
	word, _, _ := strings.Cut(line, " ")
	switch word {
	case "table":
		if _, err := fmt.Sscanf(line, "table %s %s %d", &name, &family, &count); err != nil {
			return err
		}
		return s.build(name, family, count)
	case "keys":
		if _, err := fmt.Sscanf(line, "keys %d", &count); err != nil {
			return err
		}
		return s.load(count)
	case "change":
		if _, err := fmt.Sscanf(line, "change %d", &count); err != nil {
			return err
		}
		return s.change(count)
	case "answer":
		if _, err := fmt.Sscanf(line, "answer %s %d", &shape, &batch); err != nil {
			return err
		}
		answers := make([]uint32, len(s.keys))
		s.table.answer(s.keys, shape == "dependent", answers)
		fmt.Fprintf(s.out, "answers %d\n", len(answers))
		return binary.Write(s.out, binary.LittleEndian, answers)
	case "time":
		if _, err := fmt.Sscanf(line, "time %s %d %d %d %d", &shape, &batch, &first, &count, &passes); err != nil {
			return err
		}
		if first < 0 || count < 0 || first+count > len(s.keys) {
			return fmt.Errorf("there are %d keys, not %d", len(s.keys), first+count)
		}
		keys := s.keys[first : first+count]
		wall, thread := time.Now(), threadTime()
		for range passes {
			s.table.pass(keys, shape == "dependent")
		}
		thread = threadTime() - thread
		fmt.Fprintf(s.out, "time %d %d\n", time.Since(wall).Nanoseconds(), thread.Nanoseconds())
		return nil
	}
	return fmt.Errorf("'%s' is no request", line)
}

func (s *server) build(name, family string, count int) error {
	s.width = 4
	if family == "ipv6" {
		s.width = 16
	}
	routes, err := s.routes(count)
	if err != nil {
		return err
	}
	switch name {
	case "bart-table":
		s.table = &plain{new(bart.Table[uint32])}
	case "bart-fast":
		s.table = &fast{new(bart.Fast[uint32])}
	default:
		fmt.Fprintf(s.out, "refused there is no %s here\n", name)
		return nil
	}
	before := heap()
	start := time.Now()
	s.table.insert(routes)
	built := time.Since(start)
	taken := heap() - before
	runtime.KeepAlive(routes)
	// Lookups allocate nothing: there is nothing to collect while they are timed.
	debug.SetGCPercent(-1)
	fmt.Fprintf(s.out, "built %d %d %d\n", built.Nanoseconds(), taken, taken)
	return nil
}

func (s *server) routes(count int) ([]route, error) {
	routes := make([]route, count)
	record := make([]byte, s.width+5)
	for at := range routes {
		if _, err := io.ReadFull(s.in, record); err != nil {
			return nil, err
		}
		addr, _ := netip.AddrFromSlice(record[:s.width])
		routes[at] = route{netip.PrefixFrom(addr, int(record[s.width])), binary.LittleEndian.Uint32(record[s.width+1:])}
	}
	return routes, nil
}

func (s *server) change(count int) error {
	routes, err := s.routes(count)
	if err != nil {
		return err
	}
	// Changes leave garbage, and collecting it is a part of what they take.
	debug.SetGCPercent(100)
	start := time.Now()
	s.table.change(routes)
	spent := time.Since(start)
	debug.SetGCPercent(-1)
	fmt.Fprintf(s.out, "changed %d\n", spent.Nanoseconds())
	return nil
}

func (s *server) load(count int) error {
	s.keys = make([]netip.Addr, count)
	bytes := make([]byte, s.width)
	for at := range s.keys {
		if _, err := io.ReadFull(s.in, bytes); err != nil {
			return err
		}
		s.keys[at], _ = netip.AddrFromSlice(bytes)
	}
	_, err := s.out.WriteString("ready\n")
	// What the keys before them took.
	runtime.GC()
	return err
}

// heap is what is in use after all that is not has been collected.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// threadTime is the time that this thread has had its core. getrusage, which needs no pointer, counts in ticks.
func threadTime() time.Duration {
	// CLOCK_THREAD_CPUTIME_ID of Linux.
	const ofThread = 3
	var now syscall.Timespec
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, ofThread, uintptr(unsafe.Pointer(&now)), 0); failed != 0 {
		return 0
	}
	return time.Duration(now.Nano())
}
