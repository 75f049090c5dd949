//! Forms that are recognised by their first bytes, and refused by name.

/// A form of files that is not read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherForm {
    /// The name, with its article.
    pub(crate) name: &'static str,
    /// The usual command that unpacks it, with `{}` in place of the file.
    pub(crate) remedy: Option<&'static str>,
}

/// A pattern, its offset in the file, the name of the form, and the command that unpacks it.
type Magic = (usize, &'static [u8], &'static str, Option<&'static str>);

/// Where `ustar` is in the header of a tar archive.
const TAR_AT: usize = 257;

const MAGICS: &[Magic] = &[
    (0, b"PK\x03\x04", "a zip archive", Some("unzip -p {}")),
    (0, b"PK\x05\x06", "an empty zip archive", None),
    (0, b"PK\x07\x08", "a part of a zip archive", None),
    (0, b"\x04\x22\x4d\x18", "lz4", Some("lz4 -dc {}")),
    (0, b"\x02\x21\x4c\x18", "lz4", Some("lz4 -dc {}")),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", Some("7z x -so {}")),
    (0, b"Rar!\x1a\x07", "a rar archive", Some("unrar p -inul {}")),
    (TAR_AT, b"ustar", "a tar archive", Some("tar -xOf {}")),
    (0, b"LZIP", "lzip", Some("lzip -dc {}")),
    (0, b"\x5d\x00\x00", "an lzma stream", Some("xz --format=lzma -dc {}")),
    (0, b"\x1f\x9d", "a file of Unix compress", Some("gzip -dc {}")),
    (0, b"\x1f\xa0", "a file of Unix compress", Some("gzip -dc {}")),
    (0, b"\x1f\x1e", "a file of Unix pack", Some("gzip -dc {}")),
    (0, b"\x89LZO\0\r\n\x1a\n", "lzop", Some("lzop -dc {}")),
    (0, b"\xff\x06\0\0sNaPpY", "snappy", None),
    (0, b"PAR1", "a Parquet file", None),
    (0, b"ARROW1", "an Arrow file", None),
    (0, b"ORC", "an ORC file", None),
    (0, b"Obj\x01", "an Avro file", None),
    (0, b"SQLite format 3\0", "an SQLite database", None),
    (0, b"\xd4\xc3\xb2\xa1", "a packet capture (pcap)", None),
    (0, b"\xa1\xb2\xc3\xd4", "a packet capture (pcap)", None),
    (0, b"\x4d\x3c\xb2\xa1", "a packet capture (pcap)", None),
    (0, b"\xa1\xb2\x3c\x4d", "a packet capture (pcap)", None),
    (0, b"\x0a\x0d\x0d\x0a", "a packet capture (pcapng)", None),
    (0, b"%PDF-", "a PDF document", None),
    (0, b"\x7fELF", "a program", None),
    (0, b"\xff\xfe", "text in UTF-16", Some("iconv -f UTF-16 -t UTF-8 {}")),
    (0, b"\xfe\xff", "text in UTF-16", Some("iconv -f UTF-16 -t UTF-8 {}")),
    // A compressed stream inside another one: compressed twice.
    (0, b"\x1f\x8b\x08", "a gzip stream", Some("gzip -dc {}")),
    (0, b"BZh91AY&SY", "a bzip2 stream", Some("bzip2 -dc {}")),
    (0, b"\xfd7zXZ\0", "an xz stream", Some("xz -dc {}")),
    (0, b"\x28\xb5\x2f\xfd", "a zstd stream", Some("zstd -dc {}")),
];

/// The marker between the data and the description of a MaxMind database.
const MMDB_MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// A database file that is not compressed is read as a feed; only streams get this far.
const MMDB: &str = "a MaxMind database (MMDB) as a stream";

impl OtherForm {
    /// Returns the form of a file whose decompressed content begins with `head`; `None` if it may be a form that is
    /// read.
    pub(crate) fn recognise(head: &[u8]) -> Option<Self> {
        let is = |magic: &&Magic| head.get(magic.0..).is_some_and(|rest| rest.starts_with(magic.1));
        if let Some(&(_, _, name, remedy)) = MAGICS.iter().find(is) {
            return Some(Self { name, remedy });
        }
        is_mmdb(head).then_some(Self { name: MMDB, remedy: None })
    }
}

/// Returns whether the file is a MaxMind database. It has no mark at its beginning: it is a binary tree whose nodes are
/// written in the order of a walk down to the lowest address, so that the left child of each of the first nodes is the
/// next. Records have 24, 28 or 32 bits.
fn is_mmdb(head: &[u8]) -> bool {
    const NODES: u32 = 6;
    let is_walk = |node_bytes: usize, record_bytes: usize| {
        (0..NODES).all(|node| {
            let at = node as usize * node_bytes;
            let next = (node + 1).to_be_bytes();
            head.get(at..at + record_bytes).is_some_and(|left| left == &next[4 - record_bytes..])
        })
    };
    let ends = head.len().saturating_sub(128 << 10);
    is_walk(6, 3) || is_walk(7, 3) || is_walk(8, 4) || ends_as_mmdb(&head[ends..])
}

/// Returns whether a file with this end, of at most 128 KiB, is a MaxMind database.
pub(crate) fn ends_as_mmdb(end: &[u8]) -> bool {
    memchr::memmem::find(end, MMDB_MARKER).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &[u8]) -> Option<&'static str> {
        OtherForm::recognise(head).map(|form| form.name)
    }

    #[test]
    fn other_forms_are_told_by_their_first_bytes() {
        for &(at, magic, expected, _) in MAGICS {
            let mut head = vec![0; at];
            head.extend(magic);
            head.extend([7; 40]);
            assert_eq!(name(&head), Some(expected), "{magic:?}");
            assert_eq!(name(&head[..at + magic.len() - 1]), None, "{magic:?}");
        }
    }

    #[test]
    fn databases_are_told_by_their_tree_or_their_mark() {
        for (node_bytes, record_bytes) in [(6, 3), (7, 3), (8, 4)] {
            let node = |node: u32| {
                let mut bytes = vec![0x7f; node_bytes];
                bytes[..record_bytes].copy_from_slice(&(node + 1).to_be_bytes()[4 - record_bytes..]);
                bytes
            };
            let tree: Vec<u8> = (0..100).flat_map(node).collect();
            assert_eq!(name(&tree), Some(MMDB));
        }
        let marked = [&[1; 100][..], MMDB_MARKER, &[2; 100]].concat();
        assert_eq!(name(&marked), Some(MMDB));
    }

    #[test]
    fn what_is_read_is_no_other_form() {
        let record = [0x65, 0x92, 0, 0x80, 0, 13, 0, 1, 0, 0, 0, 40, 192, 0, 2, 255];
        for head in [&b""[..], b"10.0.0.0/8 1\n", b"# PK\n", b"::/0 1\n", b"\xef\xbb\xbf::/0 1\n", &record] {
            assert_eq!(name(head), None, "{head:?}");
        }
    }
}
