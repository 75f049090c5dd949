//! Parquet in and out: the columns of the input are kept, and the answer's columns have their types.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support;
use crate::support::{Folder, TABLE, feed, run};
use parquet::basic::Compression;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;

const SCHEMA: &str = "message flows {
    REQUIRED INT64 id;
    OPTIONAL BYTE_ARRAY src (UTF8);
    OPTIONAL INT32 v4 (UINT_32);
    OPTIONAL FIXED_LEN_BYTE_ARRAY(4) four;
    REQUIRED FIXED_LEN_BYTE_ARRAY(16) v6;
    OPTIONAL GROUP client { REQUIRED BYTE_ARRAY ip; }
    REQUIRED BYTE_ARRAY raw;
    OPTIONAL GROUP ports (LIST) { REPEATED GROUP list { OPTIONAL INT32 element; } }
}";

/// The addresses of a row, and what the table of the tests has for each.
const SOURCES: [(&str, &str); 6] = [
    ("192.0.2.1", "192.0.2.0/24,64500"),
    ("192.0.2.200", "192.0.2.128/25,198.51.100.1"),
    (" 10.9.9.9 ", "10.0.0.0/8,\"1,2\""),
    ("2001:db8:1::5", "2001:db8:1::/48,fe80::1"),
    ("8.8.8.8", ","),
    ("nonsense", ","),
];

fn column<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
    repeated: Option<&[i16]>,
) {
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, repeated).unwrap();
    column.close().unwrap();
}

/// Writes row groups of so many rows; row n has the n-th of [`SOURCES`], and each seventh is null where it may be.
fn write(path: &Path, groups: &[usize], compression: Compression) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_bloom_filter_enabled(true)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("ARROW:schema".to_owned(), "x".to_owned()),
            KeyValue::new("made by".to_owned(), "a test".to_owned()),
        ]))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut first = 0;
    for &count in groups {
        let all = first..first + count;
        let present: Vec<usize> = all.clone().filter(|row| row % 7 != 6).collect();
        let levels: Vec<i16> = all.clone().map(|row| i16::from(row % 7 != 6)).collect();
        let mut rows = writer.next_row_group().unwrap();
        column::<Int64Type>(&mut rows, &all.clone().map(|row| row as i64).collect::<Vec<_>>(), None, None);
        let texts: Vec<ByteArray> = present.iter().map(|row| SOURCES[row % 6].0.into()).collect();
        column::<ByteArrayType>(&mut rows, &texts, Some(&levels), None);
        // 192.0.2.0 and what follows, and so on by turns.
        let v4 = |row: &usize| [0xc000_0200_u32, 0x0a00_0000, 0x0808_0808][row % 3] + (*row as u32 % 2) * 200;
        let numbers: Vec<i32> = present.iter().map(|row| v4(row).cast_signed()).collect();
        column::<Int32Type>(&mut rows, &numbers, Some(&levels), None);
        let fours: Vec<FixedLenByteArray> =
            present.iter().map(|row| v4(row).to_be_bytes().to_vec().into()).collect();
        column::<FixedLenByteArrayType>(&mut rows, &fours, Some(&levels), None);
        let v6 = |row: usize| (0x2001_0db8_0000_u128 + (row as u128 % 3)) << 80 | row as u128;
        let sixteens: Vec<FixedLenByteArray> =
            all.clone().map(|row| v6(row).to_be_bytes().to_vec().into()).collect();
        column::<FixedLenByteArrayType>(&mut rows, &sixteens, None, None);
        column::<ByteArrayType>(&mut rows, &texts, Some(&levels), None);
        let raw: Vec<ByteArray> = all.clone().map(|row| v6(row).to_be_bytes().to_vec().into()).collect();
        column::<ByteArrayType>(&mut rows, &raw, None, None);
        // Two ports in each row.
        let ports: Vec<i32> = all.clone().flat_map(|row| [row as i32, 53]).collect();
        column::<Int32Type>(&mut rows, &ports, Some(&vec![3; 2 * count]), Some(&[0, 1].repeat(count)));
        rows.close().unwrap();
        first += count;
    }
    writer.close().unwrap();
}

/// The rows of a file, each as its columns.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.to_string()).collect()).collect()
}

fn schema(path: &Path) -> String {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let mut text = Vec::new();
    print_schema(&mut text, reader.metadata().file_metadata().schema());
    String::from_utf8(text).unwrap()
}

struct Files {
    folder: Folder,
    table: String,
    flows: PathBuf,
    out: PathBuf,
}

impl Files {
    fn new(groups: &[usize], compression: Compression) -> Self {
        let folder = Folder::new();
        let table = folder.write("table.txt", TABLE).to_str().unwrap().to_owned();
        let (flows, out) = (folder.path().join("flows.parquet"), folder.path().join("out.parquet"));
        write(&flows, groups, compression);
        Self { folder, table, flows, out }
    }

    /// Runs `fibula enrich` on the file.
    fn enrich(&self, options: &[&str]) -> support::Run {
        let files = ["enrich", "-t", &self.table, self.flows.to_str().unwrap()];
        run(&[&files[..], &["-o", self.out.to_str().unwrap()], options].concat())
    }
}

#[test]
fn texts_have_the_answers_that_csv_has() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
    ] {
        let files = Files::new(&[100, 1, 0, 20_000, 7], compression);
        let run = files.enrich(&["-c", "src"]);
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{compression}: {}", run.err);
        assert!(run.err.contains("warning: row 6 has no IP address in its column ("), "{}", run.err);
        assert!(run.err.contains("warning: row 7 has no IP address in its column (null)"), "{}", run.err);
        let (old, new) = (rows(&files.flows), rows(&files.out));
        assert_eq!(new.len(), 20_108);
        let mut csv = String::new();
        for (row, (old, new)) in old.iter().zip(&new).enumerate() {
            assert_eq!(old[..], new[..old.len()], "row {row}");
            let _ = writeln!(csv, "{}", if row % 7 == 6 { "-" } else { SOURCES[row % 6].0 });
            let expected = if row % 7 == 6 { "," } else { SOURCES[row % 6].1 };
            let texts = new[old.len()..].iter().map(|text| match text.as_str() {
                "null" => String::new(),
                text => text.trim_matches('"').replace("1,2", "\"1,2\""),
            });
            assert_eq!(texts.collect::<Vec<_>>().join(","), expected, "row {row}");
        }
        // Both ways count the same rows as bad.
        let in_csv = feed(&["enrich", "-t", &files.table, "-c", "1", "--input-format", "csv"], csv).err;
        assert_eq!(in_csv.lines().last(), run.err.lines().last());
    }
    let files = Files::new(&[10], Compression::SNAPPY);
    assert_eq!(files.enrich(&["-q", "-c", "client.ip"]).code, 0);
    assert!(rows(&files.out)[0][8].contains("192.0.2.0/24"));
    assert_eq!(files.enrich(&["-q", "-c", "raw"]).code, 0);
    assert_eq!(rows(&files.out)[1][8..], ["\"2001:db8:1::/48\"", "\"fe80::1\""]);
}

#[test]
fn columns_have_types() {
    let files = Files::new(&[30, 30], Compression::SNAPPY);
    let run = files.enrich(&["-q", "-c", "v4", "-c", "four", "-c", "v6", "-c", "src"]);
    assert_eq!(run.code, 0);
    // A row counts once, whatever the number of its columns.
    assert!(run.err.starts_with("warning: ") && run.err.lines().count() == 1, "{}", run.err);
    let count: usize = run.err.split(' ').nth(1).unwrap().parse().unwrap();
    assert!((1..=60).contains(&count), "{}", run.err);
    let schema = schema(&files.out);
    for column in [
        "OPTIONAL INT32 v4_prefix (INTEGER(32,false));",
        "OPTIONAL INT32 v4_prefix_len (INTEGER(8,false));",
        "OPTIONAL BYTE_ARRAY v4_next_hop (STRING);",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (4) four_prefix;",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) v6_prefix;",
        "OPTIONAL INT32 v6_prefix_len (INTEGER(8,false));",
        "OPTIONAL BYTE_ARRAY src_prefix (STRING);",
    ] {
        assert!(schema.contains(column), "{column}: {schema}");
    }
    assert!(!schema.contains("src_prefix_len"), "{schema}");
    let rows = rows(&files.out);
    let [v4, four, v6] = [8, 11, 14].map(|at| rows.iter().map(|row| &row[at..at + 3]).collect::<Vec<_>>());
    let prefix = u32::from_be_bytes([192, 0, 2, 0]).to_string();
    assert_eq!(v4[0], [&*prefix, "24", "\"64500\""]);
    assert_eq!(v4[3], [&*0xc000_0280_u32.to_string(), "25", "\"198.51.100.1\""]);
    assert_eq!(v4[2], ["null", "null", "null"]);
    assert_eq!(four[0][1..], v4[0][1..]);
    assert_eq!(four[1][0], "[10, 0, 0, 0]");
    assert_eq!(v6[1][0], "[32, 1, 13, 184, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
    assert_eq!(v6[1][1..], ["48", "\"fe80::1\""]);
    assert_eq!(v6[2][1..], ["32", "\"64501\""]);
    // Values come from a dictionary; what the input says of itself is kept, but for Arrow's schema of other columns.
    let reader = SerializedFileReader::new(File::open(&files.out).unwrap()).unwrap();
    let next_hops = reader.metadata().row_group(0).column(10);
    assert!(
        next_hops.column_path().string() == "v4_next_hop" && next_hops.dictionary_page_offset().is_some()
    );
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    assert_eq!(pairs.iter().map(|pair| pair.key.as_str()).collect::<Vec<_>>(), ["made by"]);
    // A second time the names are taken, and a third time none is left.
    let again = files.folder.path().join("again.parquet");
    let once = files.enrich(&["-q", "-c", "src"]);
    assert_eq!(once.code, 0);
    let args = |input: &Path, column: &str| {
        let paths = [input, &again].map(|path| path.to_str().unwrap().to_owned());
        run_to(&files.table, &paths[0], column, &paths[1])
    };
    assert_eq!(args(&files.out, "src").code, 0);
    std::fs::copy(&again, &files.out).unwrap();
    let third = args(&files.out, "src");
    assert_eq!(third.code, 3);
    assert!(third.err.contains("the input has a column 'src_prefix' already"), "{}", third.err);
}

fn run_to(table: &str, input: &str, column: &str, out: &str) -> support::Run {
    run(&["enrich", "-q", "-t", table, "-c", column, input, "-o", out])
}

#[test]
fn the_order_is_kept_whatever_the_number_of_threads() {
    let files = Files::new(&[1000; 23], Compression::SNAPPY);
    let mut first = None;
    for threads in ["1", "2", "5"] {
        assert_eq!(files.enrich(&["-q", "-c", "4", "--threads", threads]).code, 0);
        let bytes = std::fs::read(&files.out).unwrap();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{threads} threads");
    }
    let ids: Vec<String> = rows(&files.out).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(ids, (0..23_000).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn addresses_and_bytes_are_counted_as_those_of_csv_are() {
    let groups = [1, 100, 9_000, 37];
    let files = Files::new(&groups, Compression::SNAPPY);
    let mut csv = "id,src,v4\n".to_owned();
    for row in 0..groups.iter().sum() {
        let v4 = [0xc000_0200_u32, 0x0a00_0000, 0x0808_0808][row % 3] + (row as u32 % 2) * 200;
        let (src, v4) = if row % 7 == 6 { Default::default() } else { (SOURCES[row % 6].0, v4.to_string()) };
        writeln!(csv, "{row},{src},{v4}").unwrap();
    }
    let csv = files.folder.write("flows.csv", &csv);
    for by in ["prefix", "value"] {
        for columns in [
            &["-c", "src"][..],
            &["-c", "src", "--bytes-column", "id"],
            &["-c", "src", "--bytes-column", "v4"],
        ] {
            let [one, other] = [&files.flows, &csv].map(|flows| {
                let fixed =
                    ["count", "-t", &files.table, "--by", by, "--format", "csv", flows.to_str().unwrap()];
                run(&[&fixed[..], columns].concat())
            });
            assert_eq!((one.code, &one.out), (0, &other.out), "{}", one.err);
            assert!(one.out.lines().count() > 4, "{}", one.out);
            let bad = |run: &support::Run| run.err.lines().last().unwrap().replace("row ", "").to_owned();
            assert_eq!(bad(&one), bad(&other));
        }
    }
    // The numbers of IPv4, and each row group by itself.
    let numbers =
        run(&["count", "-t", &files.table, "--by", "prefix", "-c", "v4", files.flows.to_str().unwrap()]);
    assert!(numbers.code == 0 && numbers.out.contains("192.0.2.128/25"), "{}", numbers.out);
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let files = Files::new(&[10], Compression::SNAPPY);
    for (column, reason) in [
        (
            "source",
            "no column 'source'; there are: id, src, v4, four, v6, client.ip, raw, ports.list.element",
        ),
        ("10", "no column '10'; there are: id, "),
        ("id", "column 'id' has no addresses, which are text, UInt32"),
        ("ports.list.element", "it is INT32, in a list"),
    ] {
        let run = files.enrich(&["-c", column]);
        assert!(run.code == 3 && run.err.contains(reason), "{column}: {}", run.err);
    }
    assert!(!files.out.exists());
    let flows = files.flows.to_str().unwrap();
    let lookup = run(&["lookup", "-t", &files.table, "--addresses", flows]);
    assert_eq!((lookup.code, lookup.out.as_str()), (3, ""));
    assert!(lookup.err.contains("is Parquet, which has columns"), "{}", lookup.err);
    let count =
        |options: &[&str]| run(&[&["count", "-t", &files.table, "--by", "prefix", flows], options].concat());
    let lines = count(&[]);
    assert!(lines.code == 3 && lines.err.contains("--column names the one"), "{}", lines.err);
    let bytes = count(&["-c", "src", "--bytes-column", "raw"]);
    assert!(bytes.code == 3 && bytes.err.contains("column 'raw' has no integers"), "{}", bytes.err);
    // The same by the other name, to standard output.
    let lookup = support::fibula()
        .args(["lookup", "-q", "-t", &files.table, "--addresses", flows, "-c", "src"])
        .output()
        .unwrap();
    assert!(
        lookup.status.success() && lookup.stdout.starts_with(b"PAR1") && lookup.stdout.ends_with(b"PAR1")
    );
    // No row has an address with a route.
    let none = Files::new(&[], Compression::SNAPPY);
    assert_eq!(none.enrich(&["-q", "-c", "src"]).code, 1);
    assert!(rows(&none.out).is_empty());
}

#[test]
fn damaged_files_are_refused_or_answered() {
    let files = Files::new(&[50, 50], Compression::SNAPPY);
    let whole = std::fs::read(&files.flows).unwrap();
    let damaged = files.folder.path().join("damaged.parquet");
    let answer = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        let run = run_to(&files.table, damaged.to_str().unwrap(), "src", files.out.to_str().unwrap());
        assert!([0, 1, 3].contains(&run.code) && !run.err.contains("panicked"), "{}: {}", run.code, run.err);
        run
    };
    for len in [4, 11, whole.len() / 2, whole.len() - 1] {
        let run = answer(&whole[..len]);
        assert!(run.code == 3 && run.err.contains("cannot read "), "{len}: {}", run.err);
    }
    for at in (4..whole.len()).step_by(29) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        answer(&bytes);
    }
}
