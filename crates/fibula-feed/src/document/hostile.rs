//! Inputs made to be expensive, one file or more for each form.

/// Bytes of an input that repeats itself.
const LONG: usize = 8 << 20;

fn repeated(head: &str, part: &str, bytes: usize) -> Vec<u8> {
    let mut text = head.as_bytes().to_vec();
    while text.len() < bytes {
        text.extend_from_slice(part.as_bytes());
    }
    text
}

pub(super) fn mrt_claims() -> Vec<u8> {
    let header = [0x65, 0, 0, 0, 0, 13, 0, 2, 0, 0x0f, 0xff, 0xff];
    header.repeat(LONG / header.len())
}

/// A tree whose leaves all lead to one record with many fields.
pub(super) fn maxmind_records() -> Vec<u8> {
    let bits = 12;
    let nodes = (1_u32 << bits) - 1;
    let mut file = Vec::new();
    for node in 0..nodes {
        for side in 0..2 {
            let child = 2 * node + 1 + side;
            // All pointers beyond the nodes lead to the first byte of the data.
            let to = if child < nodes { child } else { nodes + 16 };
            file.extend_from_slice(&to.to_be_bytes());
        }
    }
    file.extend_from_slice(&[0; 16]);
    // A map of two fields: a text of 900 kB, and a number.
    let text = 900_000_u32;
    file.push(0xe2);
    file.extend_from_slice(b"\x44name");
    file.push(0x5f);
    file.extend_from_slice(&(text - 65_821).to_be_bytes()[1..]);
    file.extend(core::iter::repeat_n(b'x', text as usize));
    file.extend_from_slice(b"\x43asn\xc1\x07");
    file.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
    file.push(0xe9);
    let text = |name: &str| [&[0x40 | name.len() as u8][..], name.as_bytes()].concat();
    let field = |name: &str, value: &[u8]| [&text(name)[..], value].concat();
    file.extend(field("node_count", &[&[0xc4][..], &nodes.to_be_bytes()].concat()));
    file.extend(field("record_size", b"\xa1\x20"));
    file.extend(field("ip_version", b"\xa1\x04"));
    file.extend(field("database_type", &text("Test")));
    file.extend(field("languages", b"\x00\x04"));
    file.extend(field("binary_format_major_version", b"\xa1\x02"));
    file.extend(field("binary_format_minor_version", b"\xa0"));
    file.extend(field("build_epoch", b"\x01\x02\x01"));
    file.extend(field("description", b"\xe0"));
    file
}

pub(super) fn compiled_sections() -> Vec<u8> {
    let mut file = b"\x89FIBULA\n".to_vec();
    file.extend(core::iter::repeat_n(0xff, LONG));
    file
}

pub(super) fn json_names() -> Vec<u8> {
    let name = "n".repeat(60_000);
    let fields: Vec<String> = (0..20_000).map(|at| format!("\"f{at}\":{at}")).collect();
    format!("{{\"prefix\":\"198.51.100.0/24\",\"{name}\":{{{}}}}}\n", fields.join(",")).into_bytes()
}

pub(super) fn json_numbers() -> Vec<u8> {
    repeated("[{\"prefix\":\"198.51.100.0/24\"},{\"prefix\":\"203.0.113.0/24\",\"v\":[", "1,", LONG)
}

pub(super) fn json_open() -> Vec<u8> {
    repeated("{\"prefix\":\"198.51.100.0/24\"}\n{\"a\":\"", "x", LONG)
}

pub(super) fn json_deep() -> Vec<u8> {
    repeated("{\"prefix\":\"198.51.100.0/24\"}\n", "[", 1 << 20)
}

pub(super) fn json_wrong() -> Vec<u8> {
    let part = ["{\"a\":".repeat(60), "x".to_owned(), "}".repeat(60), "\n".to_owned()].concat();
    repeated("{\"prefix\":\"198.51.100.0/24\"}\n", &part, 1 << 20)
}

pub(super) fn bird_attributes() -> Vec<u8> {
    let route = "198.51.100.0/24      unicast [b1 09:43:10] * (100) [AS64500i]\n\tvia 192.0.2.1 on eth0\n";
    repeated(route, "\tBGP.community: (64500,1) (64500,2)\n", LONG)
}

pub(super) fn vtysh_next_hops() -> Vec<u8> {
    repeated(
        "B>* 198.51.100.0/24 [20/0] via 192.0.2.1, eth0\n",
        "  *                      via 192.0.2.3, eth1, 00:01\n",
        LONG,
    )
}

pub(super) fn show_bgp_open() -> Vec<u8> {
    let head = "   Network          Next Hop            Metric LocPrf Weight Path\n";
    repeated(head, "*> 198.51.100.0/24\n                    192.0.2.1\n", LONG)
}

pub(super) fn netstat_columns() -> Vec<u8> {
    let head = format!("Destination Gateway Genmask Flags {}Iface\n", "x ".repeat(16_000));
    repeated(&head, "198.51.100.0 192.0.2.1 255.255.255.0 UG 0 0 0 eth0\n", LONG)
}

pub(super) fn columns_many() -> Vec<u8> {
    let head = format!("PREFIX             {}END\n", "x  ".repeat(60));
    repeated(&head, "198.51.100.0/24\n", LONG)
}

pub(super) fn ip_route_next_hops() -> Vec<u8> {
    repeated("198.51.100.0/24 proto bgp metric 20\n", "\tnexthop via 192.0.2.1 dev eth0 weight 1\n", LONG)
}

pub(super) fn line_open() -> Vec<u8> {
    repeated("198.51.100.0/24 192.0.2.1\n", "10.0.0.0/8 1", LONG)
}

fn ranges(separator: &str, value: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for at in 0..20_000_u32 {
        let (high, low) = (at >> 8, at & 255);
        text.extend_from_slice(format!("2001:db8:{high:x}:{low:x}::1{separator}2001:db8:{high:x}:{low:x}:ffff:ffff:ffff:fffe{value}\n").as_bytes());
    }
    text
}

pub(super) fn lines_ranges() -> Vec<u8> {
    ranges("-", " 192.0.2.1")
}

pub(super) fn list_ranges() -> Vec<u8> {
    ranges("-", "")
}

pub(super) fn csv_ranges() -> Vec<u8> {
    ranges(",", ",office")
}

pub(super) fn csv_quotes() -> Vec<u8> {
    repeated("network,name\n198.51.100.0/24,a\n", "203.0.113.0/24,\"x\n", LONG)
}

pub(super) fn csv_columns() -> Vec<u8> {
    let names: Vec<String> = (0..8_000).map(|at| format!("c{at}")).collect();
    let row = format!("198.51.100.0/24{}\n", ",".repeat(8_000));
    repeated(&format!("network,{}\n", names.join(",")), &row, LONG)
}
