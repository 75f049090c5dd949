//! Packets that wait for the MAC address of a neighbour. Each neighbour has few of them, none waits for long, and all memory is
//! allocated at the start.

use crate::io::Offload;
use crate::neighbour::Key;

/// Most packets of one worker that may wait.
const SLOTS: usize = 256;
/// Most packets that may wait for one neighbour.
const PER_NEIGHBOUR: usize = 16;
/// How long a packet waits at most. Three requests take this long.
const PATIENCE_NS: u64 = 3_500_000_000;

/// A waiting packet, as it was received.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The neighbour.
    pub(super) key: Key,
    /// Port on which it was received; `None` if the router made it.
    pub(super) from: Option<usize>,
    /// Interface on which it was received.
    pub(super) interface: u16,
    pub(super) offload: Offload,
    pub(super) until_ns: u64,
    len: usize,
    room: Box<[u8]>,
    live: bool,
}

impl Waiting {
    /// Returns the packet.
    pub(super) fn packet(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

/// The waiting packets of one worker.
#[derive(Debug)]
pub(super) struct Pending {
    slots: Vec<Waiting>,
    live: usize,
    /// No packet times out before this time.
    pub(super) next_ns: u64,
}

impl Pending {
    /// Makes room for packets of up to `largest` bytes.
    pub(super) fn new(largest: usize) -> Self {
        let slot = || Waiting {
            key: Key::v4(0, 0),
            from: None,
            interface: 0,
            offload: Offload::default(),
            until_ns: 0,
            len: 0,
            room: vec![0; largest].into_boxed_slice(),
            live: false,
        };
        Self { slots: (0..SLOTS).map(|_| slot()).collect(), live: 0, next_ns: u64::MAX }
    }

    /// Returns the number of waiting packets.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Returns the packet in a slot; `None` if the slot is free.
    pub(super) fn get(&self, index: usize) -> Option<&Waiting> {
        self.slots.get(index).filter(|slot| slot.live)
    }

    /// Returns the number of slots to search: all, or none if no packet waits.
    pub(super) fn slots(&self) -> usize {
        if self.live == 0 { 0 } else { self.slots.len() }
    }

    /// Frees a slot.
    pub(super) fn release(&mut self, index: usize) {
        self.slots[index].live = false;
        self.live -= 1;
    }

    /// If no slot is free, frees one whose neighbour is not `sought` any more. Returns the port of its packet.
    pub(super) fn make_room(&mut self, sought: impl Fn(&Key) -> bool) -> Option<Option<usize>> {
        if self.live < self.slots.len() {
            return None;
        }
        let index = self.slots.iter().position(|slot| !sought(&slot.key))?;
        self.release(index);
        Some(self.slots[index].from)
    }

    /// Keeps a packet. Returns `false` if there is no free slot, if this neighbour has too many packets, or if the packet is too
    /// large.
    pub(super) fn push(
        &mut self,
        key: Key,
        from: Option<usize>,
        interface: u16,
        packet: &[u8],
        offload: Offload,
        now_ns: u64,
    ) -> bool {
        let (mut free, mut same) = (None, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            if !slot.live {
                free = free.or(Some(index));
            } else if slot.key == key {
                same += 1;
            }
        }
        // One neighbour that does not answer must not take the slots of all others.
        let Some(index) = free.filter(|_| same < PER_NEIGHBOUR) else { return false };
        let slot = &mut self.slots[index];
        let Some(room) = slot.room.get_mut(..packet.len()) else { return false };
        room.copy_from_slice(packet);
        slot.len = packet.len();
        slot.key = key;
        slot.from = from;
        slot.interface = interface;
        slot.offload = offload;
        slot.until_ns = now_ns + PATIENCE_NS;
        slot.live = true;
        self.live += 1;
        self.next_ns = self.next_ns.min(slot.until_ns);
        true
    }

    /// Updates the time at which the next packet times out.
    pub(super) fn reckon(&mut self) {
        let live = self.slots.iter().filter(|slot| slot.live);
        self.next_ns = live.map(|slot| slot.until_ns).min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_limited_in_all_and_for_each_neighbour() {
        let mut pending = Pending::new(100);
        let mut push = |neighbour, len: usize| {
            pending.push(Key::v4(1, neighbour), None, 0, &vec![0; len], Offload::default(), 5)
        };
        assert!(!push(1, 101), "too long");
        assert_eq!((0..100).filter(|_| push(1, 100)).count(), PER_NEIGHBOUR);
        assert_eq!((2..1000).filter(|&n| push(n, 1)).count(), SLOTS - PER_NEIGHBOUR);
        assert_eq!(pending.next_ns, 5 + PATIENCE_NS);
        // Of a full room, only the slot of a neighbour that is not looked for any more.
        assert_eq!(pending.make_room(|_| true), None);
        assert_eq!(pending.make_room(|key| *key != Key::v4(1, 7)), Some(None));
        assert_eq!(pending.make_room(|_| false), None, "there is room");
        assert!(pending.push(Key::v4(1, 7), Some(3), 0, &[0], Offload::default(), 5));
        for index in 0..SLOTS {
            pending.release(index);
        }
        assert_eq!((pending.len(), pending.slots()), (0, 0));
    }
}
