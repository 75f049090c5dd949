//! The contract of columns, `testdata/columns/contract.toml`, by the calls of C: its cases are written as lines that `contract.c` reads
//! without a parser of TOML.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use toml::{Table, Value};

use crate::{Folder, HERE, compile, run, text};

/// Rows from which on threads share the work.
const LONG: &str = "66000";

fn words<'a>(table: &'a Table, key: &str) -> Vec<&'a str> {
    table.get(key).and_then(Value::as_array).unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("x".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Returns an input of a kind as the bytes that it has in memory, in hexadecimal; "null" is a null.
fn input(kind: &str, input: &str) -> String {
    if input == "null" {
        return input.to_owned();
    }
    match kind {
        "uint32" => hex(&input.parse::<u32>().unwrap().to_ne_bytes()),
        "int32" => hex(&input.parse::<i32>().unwrap().to_ne_bytes()),
        "uint64" => hex(&input.parse::<u64>().unwrap().to_ne_bytes()),
        "int64" => hex(&input.parse::<i64>().unwrap().to_ne_bytes()),
        _ => match input.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => hex(text.as_bytes()),
            None => input.to_owned(),
        },
    }
}

/// Whether the library has a call for columns of this kind. C has no integers of 128 bits, and its calls for VRFs take addresses at a
/// distance, without nulls, mapped addresses or text.
fn is_in_c(kind: &str, case: &Table) -> bool {
    let mapped = case.get("v4_mapped").and_then(Value::as_str) == Some("ipv4");
    match kind {
        "uint128" => false,
        "uint32" | "fixed_4" | "fixed_16" if case.contains_key("vrfs") => !mapped,
        _ => !case.contains_key("vrfs"),
    }
}

/// Returns the lines, and the numbers of rows that the file and the lines have, each row once.
fn lines(contract: &Table) -> (String, usize, usize) {
    let (mut out, mut in_file, mut in_lines) = (String::new(), 0, 0);
    for (vrf, key) in ["routes", "routes_1"].into_iter().enumerate() {
        for route in words(contract, key) {
            let (prefix, id) = route.split_once(' ').unwrap();
            let (address, length) = prefix.split_once('/').unwrap();
            let address = match address.parse().unwrap() {
                std::net::IpAddr::V4(address) => hex(&address.to_bits().to_ne_bytes()),
                std::net::IpAddr::V6(address) => hex(&address.octets()),
            };
            writeln!(out, "route {vrf} {address} {length} {id}").unwrap();
        }
    }
    for case in contract["case"].as_array().unwrap() {
        let case = case.as_table().unwrap();
        let rows = words(case, "rows");
        let number = |key| case.get(key).and_then(Value::as_integer);
        let entries = case.get("entries").map_or(Vec::new(), |_| words(case, "entries"));
        in_file += rows.len();
        let mut is_used = false;
        for whole in words(case, "kinds") {
            let kind = whole.strip_prefix("strided_").unwrap_or(whole);
            // Of mapped addresses there is no bulk call.
            let mapped = case.get("v4_mapped").and_then(Value::as_str) == Some("ipv4");
            if !is_in_c(kind, case) || (mapped && kind != whole) {
                continue;
            }
            is_used = true;
            let form = match () {
                () if kind != whole => "strided",
                () if case.contains_key("vrfs") => "vrfs",
                () if case.contains_key("entries") => "dictionary",
                () => "plain",
            };
            let (skip, invalid, first) =
                (number("skip").unwrap_or(0), number("invalid").unwrap(), number("first").unwrap_or(-1));
            let (count, mapped) = (rows.len(), u8::from(mapped));
            let sizes = format!("{skip} {count} {} {invalid} {first}", entries.len());
            writeln!(out, "case {kind} {form} {mapped} {sizes} {}", case["name"].as_str().unwrap()).unwrap();
            for entry in &entries {
                writeln!(out, "entry {}", input(kind, entry)).unwrap();
            }
            for (at, row) in rows.iter().enumerate() {
                let (given, answer) = row.rsplit_once(' ').unwrap();
                let given = if form == "dictionary" { given.to_owned() } else { input(kind, given) };
                let id = if matches!(answer, "none" | "invalid") { "0" } else { answer };
                let vrf = case.get("vrfs").map_or(0, |vrfs| vrfs[at].as_integer().unwrap());
                writeln!(out, "row {given} {id} {vrf}").unwrap();
            }
        }
        in_lines += if is_used { rows.len() } else { 0 };
    }
    (out, in_file, in_lines)
}

/// Compiles the program of the contract into a folder. Returns it, with a file of the cases.
fn contract(folder: &Folder) -> (PathBuf, PathBuf) {
    let toml = Path::new(HERE).join("../../testdata/columns/contract.toml");
    let contract: Table = std::fs::read_to_string(toml).unwrap().parse().unwrap();
    let (lines, in_file, in_lines) = lines(&contract);
    // The others are integers of 128 bits, and texts and mapped addresses in VRFs.
    assert!(in_lines >= 418 && in_file - in_lines <= 61, "{in_lines} of {in_file} rows");
    let (program, file) = (folder.0.join("contract"), folder.0.join("cases"));
    std::fs::write(&file, lines).unwrap();
    compile("cc", &["-std=c99", "-O1"], &Path::new(HERE).join("tests/contract.c"), &program, true);
    (program, file)
}

/// The number of rows that were compared, which is all that a program prints whose rows are right.
fn compared(output: Output) -> usize {
    text(output).trim().parse().expect("a number of rows alone")
}

#[test]
fn the_contract_of_columns() {
    let folder = Folder::new("contract");
    let (program, file) = contract(&folder);
    assert!(compared(run(Command::new(program).arg(file).arg(LONG))) > 1_000_000);
}

#[test]
#[ignore = "needs valgrind: .ci/run"]
fn the_contract_of_columns_under_valgrind() {
    let folder = Folder::new("contract-valgrind");
    let (program, file) = contract(&folder);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"]);
    assert!(compared(run(valgrind.arg(program).arg(file).arg("0"))) > 5_000);
}
