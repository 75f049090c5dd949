//! A unit as bytes: two bitmaps of changes without their zeros, and the values between the changes.

use crate::fib::parts::overflow::width_mask;

/// Most bytes that units have in common: longer ones are rare, and looking for them takes time.
const COMMON: usize = 16;

/// Slots of a unit, at most, and those of a half.
const SLOTS: usize = 128;
const HALF: usize = SLOTS / 2;

/// Most bytes of a unit: a value of 32 bits for each slot and one that is doubled, two bitmaps, the place of a map.
pub(super) const MOST: usize = 4 * (SLOTS + 1) + SLOTS / 8 + 4;

/// The bytes of a unit. They have room here and not in memory of their own, so that the limits of a build count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnitBytes {
    /// Which bytes of the bitmaps are stored.
    pub(super) mask: u32,
    /// How many bytes come before the first stored one.
    pub(super) before: usize,
    len: usize,
    /// The values of the first half, last first; the stored bytes; the values of the second half; the place of the map, if any; zeros.
    room: [u8; MOST],
}

impl UnitBytes {
    /// Encodes slots: next hops, or more than 32 bits for deeper ones, whose map is at this word of the overflow.
    pub(super) fn new(slots: &[u64], map: Option<u32>, width: u32) -> Self {
        let ones = u64::from(width_mask(width));
        let halves = slots.split_at(slots.len() / 2);
        let (mut mask, mut stored, mut bytes_stored) = (0, [0; SLOTS / 8], 0);
        let (mut values, mut counts) = ([[0; HALF + 1]; 2], [0; 2]);
        for (half, slots) in [halves.0, halves.1].into_iter().enumerate() {
            let mut last = None;
            for (byte, slots) in slots.chunks(8).enumerate() {
                let mut changes = 0;
                for (bit, slot) in slots.iter().map(|&slot| slot.min(ones) as u32).enumerate() {
                    if last != Some(slot) {
                        changes |= u8::from(last.is_some()) << bit;
                        values[half][counts[half]] = slot;
                        counts[half] += 1;
                        last = Some(slot);
                    }
                }
                if changes != 0 {
                    mask |= 1 << (8 * half + byte);
                    stored[bytes_stored] = changes;
                    bytes_stored += 1;
                }
            }
        }
        if mask == 0 {
            // An entry without a mask has no unit. So the second half begins with a change, to a value that it has twice.
            mask = 1 << 8;
            stored[0] = 1;
            bytes_stored = 1;
            values[1][1] = values[1][0];
            counts[1] = 2;
        }
        let size = 1 << width;
        let mut unit = Self { mask, before: 0, len: 0, room: [0; MOST] };
        for value in values[0][..counts[0]].iter().rev() {
            unit.put(&value.to_le_bytes()[..size]);
        }
        unit.before = unit.len;
        unit.put(&stored[..bytes_stored]);
        for value in &values[1][..counts[1]] {
            unit.put(&value.to_le_bytes()[..size]);
        }
        if let Some(map) = map {
            unit.put(&map.to_le_bytes());
        }
        unit
    }

    fn put(&mut self, bytes: &[u8]) {
        self.room[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Returns the bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    /// Returns how many of the first bytes of this unit, at most [`COMMON`], are the last bytes of what is before it.
    pub(super) fn overlap(&self, before: &[u8]) -> usize {
        let most = self.len.min(before.len()).min(COMMON);
        (1..=most).rev().find(|&count| before.ends_with(&self.room[..count])).unwrap_or(0)
    }

    /// Decodes the unit of an entry: as many slots as there are bits, and the place of the map if one is deeper. `place` is that of the
    /// first stored byte. `None` if the unit is not within the bytes.
    pub(super) fn read(
        bytes: &[u8],
        place: usize,
        mask: u32,
        slots: usize,
        width: u32,
    ) -> Option<(Vec<u32>, Option<u32>)> {
        let counts = [mask & 0xff, mask >> 8].map(|mask| mask.count_ones() as usize);
        let stored = bytes.get(place..place.checked_add(counts[0] + counts[1])?)?;
        let values = place + stored.len();
        let (first, second) = stored.split_at(counts[0]);
        let size = 1 << width;
        let mut found = Vec::with_capacity(slots);
        let mut rank = 0;
        for (half, mut stored) in [first, second].into_iter().enumerate() {
            rank = 0;
            for slot in 0..slots / 2 {
                let (byte, bit) = (slot / 8, slot % 8);
                if mask >> (8 * half + byte) & 1 == 1 {
                    rank += usize::from(stored.first()? >> bit & 1);
                    if bit == 7 {
                        stored = &stored[1..];
                    }
                }
                let at = if half == 0 {
                    place.checked_sub(size * (rank + 1))?
                } else {
                    values.checked_add(size * rank)?
                };
                let mut value = [0; 4];
                value[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
                found.push(u32::from_le_bytes(value));
            }
        }
        if !found.contains(&width_mask(width)) {
            return Some((found, None));
        }
        let map = values + size * (rank + 1);
        Some((found, Some(u32::from_le_bytes(*bytes.get(map..)?.first_chunk()?))))
    }
}
