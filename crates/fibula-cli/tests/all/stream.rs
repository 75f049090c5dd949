//! `fibula lookup` in a pipe: answers come when the questions do, whatever shape these have.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::support::{Folder, TABLE, fibula, lookup};

fn spawn(folder: &Folder, format: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let table = folder.write("table.txt", TABLE);
    let mut child = fibula()
        .args(["lookup", "--quiet", "--format", format, "--table"])
        .arg(table)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdin, stdout)
}

fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line
}

#[test]
fn each_line_is_answered_before_the_next_is_sent() {
    let folder = Folder::new();
    let (mut child, mut stdin, mut stdout) = spawn(&folder, "csv");
    assert_eq!(line(&mut stdout), "address,prefix,next_hop\n");
    for _ in 0..3 {
        stdin.write_all(b"192.0.2.1\n").unwrap();
        assert_eq!(line(&mut stdout), "192.0.2.1,192.0.2.0/24,64500\n");
        // A line that arrives in two pieces, and one that comes with the rest of it.
        stdin.write_all(b"2001:db").unwrap();
        stdin.write_all(b"8::1\nx\n").unwrap();
        assert_eq!(line(&mut stdout), "2001:db8::1,2001:db8::/32,64501\n");
        assert_eq!(line(&mut stdout), ",,\n");
    }
    drop(stdin);
    assert_eq!(line(&mut stdout), "");
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn the_last_line_needs_no_line_feed() {
    assert_eq!(lookup(&[], "192.0.2.1").out, "192.0.2.1 192.0.2.0/24 via 64500\n");
    assert_eq!(lookup(&[], "8.8.8.8\n192.0.2.1").out, "8.8.8.8 no route\n192.0.2.1 192.0.2.0/24 via 64500\n");
}

#[test]
fn carriage_returns_and_blanks_around_an_address_are_dropped() {
    let run = lookup(&["--format", "csv"], "192.0.2.1\r\n\t 10.0.0.1 \r\n::1\r\n");
    assert_eq!(
        run.out,
        "address,prefix,next_hop\n192.0.2.1,192.0.2.0/24,64500\n10.0.0.1,10.0.0.0/8,\"1,2\"\n::1,,\n"
    );
    assert_eq!(run.code, 0);
}

#[test]
fn very_long_lines_are_no_addresses() {
    let mut input = b"192.0.2.1\n".to_vec();
    input.extend(vec![b'1'; 3 << 20]);
    input.extend(b"\n192.0.2.2\n");
    let run = lookup(&["--format", "csv"], &input);
    assert_eq!(
        run.out,
        "address,prefix,next_hop\n192.0.2.1,192.0.2.0/24,64500\n,,\n192.0.2.2,192.0.2.0/24,64500\n"
    );
    assert!(run.err.starts_with("warning: line 2: '1111"), "{}", run.err);
    assert!(run.err.contains("' is not an IP address (more than 4096 bytes)"), "{}", run.err);
    assert!(run.err.len() < 200);
    assert_eq!(run.code, 3);
}

#[test]
fn bytes_that_are_no_text_are_no_addresses() {
    let run = lookup(&["--format", "csv"], b"\xff\xfe\n\0\n192.0.2.1\n");
    assert_eq!(run.out, "address,prefix,next_hop\n,,\n,,\n192.0.2.1,192.0.2.0/24,64500\n");
    assert_eq!(run.code, 3);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    for format in ["text", "csv", "json", "json-line"] {
        let (mut child, mut stdin, mut stdout) = spawn(&folder, format);
        stdin.write_all(b"192.0.2.1\n").unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        drop(stdout);
        // More than a pipe holds, so that the command must notice. Our own writes fail when it has ended.
        let lines = b"192.0.2.1\n".repeat(1 << 16);
        let _ = stdin.write_all(&lines);
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{format}");
    }
}

#[test]
fn streams_that_are_worth_a_structure_get_the_same_answers() {
    // Both families mixed, misses and bad lines among them, beyond the number that the table answers.
    let mut input = String::new();
    let mut expected = String::from("address,prefix,next_hop\n");
    for index in 0..150_000u32 {
        let (low, high) = (index % 256, index / 256 % 256);
        match index % 5 {
            0 => {
                input += &format!("192.0.2.{low}\n");
                let end = if low < 128 { "192.0.2.0/24,64500" } else { "192.0.2.128/25,198.51.100.1" };
                expected += &format!("192.0.2.{low},{end}\n");
            }
            1 => {
                input += &format!("10.{high}.{low}.1\n");
                expected += &format!("10.{high}.{low}.1,10.0.0.0/8,\"1,2\"\n");
            }
            2 => {
                input += &format!("2001:db8:{low:x}::{high:x}\n");
                let end = if low == 1 { "2001:db8:1::/48,fe80::1" } else { "2001:db8::/32,64501" };
                expected += &format!("2001:db8:{low:x}::{high:x},{end}\n");
            }
            3 => {
                input += &format!("11.{high}.{low}.1\n");
                expected += &format!("11.{high}.{low}.1,,\n");
            }
            _ if index % 10_000 == 4 => {
                input += "bad\n";
                expected += ",,\n";
            }
            _ => {
                input += &format!("2001:db9::{low:x}\n");
                expected += &format!("2001:db9::{low:x},,\n");
            }
        }
    }
    let run = lookup(&["--format", "csv", "--stats"], &input);
    assert!(run.out == expected, "the answers differ");
    assert!(
        run.err.contains("IPv4 answers: ") && run.err.contains("fastest measured for this table"),
        "{}",
        run.err
    );
    assert_eq!(run.code, 3);
    let forced = lookup(&["--format", "csv", "--engine", "binary-trie"], &input);
    assert!(forced.out == expected, "the answers of a forced engine differ");
}
