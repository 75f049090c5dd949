//! `fibula compile`, and compiled tables wherever a table is taken.

use crate::support::{Folder, TABLE, feed, run};

const INPUT: &str = "192.0.2.1\n192.0.2.129\n10.255.0.1\n198.51.100.1\n2001:db8:1::5\n::1\n";

/// A folder with the table as text and as `routes.fibula`, compiled with these options.
fn compiled(options: &[&str]) -> (Folder, [String; 2]) {
    let folder = Folder::new();
    let text = folder.write("routes.txt", TABLE).display().to_string();
    let file = folder.path().join("routes.fibula").display().to_string();
    let run = run(&[&["compile", &text, "--quiet", "-o", &file], options].concat());
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    (folder, [text, file])
}

#[test]
fn a_compiled_table_is_taken_wherever_a_table_is() {
    let (folder, [text, file]) = compiled(&[]);
    let same = |args: &dyn Fn(&str) -> Vec<String>| {
        let [of_text, of_file] = [&text, &file].map(|table| {
            let args = args(table);
            feed(&args.iter().map(String::as_str).collect::<Vec<_>>(), INPUT)
        });
        assert_eq!((&of_file.out, of_file.code), (&of_text.out, of_text.code), "{:?}", args(&file));
        assert!(!of_text.out.is_empty());
    };
    let words = |words: &str, table: &str| -> Vec<String> {
        words.split(' ').map(|word| if word == "FILE" { table.to_owned() } else { word.to_owned() }).collect()
    };
    for command in [
        "lookup --quiet -t FILE",
        "lookup --quiet -t FILE --format csv",
        "lookup --quiet -t FILE --json",
        "lookup --quiet -t FILE --engine dir-24-8",
        "lookup --quiet -t FILE --family ipv6",
        "lookup --quiet -t FILE -t FILE",
        "lookup --quiet -t FILE 10.0.0.1 ::1",
        "route show --quiet -t FILE",
        "route get --quiet -t FILE 10.0.0.1",
        "table convert --quiet FILE --to csv",
        "table convert --quiet FILE --to intervals",
    ] {
        same(&|table| words(command, table));
    }
    let diff = run(&["table", "diff", "--quiet", &text, &file]);
    assert_eq!((diff.code, diff.out.as_str()), (0, ""), "{}", diff.err);
    let bytes = std::fs::read(&file).unwrap();
    let piped = feed(&["table", "convert", "--quiet", "-", "--to", "text"], &bytes);
    assert_eq!(piped.out, run(&["table", "convert", "--quiet", &text, "--to", "text"]).out);
    // From a compiled table a compiled table is made.
    let again = folder.path().join("again.fibula").display().to_string();
    assert_eq!(run(&["compile", "--quiet", "--table", &file, "-o", &again]).code, 0);
    assert_eq!(run(&["table", "diff", "--quiet", &text, &again]).code, 0);
}

#[test]
fn a_file_without_routes_answers_lookups_alone() {
    let (_folder, [_, file]) = compiled(&["--no-routes", "--mapped"]);
    let answers = feed(&["lookup", "-t", &file, "--stats"], INPUT);
    assert_eq!(
        answers.out,
        "192.0.2.1 via 64500\n192.0.2.129 via 198.51.100.1\n10.255.0.1 via 1,2\n198.51.100.1 no route\n\
         2001:db8:1::5 via fe80::1\n::1 no route\n"
    );
    assert!(
        answers.err.contains("4 by dir-17-sparse (") && answers.err.contains(", as compiled)"),
        "{}",
        answers.err
    );
    let csv = feed(&["lookup", "-t", &file, "--format", "csv"], "10.0.0.1\n1.1.1.1\n");
    assert_eq!(csv.out, "address,prefix,next_hop\n10.0.0.1,,\"1,2\"\n1.1.1.1,,\n");
    let json = feed(&["lookup", "-t", &file, "--format", "json-line"], "192.0.2.1\n");
    assert_eq!(json.out, "{\"address\":\"192.0.2.1\",\"prefix\":null,\"next_hop\":\"64500\"}\n");
    for command in
        [&["table", "stats", &file][..], &["lookup", "-t", &file, "--engine", "dir-24-8", "1.1.1.1"]]
    {
        let refused = run(command);
        assert_eq!((refused.code, refused.out.as_str()), (3, ""), "{command:?}");
        assert!(
            refused.err.contains("compiled without its routes, which are needed here"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn structures_are_named_or_refused_by_name() {
    let folder = Folder::new();
    let text = folder.write("routes.txt", TABLE).display().to_string();
    let file = folder.path().join("x.fibula").display().to_string();
    let compile = |options: &[&str]| run(&[&["compile", &text, "-o", &file], options].concat());
    let told = compile(&["--engine", "dir-18-lines"]);
    assert_eq!(told.code, 0);
    assert!(
        told.err.contains("3 IPv4 routes in dir-18-lines (") && told.err.contains("3 IPv6 routes in "),
        "{}",
        told.err
    );
    let told = compile(&["--engine", "dir-btree", "--no-routes"]);
    assert!(
        told.err.contains("IPv6 routes in dir-btree (") && told.err.contains(", without the routes"),
        "{}",
        told.err
    );
    for (options, message) in [
        (
            &["--engine", "dir-24-8"][..],
            "files cannot hold 'dir-24-8'; choose one of range-btree, dir-17-bitmap, dir-17-sparse, dir-18-lines, planb, dir-btree-byte, dir-btree\n",
        ),
        (
            &["--engine", "planb", "--mapped"],
            "files that can be used where they lie cannot hold 'planb'; choose one of dir-17-bitmap, dir-17-sparse, dir-18-lines, \
             dir-btree-byte, dir-btree\n",
        ),
        (&["--engine", "dir-btre"], "no engine 'dir-btre'; did you mean 'dir-btree'?"),
        (&["--engine", "poptrie"], "'poptrie' is in fibula-lab only"),
    ] {
        std::fs::write(&file, "as it was").unwrap();
        let refused = compile(options);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains(message), "{}", refused.err);
        assert_eq!(std::fs::read(&file).unwrap(), b"as it was");
    }
    assert_eq!(run(&["compile", &text, "-o", &text]).code, 2);
    assert_eq!(run(&["compile", "-o", &file]).code, 2);
}

#[test]
fn damaged_files_are_refused_by_their_reasons() {
    let (folder, [_, file]) = compiled(&[]);
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    let refused = |bytes: &[u8], message: &str| {
        let path = folder.write("bad.fibula", bytes).display().to_string();
        for command in [&["lookup", "-t", &path, "10.0.0.1"][..], &["table", "stats", &path]] {
            let run = run(command);
            assert_eq!((run.code, run.out.as_str()), (3, ""), "{command:?}");
            assert!(run.err.contains(&path) && run.err.contains(message), "{}", run.err);
        }
    };
    refused(&bytes[..last], "truncated: ");
    bytes[last] ^= 1;
    refused(&bytes, "damaged: the checksum of 'values/0/bytes' does not match");
    bytes[last] ^= 1;
    bytes[8] = 3;
    refused(&bytes, "damaged: the checksum of 'header'");
}
