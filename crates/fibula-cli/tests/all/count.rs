//! `fibula count`: addresses and bytes by what they lead to.

use crate::support::{Folder, TABLE, feed, run};

#[test]
fn addresses_and_bytes_are_counted() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let table = table.to_str().unwrap();
    let flows = "src,bytes\n192.0.2.1,10\n192.0.2.2,20\n2001:db8::1,100\n8.8.8.8,5\n-,7\n192.0.2.200,x\n";
    let count = |more: &[&str]| {
        feed(&[&["count", "-q", "-t", table, "--column", "src", "--format", "csv"], more].concat(), flows)
    };
    let values = count(&["--by", "value", "--bytes-column", "bytes"]);
    assert_eq!(
        (values.code, values.out.as_str()),
        (
            0,
            "value,addresses,bytes,share\n64501,1,100,0.7407407407407407\n64500,2,30,0.2222222222222222\n\
             198.51.100.1,1,0,0.0\n,1,5,0.037037037037037035\n"
        )
    );
    let prefixes = count(&["--by", "prefix", "--top", "1"]).out;
    assert_eq!(prefixes, "prefix,addresses,share\n192.0.2.0/24,2,0.4\n,1,0.2\n");
    // An AS is what the routes of this table lead to, where they lead to a number.
    let by_as = count(&["--by", "as"]).out;
    assert_eq!(by_as, "as,addresses,share\n64500,2,0.4\n-,1,0.2\n64501,1,0.2\n,1,0.2\n");
    let text = feed(&["count", "-t", table, "--by", "prefix"], "192.0.2.1\nx\n8.8.8.8\n");
    assert_eq!(
        text.out,
        "prefix        addresses   share\n192.0.2.0/24          1  50.0 %\nno route              1  50.0 %\n"
    );
    assert!(text.err.contains("line 2 has no IP address (unexpected 'x')"), "{}", text.err);
    assert_eq!(feed(&["count", "-t", table, "--by", "prefix"], "8.8.8.8\n").code, 1);
    assert_eq!(run(&["count", "-t", table, "--by", "prefix", "--bytes-column", "2"]).code, 2);
    assert_eq!(run(&["count", "-t", table]).code, 2);
}

#[test]
fn all_threads_count_into_one_sum() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let input = "192.0.2.1\n10.0.0.1\n11.0.0.1\n10.0.0.2\n".repeat(100_000);
    let path = folder.write("addresses", input);
    let args = ["count", "-t", table.to_str().unwrap(), "--by", "prefix", "--json", path.to_str().unwrap()];
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run(&args).out).unwrap();
    let row = |index: usize| (rows[index]["prefix"].as_str(), rows[index]["addresses"].as_u64().unwrap());
    assert_eq!((row(0), row(1)), ((Some("10.0.0.0/8"), 200_000), (Some("192.0.2.0/24"), 100_000)));
    assert_eq!((row(2), rows.len()), ((None, 100_000), 3));
}
