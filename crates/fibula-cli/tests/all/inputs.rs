//! Tables in other forms than MRT and lines: CSV, JSON, what routers print, folders of updates, URLs.

use crate::support;
use crate::support::{Folder, TABLE, feed, fibula, run};

#[test]
fn what_fibula_writes_it_reads() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let table = table.to_str().unwrap();
    let text = run(&["table", "convert", table, "--to", "text"]).out;
    for form in ["csv", "json", "json-line", "intervals"] {
        let written = run(&["table", "convert", table, "--to", form]).out;
        let read = feed(&["table", "convert", "-", "--to", "text"], &written);
        assert_eq!((read.code, read.err.as_str()), (0, ""), "{form}");
        if form == "intervals" {
            // Ranges become the prefixes that they are made of.
            let path = folder.write("ranges.csv", &written);
            assert_eq!(run(&["verify", "-q", table, path.to_str().unwrap()]).code, 0);
        } else {
            assert_eq!(read.out, text, "{form}");
        }
    }
    // Values are columns, and columns are values.
    let dump = "TABLE_DUMP2|1|B|192.0.2.1|64501|10.0.0.0/8|64501 64500|IGP|192.0.2.1|0|0|64501:7|NAG||\n";
    let values = ["--value", "origin-as,as-path,communities"];
    for form in ["csv", "json", "json-line"] {
        let convert = |input: &str| {
            feed(&[&["table", "convert", "-q", "-", "--to", form], &values[..]].concat(), input).out
        };
        let written = convert(dump);
        assert!(written.contains("64501 64500") && written.contains("64501:7"), "{written}");
        assert_eq!(convert(&written), written);
        for filter in [["--origin-as", "64500"], ["--as-path", "^64501_"], ["--community", "64501:*"]] {
            assert_eq!(
                feed(&["route", "show", "-t", "-", filter[0], filter[1]], &written).code,
                0,
                "{filter:?}"
            );
        }
        assert_eq!(feed(&["route", "show", "-q", "-t", "-", "--origin-as", "1"], &written).code, 1);
    }
}

#[test]
fn columns_of_other_tables_are_chosen_by_name() {
    let geo = "network,geoname_id,country\n1.0.0.0/24,7,AU\n1.0.4.0/22,8,\"Korea, South\"\n";
    let folder = Folder::new();
    let path = folder.write("geo.csv", geo);
    let lookup = |value: &str| {
        let args = ["lookup", "-t", path.to_str().unwrap(), "--format", "csv", "--value", value, "1.0.5.1"];
        run(&args)
    };
    assert_eq!(
        lookup("country").out,
        "address,prefix,next_hop,country\n1.0.5.1,1.0.4.0/22,8,\"Korea, South\"\n"
    );
    let absent = lookup("city");
    assert_eq!((absent.code, absent.out.as_str()), (3, ""));
    assert!(absent.err.contains("no route has the value 'city'"), "{}", absent.err);
    let convert = feed(&["table", "convert", "-", "--to", "text", "--value", "country"], geo).out;
    assert_eq!(convert, "1.0.0.0/24 AU\n1.0.4.0/22 \"Korea, South\"\n");
    // A bad line is counted like one of any table.
    let bad = feed(&["table", "convert", "-", "--to", "text"], format!("{geo}x,1,2\n"));
    assert!(bad.err.contains("standard input:4:1: not an IP address: unexpected 'x'"), "{}", bad.err);
}

/// A record of `BGP4MP` of a peer that announces 10.0.0.0/8 with this origin AS, or withdraws it.
fn update(seconds: u32, origin: Option<u8>) -> Vec<u8> {
    let ends = [0xfb, 0xf5, 0xfb, 0xf4, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2];
    let message = match origin {
        Some(origin) => {
            let path = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 2, 0xfb, 0xf5, 0, origin, 0x40, 3, 4, 192, 0, 2, 9];
            [&[0, 45, 2, 0, 0, 0, 20], &path[..], &[8, 10]].concat()
        }
        None => vec![0, 25, 2, 0, 2, 8, 10, 0, 0],
    };
    let body = [&ends[..], &[0xff; 16], &message].concat();
    [&seconds.to_be_bytes()[..], &[0, 16, 0, 1, 0, 0, 0, body.len() as u8], &body].concat()
}

/// A `TABLE_DUMP` of the same route.
fn dump(seconds: u32, origin: u8) -> Vec<u8> {
    let path = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 2, 0xfb, 0xf5, 0, origin, 0x40, 3, 4, 192, 0, 2, 9];
    let body = [
        &[0, 0, 0, 1, 10, 0, 0, 0, 8, 1][..],
        &seconds.to_be_bytes(),
        &[192, 0, 2, 1, 0xfb, 0xf5, 0, 20],
        &path,
    ];
    let body = body.concat();
    [&seconds.to_be_bytes()[..], &[0, 12, 0, 1, 0, 0, 0, body.len() as u8], &body].concat()
}

#[test]
fn a_folder_is_replayed_to_a_moment() {
    let folder = Folder::new();
    let archive = folder.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    let write = |name: &str, content: Vec<u8>| std::fs::write(archive.join(name), content).unwrap();
    write("updates.1", [update(900, Some(9)), update(1100, Some(2))].concat());
    write("updates.2", [update(1200, None), update(1300, Some(3))].concat());
    write("rib", dump(1000, 1));
    let at = |time: &[&str]| {
        let show = [
            "route",
            "show",
            "-q",
            "-t",
            archive.to_str().unwrap(),
            "--format",
            "csv",
            "--value",
            "origin-as",
        ];
        run(&[&show[..], time].concat())
    };
    for (time, origin) in
        [("1000", Some(1)), ("1099", Some(1)), ("1100", Some(2)), ("1200", None), ("1300", Some(3))]
    {
        let run = at(&["--at", time]);
        let expected = origin.map_or(String::new(), |origin| format!("10.0.0.0/8,192.0.2.9,{origin}\n"));
        assert_eq!(run.out, format!("prefix,next_hop,origin_as\n{expected}"), "{time}: {}", run.err);
    }
    assert!(at(&[]).out.contains(",3\n"));
    assert_eq!(at(&["--at", "1"]).code, 3);
    // The same from files that are named.
    let [rib, first, second] = ["rib", "updates.1", "updates.2"].map(|name| archive.join(name));
    let mut show = vec!["route", "show", "-q", "--merge", "replay", "--at", "1100", "--value", "origin-as"];
    for path in [&second, &rib, &first] {
        show.extend(["-t", path.to_str().unwrap()]);
    }
    assert_eq!(run(&show).out, "10.0.0.0/8 192.0.2.9 origin-as 2\n");
}

#[test]
#[cfg(unix)]
fn tables_come_from_urls_by_curl() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let script = "#!/bin/sh\n[ \"$*\" = '-fsSL --proto =http,https -- https://example.net/t.txt' ] || exit 22\necho '10.0.0.0/8 7'\n";
    let curl = folder.write("curl", script);
    std::fs::set_permissions(&curl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let lookup = |url: &str, path: &std::path::Path| -> support::Run {
        fibula().args(["lookup", "-t", url, "10.1.1.1"]).env("PATH", path).output().unwrap().into()
    };
    let found = lookup("https://example.net/t.txt", folder.path());
    assert_eq!((found.code, found.out.as_str()), (0, "10.1.1.1 10.0.0.0/8 via 7\n"), "{}", found.err);
    let missing = lookup("https://example.net/other", folder.path());
    assert_eq!((missing.code, missing.out.as_str()), (3, ""));
    assert!(missing.err.contains("curl could not read https://example.net/other"), "{}", missing.err);
    let absent = lookup("HTTPS://example.net/t.txt", std::path::Path::new("/nowhere"));
    assert_eq!(absent.code, 4);
}
