//! What routes lead to: values, filters, and the paths of all peers.

use crate::support::{Folder, feed, run};

/// Two peers with AS paths and communities; the first has most routes.
const DUMP: &str = "\
TABLE_DUMP2|1700000000|B|192.0.2.1|64501|8.8.8.0/24|64501 64510 15169|IGP|192.0.2.1|0|0|64501:1 64501:20|NAG||
TABLE_DUMP2|1700000000|B|192.0.2.2|64502|8.8.8.0/24|64502 15169|IGP|192.0.2.2|0|0|64502:7|NAG||
TABLE_DUMP2|1700000000|B|192.0.2.1|64501|10.0.0.0/8|64501 {64511,64512}|IGP|192.0.2.1|0|0||NAG||
TABLE_DUMP2|1700000000|B|192.0.2.1|64501|2001:db8::/32|64501|IGP|2001:db8::1|0|0||NAG||
";

pub(super) fn dump(folder: &Folder) -> String {
    folder.write("dump.txt", DUMP).to_str().unwrap().to_owned()
}

#[test]
fn values_come_after_the_next_hop() {
    let folder = Folder::new();
    let table = dump(&folder);
    // For people the origin comes by itself.
    let text = run(&["lookup", "-q", "-t", &table, "8.8.8.8", "10.0.0.1", "1.1.1.1"]);
    assert_eq!(
        text.out,
        "8.8.8.8 8.8.8.0/24 via 192.0.2.1 origin-as 15169\n\
         10.0.0.1 10.0.0.0/8 via 192.0.2.1 origin-as 64511,64512\n1.1.1.1 no route\n"
    );
    // Scripts get the columns that they had, and more when they ask for them.
    let csv = |more: &[&str]| {
        run(&[&["lookup", "-q", "-t", &table, "--format", "csv"], more, &["8.8.8.8", "1.1.1.1"]].concat()).out
    };
    assert_eq!(csv(&[]), "address,prefix,next_hop\n8.8.8.8,8.8.8.0/24,192.0.2.1\n1.1.1.1,,\n");
    assert_eq!(
        csv(&["--value", "origin-as,as-path", "--value", "communities"]),
        "address,prefix,next_hop,origin_as,as_path,communities\n\
         8.8.8.8,8.8.8.0/24,192.0.2.1,15169,64501 64510 15169,64501:1 64501:20\n1.1.1.1,,,,,\n"
    );
    let json = run(&[
        "lookup",
        "-q",
        "-t",
        &table,
        "--json",
        "--value",
        "origin-as",
        "8.8.8.8",
        "10.0.0.1",
        "1.1.1.1",
    ]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&rows[0]["next_hop"], &rows[0]["origin_as"]), (&"192.0.2.1".into(), &15_169.into()));
    assert_eq!(rows[1]["origin_as"], "64511,64512");
    assert!(rows[2]["origin_as"].is_null() && rows[2].as_object().unwrap().len() == 4);
    // A value that no route has is an error.
    let absent = run(&["lookup", "-q", "-t", &table, "--value", "age", "8.8.8.8"]);
    assert_eq!((absent.code, absent.out.as_str()), (3, ""));
    assert!(absent.err.contains("no route has the value 'age'"), "{}", absent.err);
}

#[test]
fn values_take_the_place_of_the_next_hop_where_there_is_one() {
    let folder = Folder::new();
    let table = dump(&folder);
    let convert =
        |to: &str, value: &str| run(&["table", "convert", "-q", &table, "--to", to, "--value", value]).out;
    assert_eq!(
        convert("text", "origin-as"),
        "8.8.8.0/24 15169\n10.0.0.0/8 64511,64512\n2001:db8::/32 64501\n"
    );
    let paths = convert("text", "as-path");
    assert!(paths.starts_with("8.8.8.0/24 \"64501 64510 15169\"\n"), "{paths}");
    // What is written is read back.
    assert_eq!(feed(&["table", "convert", "-q", "-", "--to", "text"], &paths).out, paths);
    assert!(convert("csv", "peer-as").starts_with("prefix,next_hop,peer_as\n8.8.8.0/24,192.0.2.1,64501\n"));
    assert!(convert("intervals", "origin-as").contains("\n8.8.8.0,8.8.8.255,15169\n"));
    let stats = run(&["table", "stats", "-q", &table, "--value", "origin-as"]).out;
    assert!(stats.contains("origin-as (most frequent first)") && stats.contains("15169"), "{stats}");
    // A compiled table keeps the value that it was compiled with.
    let compiled = folder.path().join("t.fibula");
    let compiled = compiled.to_str().unwrap();
    assert_eq!(run(&["compile", "-q", &table, "-o", compiled, "--value", "as-path"]).code, 0);
    assert_eq!(
        run(&["lookup", "-q", "-t", compiled, "8.8.8.8"]).out,
        "8.8.8.8 8.8.8.0/24 via 64501 64510 15169\n"
    );
    assert_eq!(run(&["table", "convert", "-q", compiled, "--to", "text"]).out, paths);
}

#[test]
fn free_labels_are_values() {
    let table = "10.0.0.0/8 eth0\n10.1.0.0/16 office-berlin\n10.2.0.0/16 \"two words\"\n";
    let convert = |to: &str| feed(&["table", "convert", "-q", "-", "--to", to], table).out;
    assert_eq!(convert("text"), table);
    assert!(convert("csv").contains("\n10.2.0.0/16,two words\n"));
    let folder = Folder::new();
    let path = folder.write("t.txt", table);
    let text = run(&["lookup", "-t", path.to_str().unwrap(), "10.1.2.3", "10.2.0.1"]);
    assert_eq!(text.out, "10.1.2.3 10.1.0.0/16 via office-berlin\n10.2.0.1 10.2.0.0/16 via two words\n");
}

#[test]
fn filters_choose_routes() {
    let folder = Folder::new();
    let table = dump(&folder);
    let show = |more: &[&str]| {
        let run = run(&[&["route", "show", "-q", "-t", &table, "--format", "csv"], more].concat());
        run.out.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(show(&["--origin-as", "AS15169"]), ["8.8.8.0/24"]);
    assert_eq!(show(&["--origin-as", "64512", "--origin-as", "64501"]), ["10.0.0.0/8", "2001:db8::/32"]);
    assert_eq!(show(&["--as-path", "_64510_"]), ["8.8.8.0/24"]);
    assert_eq!(show(&["--as-path", "^64501$"]), ["2001:db8::/32"]);
    assert_eq!(show(&["--community", "64501:*"]), ["8.8.8.0/24"]);
    assert_eq!(show(&["--peer-as", "64502"]), ["8.8.8.0/24"]);
    assert!(show(&["--from", "2023-11-14T22:13:21"]).is_empty());
    assert_eq!(show(&["--until", "2023-11-14T22:13:20"]).len(), 3);
    for bad in [["--as-path", "("], ["--community", "x:y"], ["--at", "noon"], ["--origin-as", "x"]] {
        assert_eq!(run(&["route", "show", "-t", &table, bad[0], bad[1]]).code, 2, "{bad:?}");
    }
    // An update that does not pass takes away what its peer had announced.
    let updates = "\
BGP4MP|5|A|192.0.2.1|7|10.0.0.0/8|7 8|IGP|192.0.2.9|0|0||NAG||
BGP4MP|6|A|192.0.2.1|7|10.1.0.0/16|7 8|IGP|192.0.2.9|0|0||NAG||
BGP4MP|7|A|192.0.2.1|7|10.0.0.0/8|7 9|IGP|192.0.2.9|0|0||NAG||
";
    let at = |time: &str| {
        feed(
            &["route", "show", "-q", "-t", "-", "--origin-as", "8", "--at", time, "--format", "csv"],
            updates,
        )
        .out
    };
    assert_eq!(at("9"), "prefix,next_hop\n10.1.0.0/16,192.0.2.9\n");
    assert_eq!(at("6"), "prefix,next_hop\n10.0.0.0/8,192.0.2.9\n10.1.0.0/16,192.0.2.9\n");
}

#[test]
fn the_paths_of_all_peers_are_shown_best_first() {
    let folder = Folder::new();
    let table = dump(&folder);
    let expected = "prefix,next_hop,peer,peer_as,as_path\n\
        8.8.8.0/24,192.0.2.2,192.0.2.2,64502,64502 15169\n\
        8.8.8.0/24,192.0.2.1,192.0.2.1,64501,64501 64510 15169\n";
    let show = run(&["route", "show", "-t", &table, "--all-peers", "8.8.8.0/24", "--format", "csv"]);
    assert_eq!((show.code, show.err.as_str(), show.out.as_str()), (0, "", expected));
    let get = run(&["route", "get", "-t", &table, "--all-peers", "8.8.8.8", "--format", "csv"]);
    assert_eq!((get.code, get.out.as_str()), (0, expected));
    let text = run(&["route", "get", "-t", &table, "--all-peers", "10.0.0.1"]).out;
    assert_eq!(text, "10.0.0.0/8 192.0.2.1 peer 192.0.2.1 peer-as 64501 as-path \"64501 {64511,64512}\"\n");
    assert_eq!(run(&["route", "show", "-t", &table, "--all-peers"]).code, 2);
    assert_eq!(run(&["route", "get", "-t", &table, "--all-peers", "1.1.1.1"]).code, 1);
}

#[test]
fn a_prefix_without_a_route_names_the_longest_match() {
    let folder = Folder::new();
    let table = dump(&folder);
    for more in [&[][..], &["--all-peers"]] {
        let show = |prefix: &str| {
            let run = run(&[&["route", "show", "-t", &table, prefix], more].concat());
            assert_eq!((run.code, run.out.as_str()), (1, ""));
            run.err
        };
        let near = show("8.8.8.8");
        assert!(near.ends_with("no route exactly 8.8.8.8/32; longest match 8.8.8.0/24\n"), "{near}");
        let none = show("9.0.0.0/8");
        assert!(none.ends_with("no route exactly 9.0.0.0/8, and none that contains it\n"), "{none}");
    }
}

#[test]
fn table_dumps_know_how_old_their_routes_are() {
    // A TABLE_DUMP of one route, received a minute before, with two communities, one of them large.
    let mut record = vec![0x65, 0x53, 0xf1, 60, 0, 12, 0, 1, 0, 0, 0, 64, 0, 0, 0, 1, 10, 0, 0, 0, 8, 1];
    record.extend([0x65, 0x53, 0xf1, 0, 192, 0, 2, 1, 0xfb, 0xf5, 0, 42]);
    record.extend([0x40, 1, 1, 0, 0x40, 2, 6, 2, 2, 0xfb, 0xf5, 0xfb, 0xf4, 0x40, 3, 4, 192, 0, 2, 9]);
    record.extend([0xc0, 8, 4, 0xfb, 0xf5, 0, 7, 0xc0, 32, 12, 0, 0, 0xfb, 0xf5, 0, 0, 0, 1, 0, 0, 0, 2]);
    let folder = Folder::new();
    let path = folder.write("rib", record);
    let values = "age,since,communities,origin-as,peer,as-path";
    let show = ["route", "show", "-t", path.to_str().unwrap(), "--format", "csv", "--value", values];
    let expected = "prefix,next_hop,age,since,communities,origin_as,peer,as_path\n\
        10.0.0.0/8,192.0.2.9,60,1700000000,64501:7 64501:1:2,64500,192.0.2.1,64501 64500\n";
    let run = run(&show);
    assert_eq!((run.code, run.out.as_str()), (0, expected), "{}", run.err);
}
