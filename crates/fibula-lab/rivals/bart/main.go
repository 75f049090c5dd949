// bart's tables, served over the protocol of rival/external/mod.rs. The loops are written once for each type of table:
// through an interface or a type parameter each lookup would be called through a table of functions.
package main

import (
	"net/netip"

	"github.com/gaissmai/bart"
)

// plain is bart.Table, the smaller one.
type plain struct{ of *bart.Table[uint32] }

// fast is bart.Fast. Its methods repeat plain's: a call through a type parameter or an interface would be indirect, in the
// loop that is timed.
type fast struct{ of *bart.Fast[uint32] }

func (t *plain) insert(routes []route) {
	of := t.of
	for _, route := range routes {
		of.Insert(route.prefix, route.nextHop)
	}
}

func (t *plain) change(routes []route) {
	of := t.of
	for _, route := range routes {
		// Readers of the table before keep it.
		if route.nextHop == 0 {
			of = of.DeletePersist(route.prefix)
		} else {
			of = of.InsertPersist(route.prefix, route.nextHop)
		}
	}
	t.of = of
}

func (t *plain) answer(keys []netip.Addr, dependent bool, answers []uint32) {
	of := t.of
	var last uint32
	for at, key := range keys {
		if dependent {
			key = keys[at+int(last&nothing)]
		}
		// Without a match, the value is 0.
		last, _ = of.Lookup(key)
		answers[at] = last
	}
}

func (t *plain) pass(keys []netip.Addr, dependent bool) {
	of := t.of
	var last, all uint32
	if dependent {
		for at := range keys {
			last, _ = of.Lookup(keys[at+int(last&nothing)])
		}
	} else {
		for _, key := range keys {
			found, _ := of.Lookup(key)
			all ^= found
		}
	}
	sink = all ^ last
}

func (t *fast) insert(routes []route) {
	of := t.of
	for _, route := range routes {
		of.Insert(route.prefix, route.nextHop)
	}
}

func (t *fast) change(routes []route) {
	of := t.of
	for _, route := range routes {
		// Readers of the table before keep it.
		if route.nextHop == 0 {
			of = of.DeletePersist(route.prefix)
		} else {
			of = of.InsertPersist(route.prefix, route.nextHop)
		}
	}
	t.of = of
}

func (t *fast) answer(keys []netip.Addr, dependent bool, answers []uint32) {
	of := t.of
	var last uint32
	for at, key := range keys {
		if dependent {
			key = keys[at+int(last&nothing)]
		}
		last, _ = of.Lookup(key)
		answers[at] = last
	}
}

func (t *fast) pass(keys []netip.Addr, dependent bool) {
	of := t.of
	var last, all uint32
	if dependent {
		for at := range keys {
			last, _ = of.Lookup(keys[at+int(last&nothing)])
		}
	} else {
		for _, key := range keys {
			found, _ := of.Lookup(key)
			all ^= found
		}
	}
	sink = all ^ last
}
