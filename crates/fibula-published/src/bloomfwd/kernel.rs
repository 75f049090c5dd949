//! The kernels: hashes of eight keys, and one gather of the filter's bits for each hash function.

use crate::bloom::hash::{FMIX32, FMIX64, H2, Hash, KNUTH, KNUTH_SECOND, SECOND};
use fibula::unstable::simd::{LANES, kernel};

use super::scalar::View;

/// The numbers by which kernels know the hash functions.
pub(super) const MURMUR: u8 = 0;
pub(super) const KNUTH_S: u8 = 1;
pub(super) const H2_S: u8 = 2;

kernel! {
    /// Looks up keys of 32 bits in a filter: bit `i` of `passed` is set where it has the prefix of lane `i` of the vector,
    /// and `firsts` are the first hashes.
    pub(super) fn probe32[const HASH: u8](
        view: &View<'_>,
        keys: &[[u32; LANES]],
        firsts: &mut [[u32; LANES]],
        passed: &mut [u8],
    )
    vector op {
        let mask = op::splat(view.mask[1]);
        let size = op::splat(view.size.size);
        let magic = op::splat(view.size.magic);
        let shifts = (op::count(view.size.first), op::count(view.size.second));
        let (one, low) = (op::splat(1), op::splat(31));
        let second = op::splat(SECOND);
        let (c0, c1) = match HASH {
            MURMUR => (op::splat(FMIX32[0]), op::splat(FMIX32[1])),
            KNUTH_S => (op::splat(KNUTH), op::splat(KNUTH_SECOND)),
            _ => (op::splat(H2), op::splat(H2)),
        };
        let mixed = |key| {
            let x = op::mul(op::xor(key, op::shr::<16>(key)), c0);
            let x = if HASH == MURMUR { op::xor(x, op::shr::<13>(x)) } else { op::xor(x, op::shr::<16>(x)) };
            let x = op::mul(x, c1);
            op::xor(x, op::shr::<16>(x))
        };
        for ((keys, firsts), passed) in keys.iter().zip(firsts).zip(passed) {
            let key = op::and(op::load(keys), mask);
            let (mut next, step) = if HASH == KNUTH_S {
                (op::mul(key, c0), op::mul(key, c1))
            } else {
                (mixed(key), mixed(op::xor(key, second)))
            };
            op::store(firsts, next);
            let mut found = one;
            for round in 0..view.hashes {
                let high = op::mul_high(next, magic);
                let half = op::shr_by(op::sub(next, high), shifts.0);
                let quotient = op::shr_by(op::add(high, half), shifts.1);
                let at = op::sub(next, op::mul(quotient, size));
                let word = op::gather(view.bits, op::shr::<5>(at));
                found = op::and(found, op::shrv(word, op::and(at, low)));
                // A filter is half full: hardly ever has no lane passed after two hashes, and few after four.
                if round >= 2 && op::bits(op::test(found, one)) == 0 {
                    break;
                }
                next = op::add(next, step);
            }
            *passed = op::bits(op::test(found, one)) as u8;
        }
    }
}

kernel! {
    /// Looks up keys of 64 bits in a filter, as [`probe32`] does.
    pub(super) fn probe64(
        view: &View<'_>,
        high: &[[u32; LANES]],
        low: &[[u32; LANES]],
        firsts: &mut [[u32; LANES]],
        passed: &mut [u8],
    )
    vector op {
        let (mask_high, mask_low) = (op::splat(view.mask[0]), op::splat(view.mask[1]));
        let size = op::splat(view.size.size);
        let magic = op::splat(view.size.magic);
        let shifts = (op::count(view.size.first), op::count(view.size.second));
        let (one, lowest) = (op::splat(1), op::splat(31));
        let constants = FMIX64.map(|c| (op::splat((c >> 32) as u32), op::splat(c as u32)));
        // Lanes of 64 bits as pairs of halves: x ^ x >> 33, and a product modulo 2^64.
        let mixed = |high, low, (c_high, c_low)| {
            let low = op::xor(low, op::shr::<1>(high));
            let upper = op::add(op::mul(low, c_high), op::mul(high, c_low));
            (op::add(op::mul_high(low, c_low), upper), op::mul(low, c_low))
        };
        for (((high, low), firsts), passed) in high.iter().zip(low).zip(firsts).zip(passed) {
            let (high, low) = (op::and(op::load(high), mask_high), op::and(op::load(low), mask_low));
            let (high, low) = mixed(high, low, constants[0]);
            let (step, low) = mixed(high, low, constants[1]);
            let mut next = op::xor(low, op::shr::<1>(step));
            op::store(firsts, next);
            let mut found = one;
            for round in 0..view.hashes {
                let upper = op::mul_high(next, magic);
                let half = op::shr_by(op::sub(next, upper), shifts.0);
                let quotient = op::shr_by(op::add(upper, half), shifts.1);
                let at = op::sub(next, op::mul(quotient, size));
                let word = op::gather(view.bits, op::shr::<5>(at));
                found = op::and(found, op::shrv(word, op::and(at, lowest)));
                if round >= 2 && op::bits(op::test(found, one)) == 0 {
                    break;
                }
                next = op::add(next, step);
            }
            *passed = op::bits(op::test(found, one)) as u8;
        }
    }
}

kernel! {
    /// [`probe32`] in portable code, of which the compiler makes vectors of the set.
    pub(super) fn compiled32[const HASH: u8](
        view: &View<'_>,
        keys: &[[u32; LANES]],
        firsts: &mut [[u32; LANES]],
        passed: &mut [u8],
    )
    vector op {
        let _ = op::splat(0);
        let hash = match HASH {
            MURMUR => Hash::Murmur,
            KNUTH_S => Hash::Knuth,
            _ => Hash::H2,
        };
        for ((keys, firsts), passed) in keys.iter().zip(firsts).zip(passed) {
            *passed = view.probe32(hash, keys, firsts);
        }
    }
}

kernel! {
    /// [`probe64`] in portable code, of which the compiler makes vectors of the set.
    pub(super) fn compiled64(
        view: &View<'_>,
        high: &[[u32; LANES]],
        low: &[[u32; LANES]],
        firsts: &mut [[u32; LANES]],
        passed: &mut [u8],
    )
    vector op {
        let _ = op::splat(0);
        for (((high, low), firsts), passed) in high.iter().zip(low).zip(firsts).zip(passed) {
            *passed = view.probe64(high, low, firsts);
        }
    }
}
