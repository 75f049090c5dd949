//! `fibula lookup` as an executable function of ClickHouse: rows of RowBinary in, nullable texts out.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::{Folder, TABLE, fibula, run};

/// Runs the command with these bytes on standard input; returns the exit code and both outputs.
fn rows(args: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let mut command = fibula();
    command.args(["lookup", "--input-format", "row-binary", "--format", "row-binary", "-t"]).arg(table);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    (output.status.code().unwrap(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn some(answer: &str) -> Vec<u8> {
    [vec![0], text(answer)].concat()
}

#[test]
fn each_type_of_address_is_answered() {
    let null = vec![1];
    let wanted = [some("64500"), null.clone(), some("198.51.100.1"), null.clone(), some("64501")].concat();
    let asked = ["192.0.2.1", "11.0.0.1", "192.0.2.200", "nothing", "2001:db8::7"].map(text).concat();
    let (code, out, err) = rows(&[], &asked);
    assert_eq!((code, out), (0, wanted), "{err}");
    assert!(err.contains("row 4"), "{err}");
    let (code, out, _) = rows(&["--row-type", "string"], &text(" 10.1.2.3 "));
    assert_eq!((code, out), (0, some("1,2")));
    // IPv4 is a number, the low byte first.
    let asked = [[1, 2, 0, 192], [1, 0, 0, 11]].concat();
    let (code, out, _) = rows(&["--row-type", "ipv4"], &asked);
    assert_eq!((code, out), (0, [some("64500"), null.clone()].concat()));
    // IPv6 is in network order; IPv4-mapped ones are of the family that was asked for.
    let mut mapped = [0; 16];
    mapped[10..].copy_from_slice(&[255, 255, 192, 0, 2, 1]);
    let (code, out, _) = rows(&["--row-type", "ipv6"], &mapped);
    assert_eq!((code, out), (0, some("64502")));
    let (code, out, _) = rows(&["--row-type", "ipv6", "--v4-mapped", "ipv4"], &mapped);
    assert_eq!((code, out), (0, some("64500")));
    assert_eq!(rows(&[], b""), (0, Vec::new(), String::new()));
}

#[test]
fn many_rows_are_answered_whatever_their_number() {
    let asked = ["192.0.2.1", "::1", "10.255.0.1"].map(text).concat().repeat(50_000);
    let wanted = [some("64500"), vec![1], some("1,2")].concat().repeat(50_000);
    for threads in ["1", "3"] {
        let (code, out, err) = rows(&["--threads", threads], &asked);
        assert_eq!(code, 0, "{err}");
        assert!(out == wanted);
    }
}

#[test]
fn an_answer_comes_before_the_next_row_is_sent() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let mut command = fibula();
    command.args(["lookup", "--input-format", "row-binary", "--format", "row-binary", "-t"]).arg(table);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for _ in 0..3 {
        // In two pieces: a row is answered when all of it is there.
        let row = text("192.0.2.1");
        stdin.write_all(&row[..4]).unwrap();
        stdin.write_all(&row[4..]).unwrap();
        let mut answer = [0; 7];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(answer.to_vec(), some("64500"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn values_are_the_answers_where_they_are_requested() {
    let folder = Folder::new();
    let table =
        folder.write("t.csv", "prefix,next_hop,country,asn\n192.0.2.0/24,1,DE,64500\n10.0.0.0/8,2,,\n");
    let long = "x".repeat(300);
    let other = folder.write("long.csv", format!("prefix,next_hop,country\n192.0.2.0/24,1,{long}\n"));
    let asked = folder.write("asked", [text("192.0.2.1"), text("10.0.0.1"), text("11.0.0.1")].concat());
    let ask = |table: &std::path::Path, values: &str| {
        let mut command = fibula();
        command.args([
            "lookup",
            "--input-format",
            "row-binary",
            "--format",
            "row-binary",
            "--value",
            values,
            "-t",
        ]);
        let output = command.arg(table).arg("--addresses").arg(&asked).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(ask(&table, "country"), [some("DE"), vec![1, 1]].concat());
    assert_eq!(ask(&table, "asn,country"), [some("64500"), some("DE"), vec![1, 1, 1, 1]].concat());
    // A length of more than seven bits.
    let wanted = [&[0, 0xac, 2], long.as_bytes(), &[1, 1]].concat();
    assert_eq!(ask(&other, "country"), wanted);
    // The same of a compiled table.
    let path = folder.path().join("table.fibula");
    let (table, path) = (table.to_str().unwrap(), path.to_str().unwrap());
    assert_eq!(
        run(&["compile", table, "-o", path, "--quiet", "--value", "country", "--value", "asn"]).code,
        0
    );
    assert_eq!(ask(path.as_ref(), "asn,country"), [some("64500"), some("DE"), vec![1, 1, 1, 1]].concat());
}

#[test]
fn what_is_no_row_is_an_error() {
    for (args, input, fault) in [
        (&[][..], &b"\x09192.0.2."[..], "in the middle of a row"),
        (&[], b"\xff\xff\xff\xff", "longer than 4096 bytes"),
        (&[], b"\x80\x80\x80", "longer than 4096 bytes"),
        (&["--row-type", "ipv4"], b"abc", "in the middle of a row"),
        (&["--row-type", "ipv6"], b"0123456789", "in the middle of a row"),
    ] {
        let (code, _, err) = rows(args, input);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains(fault), "{err}");
    }
    let (code, _, err) = rows(&["--strict"], &[text("192.0.2.1"), text("x")].concat());
    assert_eq!(code, 3);
    assert!(err.contains("row 2"), "{err}");
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let table = table.to_str().unwrap();
    for args in [
        &["--format", "row-binary"][..],
        &["--input-format", "row-binary"],
        &["--input-format", "row-binary", "--format", "row-binary", "192.0.2.1"],
        &["--input-format", "row-binary", "--format", "row-binary", "--column", "1"],
        &["--input-format", "row-binary", "--json"],
        &["--row-type", "ipv4"],
        &["--input-format", "csv"],
    ] {
        let run = run(&[&["lookup", "-t", table], args].concat());
        assert_eq!(run.code, 2, "{args:?} {}", run.err);
    }
}
