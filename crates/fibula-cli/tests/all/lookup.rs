//! `fibula lookup`: every form of output byte for byte, exit codes, tables good and bad.

use std::io::Write;

use crate::support::{Folder, TABLE, feed, lookup, run};

const INPUT: &str = "192.0.2.1\n192.0.2.129\n10.255.0.1\n198.51.100.1\n2001:db8:1::5\n2001:DB8:2::\n::1\n";

#[test]
fn text_is_the_default() {
    let run = lookup(&[], INPUT);
    assert_eq!(
        run.out,
        "192.0.2.1 192.0.2.0/24 via 64500\n\
         192.0.2.129 192.0.2.128/25 via 198.51.100.1\n\
         10.255.0.1 10.0.0.0/8 via 1,2\n\
         198.51.100.1 no route\n\
         2001:db8:1::5 2001:db8:1::/48 via fe80::1\n\
         2001:DB8:2:: 2001:db8::/32 via 64501\n\
         ::1 no route\n"
    );
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(lookup(&["--format", "text"], INPUT).out, run.out);
}

#[test]
fn csv() {
    let run = lookup(&["--format", "csv"], INPUT);
    assert_eq!(
        run.out,
        "address,prefix,next_hop\n\
         192.0.2.1,192.0.2.0/24,64500\n\
         192.0.2.129,192.0.2.128/25,198.51.100.1\n\
         10.255.0.1,10.0.0.0/8,\"1,2\"\n\
         198.51.100.1,,\n\
         2001:db8:1::5,2001:db8:1::/48,fe80::1\n\
         2001:DB8:2::,2001:db8::/32,64501\n\
         ::1,,\n"
    );
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn json() {
    let run = lookup(&["--json"], "192.0.2.1\n10.0.0.1\n::1\nx\n");
    assert_eq!(
        run.out,
        "[\n  \
         {\"address\":\"192.0.2.1\",\"prefix\":\"192.0.2.0/24\",\"next_hop\":\"64500\"},\n  \
         {\"address\":\"10.0.0.1\",\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"1,2\"},\n  \
         {\"address\":\"::1\",\"prefix\":null,\"next_hop\":null},\n  \
         {\"address\":null,\"prefix\":null,\"next_hop\":null}\n\
         ]\n"
    );
    assert_eq!(run.code, 3);
    assert_eq!(lookup(&["--format", "json"], "192.0.2.1\n10.0.0.1\n::1\nx\n").out, run.out);
    let list: Vec<serde_json::Value> = serde_json::from_str(&run.out).unwrap();
    assert_eq!(list.len(), 4);
}

#[test]
fn json_line() {
    let run = lookup(&["--format", "json-line"], "192.0.2.1\n::1\n\n");
    assert_eq!(
        run.out,
        "{\"address\":\"192.0.2.1\",\"prefix\":\"192.0.2.0/24\",\"next_hop\":\"64500\"}\n\
         {\"address\":\"::1\",\"prefix\":null,\"next_hop\":null}\n\
         {\"address\":null,\"prefix\":null,\"next_hop\":null}\n"
    );
    assert_eq!(run.code, 3);
}

#[test]
fn no_input_leaves_headers_alone() {
    for (format, out) in
        [("text", ""), ("csv", "address,prefix,next_hop\n"), ("json", "[]\n"), ("json-line", "")]
    {
        let run = lookup(&["--format", format], "");
        assert_eq!((run.out.as_str(), run.code), (out, 1), "{format}");
    }
}

#[test]
fn lines_that_are_no_address_have_empty_rows_in_their_place() {
    let run = lookup(&["--format", "csv"], "192.0.2.1\nhello\n\n10.0.0.256\n1:2\n10.0.0.1\n");
    assert_eq!(
        run.out,
        "address,prefix,next_hop\n192.0.2.1,192.0.2.0/24,64500\n,,\n,,\n,,\n,,\n10.0.0.1,10.0.0.0/8,\"1,2\"\n"
    );
    assert_eq!(
        run.err,
        "warning: line 2: 'hello' is not an IP address (unexpected 'h')\n\
         warning: line 3 is empty\n\
         warning: line 4: '10.0.0.256' is not an IP address (a number is above 255)\n\
         warning: line 5: '1:2' is not an IP address (too short)\n"
    );
    assert_eq!(run.code, 3);
    let text = lookup(&[], "hello\n192.0.2.1\n");
    assert_eq!(text.out, "- not an address\n192.0.2.1 192.0.2.0/24 via 64500\n");
}

#[test]
fn many_bad_lines_are_counted_and_cannot_harm_a_terminal() {
    let run = lookup(&[], "\x1b[31m\n".repeat(1234));
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0], "warning: line 1: '\\x1b[31m' is not an IP address (unexpected '\\x1b')");
    assert_eq!(lines[5], "warning: 1,234 lines in all were not IP addresses");
    assert_eq!(run.out, "- not an address\n".repeat(1234));
    assert_eq!(run.code, 3);
    let quiet = lookup(&["--quiet"], "x\n");
    let said = "warning: 1 line in all was not an IP address; the first: line 1: 'x' is not an IP address (unexpected 'x')\n";
    assert_eq!((quiet.err.as_str(), quiet.code), (said, 3));
}

#[test]
fn addresses_as_arguments() {
    let run = lookup(&["192.0.2.1", " 10.0.0.1 ", "2001:db8::", "8.8.8.8"], "10.1.1.1\n");
    assert_eq!(
        run.out,
        "192.0.2.1 192.0.2.0/24 via 64500\n10.0.0.1 10.0.0.0/8 via 1,2\n2001:db8:: 2001:db8::/32 via 64501\n\
         8.8.8.8 no route\n"
    );
    assert_eq!(run.code, 0);
    let bad = lookup(&["192.0.2.1", "x"], "");
    assert_eq!(bad.err, "warning: argument 2: 'x' is not an IP address (unexpected 'x')\n");
    assert_eq!((bad.out.as_str(), bad.code), ("192.0.2.1 192.0.2.0/24 via 64500\n- not an address\n", 3));
}

#[test]
fn mapped_addresses_are_ipv6() {
    let run = lookup(&["::ffff:192.0.2.1"], "");
    assert_eq!(run.out, "::ffff:192.0.2.1 ::ffff:0.0.0.0/96 via 64502\n");
}

#[test]
fn exit_codes() {
    assert_eq!(lookup(&["192.0.2.1", "8.8.8.8"], "").code, 0);
    assert_eq!(lookup(&["8.8.8.8", "::1"], "").code, 1);
    assert_eq!(lookup(&["8.8.8.8", "x"], "").code, 3);
    assert_eq!(lookup(&["--format", "xml"], "").code, 2);
    assert_eq!(lookup(&["--format", "csv", "--json"], "").code, 2);
    assert_eq!(lookup(&["--memory-limit", "much"], "").code, 2);
    assert_eq!(run(&["lookup"]).code, 2);
    assert_eq!(run(&["lookdown"]).code, 2);
}

#[test]
fn without_a_table_the_tour_is_named() {
    let run = run(&["lookup", "192.0.2.1"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--table <FILE>"), "{}", run.err);
    assert!(run.err.contains("fibula tour"), "{}", run.err);
}

#[test]
fn a_missing_table_is_named() {
    let run = run(&["lookup", "--table", "no/such/table", "192.0.2.1"]);
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    assert!(run.err.starts_with("error: no/such/table: cannot be opened: "), "{}", run.err);
}

fn good_lines(count: usize) -> String {
    (0..count).map(|at| format!("10.{}.{}.0/24 {at}\n", at >> 8, at & 255)).collect()
}

#[test]
fn bad_lines_of_the_table_are_reported_and_left_out() {
    let folder = Folder::new();
    let bad = "192.0.2.0/24 1\n192.0.2.0/33 2\n10.0.0.1/8 3\nnonsense\n198.51.100.0/24 4\n203.0.113.0/24 5\n";
    let table = folder.write("table.txt", bad);
    let table = table.to_str().unwrap();
    let args = ["lookup", "--table", table, "192.0.2.1", "10.9.9.9"];
    let first = run(&args);
    assert_eq!((first.code, first.out.as_str()), (0, "192.0.2.1 192.0.2.0/24 via 1\n10.9.9.9 no route\n"));
    let lines: Vec<&str> = first.err.lines().collect();
    assert_eq!(lines.len(), 4, "{}", first.err);
    assert!(lines[0].starts_with(&format!("warning: {table}:2:11: ")), "{}", lines[0]);
    assert_eq!(lines[3], format!("warning: {table}: 3 bad lines were left out (of 6)"));

    // With --quiet too, on one line.
    let quiet = run(&[&args[..], &["--quiet"]].concat());
    assert_eq!(quiet.err.lines().count(), 1, "{}", quiet.err);
    assert!(quiet.err.contains("3 bad lines were left out (of 6); the first: line 2: "), "{}", quiet.err);
    // More than ten bad lines, and more than one of a hundred: the answers are there, and the exit code says so.
    let many = [good_lines(1_000), "x 1\n".repeat(11)].concat();
    let many = folder.write("many.txt", many);
    let many = run(&["lookup", "--table", many.to_str().unwrap(), "10.0.7.1", "-q"]);
    assert_eq!((many.code, many.out.as_str()), (3, "10.0.7.1 10.0.7.0/24 via 7\n"), "{}", many.err);
    let few = [good_lines(1_200), "x 1\n".repeat(11)].concat();
    let few = folder.write("few.txt", few);
    assert_eq!(run(&["lookup", "--table", few.to_str().unwrap(), "10.0.7.1", "-q"]).code, 0);

    let masked = run(&[&args[..], &["--mask"]].concat());
    assert_eq!(masked.out, "192.0.2.1 192.0.2.0/24 via 1\n10.9.9.9 10.0.0.0/8 via 3\n");
    let strict = run(&[&args[..], &["--strict"]].concat());
    assert_eq!((strict.code, strict.out.as_str()), (3, ""));
    assert!(strict.err.starts_with(&format!("error: {table}:2:11: ")), "{}", strict.err);
    assert_eq!(quiet.code, 0);
}

#[test]
fn a_file_that_is_no_table_is_bad_input() {
    let folder = Folder::new();
    let table = folder.write("table.txt", "dear diary\n");
    let run = run(&["lookup", "--table", table.to_str().unwrap(), "192.0.2.1"]);
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    assert!(run.err.contains("table.txt: not a routing table: its only line is not a route"), "{}", run.err);
}

#[test]
fn empty_tables_match_nothing() {
    let folder = Folder::new();
    let table = folder.write("table.txt", "# nothing yet\n");
    let run = run(&["lookup", "--table", table.to_str().unwrap(), "192.0.2.1", "::1"]);
    assert_eq!((run.code, run.out.as_str()), (1, "192.0.2.1 no route\n::1 no route\n"));
    assert!(run.err.ends_with("table.txt: the table is empty\n"), "{}", run.err);
}

#[test]
fn compressed_tables() {
    let folder = Folder::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(TABLE.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let table = folder.write("table.txt.gz", &whole);
    let first = run(&["lookup", "--table", table.to_str().unwrap(), "192.0.2.1"]);
    assert_eq!((first.out.as_str(), first.code), ("192.0.2.1 192.0.2.0/24 via 64500\n", 0));
    let cut = folder.write("cut.gz", &whole[..whole.len() - 9]);
    let cut = cut.to_str().unwrap();
    let loose = run(&["lookup", "--table", cut, "192.0.2.1"]);
    assert!(loose.err.contains("ends early"), "{}", loose.err);
    let mut damaged = [&whole[..], &whole].concat();
    damaged[whole.len()] ^= 1;
    let damaged = folder.write("damaged.gz", damaged);
    let damaged = damaged.to_str().unwrap();
    let kept = run(&["lookup", "--table", damaged, "192.0.2.1"]);
    assert_eq!((kept.out.as_str(), kept.code), ("192.0.2.1 192.0.2.0/24 via 64500\n", 0));
    for part in ["the gzip stream is damaged, noticed at byte", "after line 7: ", "may contain wrong data"] {
        assert!(kept.err.contains(part), "{part}: {}", kept.err);
    }
    let stats = run(&["table", "stats", damaged, "--format", "json"]).out;
    assert!(stats.contains("\"truncated\": \"") && stats.contains("is damaged, noticed at byte"), "{stats}");
    for file in [cut, damaged] {
        let strict = run(&["lookup", "--strict", "--table", file, "192.0.2.1"]);
        assert_eq!((strict.code, strict.out.as_str()), (3, ""));
    }
}

#[test]
fn the_table_may_come_from_standard_input_if_the_addresses_do_not() {
    let run = feed(&["lookup", "--table", "-", "192.0.2.1"], TABLE);
    assert_eq!((run.out.as_str(), run.code), ("192.0.2.1 192.0.2.0/24 via 64500\n", 0));
    assert_eq!(feed(&["lookup", "--table", "-"], TABLE).code, 2);
}

#[test]
fn unknown_engines_are_refused_with_a_suggestion() {
    for (name, message) in [
        ("nonsuch", "error: no engine 'nonsuch'; 'fibula engines' lists all\n"),
        (
            "range-tree",
            "error: no engine 'range-tree'; did you mean 'range-btree'? ('fibula engines' lists all)\n",
        ),
        (
            "dxr-18",
            "error: 'dxr-18' is in fibula-lab only; 'fibula engines' lists the engines of this command\n",
        ),
    ] {
        let run = lookup(&["--engine", name], INPUT);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (2, "", message));
    }
}

#[test]
fn every_engine_gives_the_same_answers() {
    let expected = lookup(&["--format", "csv"], INPUT).out;
    let list = run(&["engines", "--json"]).out;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list).unwrap();
    for engine in list {
        let name = engine["name"].as_str().unwrap();
        let run = lookup(&["--format", "csv", "--engine", name, "--stats"], INPUT);
        assert_eq!(run.out, expected, "{name}");
        assert!(run.err.contains(&format!(" by {name} (")), "{name}: {}", run.err);
    }
}

#[test]
fn structures_that_are_too_small_say_what_the_table_needs() {
    let folder = Folder::new();
    // A host route in each of one more /24s than have room.
    let place = |at: u32| std::net::Ipv4Addr::from(0x0b00_0000 + (at << 8));
    let routes: String = (0..32_769).map(|at| format!("{}/32 1\n", place(at))).collect();
    let table = folder.write("many.txt", routes);
    let run = run(&["lookup", "-t", table.to_str().unwrap(), "--engine", "dir-24-8", "11.0.0.0"]);
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    assert_eq!(run.err, "error: dir-24-8: at most 32768 segments, this table needs 32769\n");
}

#[test]
fn memory_limits_hold() {
    let run = lookup(&["--memory-limit", "100", "192.0.2.1"], "");
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    assert!(run.err.contains("the memory limit is 100 bytes"), "{}", run.err);
    assert_eq!(lookup(&["--memory-limit", "1M", "192.0.2.1"], "").code, 0);
}

#[test]
fn stats_say_who_answered() {
    let run = lookup(&["--stats", "192.0.2.1", "::1"], "");
    assert!(run.err.contains("3 IPv4 routes, 3 IPv6 routes, 6 next hops; "), "{}", run.err);
    assert!(run.err.contains("IPv4 answers: 1 by the table (RIB)\n"), "{}", run.err);
    assert!(run.err.contains("2 addresses, 1 with a route, 0 not an address;"), "{}", run.err);
}
