//! `fibula lookup` in a pipe: answers come when the questions do, whatever shape these have.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Folder, TABLE, fibula, lookup, run};

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
    assert!(run.err.contains("IPv4 answers: ") && run.err.contains("fastest for this table"), "{}", run.err);
    assert_eq!(run.code, 3);
    let forced = lookup(&["--format", "csv", "--engine", "binary-trie"], &input);
    assert!(forced.out == expected, "the answers of a forced engine differ");
}

/// `fibula` with these arguments, in a pipe.
fn piped(args: &[&str]) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut command = fibula();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdin, stdout)
}

#[test]
fn each_row_is_enriched_before_the_next_is_sent() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    for (format, column, rows) in [
        (
            "csv",
            "ip",
            &[
                ("n,ip\n", "n,ip,prefix,next_hop\n"),
                ("1,192.0.2.1\n", "1,192.0.2.1,192.0.2.0/24,64500\n"),
                ("2,\"192.0.2.1\"\n", "2,\"192.0.2.1\",192.0.2.0/24,64500\n"),
            ][..],
        ),
        ("tsv", "2", &[("1\t192.0.2.1\n", "1\t192.0.2.1\t192.0.2.0/24\t64500\n")]),
        ("words", "2", &[("1 192.0.2.1\n", "1 192.0.2.1 192.0.2.0/24 64500\n")]),
        (
            "json-line",
            "ip",
            &[("{\"ip\":\"::5\"}\n", "{\"ip\":\"::5\",\"prefix\":null,\"next_hop\":null}\n"); 2],
        ),
    ] {
        let table = table.to_str().unwrap();
        let args = ["enrich", "-t", table, "--column", column, "--input-format", format];
        let (mut child, mut stdin, mut stdout) = piped(&args);
        for (sent, answer) in rows {
            stdin.write_all(sent.as_bytes()).unwrap();
            assert_eq!(line(&mut stdout), *answer, "{format}");
        }
        drop(stdin);
        assert_eq!(line(&mut stdout), "");
        child.wait().unwrap();
    }
}

/// A reader that stops does not make the command keep what it cannot write.
#[test]
fn a_reader_that_waits_bounds_the_memory() {
    const ROWS: usize = 64 << 20;
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let args =
        ["enrich", "-t", table.to_str().unwrap(), "-c", "1", "--threads", "2", "--input-format", "csv"];
    let (child, mut stdin, mut stdout) = piped(&args);
    let (taken, is_enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let rows = b"192.0.2.1,x\n".repeat(4_096);
            while taken.load(Ordering::Relaxed) < ROWS && !is_enough.load(Ordering::Relaxed) {
                stdin.write_all(&rows).unwrap();
                taken.fetch_add(rows.len(), Ordering::Relaxed);
            }
            drop(stdin);
        });
        // Until nothing more is taken.
        let mut before = usize::MAX;
        while taken.load(Ordering::Relaxed) != before {
            before = taken.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(1));
        }
        is_enough.store(true, Ordering::Relaxed);
        stdout.read_to_end(&mut out).unwrap();
    });
    let taken = taken.into_inner();
    assert!(taken < ROWS, "{taken} bytes were read though nothing took the answers");
    let run = child.wait_with_output().unwrap();
    assert!(run.status.success(), "{run:?}");
    // Nothing of what was taken is lost.
    assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), taken / 12);
}

/// Compiles a table of these lines over the one before, as `--follow` wants it.
fn compiled(folder: &Folder, name: &str, lines: &str, options: &[&str]) -> String {
    let table = folder.write("routes.csv", lines);
    let path = folder.path().join(name);
    let (table, path) = (table.to_str().unwrap(), path.to_str().unwrap().to_owned());
    let run = run(&[&["compile", table, "-o", &path, "--quiet"], options].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    path
}

#[test]
fn a_table_that_is_replaced_answers_from_the_next_line_on() {
    let folder = Folder::new();
    let table = |next_hop: &str| {
        compiled(&folder, "table.fibula", &format!("192.0.2.0/24 {next_hop}\n"), &["--routes"])
    };
    let path = table("64500");
    for args in [
        &["lookup", "--format", "csv", "--follow", "-t"][..],
        &["lookup", "--format", "json", "--follow", "-t"],
        &["enrich", "--follow", "--input-format", "csv", "-c", "1", "-t"],
    ] {
        table("64500");
        let (child, mut stdin, mut stdout) = piped(&[args, &[&path]].concat());
        // The comma after an object of a list comes with the next one.
        let is_json = args.contains(&"json");
        let end = if is_json { b'}' } else { b'\n' };
        let mut ask = |sent: &str| {
            stdin.write_all(sent.as_bytes()).unwrap();
            let mut answer = Vec::new();
            stdout.read_until(end, &mut answer).unwrap();
            String::from_utf8(answer).unwrap()
        };
        let first = ask("192.0.2.1\n");
        if first.starts_with("address") {
            ask("");
        }
        for next_hop in ["64501", "64502", "64503"] {
            table(next_hop);
            let answer = ask("192.0.2.1\n");
            assert!(answer.contains(next_hop), "{args:?}: {answer}");
        }
        // One that is broken, and one with another column: the table before serves.
        std::fs::write(folder.path().join("broken"), "nothing").unwrap();
        std::fs::rename(folder.path().join("broken"), &path).unwrap();
        assert!(ask("192.0.2.1\n").contains("64503"));
        assert!(ask("192.0.2.1\n").contains("64503"));
        compiled(
            &folder,
            "table.fibula",
            "prefix,next_hop,site\n192.0.2.0/24,64504,x\n",
            &["--value", "site", "--routes"],
        );
        assert!(ask("192.0.2.1\n").contains("64503"));
        table("64505");
        assert!(ask("192.0.2.1\n").contains("64505"));
        drop(stdin);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, if is_json { "\n]\n" } else { "" }, "{args:?}");
        let run = crate::support::Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, 0);
        assert_eq!(run.err.matches("the table before it serves").count(), 2, "{}", run.err);
    }
}

#[test]
fn only_a_compiled_table_and_lines_can_be_followed() {
    let folder = Folder::new();
    let text = folder.write("table.txt", TABLE);
    let run = run(&["lookup", "-t", text.to_str().unwrap(), "--follow", "--addresses", "-"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("fibula compile"), "{}", run.err);
    let path = compiled(&folder, "table.fibula", "192.0.2.0/24 1\n", &[]);
    let run = crate::support::run(&["lookup", "-t", &path, "--follow", "192.0.2.1"]);
    assert_eq!((run.code, run.err.contains("--follow")), (2, true), "{}", run.err);
}
