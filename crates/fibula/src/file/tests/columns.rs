//! Columns of values, written and read again, against vectors.

use core::sync::atomic::AtomicU32;

use super::super::{
    ColumnBuilder, ColumnOffsets, ColumnRefusal, ColumnType, ColumnValue, ColumnWords, StoredColumn, VALUE,
};
use super::*;
use crate::memory::Cell;

/// Values of a type, some of them missing if `lacks`.
fn values(
    kind: ColumnType,
    len: usize,
    lacks: bool,
    random: &mut Random,
) -> Vec<Option<ColumnValue<'static>>> {
    let mut value = |at: usize| {
        let number = u64::from(random.below(1 << 32) as u32) << 31 ^ random.below(1 << 32);
        let text: String = (0..random.below(9))
            .map(|_| ['a', 'ü', '漢', '\u{1f30d}', ' '][random.below(5) as usize])
            .collect();
        let value = match kind {
            ColumnType::U32 => ColumnValue::U32(number as u32),
            ColumnType::U64 => ColumnValue::U64(number),
            ColumnType::I64 => ColumnValue::I64(number.cast_signed().wrapping_neg()),
            ColumnType::F64 => ColumnValue::F64(number as f64 / -7.0),
            ColumnType::Bool => ColumnValue::Bool(number.is_multiple_of(3)),
            ColumnType::Text => ColumnValue::Text(text.into()),
            ColumnType::Bytes => ColumnValue::Bytes(number.to_le_bytes()[..at % 9].to_vec().into()),
        };
        (!lacks || random.below(3) > 0).then_some(value)
    };
    (0..len).map(&mut value).collect()
}

fn column(name: &str, kind: ColumnType, values: &[Option<ColumnValue<'_>>]) -> StoredColumn {
    let mut builder = ColumnBuilder::new(name, kind);
    values.iter().for_each(|value| builder.push(value.clone()).unwrap());
    assert_eq!(builder.len(), values.len());
    builder.finish()
}

fn id(at: usize) -> NextHop {
    NextHop::new(at as u32 + 1).unwrap()
}

fn assert_column(column: &StoredColumn, kind: ColumnType, values: &[Option<ColumnValue<'static>>]) {
    assert_eq!((column.kind(), column.len(), column.is_empty()), (kind, values.len(), values.is_empty()));
    let found: Vec<_> = (0..values.len()).map(|at| column.value(id(at))).collect();
    assert_eq!(found, values, "{}", column.name());
    assert_eq!(column.value(id(values.len())), None);
    assert_eq!(column.value(NextHop::new(u32::MAX).unwrap()), None);
    let there = values.iter().enumerate().filter_map(|(at, value)| Some((id(at), value.clone()?)));
    assert!(column.iter().eq(there));
    for (at, value) in values.iter().enumerate() {
        let expected = match value {
            Some(ColumnValue::Text(text)) => Some(text.as_bytes()),
            Some(ColumnValue::Bytes(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        let mut bytes = b"before ".to_vec();
        assert_eq!(column.append(id(at), &mut bytes), expected.is_some());
        assert_eq!(bytes.strip_prefix(b"before "), Some(expected.unwrap_or_default()));
    }
}

/// Columns of every type, with and without missing values.
fn all(len: usize, seed: u64) -> Vec<(StoredColumn, Vec<Option<ColumnValue<'static>>>)> {
    let mut random = Random(seed);
    let both = ColumnType::ALL.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    both.map(|(kind, lacks)| {
        let values = values(kind, len, lacks, &mut random);
        let name = format!("{kind} {}", if lacks { "some" } else { "each" });
        (column(&name, kind, &values), values)
    })
    .collect()
}

#[test]
fn columns_of_every_type_are_read_as_they_were_written() {
    let folder = Folder::new("columns");
    let path = folder.path("table.fibula");
    for len in [0, 1, 7, 8, 9, 64, 500] {
        let written = all(len, len as u64);
        for (column, values) in &written {
            assert_column(column, column.kind(), values);
        }
        let contents =
            Contents { columns: written.iter().map(|(column, _)| column).collect(), ..Contents::default() };
        super::super::save(&path, &contents).unwrap();
        // Programs that know version 1 alone must not take ids for what they stand for.
        assert_eq!(bytes(&contents)[8..12], 2_u32.to_le_bytes());
        for file in [TableFile::open(&path).unwrap(), TableFile::map(&path).unwrap()] {
            assert_eq!(file.columns().len(), written.len());
            for ((column, values), stored) in written.iter().zip(file.columns()) {
                assert_eq!(stored.name(), column.name());
                assert_column(stored, column.kind(), values);
                assert!(file.column(column.name()).is_some_and(|found| core::ptr::eq(found, stored)));
            }
            assert!(file.column("another").is_none());
            assert_eq!(file.value(id(0)), written[0].1.first().cloned().flatten());
            file.verify().unwrap();
            if file.is_mapped() && len > 0 {
                let memory = file.memory();
                assert!(memory.allocated_bytes == 0 && memory.mapped_bytes > 0, "{memory:?}");
            }
            // What was read is written again as it was.
            let again = Contents { columns: file.columns().iter().collect(), ..Contents::default() };
            assert_eq!(bytes(&again), std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn the_words_of_a_column_are_where_callers_expect_them() {
    let values = [Some(ColumnValue::U32(7)), None, Some(ColumnValue::U32(9))];
    let numbers = column("n", ColumnType::U32, &values);
    let ColumnWords::Narrow(words) = numbers.words() else { panic!("{numbers:?}") };
    assert_eq!(words.iter().map(Cell::read).collect::<Vec<_>>(), [7, 0, 9]);
    assert_eq!(numbers.validity().unwrap().iter().map(Cell::read).collect::<Vec<_>>(), [0b101]);
    let values = [Some(ColumnValue::I64(-1)), Some(ColumnValue::I64(2))];
    let integers = column("i", ColumnType::I64, &values);
    let ColumnWords::Wide(words) = integers.words() else { panic!("{integers:?}") };
    assert!(words[0].read() == u64::MAX && words[1].read() == 2 && integers.validity().is_none());
    let values = [true, false, true].map(|is_true| Some(ColumnValue::Bool(is_true)));
    let truths = column("b", ColumnType::Bool, &values);
    let ColumnWords::Bits(bits) = truths.words() else { panic!("{truths:?}") };
    assert_eq!(bits.iter().map(Cell::read).collect::<Vec<_>>(), [0b101]);
    let values = [Some(ColumnValue::Text("ab".into())), None, Some(ColumnValue::Text("c".into()))];
    let texts = column("t", ColumnType::Text, &values);
    let ColumnWords::Bytes { offsets: ColumnOffsets::Narrow(offsets), bytes } = texts.words() else {
        panic!("{texts:?}")
    };
    assert_eq!(offsets.iter().map(AtomicU32::read).collect::<Vec<_>>(), [0, 2, 2, 3]);
    assert_eq!(bytes.iter().map(Cell::read).collect::<Vec<_>>(), b"abc");
    assert!(texts.ids().is_none());
}

#[test]
fn texts_are_values_of_a_type_or_none() {
    let fits =
        |kind: ColumnType, text: &'static str| kind.parse(text).is_some_and(|value| value.kind() == kind);
    for (kind, good, bad) in [
        (ColumnType::U32, vec!["0", "4294967295"], vec!["4294967296", "-1", "+1", "", "1.0", " 1", "x"]),
        (ColumnType::U64, vec!["18446744073709551615"], vec!["18446744073709551616", "-1", "+1", ""]),
        (ColumnType::I64, vec!["-9223372036854775808", "7"], vec!["9223372036854775808", "+1", "", "-"]),
        (ColumnType::F64, vec!["1", "-1.5e300", "inf", "NaN"], vec!["", "1,5", "x"]),
        (ColumnType::Bool, vec!["true", "false"], vec!["1", "yes", "True", ""]),
        (ColumnType::Text, vec!["", "ü"], vec![]),
        (ColumnType::Bytes, vec!["", "ü"], vec![]),
    ] {
        good.into_iter().for_each(|text| assert!(fits(kind, text), "{kind}: {text}"));
        bad.into_iter().for_each(|text| assert!(kind.parse(text).is_none(), "{kind}: {text}"));
        assert_eq!(ColumnType::named(kind.name()), Some(kind));
        assert!(kind.parse("1").is_none_or(|value| value.to_string() == "1"), "{kind}");
    }
    assert_eq!(ColumnType::named("u16"), None);
}

#[test]
fn a_column_refuses_other_types_and_takes_no_more_memory_than_it_may() {
    let mut builder = ColumnBuilder::new("n", ColumnType::U32);
    let refusal = builder.push(Some(ColumnValue::U64(1))).unwrap_err();
    assert_eq!(refusal, ColumnRefusal::Type(ColumnType::U32, ColumnType::U64));
    assert_eq!(refusal.to_string(), "a column of u32 takes no value of u64");
    assert!(builder.is_empty());
    for kind in ColumnType::ALL {
        let mut builder = ColumnBuilder::within("n", kind, Limits::within(4000));
        let mut random = Random(3);
        let mut taken = Vec::new();
        loop {
            let value = values(kind, 1, false, &mut random).pop().unwrap();
            match builder.push(value.clone()) {
                Ok(()) => taken.push(value),
                Err(ColumnRefusal::Memory(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(taken.len() > 50, "{kind}: {}", taken.len());
        assert_column(&builder.finish(), kind, &taken);
    }
}

#[test]
fn columns_that_files_cannot_hold_are_refused_by_name() {
    let empty = |name: &str| ColumnBuilder::new(name, ColumnType::U32).finish();
    let refused = |contents: &Contents<'_>| contents.write(Vec::new()).unwrap_err().to_string();
    let of = |columns: &[StoredColumn]| {
        refused(&Contents { columns: columns.iter().collect(), ..Contents::default() })
    };
    assert_eq!(of(&[empty("a"), empty("b"), empty("a")]), "cannot be written: two columns have the name 'a'");
    for name in ["", "line\nfeed", &"x".repeat(1001)] {
        assert!(of(&[empty(name)]).contains("cannot be the name of a column"), "{name}");
    }
    let many: Vec<_> = (0..257).map(|number| empty(&number.to_string())).collect();
    assert_eq!(of(&many), "cannot be written: a file has at most 256 columns, and these are 257");
    let column = empty("a");
    let mut contents = Contents { columns: vec![&column], ..Contents::default() };
    contents.values.insert(id(0), vec![]);
    assert_eq!(refused(&contents), "cannot be written: a file has columns or values of next hops, not both");
    // 256 columns of three sections each are fewer sections than a file may have.
    let mut texts = Vec::new();
    for number in 0..256 {
        let mut text = ColumnBuilder::new(&number.to_string(), ColumnType::Text);
        [None, Some(ColumnValue::Text("x".into()))].into_iter().for_each(|value| text.push(value).unwrap());
        texts.push(text.finish());
    }
    let contents = Contents { columns: texts.iter().collect(), ..Contents::default() };
    assert_eq!(open(&bytes(&contents)).unwrap().columns().len(), 256);
}

/// A file that the first version of this format wrote: `fibula compile` of six routes.
const VERSION_1: &[u8] = include_bytes!("version-1.fibula");

#[test]
fn files_of_version_1_are_read_as_before() {
    let file = open(VERSION_1).unwrap();
    assert_eq!((file.v4.engine, file.v6.engine), (Some("range-btree"), Some("planb")));
    let told = |address: &str| {
        let id = file.lookup(address.parse::<core::net::IpAddr>().unwrap())?;
        Some(file.value(id)?.to_string())
    };
    for (address, expected) in [
        ("198.51.100.7", "ams"),
        ("203.0.113.1", "fra"),
        ("203.0.113.200", "64500"),
        ("8.8.8.8", "192.0.2.1"),
        ("2001:db8::1", "ams"),
        ("2001:db8:1::1", "two words"),
    ] {
        assert_eq!(told(address).as_deref(), Some(expected), "{address}");
    }
    assert_eq!(told("2001:db9::1"), None);
    let [column] = file.columns() else { panic!("{:?}", file.columns()) };
    assert_eq!((column.name(), column.kind(), column.len()), (VALUE, ColumnType::Text, 5));
    assert_eq!(column.ids().unwrap().iter().map(Cell::read).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // A file without columns is still one of version 1, and the same to the byte.
    let mut contents = Contents::default();
    contents.v4 = Half::new(file.v4.fib.as_deref().unwrap(), file.v4.routes.as_ref().unwrap());
    contents.v6 = Half::new(file.v6.fib.as_deref().unwrap(), file.v6.routes.as_ref().unwrap());
    contents.values = column.iter().map(|(id, value)| (id, value.to_string().into_bytes())).collect();
    assert!(bytes(&contents) == VERSION_1);
}

#[test]
fn values_with_gaps_between_their_ids_keep_them() {
    let folder = Folder::new("gaps");
    let path = folder.path("table.fibula");
    let ids = [1, 2, 5, 4_000_000_000].map(|id| NextHop::new(id).unwrap());
    let mut contents = Contents::default();
    contents.values = ids.iter().map(|&id| (id, id.to_string().into_bytes())).collect();
    super::super::save(&path, &contents).unwrap();
    for file in [TableFile::open(&path).unwrap(), TableFile::map(&path).unwrap()] {
        for &id in &ids {
            assert_eq!(file.value(id), Some(ColumnValue::Text(id.to_string().into())));
        }
        assert!([3, 4, 6, u32::MAX].into_iter().all(|id| file.value(NextHop::new(id).unwrap()).is_none()));
        assert!(file.columns()[0].iter().map(|(id, _)| id).eq(ids));
        let again = Contents { columns: file.columns().iter().collect(), ..Contents::default() };
        assert!(again.write(Vec::new()).unwrap_err().to_string().contains("have gaps"));
    }
    contents.values.insert(ids[1], vec![0xff]);
    assert_eq!(open(&bytes(&contents)).unwrap().columns()[0].kind(), ColumnType::Bytes);
}
