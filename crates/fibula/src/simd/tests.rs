//! What the machine has, and that it can be named, forced and refused.

use super::*;

#[test]
fn names_are_read_back() {
    for &isa in Isa::ALL {
        assert_eq!(isa.name().parse(), Ok(isa));
    }
    let error = "sse9".parse::<Isa>().unwrap_err().to_string();
    assert_eq!(error, "no instruction set 'sse9'; there are: scalar, avx2, avx512, avx512-icelake");
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
    let table = Bytes::new(&[0x0403_0201, 0x0807_0605]);
    assert_eq!([0, 1, 3, 4, 7].map(|at| table.byte(at)), [1, 2, 4, 5, 8]);
}
