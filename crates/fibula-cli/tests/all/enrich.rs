//! Lines with other columns: kept as they are, with the answer's columns after them; and files of addresses.

use std::io::Write;

use crate::support::{Folder, TABLE, feed, run};

const FLOWS: &str = "\
time,src,dst,note
1,192.0.2.1,10.0.0.1,\"a, b\"
2,\"192.0.2.200\",2001:db8::1,\"two
lines, \"\"quoted\"\"\"

3,-,8.8.8.8,
4, 10.9.9.9 ,x,y\r
5
";

fn table(folder: &Folder) -> String {
    folder.write("table.txt", TABLE).to_str().unwrap().to_owned()
}

#[test]
fn lines_of_csv_keep_their_columns() {
    let folder = Folder::new();
    let table = table(&folder);
    let expected = "\
time,src,dst,note,prefix,next_hop
1,192.0.2.1,10.0.0.1,\"a, b\",192.0.2.0/24,64500
2,\"192.0.2.200\",2001:db8::1,\"two
lines, \"\"quoted\"\"\",192.0.2.128/25,198.51.100.1

3,-,8.8.8.8,,,
4, 10.9.9.9 ,x,y,10.0.0.0/8,\"1,2\"\r
5,,
";
    let flows = folder.write("flows.csv", FLOWS);
    let flows = flows.to_str().unwrap();
    for column in ["src", "2"] {
        let run = run(&["enrich", "-t", &table, "--column", column, flows]);
        assert_eq!((run.code, run.out.as_str()), (0, expected));
        assert!(run.err.contains("row 5 has no IP address in its column"), "{}", run.err);
    }
    // Standard input, the same command by its other name, and a file that is written whole.
    assert_eq!(feed(&["enrich", "-q", "-t", &table, "-c", "src"], FLOWS).out, expected);
    let out = folder.path().join("out.csv");
    let lookup =
        ["lookup", "-q", "-t", &table, "--addresses", flows, "-c", "src", "-o", out.to_str().unwrap()];
    assert_eq!((run(&lookup).code, std::fs::read_to_string(&out).unwrap().as_str()), (0, expected));
    // Two columns; names that the input has already.
    let both = feed(&["enrich", "-q", "-t", &table, "-c", "src", "-c", "dst"], FLOWS).out;
    assert!(
        both.starts_with("time,src,dst,note,src_prefix,src_next_hop,dst_prefix,dst_next_hop\n1,"),
        "{both}"
    );
    assert!(both.contains("\"a, b\",192.0.2.0/24,64500,10.0.0.0/8,\"1,2\"\n"), "{both}");
    let twice = feed(&["enrich", "-q", "-t", &table, "-c", "src", "--input-format", "csv"], expected).out;
    assert!(twice.starts_with("time,src,dst,note,prefix,next_hop,src_prefix,src_next_hop\n"), "{twice}");
    // Wrong columns.
    let missing = feed(&["enrich", "-t", &table, "-c", "source"], FLOWS);
    assert_eq!((missing.code, missing.out.as_str()), (3, ""));
    assert!(missing.err.contains("no column 'source'; there are: time, src, dst, note"), "{}", missing.err);
    for (empty, message) in [
        ("", "standard input: the input is empty"),
        ("\n192.0.2.1\n", "no column 'source': the first line names no columns"),
    ] {
        let unnamed = feed(&["enrich", "-t", &table, "-c", "source"], empty);
        assert!(unnamed.code == 3 && unnamed.err.contains(message), "{unnamed:?}");
    }
    assert_eq!(feed(&["enrich", "-t", &table, "-c", "5"], FLOWS).code, 3);
    assert_eq!(feed(&["enrich", "-t", &table], FLOWS).code, 2);
    assert_eq!(feed(&["enrich", "-q", "-t", &table, "-c", "1"], "8.8.8.8\n").code, 1);
}

#[test]
fn lines_without_names_are_lines() {
    let folder = Folder::new();
    let table = table(&folder);
    let tsv = feed(&["enrich", "-q", "-t", &table, "-c", "2"], "a\t192.0.2.1\nb\t10.1.1.1");
    assert_eq!(tsv.out, "a\t192.0.2.1\t192.0.2.0/24\t64500\nb\t10.1.1.1\t10.0.0.0/8\t1,2\n");
    let csv = feed(&["enrich", "-q", "-t", &table, "-c", "1"], "192.0.2.1\n");
    assert_eq!(csv.out, "192.0.2.1,192.0.2.0/24,64500\n");
    assert_eq!(feed(&["enrich", "-q", "-t", &table, "-c", "1"], "").code, 1);
}

#[test]
fn objects_of_json_get_more_fields() {
    let folder = Folder::new();
    let table = table(&folder);
    let lines = "{\"ip\":\"192.0.2.1\",\"a\":{\"ip\":\"::1\"}}\n{\"a\":{\"ip\":\"2001:db8::1\"} , \"ip\":\"?\" }\r\nnoise\n{}\n";
    let one = feed(&["enrich", "-q", "-t", &table, "-c", "ip"], lines);
    assert_eq!(
        one.out,
        "{\"ip\":\"192.0.2.1\",\"a\":{\"ip\":\"::1\"},\"prefix\":\"192.0.2.0/24\",\"next_hop\":\"64500\"}\n\
         {\"a\":{\"ip\":\"2001:db8::1\"} , \"ip\":\"?\" ,\"prefix\":null,\"next_hop\":null}\r\nnoise\n\
         {\"prefix\":null,\"next_hop\":null}\n"
    );
    let deep = feed(&["enrich", "-q", "-t", &table, "-c", "a.ip", "-c", "ip"], lines);
    let second: serde_json::Value = serde_json::from_str(deep.out.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&second["a.ip_prefix"], &second["ip_prefix"]),
        (&"2001:db8::/32".into(), &serde_json::Value::Null)
    );
}

#[test]
fn files_of_addresses_are_plain_or_compressed() {
    let folder = Folder::new();
    let table = table(&folder);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"192.0.2.1\n10.0.0.1\n").unwrap();
    let compressed = folder.write("seen.gz", gzip.finish().unwrap());
    let plain = folder.write("seen", "192.0.2.1\n10.0.0.1\n");
    for path in [compressed, plain] {
        let run = run(&["lookup", "-t", &table, "--addresses", path.to_str().unwrap(), "--format", "csv"]);
        let expected = "address,prefix,next_hop\n192.0.2.1,192.0.2.0/24,64500\n10.0.0.1,10.0.0.0/8,\"1,2\"\n";
        assert_eq!((run.code, run.err.as_str(), run.out.as_str()), (0, "", expected));
    }
    assert_eq!(run(&["lookup", "-t", &table, "--addresses", "/nowhere"]).code, 3);
    assert_eq!(run(&["lookup", "-t", &table, "--addresses", "x", "1.1.1.1"]).code, 2);
    // An input is not overwritten.
    let same = run(&["lookup", "-t", &table, "--addresses", &table, "-o", &table]);
    assert_eq!(same.code, 2);
}

#[test]
fn the_order_is_kept_whatever_the_number_of_threads() {
    let folder = Folder::new();
    let table = table(&folder);
    let mut input = String::from("id,ip\n");
    let mut expected = String::from("id,ip,prefix,next_hop\n");
    for id in 0..200_000 {
        let (address, end) = match id % 3 {
            0 => (format!("192.0.2.{}", id % 128), "192.0.2.0/24,64500"),
            1 => (format!("11.0.{}.1", id % 256), ","),
            _ => (format!("2001:db8::{:x}", id % 65_536), "2001:db8::/32,64501"),
        };
        input += &format!("{id},{address}\n");
        expected += &format!("{id},{address},{end}\n");
    }
    for threads in ["1", "2", "5"] {
        let run = feed(&["enrich", "-t", &table, "-c", "ip", "--threads", threads], &input);
        assert!(run.out == expected, "{threads} threads");
    }
    let lookup: String =
        input.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned() + "\n").collect();
    for format in ["csv", "json", "json-line", "text"] {
        let one = feed(&["lookup", "-t", &table, "--threads", "1", "--format", format], &lookup).out;
        let many = feed(&["lookup", "-t", &table, "--threads", "4", "--format", format], &lookup).out;
        assert!(one == many && one.len() > 1_000_000, "{format}");
        if format == "json" {
            assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&one).unwrap().len(), 200_000);
        }
    }
}

#[test]
#[cfg(not(feature = "parquet"))]
fn parquet_needs_a_build_that_has_it() {
    let folder = Folder::new();
    let table = table(&folder);
    let flows = folder.write("flows", "PAR1...");
    for args in [&["enrich", "-c", "1"][..], &["lookup", "--addresses"], &["count", "--by", "prefix"]] {
        let run = run(&[args, &[flows.to_str().unwrap(), "-t", &table]].concat());
        assert_eq!((run.code, run.out.as_str()), (4, ""), "{args:?}");
        assert!(run.err.contains("cargo install fibula-cli --features parquet"), "{}", run.err);
    }
}
