//! Instruction sets are found, named, forced and refused.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::*;

#[test]
fn names_are_read_back() {
    for &isa in Isa::ALL {
        assert_eq!(isa.name().parse(), Ok(isa));
    }
    let error = "sse9".parse::<Isa>().unwrap_err().to_string();
    assert_eq!(error, "no instruction set 'sse9'; there are: scalar, avx2, avx512, avx512-icelake, neon");
}

#[test]
fn a_set_that_is_absent_is_refused_and_what_was_chosen_stays() {
    assert_eq!(Isa::Scalar.present(), Ok(Present::SCALAR));
    let before = chosen();
    for &isa in Isa::ALL {
        match isa.present() {
            Ok(present) => assert!(present <= before, "the best one was chosen"),
            Err(error) => {
                assert_eq!(force(Some(isa)), Err(error));
                assert_eq!(chosen(), before);
                assert!(error.to_string().contains("it has: scalar"));
            }
        }
    }
}

#[test]
fn bytes_are_read_lowest_first() {
    let table = [0x0403_0201, 0x0807_0605];
    assert_eq!([0, 1, 3, 4, 7].map(|at| u32::byte_of(&table, at)), [1, 2, 4, 5, 8]);
    let shared = table.map(AtomicU32::new);
    assert_eq!([0, 1, 3, 4, 7].map(|at| AtomicU32::byte_of(&shared, at)), [1, 2, 4, 5, 8]);
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// Each operation on the lanes of `a` and `b`, and on the indices `b`.
    fn operations(a: &[u32; LANES], b: &[u32; LANES], halves: Halves<'_>, out: &mut [[u32; LANES]; 6])
    vector op {
        let (a, b) = (op::load(a), op::load(b));
        let up_to = op::up_to(a, b);
        op::store(&mut out[0], op::compress(up_to, a));
        let union = op::union(a);
        op::store(&mut out[1], op::keep(up_to, op::splat(union)));
        op::store(&mut out[2], op::gather_pairs(halves, b));
        op::store(&mut out[3], op::xor(a, b));
        op::store(&mut out[4], op::mul(a, b));
        op::store(&mut out[5], op::mul_high(a, b));
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn operations_are_what_they_say_on_every_set() {
    let halves: Vec<u16> = (0..9).map(|at| 0x1000 + at).collect();
    for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
        for mask in 0..256u32 {
            // Above and below the sign bit, and equal.
            let a: [u32; LANES] = core::array::from_fn(|lane| lane as u32 | 1 << 31 >> (lane % 3));
            let b: [u32; LANES] =
                core::array::from_fn(|lane| a[lane] - (!mask >> lane & 1) + (mask >> lane & lane as u32 & 1));
            let mut out = [[7; LANES]; 6];
            operations(isa, &a, &b, Halves::new(&halves), &mut out);
            let kept: Vec<u32> =
                (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| a[lane]).collect();
            assert_eq!(out[0][..kept.len()], kept, "{} {mask:#b}", isa.isa());
            let union = a.iter().fold(0, |all, lane| all | lane);
            assert_eq!(out[1], core::array::from_fn(|lane| (mask >> lane & 1) * union));
            assert_eq!(out[2], [0x1008_1007; LANES], "indices beyond the table read its last pair");
            assert_eq!(out[3], core::array::from_fn(|lane| a[lane] ^ b[lane]));
            let product = |lane: usize| u64::from(a[lane]) * u64::from(b[lane]);
            assert_eq!(out[4], core::array::from_fn(|lane| product(lane) as u32));
            assert_eq!(out[5], core::array::from_fn(|lane| (product(lane) >> 32) as u32));
        }
        let mut out = [[0; LANES]; 6];
        operations(isa, &[0; LANES], &[0, 1, 2, 3, 4, 5, 6, 7], Halves::new(&halves), &mut out);
        assert_eq!(out[2], core::array::from_fn(|lane| 0x1001_1000 + 0x1_0001 * lane as u32));
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// Each operation of sixteen lanes on the lanes of `a`, of which the lowest bits are indices.
    fn wide(a: &[u32; WIDE], words: &[AtomicU32], longs: &[AtomicU64], out: &mut [[u32; WIDE]; 15])
    vector op {
        use op::wide;
        let (lanes, words, longs) = (wide::load(a), Words::new(words), Longs::new(longs));
        let leading = Leading::new(&words.slice()[..16], 4);
        let small = wide::and(lanes, wide::splat(127));
        let even = wide::eq(wide::and(lanes, wide::splat(1)), wide::splat(0));
        let table = wide::eight(&[10, 11, 12, 13, 14, 15, 16, 17]);
        let by = wide::sub(wide::splat(80), wide::and(lanes, wide::splat(63)));
        let [ranks, upper] = wide::ranks_and_upper(longs, small, by);
        let results = [
            wide::gather_leading(leading, lanes),
            wide::at_places(longs, wide::ranked(longs, small, by, even, lanes)),
            wide::gather(words, small),
            wide::ranks(longs, small, by),
            wide::at_bytes(longs, wide::add(small, wide::splat(500))),
            wide::pick(table, lanes),
            wide::select(even, lanes, small),
            wide::keep(wide::both(even, wide::test(lanes, wide::splat(4))), lanes),
            wide::add(wide::shlv(lanes, small), wide::shrv(lanes, small)),
            wide::or(wide::shl_by(lanes, wide::count(3)), wide::but(small, wide::shr::<5>(lanes))),
            ranks,
            upper,
            wide::ranks_at(longs, wide::add(small, wide::splat(500)), by),
            wide::byte_counts(lanes),
            wide::splat(wide::bits(wide::up_to(wide::shl::<1>(lanes), wide::shr_by(lanes, wide::count(1))))),
        ];
        out.iter_mut().zip(results).for_each(|(out, result)| wide::store(out, result));
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn wide_operations_are_what_they_say_on_every_set() {
    use crate::memory::Cell;
    let long = |at: u64| at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words: Vec<AtomicU32> = (0..20).map(|at| AtomicU32::new(long(at) as u32)).collect();
    let longs: Vec<AtomicU64> = (0..11 + Longs::MARGIN as u64).map(|at| AtomicU64::new(long(at))).collect();
    for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
        for round in 0..64 {
            let a: [u32; WIDE] = core::array::from_fn(|lane| long(round * 16 + lane as u64) as u32);
            let mut out = [[0; WIDE]; 15];
            wide(isa, &a, &words, &longs, &mut out);
            let mut compared = 0;
            for (lane, &a) in a.iter().enumerate() {
                let small = a & 127;
                let long = longs[(small as usize).min(10)].read();
                let left = |by: u32| a.checked_shl(by).unwrap_or(0);
                let shifted = |by: u32| left(by).wrapping_add(a.checked_shr(by).unwrap_or(0));
                let rank = long.checked_shl(80 - (a & 63)).unwrap_or(0).count_ones();
                let expected = [
                    words[a as usize >> 28].read(),
                    Longs::new(&longs)
                        .at_byte(8 * small.min(10) + 8 + if a % 2 == 0 { rank << (a & 3) } else { 0 }),
                    words[(small as usize).min(19)].read(),
                    rank,
                    Longs::new(&longs).at_byte((small + 500).min(612)),
                    10 + a % 8,
                    if a % 2 == 0 { a } else { small },
                    if a % 2 == 0 && a & 4 != 0 { a } else { 0 },
                    shifted(small),
                    a << 3 | (a >> 5 & !small),
                    rank,
                    (long >> 32) as u32,
                    Longs::new(&longs)
                        .long_at((small + 500).min(608))
                        .checked_shl(80 - (a & 63))
                        .unwrap_or(0)
                        .count_ones(),
                    u32::from_le_bytes(a.to_le_bytes().map(|byte| byte.count_ones() as u8)),
                ];
                compared |= u32::from(a << 1 <= a >> 1) << lane;
                assert_eq!(out.map(|lanes| lanes[lane])[..14], expected, "{} {a:x}", isa.isa());
            }
            assert_eq!(out[14], [compared; WIDE]);
        }
    }
}

#[test]
fn bytes_of_longs_are_read_lowest_first() {
    let mut longs = [0; 2 + Longs::MARGIN];
    longs[..2].copy_from_slice(&[0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09]);
    let longs = longs.map(AtomicU64::new);
    let longs = Longs::new(&longs);
    for offset in 0..=12 {
        let bytes = [1, 2, 3, 4].map(|at| (offset + at) as u8);
        assert_eq!(longs.at_byte(offset), u32::from_le_bytes(bytes));
        if offset <= 8 {
            let bytes = core::array::from_fn(|at| (offset + 1) as u8 + at as u8);
            assert_eq!(longs.long_at(offset), u64::from_le_bytes(bytes));
        }
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// Picks of two registers, and the columns of eight rows.
    fn registers(tables: &[[u32; LANES]; 2], index: &[u32; LANES], rows: &[[u32; LANES]; LANES], out: &mut [[u32; LANES]; 9])
    vector op {
        let picked = op::pick_of_two(op::load(&tables[0]), op::load(&tables[1]), op::load(index));
        op::store(&mut out[8], picked);
        for (out, column) in out.iter_mut().zip(op::columns(rows.each_ref())) {
            op::store(out, column);
        }
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn registers_are_picked_from_and_transposed_on_every_set() {
    let tables = [[100, 101, 102, 103, 104, 105, 106, 107], [108, 109, 110, 111, 112, 113, 114, 115]];
    let rows = core::array::from_fn(|row| core::array::from_fn(|column| (8 * row + column) as u32));
    for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
        for first in 0..16 {
            let index = core::array::from_fn(|lane| first + 5 * lane as u32);
            let mut out = [[0; LANES]; 9];
            registers(isa, &tables, &index, &rows, &mut out);
            assert_eq!(out[8], index.map(|index| 100 + index % 16), "{}", isa.isa());
            for (column, out) in out[..8].iter().enumerate() {
                assert_eq!(*out, rows.map(|row| row[column]), "{} {column}", isa.isa());
            }
        }
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// The searches of a line.
    fn searches(line: &SharedLine, key: u32) -> [u32; 2];
    vector op {
        [op::lines::rank(line, key), op::lines::leaf(line, key)]
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// The search of a leaf of codes.
    fn search_of_codes(lines: CodedLines<'_>, leaf: u32, key: u32) -> u32;
    vector op {
        #[allow(unused_imports)]
        use op as _;
        coded(lines, leaf, key)
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// The searches of sixteen lines.
    fn searches_of_many(lines: SharedLines<'_>, places: &[u32; WIDE], keys: &[u32; WIDE]) -> [[u32; WIDE]; 2];
    vector op {
        let mut found = [[0; WIDE]; 2];
        op::lines::double_ranks(lines, places, keys, &mut found[0]);
        op::lines::leaves(lines, places, keys, &mut found[1]);
        found
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn lines_of_many_lanes_are_searched_alike_on_every_set() {
    let long = |at: u64| at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Lines of any words: each search counts what is below.
    let words: Vec<AtomicU32> = (0..40 * 16).map(|at| AtomicU32::new((long(at) >> 32) as u32)).collect();
    let lines = SharedLines::new(&words);
    for round in 0..100 {
        let places = core::array::from_fn(|lane| 8 * (long(round * 16 + lane as u64) % 40) as u32);
        let keys = core::array::from_fn(|lane| (long(round * 16 + lane as u64 + 7) >> 16) as u32);
        let below = |lane: usize, count: usize| {
            let line = lines.at(places[lane]);
            line[..count].iter().filter(|word| (word.load(Relaxed) as i32) < keys[lane] as i32).count()
        };
        let ranks: [u32; WIDE] = core::array::from_fn(|lane| 2 * below(lane, 16) as u32);
        let leaves = core::array::from_fn(|lane| {
            half_of_shared(lines.at(places[lane]), 2 * LEAF_KEYS + below(lane, LEAF_KEYS))
        });
        for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
            assert_eq!(searches_of_many(isa, lines, &places, &keys), [ranks, leaves], "{}", isa.isa());
        }
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn lines_that_there_are_not_are_refused_on_every_set() {
    let words: Vec<AtomicU32> = (0..20).map(AtomicU32::new).collect();
    for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
        for (lane, place, is_there) in
            [(0, 2, true), (15, 2, true), (0, 3, false), (15, 3, false), (7, u32::MAX, false)]
        {
            let places = core::array::from_fn(|at| if at == lane { place } else { 0 });
            let search = || searches_of_many(isa, SharedLines::new(&words), &places, &[0; WIDE]);
            assert_eq!(std::panic::catch_unwind(search).is_ok(), is_there, "{} {lane} {place}", isa.isa());
        }
    }
}

#[test]
fn lines_are_searched_alike_on_every_set() {
    let long = |at: u64| at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for round in 0..200 {
        // Ascending keys over the whole range, then the padding; equal ones as well.
        let count = (round % 17) as usize;
        let mut keys: Vec<u32> = (0..count as u64).map(|at| (long(round + at) >> 32) as u32).collect();
        keys.sort_unstable_by_key(|&key| key as i32);
        keys.resize(16, i32::MAX as u32);
        // A leaf has ten of them, then values.
        let value = |at: usize| 0x8000 | (round as u32) << 4 | at as u32;
        let inner: SharedLine = core::array::from_fn(|at| AtomicU32::new(keys[at]));
        let leaf: SharedLine = core::array::from_fn(|at| {
            let values = || value(2 * at - 20) | value(2 * at - 19) << 16;
            AtomicU32::new(if at < LEAF_KEYS { keys[at] } else { values() })
        });
        // Or twelve, then codes.
        let code = |at: usize| (round as u32 * 16 + at as u32) & 0xff;
        let of_code = |code: u32| 0xabcd_0000 + 3 * code;
        let codes = |at: usize| (0..4).fold(0, |word, byte| word | code(4 * at - 48 + byte) << (8 * byte));
        let of_codes = (0..CODED_VALUES as u32).map(of_code);
        let words = (0..LINE_WORDS).map(|at| if at < CODED_KEYS { keys[at] } else { codes(at) });
        let words: Vec<AtomicU32> = of_codes.chain(words).map(AtomicU32::new).collect();
        let (lines, coded_leaf) = (CodedLines::new(&words), CODED_VALUES as u32 / 2);
        let around = keys.iter().flat_map(|&key| [key.wrapping_sub(1), key, key.wrapping_add(1)]);
        for key in around.chain([0, 1, i32::MAX as u32, i32::MIN as u32, u32::MAX]) {
            let rank = keys.iter().filter(|&&at| (at as i32) < key as i32).count() as u32;
            let below = |count: usize| keys[..count].iter().filter(|&&at| (at as i32) < key as i32).count();
            let (found, found_code) = (value(below(LEAF_KEYS)), of_code(code(below(CODED_KEYS))));
            assert_eq!(rank_by_thirds(&inner, key), rank);
            assert_eq!(leaf_by_thirds(&leaf, key), found);
            assert_eq!(coded_by_thirds(lines, coded_leaf, key), found_code);
            #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
            for isa in Present::all().filter(|&isa| isa != Present::SCALAR) {
                assert_eq!(searches(isa, &inner, key)[0], rank, "{} {key:x}", isa.isa());
                assert_eq!(searches(isa, &leaf, key)[1], found, "{} {key:x}", isa.isa());
                assert_eq!(search_of_codes(isa, lines, coded_leaf, key), found_code, "{} {key:x}", isa.isa());
            }
        }
    }
}
