// A loader with cilium/ebpf: takes pinned maps, of which the library itself refuses other sizes, and runs the program once for each source.
//
//	loader OBJECT NAME=PINS... -- SOURCE...: prints each source and what the program does with its packet; code 3 if it is refused
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
)

const drop = 1

// frame returns a frame from an address, with as much of its headers as the program reads.
func frame(source string) []byte {
	frame := make([]byte, 64)
	copy(frame[12:], []byte{8, 0, 0x45})
	copy(frame[26:], net.ParseIP(source).To4())
	return frame
}

func run(object string, tables, sources []string) error {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return err
	}
	maps := map[string]*ebpf.Map{}
	for _, table := range tables {
		name, pins, _ := strings.Cut(table, "=")
		for definition := range spec.Maps {
			if part, of := strings.CutPrefix(definition, name+"_"); of {
				if maps[definition], err = ebpf.LoadPinnedMap(filepath.Join(pins, part), nil); err != nil {
					return err
				}
			}
		}
	}
	collection, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return err
	}
	defer collection.Close()
	for _, source := range sources {
		verdict, _, err := collection.Programs["block"].Test(frame(source))
		if err != nil {
			return err
		}
		fmt.Println(source, map[bool]string{true: "drop", false: "pass"}[verdict == drop])
	}
	return nil
}

func main() {
	at := len(os.Args)
	for n, word := range os.Args {
		if word == "--" {
			at = n
		}
	}
	if at < 3 || at == len(os.Args) {
		fmt.Println("loader OBJECT NAME=PINS... -- SOURCE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:at], os.Args[at+1:]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
}
