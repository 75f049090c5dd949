//! The vector kernels: the way to the trees eight keys at a time, and nodes searched in registers.

use crate::net::Key;
use crate::simd::{Bytes, LANES, Places, Walks, Words, kernel};

use super::layout::{GROUND, ROOTS, SHIFT_BITS, below_bit, cut, head, window};
use super::scalar::{Scratch, View, block as scalar, descend, one as one_scalar};
use crate::fib::parts::intervals;

kernel! {
    /// The values of a block of keys; lanes whose values lead below are noted.
    pub(super) fn block<K: Key>[const LEAF_KEYS: u32](
        view: View<'_>,
        keys: &[[K; LANES]],
        found: &mut [[u32; LANES]],
        scratch: &mut Scratch<'_, K>,
    )
    scalar scalar::<K, LEAF_KEYS>;
    vector op {
        // Entries are gathered, and with them the slots; slots are loaded one by one: while gathers are under way,
        // nothing else begins.
        let direct = Words::new(view.direct);
        let direct_at = op::count(32 - view.direct_bits);
        let first = op::splat(view.first);
        let (shift, ground) = (op::splat((1 << SHIFT_BITS) - 1), op::splat(GROUND - 1));
        let mut places = Places::new(Bytes::new(view.slots), found);
        for (keys, window_of) in keys.iter().zip(&mut *scratch.windows) {
            let (head, window) = if let Some(keys) = K::as_ipv6(keys).and_then(<[_]>::first_chunk) {
                let [high, next] = op::high_words(keys);
                (high, op::or(op::shl::<16>(high), op::shr::<16>(next)))
            } else {
                let upper = keys.map(|key| intervals::upper(key, cut::<K>().upper_bits));
                (op::load(&upper.map(head::<K>)), op::load(&upper.map(window)))
            };
            op::store(window_of, window);
            // Leading bits without an entry are beyond the last one, which is theirs.
            let entry = op::gather(direct, op::sub(op::shr_by(head, direct_at), first));
            let below = op::shrv(window, op::and(entry, shift));
            let slot = op::and(op::add(op::shr::<{ SHIFT_BITS as i32 }>(entry), below), ground);
            op::place(places.lanes(), op::shl::<2>(slot));
        }
        places.read::<2>();

        let (one, mark) = (op::splat(1), op::splat(ROOTS));
        let mut walks = Walks::new(view.nodes, found);
        let (mut noted, mut all) = (0, op::splat(0));
        for at in 0..keys.len() {
            let tree = op::load(walks.lanes().before());
            let roots = op::and(tree, mark);
            all = op::or(all, roots);
            // Without asking whether there are any: one vector in two has some.
            noted = scratch.noted.vector_after(noted, at, op::bits(op::up_to(one, roots)));
            op::place(walks.lanes(), tree);
        }
        scratch.noted.set_count(noted);
        descend::<K, LEAF_KEYS>(
            walks,
            op::union(all),
            scratch,
            |line, window| op::rank_first::<16>(line, window),
            |line, window| op::rank_first::<LEAF_KEYS>(line, window),
        );
        let below = op::splat(const { below_bit(LEAF_KEYS) });
        for (at, found) in found.iter().enumerate() {
            let lanes = op::bits(op::test(op::load(found), below));
            if lanes != 0 {
                scratch.noted.vector(at, lanes);
            }
        }
    }
}

kernel! {
    /// [`View::one`].
    pub(super) fn one<K: Key>[const LEAF_KEYS: u32](view: View<'_>, upper: u64) -> u32;
    scalar one_scalar::<K, LEAF_KEYS>;
    vector op {
        view.one::<K, LEAF_KEYS>(
            upper,
            |line, window| op::rank_first::<16>(line, window),
            |line, window| op::rank_first::<LEAF_KEYS>(line, window),
        )
    }
}
