//! Feeds on the command line: peers, tables in other forms, routes around prefixes.

use crate::support;
use crate::support::{Folder, TABLE, feed, run};
use serde_json::Value;

/// Three peers as a collector's tool prints them; the second has most routes.
const DUMP: &str = "\
TABLE_DUMP2|1700000000|B|192.0.2.1|64501|10.0.0.0/8|64501|IGP|192.0.2.1|0|0||NAG||
TABLE_DUMP2|1700000000|B|192.0.2.2|64502|10.0.0.0/8|64502 64500|IGP|192.0.2.2|0|0||NAG||
TABLE_DUMP2|1700000000|B|192.0.2.2|64502|10.128.0.0/9|64502 64500|IGP|192.0.2.2|0|0||NAG||
TABLE_DUMP2|1700000000|B|192.0.2.2|64502|10.128.0.0/16|64502|IGP|192.0.2.2|0|0||NAG||
TABLE_DUMP2|1700000000|B|2001:db8::3|64503|2001:db8::/32|64503|IGP|2001:db8::3|0|0||NAG||
";

struct Files {
    folder: Folder,
    dump: String,
    table: String,
}

fn files() -> Files {
    let folder = Folder::new();
    let path = |name: &str, content: &str| folder.write(name, content).to_str().unwrap().to_owned();
    let (dump, table) = (path("dump.txt", DUMP), path("table.txt", TABLE));
    Files { folder, dump, table }
}

#[test]
fn peers_are_listed_with_what_they_announce() {
    let files = files();
    let text = run(&["peers", &files.dump]);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> = text.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2], ["192.0.2.2", "64502", "*", "3", "0"]);
    assert_eq!(rows.len(), 4);
    let list: Vec<Value> = serde_json::from_str(&run(&["peers", &files.dump, "--json"]).out).unwrap();
    assert_eq!(
        (&list[0]["peer"], &list[0]["ipv4"], &list[0]["ipv4_default"]),
        (&"192.0.2.1".into(), &1.into(), &false.into())
    );
    assert_eq!((&list[2]["asn"], &list[2]["ipv6_default"]), (&64_503.into(), &true.into()));
    let csv = run(&["peers", &files.dump, "--format", "csv"]).out;
    assert!(csv.starts_with("peer,asn,ipv4,ipv6,ipv4_withdrawn,ipv6_withdrawn,"), "{csv}");
    // Standard input, and a table without peers.
    assert_eq!(feed(&["peers", "-"], DUMP).out, text.out);
    let none = run(&["peers", &files.table]);
    assert_eq!((none.code, none.out.as_str()), (1, "no peers\n"));
    assert_eq!(run(&["peers", "/nowhere"]).code, 3);
    // One of them; and options that would do nothing are refused.
    let one = run(&["peers", &files.dump, "--peer", "AS64501", "--format", "csv"]).out;
    assert!(one.lines().count() == 2 && one.contains("\n192.0.2.1,64501,1,"), "{one}");
    assert_eq!(run(&["peers", &files.dump, "--peer", "AS5"]).code, 1);
    assert_eq!(run(&["peers", &files.dump, "--best"]).code, 2);
    let noise = files.folder.write("noise", "\u{7f}ELF\nnoise\n");
    let noise = run(&["peers", noise.to_str().unwrap()]);
    assert_eq!((noise.code, noise.out.as_str()), (3, ""));
    assert!(noise.err.contains("noise is a program, which is not read here"), "{}", noise.err);
}

fn mrt_record(kind: u8, subtype: u8, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(body.len()).unwrap();
    [&[0x65, 0, 0, 0, 0, kind, 0, subtype, 0, 0, 0, len], body].concat()
}

/// A record of `BGP4MP` that announces 10.0.0.0/8.
fn update() -> Vec<u8> {
    let ends = [0xfb, 0xf5, 0xfb, 0xf4, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2];
    let attributes = [0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 9];
    let update = [&[0xff; 16][..], &[0, 39, 2, 0, 0, 0, 14], &attributes, &[8, 10]].concat();
    mrt_record(16, 1, &[&ends[..], &update].concat())
}

/// MRT: an OSPFv2 record, a KEEPALIVE of the early format, and a route of `BGP4MP`.
fn mixed_records() -> Vec<u8> {
    [mrt_record(11, 0, &[1]), mrt_record(5, 7, &[]), update()].concat()
}

#[test]
fn good_routes_are_written_whatever_follows() {
    let folder = Folder::new();
    let convert = |name: &str, content: Vec<u8>| {
        run(&["table", "convert", "--to", "bgpdump", folder.write(name, content).to_str().unwrap()])
    };
    let whole = convert("whole.mrt", update());
    assert_eq!((whole.code, whole.err.as_str()), (0, ""));
    assert!(whole.out.contains("|10.0.0.0/8|"), "{}", whole.out);
    let junk = convert("junk.mrt", [update(), vec![0xee; 40]].concat());
    assert_eq!((junk.code, &junk.out), (0, &whole.out), "{}", junk.err);
    assert!(junk.err.contains("warning: "), "{}", junk.err);
    // Of three routes to a prefix, two name peers that are not in the list of one peer.
    let peers = [192, 0, 2, 1, 0, 0, 0, 1, 0, 192, 0, 2, 2, 192, 0, 2, 2, 0xfb, 0xf5];
    let route = |peer: u8| {
        [&[0, peer, 0x65, 0, 0, 0, 0, 14][..], &[0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 9]]
            .concat()
    };
    let routes = [&[0, 0, 0, 0, 8, 10, 0, 3][..], &route(0), &route(7), &route(8)].concat();
    let rib = convert("rib.mrt", [mrt_record(13, 1, &peers), mrt_record(13, 2, &routes)].concat());
    assert_eq!((rib.code, rib.out.lines().count()), (0, 1), "{}", rib.err);
    assert!(rib.err.contains("2 bad MRT records or routes were left out"), "{}", rib.err);
    let none = convert("none.mrt", mrt_record(16, 1, &[1]));
    assert_eq!((none.code, none.out.as_str()), (3, ""));
    assert!(none.err.contains("no route in its MRT records"), "{}", none.err);
}

#[test]
fn records_that_are_not_read_are_named() {
    let folder = Folder::new();
    let path = folder.path().join("mixed.mrt");
    std::fs::write(&path, mixed_records()).unwrap();
    let path = path.to_str().unwrap();
    let peers = run(&["peers", path, "--json"]);
    assert_eq!(
        peers.err,
        format!(
            "warning: {path}: not read: OSPFv2 (1)\nnote: {path}: without effect on routes: BGP KEEPALIVE (1)\n"
        )
    );
    let expected = serde_json::json!([
        { "kind": "BGP KEEPALIVE", "count": 1, "loses_routes": false },
        { "kind": "OSPFv2", "count": 1, "loses_routes": true },
    ]);
    let stats: Value = serde_json::from_str(&run(&["table", "stats", path, "--json"]).out).unwrap();
    let feed = &stats["feeds"][0];
    assert_eq!((&feed["skipped"], &feed["complete"]), (&expected, &false.into()));
    let strict = run(&["table", "stats", path, "--strict"]);
    assert_eq!(strict.code, 3);
    assert!(strict.err.contains(": byte 4: OSPFv2 is not read"), "{}", strict.err);
}

#[test]
fn several_tables_say_where_they_differ() {
    let folder = Folder::new();
    let file = |name: &str, content: &str| folder.write(name, content).to_str().unwrap().to_owned();
    let first = file("first.txt", "10.0.0.0/8 1\n10.1.0.0/16 1\n2001:db8::/32 1\n");
    let second = file("second.txt", "10.0.0.0/8 1\n10.1.0.0/16 2\n10.2.0.0/16 2\n");
    let both = run(&["table", "stats", &first, &second, "--json"]);
    let expected = format!(
        "note: {first}: 2 IPv4 prefixes, 1 IPv6 prefix\nnote: {second}: 3 IPv4 prefixes\nnote: {second}: 1 prefix has \
         another next hop in the tables before it; decided by the earlier table (1)\n"
    );
    assert_eq!(both.err, expected);
    assert_eq!(run(&["table", "stats", &first, "--json"]).err, "");
}

/// Updates of two peers: the first announces most and withdraws it again.
const UPDATES: &str = "\
1 a 10.0.0.0/8 192.0.2.1 192.0.2.1 64501 64500
1 a 10.1.0.0/16 192.0.2.1 192.0.2.1 64501 64500
1 a 10.2.0.0/16 192.0.2.1 192.0.2.1 64501 64500
2 a 10.0.0.0/8 192.0.2.2 192.0.2.2 64502 64500
2 a 10.1.0.0/16 192.0.2.2 192.0.2.2 64502 64500
3 w 10.1.0.0/16 - 192.0.2.1 64501 -
3 w 10.2.0.0/16 - 192.0.2.1 64501 -
";

#[test]
fn of_updates_the_routes_at_the_end_are_listed() {
    let files = files();
    let path = files.folder.write("updates.txt", UPDATES);
    let path = path.to_str().unwrap();
    let text = run(&["peers", path]).out;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["peer", "AS", "IPv4", "IPv6", "announced", "withdrawn"]);
    assert_eq!(rows[1], ["192.0.2.1", "64501", "1", "0", "3", "2"]);
    assert_eq!(rows[2], ["192.0.2.2", "64502", "*", "2", "0", "2", "0"]);
    let list: Vec<Value> = serde_json::from_str(&run(&["peers", path, "--json"]).out).unwrap();
    let first = &list[0];
    assert_eq!(
        (&first["ipv4"], &first["ipv4_routes"], &first["ipv4_withdrawn"]),
        (&3.into(), &1.into(), &2.into())
    );
    let lookup = run(&["lookup", "-t", path, "10.1.2.3"]);
    assert_eq!(lookup.out, "10.1.2.3 10.1.0.0/16 via 192.0.2.2\n");
    assert!(
        lookup.err.contains("using the 2 IPv4 routes of peer 192.0.2.2 (AS 64502), one of 2 peers"),
        "{}",
        lookup.err
    );
}

#[test]
fn lookups_take_a_peer_or_the_best_path() {
    let files = files();
    let lookup = |options: &[&str]| run(&[&["lookup", "-t", &files.dump, "10.1.2.3"], options].concat());
    let most = lookup(&[]);
    assert_eq!(most.out, "10.1.2.3 10.0.0.0/8 via 192.0.2.2 origin-as 64500\n");
    assert!(
        most.err.contains("using the 3 IPv4 routes of peer 192.0.2.2 (AS 64502), one of 3 peers"),
        "{}",
        most.err
    );
    assert_eq!(lookup(&["--quiet"]).err, "");
    for options in [&["--peer", "192.0.2.1"][..], &["--peer", "AS64501"], &["--best"]] {
        let expected = "10.1.2.3 10.0.0.0/8 via 192.0.2.1 origin-as 64501\n";
        assert_eq!(lookup(options).out, expected, "{options:?}");
    }
    let none = lookup(&["--family", "ipv6"]);
    assert_eq!((none.code, none.out.as_str()), (1, "10.1.2.3 no route\n"));
    let unknown = lookup(&["--peer", "192.0.2.9"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown
            .err
            .contains("no peer matches 192.0.2.9 (the file has 3 peers; list them with 'fibula peers "),
        "{}",
        unknown.err
    );
    assert_eq!(lookup(&["--peer", "nobody"]).code, 2);
    assert_eq!(lookup(&["--peer", "192.0.2.1", "--best"]).code, 2);
    // Own prefixes go before those that peers announce, unless another order is requested.
    let both = ["lookup", "-t", &files.table, "-t", &files.dump, "10.1.2.3", "192.0.2.1", "-q"];
    assert_eq!(run(&both).out, "10.1.2.3 10.0.0.0/8 via 1,2\n192.0.2.1 192.0.2.0/24 via 64500\n");
    let later = run(&[&both[..], &["--table-order", "later-wins"]].concat());
    assert_eq!(
        later.out,
        "10.1.2.3 10.0.0.0/8 via 192.0.2.2 origin-as 64500\n192.0.2.1 192.0.2.0/24 via 64500\n"
    );
    assert_eq!(run(&["lookup", "-t", "-", "-t", &files.dump, "1.1.1.1"]).code, 2);
}

#[test]
fn routes_are_shown_with_what_is_around_and_inside() {
    let files = files();
    let show = |options: &[&str]| run(&[&["route", "show", "-q", "-t", &files.dump], options].concat());
    let (around, it, inside) = (
        "10.0.0.0/8 192.0.2.2 origin-as 64500\n",
        "10.128.0.0/9 192.0.2.2 origin-as 64500\n",
        "10.128.0.0/16 192.0.2.2 origin-as 64502\n",
    );
    assert_eq!(show(&["10.128.0.0/9"]).out, it);
    assert_eq!(show(&["10.128.0.0/9", "--exact-match"]).out, it);
    assert_eq!(show(&["10.128.0.0/9", "--include-super"]).out, format!("{around}{it}"));
    assert_eq!(show(&["10.128.0.0/9", "--include-sub"]).out, format!("{it}{inside}"));
    assert_eq!(show(&["10.128.0.1", "--include-super"]).out, format!("{around}{it}{inside}"));
    assert_eq!(show(&[]).out, format!("{around}{it}{inside}2001:db8::/32 2001:db8::3 origin-as 64503\n"));
    let list =
        files.folder.write("mine.txt", "# mine\n10.128.0.0/9 # here\n\n2001:db8::/32\n10.128.0.0/16\n");
    let list = list.to_str().unwrap();
    let csv = show(&["--prefix-file", list, "--include-super", "--include-sub", "--format", "csv"]).out;
    assert_eq!(csv.lines().count(), 5, "each route once: {csv}");
    let json: Vec<Value> = serde_json::from_str(&show(&["10.0.0.0/8", "-j"]).out).unwrap();
    assert_eq!(json[0]["next_hop"], "192.0.2.2");
    let none = show(&["11.0.0.0/8", "--include-sub", "--json"]);
    assert_eq!((none.code, none.out.as_str()), (1, "[]\n"));
    assert_eq!(show(&["11.0.0.0/33"]).code, 2);
    assert_eq!(show(&["11.0.0.0/8", "--exact-match", "--include-sub"]).code, 2);
    let bad = files.folder.write("bad.txt", "10.0.0.0/8\nx\n");
    let bad = show(&["--prefix-file", bad.to_str().unwrap()]);
    assert_eq!(bad.code, 3);
    assert!(bad.err.contains("bad.txt:2: not an IP address: unexpected 'x'"), "{}", bad.err);
    assert_eq!(
        run(&["route", "get", "-q", "-t", &files.dump, "10.1.2.3"]).out,
        "10.1.2.3 10.0.0.0/8 via 192.0.2.2 origin-as 64500\n"
    );
}

#[test]
fn tables_in_other_forms() {
    let files = files();
    let convert = |to: &str, options: &[&str]| {
        run(&[&["table", "convert", &files.dump, "-q", "--to", to], options].concat())
    };
    let text = convert("text", &[]).out;
    assert_eq!(text.lines().next(), Some("10.0.0.0/8 192.0.2.2"));
    let again = files.folder.write("again.txt", &text);
    assert_eq!(run(&["table", "convert", again.to_str().unwrap(), "--to", "text"]).out, text);
    assert!(convert("csv", &[]).out.starts_with("prefix,next_hop\n10.0.0.0/8,192.0.2.2\n"));
    let list: Vec<Value> = serde_json::from_str(&convert("json", &[]).out).unwrap();
    assert_eq!((list.len(), convert("json-line", &[]).out.lines().count()), (4, 4));
    assert_eq!(
        convert("intervals", &["--best"]).out,
        "start,end,value\n\
         10.0.0.0,10.127.255.255,192.0.2.1\n\
         10.128.0.0,10.255.255.255,192.0.2.2\n\
         2001:db8::,2001:db8:ffff:ffff:ffff:ffff:ffff:ffff,2001:db8::3\n"
    );
    // The lines of one peer, or of all; paths are not known of lines, and stay empty.
    let lines = convert("bgpdump", &["--peer", "AS64501"]).out;
    assert_eq!(
        lines,
        "TABLE_DUMP2|1700000000|B|192.0.2.1|64501|10.0.0.0/8||INCOMPLETE|192.0.2.1|0|0||NAG||\n"
    );
    assert_eq!(convert("bgpdump", &["--all-peers"]).out.lines().count(), 5);
    for (to, options) in [("bgpdump", ["--best"]), ("text", ["--all-peers"])] {
        let refused = convert(to, &options);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    }
    let out = files.folder.path().join("out.csv");
    let written = convert("csv", &["--output", out.to_str().unwrap()]);
    assert_eq!((written.code, written.out.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(out).unwrap(), convert("csv", &[]).out);
    assert_eq!(convert("csv", &["--output", "/nowhere/x"]).code, 3);
    if !cfg!(feature = "parquet") {
        let refused = convert("intervals-parquet", &[]);
        assert_eq!(refused.code, 4);
        assert!(refused.err.contains("cargo install fibula-cli --features parquet"), "{}", refused.err);
    }
}

#[test]
fn maxmind_databases_are_read_back() {
    let files = files();
    let csv = files
        .folder
        .write("sites.csv", "prefix,asn,country\n192.0.2.0/24,64500,NL\n2001:db8::/32,64501,DE\n");
    let to = files.folder.path().join("sites.mmdb");
    let (csv, to) = (csv.to_str().unwrap(), to.to_str().unwrap());
    let convert = |options: &[&str]| run(&[&["table", "convert", csv, "--to", "mmdb"], options].concat());
    let made =
        convert(&["--value", "asn:u32", "--value", "country", "--field", "country=site.country", "-o", to]);
    assert_eq!((made.code, made.out.as_str()), (0, ""), "{}", made.err);
    assert!(made.err.contains("2 records"), "{}", made.err);
    let values = ["--value", "autonomous_system_number", "--value", "site.country"];
    let found =
        run(&[&["lookup", "-q", "-t", to, "--format", "csv", "192.0.2.1", "2001:db8::1"][..], &values]
            .concat());
    assert_eq!((found.code, found.err.as_str()), (0, ""));
    assert!(found.out.contains(",64500,NL\n") && found.out.contains(",64501,DE\n"), "{}", found.out);
    // What cannot be is refused, and no file is left.
    std::fs::remove_file(to).unwrap();
    for (options, code, why) in [
        (&["--field", "none=x"][..], 2, "no column 'none'"),
        (&["--field", "none"], 2, "asn=autonomous_system_number"),
        (&["--value", "country:u32"], 3, "is not of type u32"),
    ] {
        let refused = convert(&[options, &["-o", to]].concat());
        assert_eq!(refused.code, code, "{}", refused.err);
        assert!(refused.err.contains(why) && !std::path::Path::new(to).exists(), "{}", refused.err);
    }
    let refused = run(&["table", "convert", csv, "--to", "text", "--aliases"]);
    assert_eq!(
        (refused.code, refused.err.contains("--aliases needs --to mmdb")),
        (2, true),
        "{}",
        refused.err
    );
}

#[cfg(feature = "parquet")]
#[test]
fn intervals_as_parquet() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    let files = files();
    let path = files.folder.path().join("ranges.parquet");
    let args = ["table", "convert", &files.dump, "-q", "--best", "--to", "intervals-parquet", "--output"];
    assert_eq!(run(&[&args[..], &[path.to_str().unwrap()]].concat()).code, 0);
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let text = |row: usize, column: usize| rows[row].get_string(column).unwrap().clone();
    assert_eq!((rows.len(), rows[0].get_int(0).unwrap(), rows[2].get_int(0).unwrap()), (3, 4, 6));
    assert_eq!(
        (text(1, 1), text(1, 2), text(1, 5)),
        ("10.128.0.0".into(), "10.255.255.255".into(), "192.0.2.2".into())
    );
    assert_eq!(rows[1].get_bytes(3).unwrap().data(), [10, 128, 0, 0]);
    assert_eq!(rows[2].get_bytes(4).unwrap().data(), [&[0x20, 1, 0xd, 0xb8][..], &[0xff; 12]].concat());
}

#[test]
fn tables_are_compared() {
    let files = files();
    let diff = |options: &[&str]| run(&[&["table", "diff", "-q"], options].concat());
    let after = files
        .folder
        .write("after.txt", TABLE.replace("64500", "7").replace("10.0.0.0/8 1,2\n", "11.0.0.0/8 5\n"));
    let after = after.to_str().unwrap();
    let changes = diff(&[&files.table, after]);
    assert_eq!(
        (changes.code, changes.out.as_str()),
        (1, "- 10.0.0.0/8 1,2\n+ 11.0.0.0/8 5\n~ 192.0.2.0/24 64500 7\n")
    );
    assert_eq!(run(&["table", "diff", &files.table, after]).err, "note: 1 added, 1 removed, 1 changed\n");
    let csv = diff(&[&files.table, after, "--format", "csv"]).out;
    assert_eq!(csv.lines().nth(1), Some("removed,10.0.0.0/8,\"1,2\","));
    let list: Vec<Value> = serde_json::from_str(&diff(&[&files.table, after, "--json"]).out).unwrap();
    assert_eq!((&list[1]["change"], &list[1]["before"]), (&"added".into(), &Value::Null));
    let same = diff(&[after, after]);
    assert_eq!((same.code, same.out.as_str()), (0, ""));
    assert_eq!(diff(&[&files.table, "/nowhere"]).code, 3);
}

#[test]
fn tables_are_proved_equivalent_or_not() {
    let files = files();
    let write = |name: &str, text: &str| files.folder.write(name, text).to_str().unwrap().to_owned();
    let a =
        write("a.txt", "10.0.0.0/9 1\n10.128.0.0/9 1\n192.0.2.0/25 1\n192.0.2.128/25 2\n2001:db8::/32 3\n");
    let fewest = files.folder.path().join("fewest.txt");
    let fewest = fewest.to_str().unwrap();
    let convert = run(&["table", "convert", &a, "--to", "text", "--aggregate", "--output", fewest]);
    assert_eq!((convert.code, convert.err.as_str()), (0, "note: aggregated: 4 routes for 5\n"));
    let same = run(&["verify", &a, fewest]);
    let note = "note: equivalent: every address has the same answer from 5 and from 4 routes\n";
    assert_eq!((same.code, same.out.as_str(), same.err.as_str()), (0, "", note));
    assert_eq!(run(&["verify", &a, fewest, "--json"]).out, "[]\n");

    let b = write("b.txt", "10.0.0.0/8 1\n192.0.2.0/24 2\n2001:db8::/33 3\n");
    let first = run(&["verify", &a, &b]);
    assert_eq!((first.code, first.out.as_str()), (1, "192.0.2.0-192.0.2.127 1 2\n"));
    assert!(first.err.contains("--all"), "{}", first.err);
    let all = run(&["verify", &a, &b, "--all", "--format", "csv"]);
    let rows = "first,last,a,b\n192.0.2.0,192.0.2.127,1,2\n\
                2001:db8:8000::,2001:db8:ffff:ffff:ffff:ffff:ffff:ffff,3,\n";
    assert_eq!((all.code, all.out.as_str()), (1, rows));
    assert_eq!(all.err, "note: 2 ranges of addresses have other answers\n");
    assert_eq!(run(&["verify", &a, "/nowhere"]).code, 3);
}

#[test]
fn tables_are_described_and_made_up() {
    let files = files();
    let path = files.folder.path().join("synth.txt");
    let path = path.to_str().unwrap();
    let synth =
        run(&["table", "synth", "ipv6", "ipv4", "--routes", "500", "--next-hops", "9", "--output", path]);
    assert_eq!((synth.code, synth.out.as_str()), (0, ""));
    let stats = run(&["table", "stats", path]);
    assert_eq!((stats.code, stats.err.as_str()), (0, ""));
    for part in [
        "IPv4\n",
        "IPv6\n",
        "routes",
        "500",
        "of the address space",
        "levels deep",
        " after merging equal neighbours)",
        "█",
        "Next hops",
    ] {
        assert!(stats.out.contains(part), "{part}: {}", stats.out);
    }
    let json: Value = serde_json::from_str(&run(&["table", "stats", path, "--json"]).out).unwrap();
    let family = &json["families"][1];
    assert_eq!(
        (&family["family"], &family["routes"], &family["next_hops"]),
        (&"ipv6".into(), &500.into(), &9.into())
    );
    let sum: u64 =
        family["lengths"].as_array().unwrap().iter().map(|line| line["routes"].as_u64().unwrap()).sum();
    assert_eq!((sum, &json["feeds"][0]["complete"]), (500, &true.into()));
    let csv = run(&["table", "stats", path, "--format", "csv"]).out;
    assert!(csv.starts_with("family,length,routes,nested\nipv4,"), "{csv}");
    assert_eq!(
        run(&["table", "synth", "ipv4", "--routes", "500"]).out,
        run(&["table", "synth", "ipv4", "--routes", "500"]).out
    );
    let unknown = run(&["table", "synth", "ipv5"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("there are: ipv4, ipv6, ipv4-2008"), "{}", unknown.err);
    assert_eq!(run(&["table", "synth", "ipv4", "--next-hops", "0"]).code, 2);
}

#[test]
fn what_cannot_be_read_of_records_is_said() {
    let files = files();
    // A TABLE_DUMP of one route, and half of another.
    let mut record = vec![0x65, 0x53, 0xf1, 0, 0, 12, 0, 1, 0, 0, 0, 42, 0, 0, 0, 1, 10, 0, 0, 0, 8, 1];
    record.extend([0x65, 0x53, 0xf1, 0, 192, 0, 2, 1, 0xfb, 0xf5, 0, 20]);
    record.extend([0x40, 1, 1, 0, 0x40, 2, 6, 2, 2, 0xfb, 0xf5, 0xfb, 0xf4, 0x40, 3, 4, 192, 0, 2, 9]);
    let cut = [&record[..], &record[..30]].concat();
    let path = files.folder.write("rib", cut);
    let run = run(&["lookup", "-t", path.to_str().unwrap(), "10.1.1.1"]);
    assert_eq!(run.out, "10.1.1.1 10.0.0.0/8 via 192.0.2.9 origin-as 64500\n");
    assert!(
        run.err.contains("rib: byte 54: file truncated: the last record is incomplete (30 bytes present)"),
        "{}",
        run.err
    );
    assert!(run.err.contains("30 bytes are not part of a complete MRT record"), "{}", run.err);
    let strict = support::run(&["lookup", "--strict", "-t", path.to_str().unwrap(), "10.1.1.1"]);
    assert_eq!((strict.code, strict.out.as_str()), (3, ""));
}
