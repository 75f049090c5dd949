//! Instruction sets are found, named, forced and refused.

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
    assert_eq!([0, 1, 3, 4, 7].map(|at| byte_of(&table, at)), [1, 2, 4, 5, 8]);
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
kernel! {
    /// Each operation on the lanes of `a` and `b`, and on the indices `b`.
    fn operations(a: &[u32; LANES], b: &[u32; LANES], halves: Halves<'_>, out: &mut [[u32; LANES]; 3])
    vector op {
        let (a, b) = (op::load(a), op::load(b));
        let up_to = op::up_to(a, b);
        op::store(&mut out[0], op::compress(up_to, a));
        let union = op::union(a);
        op::store(&mut out[1], op::keep(up_to, op::splat(union)));
        op::store(&mut out[2], op::gather_pairs(halves, b));
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
            let b =
                core::array::from_fn(|lane| a[lane] - (!mask >> lane & 1) + (mask >> lane & lane as u32 & 1));
            let mut out = [[7; LANES]; 3];
            operations(isa, &a, &b, Halves::new(&halves), &mut out);
            let kept: Vec<u32> =
                (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| a[lane]).collect();
            assert_eq!(out[0][..kept.len()], kept, "{} {mask:#b}", isa.isa());
            let union = a.iter().fold(0, |all, lane| all | lane);
            assert_eq!(out[1], core::array::from_fn(|lane| (mask >> lane & 1) * union));
            assert_eq!(out[2], [0x1008_1007; LANES], "indices beyond the table read its last pair");
        }
        let mut out = [[0; LANES]; 3];
        operations(isa, &[0; LANES], &[0, 1, 2, 3, 4, 5, 6, 7], Halves::new(&halves), &mut out);
        assert_eq!(out[2], core::array::from_fn(|lane| 0x1001_1000 + 0x1_0001 * lane as u32));
    }
}
