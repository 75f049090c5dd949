//! The vector kernel: a block of keys in stages, eight lanes at a time.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use crate::fib::parts::lanes::{BLOCK, Deferred};
use crate::fib::parts::overflow::width_mask;
use crate::simd::{Bytes, LANES, Leading, Places, Room, Words, kernel};

use super::scalar::{View, block as scalar, live_block as live_scalar, note as note_scalar};

kernel! {
    /// Looks up a block of keys in lines with values of 2^`WIDTH` bytes, and says whether a lane has a deeper slot.
    pub(super) fn block[const WIDTH: u32](
        view: &View<'_, u32>,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
        is_deeper: &mut bool,
    )
    scalar scalar::<WIDTH>;
    no icelake;
    vector op {
        let windows = view.windows;
        let direct = Words::new(view.direct);

        // The direct entries are gathered. The places of the values are computed with them.
        let direct_at = op::count(32 - windows.direct_bits);
        let slot_at = op::count(32 - windows.direct_bits - windows.slot_bits - WIDTH);
        let slots = op::splat((windows.slots() as u32 - 1) << WIDTH);
        let mut places = Places::new(Bytes::new(view.lines), found);
        for keys in keys {
            let key = op::load(keys);
            let entry = op::gather(direct, op::shr_by(key, direct_at));
            op::place(places.lanes(), op::add(entry, op::and(op::shr_by(key, slot_at), slots)));
        }
        // The values are loaded one by one, because nothing else begins while gathers are under way.
        places.read::<WIDTH>();
        let mask = op::splat(width_mask(WIDTH));
        *is_deeper = found.iter().fold(0, |any, found| any | op::bits(op::eq(op::load(found), mask))) != 0;
    }
}

kernel! {
    /// Does the same for lines that a writer may change. The bytes of the values stay in `room`.
    pub(super) fn live_block[const WIDTH: u32](
        view: &View<'_, AtomicU32>,
        keys: &[[u32; LANES]],
        room: &mut Room<BLOCK>,
        found: &mut [[u32; LANES]],
        is_deeper: &mut bool,
    )
    scalar live_scalar::<WIDTH>;
    no icelake;
    vector op {
        let windows = view.windows;
        let direct = Leading::new(view.direct, windows.direct_bits);
        let slot_at = op::count(32 - windows.direct_bits - windows.slot_bits - WIDTH);
        let slots = op::splat((windows.slots() as u32 - 1) << WIDTH);
        let mut places = Places::in_room(Bytes::new(view.lines), room);
        for keys in keys {
            let key = op::load(keys);
            let entry = op::gather_leading(direct, key);
            op::place(places.lanes(), op::add(op::and(op::shr_by(key, slot_at), slots), entry));
        }
        // A writer publishes a line by its entry, so the entries are loaded before anything of the lines.
        fence(Ordering::Acquire);
        places.read_beside::<WIDTH>(found);
        let mask = op::splat(width_mask(WIDTH));
        *is_deeper = found.iter().fold(0, |any, found| any | op::bits(op::eq(op::load(found), mask))) != 0;
    }
}

kernel! {
    /// Notes the lanes with deeper slots, given their values of 2^`WIDTH` bytes.
    pub(super) fn note[const WIDTH: u32](found: &[[u32; LANES]], noted: &mut Deferred)
    scalar note_scalar::<WIDTH>;
    no icelake;
    vector op {
        let mask = op::splat(width_mask(WIDTH));
        for (at, found) in found.iter().enumerate() {
            let deeper = op::bits(op::eq(op::load(found), mask));
            if deeper != 0 {
                noted.vector(at, deeper);
            }
        }
    }
}
