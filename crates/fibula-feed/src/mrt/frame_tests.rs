//! Where records begin, at damage and at the end of what is there.

use super::tests::{message, nlri, record, update};
use super::*;
use crate::event::Time;

/// A record of a kind that is read.
fn one() -> Vec<u8> {
    message("192.0.2.1", 4, &update(&nlri("10.0.0.0/8"), &[], &[]))
}

/// The frame, and the steps that it took to find.
fn frame(bytes: &[u8], last: bool) -> (Frame, u64) {
    let mut steps = 0;
    let frame = Frame::counted(bytes, last, &mut steps);
    (frame, steps)
}

fn whole(bytes: &[u8]) -> Frame {
    Frame::Record(Header::read(bytes).unwrap())
}

#[test]
fn only_zeros_throughout_are_no_header() {
    for (kind, seconds, len, plausible) in
        [(0, 0, 0, false), (0, 1, 0, true), (0, 0, 1, true), (13, 0, 0, true), (11, 0, 0, true)]
    {
        let header = Header { time: Time { seconds, micros: None }, kind, subtype: 0, len };
        assert_eq!(header.is_plausible(), plausible, "{header:?}");
    }
}

#[test]
fn a_record_is_believed_by_what_follows_it() {
    let one = one();
    let two = one.repeat(2);
    assert_eq!(frame(&two, true), (whole(&one), 1));
    // The header of the next record is enough; of the end nothing is needed, unless more bytes may come.
    for next in 0..12 {
        assert_eq!(frame(&two[..one.len() + next], false).0, Frame::More, "{next}");
        assert_eq!(frame(&two[..one.len() + next], true), (whole(&one), 1), "{next}");
    }
    assert_eq!(frame(&two[..one.len() + 12], false), (whole(&one), 1));
    // OSPF is not read, and a header all the same.
    let ospf = [one.clone(), record(11, 0, &[0; 30])].concat();
    assert_eq!(frame(&ospf[..one.len() + 12], false), (whole(&one), 1));
    for have in 0..one.len() {
        assert_eq!(frame(&one[..have], false).0, Frame::More, "{have}");
        assert_eq!(frame(&one[..have], true).0, Frame::Cut, "{have}");
    }
}

#[test]
fn damage_ends_where_two_records_follow_each_other() {
    let one = one();
    let noise = |count: usize| vec![0xfe; count];
    // A step for the header, and one for each place up to the record.
    for count in [12, 13, 40] {
        assert_eq!(
            frame(&[noise(count), one.repeat(2)].concat(), false),
            (Frame::Lost(count), 1 + count as u64)
        );
    }
    // At the end of the file one record is enough; before it more bytes may tell.
    let then_one = [noise(20), one.clone()].concat();
    assert_eq!(frame(&then_one, true).0, Frame::Lost(20));
    assert_eq!(frame(&then_one, false).0, Frame::More);
    // What may be the rest of a long record takes two.
    let mut long = record(13, 2, &[]);
    long[9] = 1;
    assert_eq!(frame(&[long.clone(), one.clone()].concat(), true).0, Frame::Cut);
    assert_eq!(frame(&[long.clone(), one.repeat(2)].concat(), true).0, Frame::Lost(12));
    assert_eq!(frame(&[long, one.repeat(2)].concat(), false).0, Frame::More);
    // Kinds that are not read are too easily found by chance.
    let ospf = record(11, 0, &[0xfe; 30]);
    assert_eq!(frame(&[noise(20), ospf.repeat(3)].concat(), true).0, Frame::Lost(20 + 3 * ospf.len()));
    assert_eq!(
        frame(&[noise(20), ospf.clone(), one.repeat(2)].concat(), true).0,
        Frame::Lost(20 + ospf.len())
    );
    assert_eq!(
        frame(&[noise(20), one.clone(), ospf, one.repeat(2)].concat(), true).0,
        Frame::Lost(20 + one.len() + 42)
    );
}

#[test]
fn a_length_that_does_not_fit_is_not_believed() {
    let one = one();
    let with_len = |change: i32| {
        let mut bytes = one.repeat(4);
        bytes[11] = bytes[11].checked_add_signed(change as i8).unwrap();
        bytes
    };
    // Too long: the next record begins inside. Too short: what is left over is lost by itself.
    assert_eq!(frame(&with_len(5), true).0, Frame::Lost(one.len()));
    let short = with_len(-5);
    assert_eq!(frame(&short, true).0, whole(&short));
    assert_eq!(frame(&short[one.len() - 5..], true).0, Frame::Lost(5));
}

#[test]
fn bytes_that_hold_no_record_are_given_up_past_the_longest() {
    let noise = vec![0xfe; MAX_RECORD_BYTES + 1];
    let places = |count: usize| 1 + (count - Header::BYTES) as u64;
    assert_eq!(frame(&noise[..100], false), (Frame::More, places(100)));
    assert_eq!(frame(&noise[..100], true), (Frame::Lost(100), places(100)));
    // The end may be the beginning of a header.
    assert_eq!(frame(&noise, false), (Frame::Lost(noise.len() - 12), places(noise.len())));
}

#[test]
fn text_is_not_searched_for_records() {
    let records = one().repeat(3);
    assert_eq!(records.iter().position(|&byte| byte == 0), Some(3));
    let after = |head: &[u8]| is_mrt(&[head, &records].concat());
    // Zeros among the first 64 bytes tell records from text.
    assert!(after(&[]) && after(&[0xfe; 60]));
    assert!(!after(&[0xfe; 61]) && !after(&[b'#'; 64]));
    let mut damage = [b'#'; 64];
    damage[63] = 0;
    assert!(after(&damage));
}

/// A record of `TABLE_DUMP` for IPv4 with these bytes of attributes, whose length leaves out that many bytes.
fn dump(attributes: usize, short_by: usize) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 7, 10, 0, 0, 0, 8, 1, 0x38, 0x6d, 0x43, 0x80, 192, 0, 2, 1, 0xfb, 0xf4];
    body.extend((attributes as u16).to_be_bytes());
    body.extend(vec![0xee; attributes]);
    let mut dump = record(12, 1, &body);
    dump[8..12].copy_from_slice(&((body.len() - short_by) as u32).to_be_bytes());
    dump
}

#[test]
fn lengths_that_leave_out_four_bytes_are_recognised_by_what_follows() {
    let (short, right) = (dump(30, 4), dump(30, 0));
    for records in [short.repeat(2), [short.clone(), right.clone()].concat()] {
        assert_eq!(frame(&records, true), (whole(&right), 1));
        assert_eq!(frame(&records[..short.len() + 12], false).0, whole(&right));
        assert_eq!(frame(&records[..short.len() + 11], false).0, Frame::More);
    }
    // The last record ends with the file.
    assert_eq!(frame(&short, true).0, whole(&right));
    // Right lengths stay as they are, whatever follows: three bytes less are damage, and so are four where the routes do not end.
    assert_eq!(frame(&right.repeat(2), true).0, whole(&right));
    assert_ne!(frame(&dump(30, 3).repeat(2), true).0, whole(&right));
    let mut other = short.clone();
    other[33] -= 1;
    assert_ne!(frame(&other.repeat(2), true).0, whole(&right));
    // Reading resumes after damage, too.
    let damaged = [vec![0xfe; 40], short.repeat(2)].concat();
    assert_eq!(frame(&damaged, true).0, Frame::Lost(40));
}
