//! The contract as data: `testdata/columns/`, by this crate's own columns and by arrays of Arrow.

use std::path::Path;

use fibula::Vrfs;
use fibula::fib::DualFib;
use fibula::net::{IpPrefix, NextHop};
use fibula::rib::DualRib;
use fibula_column::arrow::{ArrayParts, OwnedArray};
use fibula_column::{
    AddressLayout, Bitmap, Column, ColumnError, EntryNumbers, LookupCounts, LookupOptions, TableView,
    V4MappedRule, lookup_in_vrfs,
};
use serde::Deserialize;

use crate::text::view;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contract {
    routes: Vec<String>,
    routes_1: Vec<String>,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kinds: Vec<String>,
    v4_mapped: Option<String>,
    #[serde(default)]
    skip: usize,
    vrfs: Option<Vec<u32>>,
    entries: Option<Vec<String>>,
    rows: Vec<String>,
    invalid: usize,
    first: Option<usize>,
}

/// The inputs of rows as they are in the file.
type Inputs<'a> = Vec<&'a str>;

const NULL: &str = "null";

/// Number of rows of a column that is divided among threads.
const LONG: usize = 70_000;

struct Tables {
    fibs: DualFib,
    vrfs: Vrfs,
}

fn insert(lines: &[String], mut insert: impl FnMut(IpPrefix, NextHop)) {
    for line in lines {
        let (prefix, id) = line.split_once(' ').unwrap();
        insert(prefix.parse().unwrap(), NextHop::new(id.parse().unwrap()).unwrap());
    }
}

impl Tables {
    fn new(contract: &Contract) -> Self {
        let (mut ribs, vrfs) = (DualRib::default(), Vrfs::new().unwrap());
        let numbers = [vrfs.create().unwrap(), vrfs.create().unwrap()];
        assert_eq!(numbers.map(u32::from), [0, 1]);
        insert(&contract.routes, |prefix, id| {
            ribs.insert(prefix, id).unwrap();
            vrfs.insert(numbers[0], prefix, id).unwrap();
        });
        insert(&contract.routes_1, |prefix, id| {
            vrfs.insert(numbers[1], prefix, id).unwrap();
        });
        Self { fibs: DualFib::build(&ribs).unwrap(), vrfs }
    }
}

impl Case {
    /// Returns the inputs, and the answers: an id, and whether the row is invalid.
    fn rows(&self) -> (Inputs<'_>, Vec<(u32, bool)>) {
        let split = |row| str::rsplit_once(row, ' ').expect("an input and an answer");
        let answer = |text| match text {
            "none" => (0, false),
            "invalid" => (0, true),
            id => (id.parse().expect("an id"), false),
        };
        self.rows.iter().map(|row| split(row)).map(|(input, text)| (input, answer(text))).unzip()
    }

    fn options(&self) -> LookupOptions {
        let v4_mapped = match self.v4_mapped.as_deref() {
            None | Some("ipv6") => V4MappedRule::Ipv6,
            Some("ipv4") => V4MappedRule::Ipv4,
            Some(other) => panic!("{}: v4_mapped '{other}'", self.name),
        };
        LookupOptions { v4_mapped, ..LookupOptions::default() }
    }

    /// Looks a column up that has the rows of the case as many times as it has room for.
    fn check(&self, tables: &Tables, kind: &str, column: &Column<'_>, threads: usize) {
        let (_, answers) = self.rows();
        let options = LookupOptions { threads, ..self.options() };
        let mut ids = vec![u32::MAX; column.len()];
        let mut look_up = |options: &LookupOptions| match &self.vrfs {
            None => TableView::from(&tables.fibs).lookup(column, &mut ids, options),
            Some(vrfs) => {
                let vrfs: Vec<u32> = vrfs.iter().copied().cycle().take(column.len()).collect();
                lookup_in_vrfs(&tables.vrfs, &vrfs, column, &mut ids, options)
            }
        };
        let times = if answers.is_empty() { 0 } else { column.len() / answers.len() };
        let expected = LookupCounts { invalid: times * self.invalid, first_invalid: self.first };
        let context = format!("{}, {kind}, {times} times, {threads} threads", self.name);
        assert_eq!(look_up(&options).unwrap(), expected, "{context}");

        let refused = look_up(&LookupOptions { refuse_invalid: true, ..options });
        match (refused, self.first) {
            (Ok(counts), None) => assert_eq!(counts, expected, "{context}"),
            (Err(ColumnError::Invalid { row, fault }), Some(first)) => {
                assert_eq!((row, Err(fault)), (first, column.address(first)), "{context}");
            }
            (refused, _) => panic!("{context}: {refused:?}"),
        }
        for (row, (&id, &(answer, is_invalid))) in ids.iter().zip(answers.iter().cycle()).enumerate() {
            assert_eq!(id, answer, "{context}: row {row}, '{}'", self.rows[row % self.rows.len()]);
            if row < answers.len() {
                assert_eq!(column.address(row).is_err(), is_invalid, "{context}: row {row}");
            }
        }
    }
}

/// Returns the bytes of an input of a kind of a fixed width.
fn fixed(kind: &str, input: &str) -> Vec<u8> {
    if input == NULL {
        // What a null has for bytes decides nothing.
        return vec![0x0a; width(kind)];
    }
    match kind {
        "uint32" => input.parse::<u32>().unwrap().to_ne_bytes().to_vec(),
        "int32" => input.parse::<i32>().unwrap().to_ne_bytes().to_vec(),
        "uint64" => input.parse::<u64>().unwrap().to_ne_bytes().to_vec(),
        "int64" => input.parse::<i64>().unwrap().to_ne_bytes().to_vec(),
        "uint128" => input.parse::<u128>().unwrap().to_ne_bytes().to_vec(),
        _ => variable(input),
    }
}

fn width(kind: &str) -> usize {
    match kind {
        "uint32" | "int32" | "fixed_4" => 4,
        "uint64" | "int64" => 8,
        "uint128" | "fixed_16" => 16,
        other => panic!("unknown kind '{other}'"),
    }
}

/// Returns the bytes of an input in hexadecimal, or of a text between quotes.
fn variable(input: &str) -> Vec<u8> {
    if let Some(text) = input.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return text.into();
    }
    let digits = input.strip_prefix('x').unwrap_or_else(|| panic!("'{input}' is neither bytes nor text"));
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn layout(kind: &str) -> AddressLayout {
    match kind {
        "uint32" | "int32" => AddressLayout::HostIpv4,
        "uint64" | "int64" => AddressLayout::WideIpv4,
        "uint128" => AddressLayout::HostIpv6,
        "fixed_4" => AddressLayout::NetworkIpv4,
        "fixed_16" => AddressLayout::NetworkIpv6,
        other => panic!("unknown kind '{other}'"),
    }
}

fn format(kind: &str) -> &'static str {
    match kind {
        "uint32" => "I",
        "int32" => "i",
        "uint64" => "L",
        "int64" => "l",
        "fixed_4" => "w:4",
        "fixed_16" => "w:16",
        "binary" => "z",
        "large_binary" => "Z",
        "binary_view" => "vz",
        "string" => "u",
        "large_string" => "U",
        "string_view" => "vu",
        "null" => "n",
        other => panic!("unknown kind '{other}'"),
    }
}

/// Returns the inputs with others around them: those of a slice, which lies in a longer array.
fn around<'a>(inputs: &[&'a str], other: &'a str, skip: usize) -> Inputs<'a> {
    let others = (0..skip).map(|at| if at % 3 == 1 { NULL } else { other });
    others.clone().chain(inputs.iter().copied()).chain(others).collect()
}

/// Returns an array of Arrow with these rows, after `skip` others.
fn arrow(kind: &str, inputs: &[&str], skip: usize) -> OwnedArray {
    let parts = ArrayParts { offset: skip, ..ArrayParts::new(format(kind), inputs.len()) };
    if kind == "null" {
        return OwnedArray::new(parts).unwrap();
    }
    let other = match kind {
        "fixed_4" | "binary" | "large_binary" | "binary_view" => "x0a000009",
        "fixed_16" => "x20010db8000000000000000000000009",
        "string" | "large_string" | "string_view" => "\"2001:db8::9\"",
        _ => "9",
    };
    let all = around(inputs, other, skip);
    let parts = parts.validity(all.iter().map(|&input| input != NULL));
    let is_fixed = matches!(kind, "uint32" | "int32" | "uint64" | "int64" | "fixed_4" | "fixed_16");
    OwnedArray::new(if is_fixed {
        parts.buffer(all.iter().flat_map(|input| fixed(kind, input)).collect::<Vec<u8>>())
    } else {
        // The bytes of a null: some that are an address, and some that are none.
        let null = |at: usize| if at.is_multiple_of(2) { variable(other) } else { vec![b'?'; 3] };
        let all: Vec<Vec<u8>> = all
            .iter()
            .enumerate()
            .map(|(at, &input)| if input == NULL { null(at) } else { variable(input) })
            .collect();
        let ends = |start: i64| {
            let ends = all.iter().scan(start, |end, bytes| {
                *end += bytes.len() as i64;
                Some(*end)
            });
            [start].into_iter().chain(ends)
        };
        // The first row does not start where the buffer does.
        let bytes = [&b"!!"[..], &all.concat()].concat();
        match kind {
            "binary" | "string" => {
                parts.buffer(ends(2).map(|end| end as i32).collect::<Vec<i32>>()).buffer(bytes)
            }
            "large_binary" | "large_string" => parts.buffer(ends(2).collect::<Vec<i64>>()).buffer(bytes),
            _ => {
                let views: Vec<u8> = all
                    .iter()
                    .zip(ends(2))
                    .enumerate()
                    .flat_map(|(at, (bytes, start))| {
                        let mut view = view(bytes, start as i32);
                        // Two buffers, by turns.
                        view[8] = if bytes.len() > 12 { (at % 2) as u8 } else { view[8] };
                        view
                    })
                    .collect();
                let lengths = vec![bytes.len() as i64; 2];
                parts.buffer(views).buffer(bytes.clone()).buffer(bytes).buffer(lengths)
            }
        }
    })
    .unwrap()
}

fn column_of(array: &OwnedArray) -> Column<'_> {
    array.borrowed().and_then(Column::from_arrow).unwrap()
}

/// Calls `check` with columns that have these rows: of this crate, and of Arrow, with numbers of nulls that are known and that are not.
fn columns(case: &Case, kind: &str, inputs: &[&str], skip: usize, mut check: impl FnMut(&str, &Column<'_>)) {
    let is_valid = |inputs: &[&str]| {
        let mut bits = vec![0_u8; inputs.len().div_ceil(8)];
        inputs
            .iter()
            .enumerate()
            .for_each(|(at, &input)| bits[at / 8] |= u8::from(input != NULL) << (at % 8));
        bits
    };
    if let Some(entries) = &case.entries {
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let dictionary = arrow(kind, &entries, skip);
        let number = |input: &&str| if *input == NULL { 0 } else { input.parse::<i64>().unwrap() };
        let numbers: Vec<i64> = around(inputs, "1", skip).iter().map(number).collect();
        let rows = skip..skip + inputs.len();
        let bits = is_valid(&around(inputs, "1", skip));
        let mut each = |what: &str, entries: EntryNumbers<'_>| {
            let column = Column::dictionary(entries, column_of(&dictionary)).unwrap();
            check(what, &column.with_validity(Bitmap::new(&bits, skip, inputs.len()).unwrap()).unwrap());
        };
        macro_rules! of_width {
            ($($integer:ident)*) => {$(
                if let Ok(numbers) = numbers.iter().map(|&number| $integer::try_from(number)).collect::<Result<Vec<_>, _>>() {
                    each(stringify!($integer), EntryNumbers::from(&numbers[rows.clone()]));
                }
            )*};
        }
        of_width!(i8 u8 i16 u16 i32 u32 u64);
        each("i64", EntryNumbers::from(&numbers[rows.clone()]));
        let all = around(inputs, "1", skip);
        let parts = ArrayParts { offset: skip, ..ArrayParts::new("s", inputs.len()) };
        let parts = parts.validity(all.iter().map(|&input| input != NULL));
        let parts = parts.buffer(numbers.iter().map(|&number| number as i16).collect::<Vec<i16>>());
        let array = OwnedArray::new(ArrayParts { dictionary: Some(Box::new(dictionary)), ..parts }).unwrap();
        check("Arrow", &column_of(&array));
        return;
    }
    if let Some(kind) = kind.strip_prefix("strided_") {
        let validity = is_valid(inputs);
        let validity = Bitmap::new(&validity, 0, inputs.len()).unwrap();
        for (stride, is_backwards) in
            [(width(kind), false), (width(kind) + 5, false), (width(kind) + 3, true)]
        {
            let mut bytes = vec![0x77; 7 + stride * inputs.len() + width(kind)];
            let place = |row: usize| 7 + stride * if is_backwards { inputs.len() - 1 - row } else { row };
            for (row, input) in inputs.iter().enumerate() {
                bytes[place(row)..][..width(kind)].copy_from_slice(&fixed(kind, input));
            }
            let first = if inputs.is_empty() { 0 } else { place(0) };
            let way = if is_backwards { -(stride as isize) } else { stride as isize };
            let column = Column::strided(&bytes, first, way, inputs.len(), layout(kind)).unwrap();
            check(&format!("stride {way}"), &column.with_validity(validity).unwrap());
        }
        return;
    }
    if kind == "uint128" {
        let keys: Vec<u128> =
            inputs.iter().map(|&input| if input == NULL { 0 } else { input.parse().unwrap() }).collect();
        let bits = is_valid(inputs);
        let column = Column::ipv6(&keys);
        check("integers", &column.with_validity(Bitmap::new(&bits, 0, keys.len()).unwrap()).unwrap());
        return;
    }
    let array = arrow(kind, inputs, skip);
    check("Arrow", &column_of(&array));
    if matches!(kind, "uint32" | "int32" | "uint64" | "int64" | "fixed_4" | "fixed_16") {
        let bytes: Vec<u8> = inputs.iter().flat_map(|input| fixed(kind, input)).collect();
        let bits = is_valid(inputs);
        let column = Column::packed(&bytes, layout(kind));
        check("packed", &column.with_validity(Bitmap::new(&bits, 0, inputs.len()).unwrap()).unwrap());
    }
}

#[test]
fn every_case_of_the_contract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/columns/contract.toml");
    let contract: Contract = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let tables = Tables::new(&contract);
    let mut rows = 0;
    for case in &contract.case {
        let (inputs, answers) = case.rows();
        assert_eq!(
            answers.iter().filter(|&&(_, is_invalid)| is_invalid).count(),
            case.invalid,
            "{}",
            case.name
        );
        assert_eq!(answers.iter().position(|&(_, is_invalid)| is_invalid), case.first, "{}", case.name);
        rows += inputs.len();
        for kind in &case.kinds {
            columns(case, kind, &inputs, case.skip, |what, column| {
                case.check(&tables, &format!("{kind} ({what})"), column, 1);
            });
            let long: Inputs<'_> =
                inputs.repeat(if inputs.is_empty() { 0 } else { LONG.div_ceil(inputs.len()) });
            columns(case, kind, &long, case.skip, |what, column| {
                for threads in [1, 3] {
                    case.check(&tables, &format!("{kind} ({what})"), column, threads);
                }
            });
        }
    }
    assert!(rows >= 200, "{rows} rows");
}
