//! `unsafe` code is where ARCHITECTURE.md says, and nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files with `unsafe` code, from `crates/` or the root, and what ARCHITECTURE.md calls them.
const PLACES: [(&str, &str); 20] = [
    ("crates/fibula/src/simd/", "`simd`"),
    ("crates/fibula/src/memory/buffer.rs", "`buffer.rs`"),
    ("crates/fibula/src/memory/mapped.rs", "`mapped.rs`"),
    ("crates/fibula/src/memory/shared.rs", "`shared.rs`"),
    ("crates/fibula/src/live/root.rs", "`live/root.rs`"),
    ("crates/fibula/src/live/reader.rs", "`live/reader.rs`"),
    ("crates/fibula/src/live/slots.rs", "`live/slots.rs`"),
    ("crates/fibula/src/live/epoch/slots.rs", "`live/epoch/slots.rs`"),
    ("crates/fibula/src/net/route.rs", "`net/route.rs`"),
    ("crates/fibula-column/src/arrow.rs", "`arrow.rs`"),
    ("crates/fibula-column/src/arrow/", "`arrow/`"),
    ("crates/fibula-cli/src/output/stdio.rs", "one function that runs before `main`"),
    ("crates/fibula-lab/src/rival/", "`rival/dpdk/sys.rs`"),
    ("crates/fibula-proof/src/allocator.rs", "`allocator.rs`"),
    ("crates/fibula-gpu/src/device/", "`fibula-gpu/src/device/cuda.rs`"),
    ("crates/fibula-bpf/src/sys.rs", "`fibula-bpf/src/sys.rs`"),
    ("crates/fibula-router/src/kernel/sys.rs", "`fibula-router/src/kernel/sys.rs`"),
    ("crates/fibula-router/src/io/dpdk/", "`io/dpdk/port.rs`"),
    ("bindings/c/src/", "`bindings/c`"),
    ("bindings/python/src/", "`buffer.rs` and `capsule.rs`"),
];

/// Whether a line of Rust has or declares `unsafe` code.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "(unsafe)", "#[unsafe("]
        .iter()
        .any(|text| code.contains(text))
}

/// The sources of a folder that have `unsafe` code, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("tests") && !path.ends_with("target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && fs::read_to_string(&path).unwrap().lines().any(is_unsafe)
        {
            found.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_where_the_architecture_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let said = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut found = Vec::new();
    for folder in ["crates", "bindings", "xtask", "fuzz/src"] {
        sources(&root.join(folder), &mut found);
    }
    let found: Vec<&str> =
        found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
    for file in &found {
        assert!(PLACES.iter().any(|(place, _)| file.starts_with(place)), "unsafe code in {file}");
    }
    for (place, name) in PLACES {
        assert!(found.iter().any(|file| file.starts_with(place)), "no unsafe code in {place}");
        assert!(said.contains(name), "ARCHITECTURE.md does not say that {place} has unsafe code");
    }
    assert!(is_unsafe("    unsafe { a() }") && !is_unsafe("// unsafe { a() }") && !is_unsafe("safe"));
}
