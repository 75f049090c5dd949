//! Forwarding does not allocate: an allocator that counts sees nothing while bursts are handled.
#![allow(unsafe_code)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use support::frames::build;
use support::network::Network;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn forwarding_does_not_allocate() {
    let mut network = Network::new();
    let texts = [
        "eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 198.51.2.1 / udp 1 2",
        "eth R0 a / ip6 2001:db8::1 2001:db8:1::1 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 198.51.5.1 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 198.51.7.1 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 10.0.1.1 proto=200 / data 1400",
        "eth R0 a / ip4 10.0.0.1 10.0.1.77 / udp 1 2",
        "eth ALL 7 / arp request 7 10.0.0.7 NONE 10.0.0.254",
    ];
    let mut counts = Vec::new();
    for _ in 0..6 {
        for text in texts {
            network.io.ports[0].input.extend((0..8).map(|_| {
                let mut bytes = build(text, &[]).bytes;
                // Headroom for a tag, as a ring has it.
                bytes.reserve(4);
                bytes.into()
            }));
        }
        // The memory ports' own vectors grow in the first rounds.
        network.io.ports.iter_mut().for_each(|port| port.output.reserve(1000));
        // Room for what the router makes, as a ring has it.
        network.io.recycle((0..200).map(|_| Vec::with_capacity(2048).into()));
        let before = COUNT.with(Cell::get);
        network.worker.burst(&mut network.io, 0, 0);
        counts.push(COUNT.with(Cell::get) - before);
        for port in 0..network.io.ports.len() {
            let frames = network.io.take_output(port);
            network.io.recycle(frames);
        }
    }
    assert_eq!(counts.last(), Some(&0), "{counts:?}");
    network.check();
}
