//! The router's program for XDP, compiled from C into a text that the router loads: `cargo xtask fast`.
//!
//! An object file needs a loader that knows its format. Here it is read once: the sections with code are put one after the other, calls
//! between functions get their distance, and what is left are the places of maps and numbers, by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::programs::{is_there, output, root, run};
use crate::{End, Outcome};

const FOLDER: &str = "crates/fibula-router/src/kernel/fast";
const INCLUDE: &str = "crates/fibula-bpf/include";
/// The machine of object files for BPF.
const MACHINE: u16 = 247;
/// A word of 64 bits whose value is an address: of a map, or a number. A call.
const ADDRESS: u32 = 1;
const CALL: u32 = 10;

/// Compiles the program and writes it, to another file than the committed one if that is named.
pub(crate) fn write(file: Option<&str>) -> Outcome<End> {
    if let Some(why) = missing() {
        return Ok(End::Skipped(why));
    }
    let path = file.map_or_else(|| root().join(FOLDER).join("program.txt"), PathBuf::from);
    std::fs::write(path, compiled()?)?;
    Ok(End::Good)
}

/// Compares the committed program with its sources: by their hash, and where the same compiler is, by what it makes of them.
pub(crate) fn check() -> Outcome<End> {
    let committed = std::fs::read_to_string(root().join(FOLDER).join("program.txt"))?;
    let has = |line: &str| committed.lines().any(|other| other == line);
    if !has(&format!("source {}", hash()?)) {
        eprintln!(
            "{FOLDER}/program.txt is of other sources: run 'cargo xtask fast' where clang 14 is, and commit it"
        );
        return Ok(End::Differs);
    }
    if let Some(why) = missing() {
        println!("SKIPPED the program is not compiled again: {why}");
        return Ok(End::Good);
    }
    let compiler = compiler()?;
    if !has(&compiler) {
        println!(
            "SKIPPED the program is not compiled again: this is {compiler}, not the compiler that it names"
        );
        return Ok(End::Good);
    }
    if compiled()? != committed {
        eprintln!("{FOLDER}/program.txt is not what {compiler} makes of its sources: run 'cargo xtask fast'");
        return Ok(End::Differs);
    }
    Ok(End::Good)
}

fn missing() -> Option<String> {
    (!is_there("clang")).then(|| "no clang: apt-get install clang linux-libc-dev".to_owned())
}

fn sources() -> [PathBuf; 2] {
    [root().join(FOLDER).join("program.bpf.c"), root().join(INCLUDE).join("fibula_bpf.h")]
}

fn hash() -> Outcome<String> {
    let mut hash = Sha256::new();
    for path in sources() {
        hash.update(std::fs::read(path)?);
    }
    Ok(hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Returns the line that names the compiler, by its first number: others of that number make the same code.
fn compiler() -> Outcome<String> {
    let said = output(Command::new("clang").arg("--version"))?;
    let version = said.split("clang version ").nth(1).and_then(|rest| rest.split('.').next());
    Ok(format!("compiler clang {}", version.ok_or("clang names no version")?))
}

fn compiled() -> Outcome<String> {
    let object = crate::programs::target().join("fast.o");
    let [source, _] = sources();
    // Where Debian has the kernel's headers of the machine.
    let headers = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new("clang");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3", "-I", &headers, "-I"]);
    run(command.arg(root().join(INCLUDE)).arg("-c").arg(source).arg("-o").arg(&object))?;
    let linked = link(&std::fs::read(object)?)?;
    let mut text = format!(
        "# Made of program.bpf.c by 'cargo xtask fast'; do not edit.\n{}\nsource {}\n",
        compiler()?,
        hash()?
    );
    for (at, name) in &linked.functions {
        writeln!(text, "function {at} {name}")?;
    }
    for (at, name) in &linked.places {
        writeln!(text, "place {at} {name}")?;
    }
    text += "code\n";
    for line in linked.code.chunks(4) {
        let words: Vec<String> = line.iter().map(|word| format!("{word:016x}")).collect();
        writeln!(text, "{}", words.join(" "))?;
    }
    Ok(text)
}

/// A program whose functions are in one piece.
#[derive(Debug, Default)]
struct Linked {
    /// Instructions, each as the number that its bytes are in order.
    code: Vec<u64>,
    /// Where functions begin.
    functions: BTreeMap<usize, String>,
    /// Where an instruction takes the address of a map, or a number, and its name.
    places: BTreeMap<usize, String>,
}

/// The bytes of an object file, which is of 64 bits and little-endian.
struct Object<'o>(&'o [u8]);

impl<'o> Object<'o> {
    fn number(&self, at: usize, bytes: usize) -> Outcome<u64> {
        let word = self.0.get(at..at + bytes).ok_or("the object file ends too early")?;
        Ok(word.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn text(&self, at: usize) -> Outcome<&'o str> {
        let rest = self.0.get(at..).ok_or("a name beyond the object file")?;
        let len = rest.iter().position(|&byte| byte == 0).ok_or("a name without an end")?;
        Ok(std::str::from_utf8(&rest[..len])?)
    }

    /// Returns the sections.
    fn sections(&self) -> Outcome<Vec<Section>> {
        let (first, count) = (self.number(40, 8)? as usize, self.number(60, 2)? as usize);
        let names = self.number(first + 64 * self.number(62, 2)? as usize + 24, 8)? as usize;
        let section = |number: usize| {
            let field = |at: usize, bytes| self.number(first + 64 * number + at, bytes);
            Ok(Section {
                name: self.text(names + field(0, 4)? as usize)?.to_owned(),
                kind: field(4, 4)?,
                at: field(24, 8)? as usize,
                size: field(32, 8)? as usize,
                strings: field(40, 4)? as usize,
                about: field(44, 4)? as usize,
            })
        };
        (0..count).map(section).collect()
    }
}

/// A section of an object file.
#[derive(Debug)]
struct Section {
    name: String,
    kind: u64,
    at: usize,
    size: usize,
    /// The section with the names of its symbols.
    strings: usize,
    /// The section whose places it has.
    about: usize,
}

fn link(bytes: &[u8]) -> Outcome<Linked> {
    let object = Object(bytes);
    if object.number(18, 2)? != u64::from(MACHINE) {
        return Err("not an object file of BPF".into());
    }
    let sections = object.sections()?;
    let mut linked = Linked::default();
    // The program itself comes first, because the kernel begins there.
    let mut begins: BTreeMap<usize, usize> = BTreeMap::new();
    for wanted in ["xdp", ".text"] {
        let found = sections.iter().position(|section| section.name == wanted);
        let number = found.ok_or_else(|| format!("no section {wanted}"))?;
        let Section { at, size, .. } = sections[number];
        begins.insert(number, linked.code.len());
        for word in 0..size / 8 {
            linked.code.push(object.number(at + 8 * word, 8)?.swap_bytes());
        }
    }
    let symbols = sections.iter().find(|section| section.kind == 2).ok_or("no symbols")?;
    let strings = sections.get(symbols.strings).ok_or("symbols without names")?.at;
    // Name, section and place of each symbol, and whether it is a function.
    let mut all = Vec::new();
    for number in 0..symbols.size / 24 {
        let at = symbols.at + 24 * number;
        let name = object.text(strings + object.number(at, 4)? as usize)?.to_owned();
        let (kind, section) = (object.number(at + 4, 1)? & 15, object.number(at + 6, 2)? as usize);
        let place =
            begins.get(&section).map(|begin| begin + object.number(at + 8, 8).unwrap_or(0) as usize / 8);
        if let (2, Some(place)) = (kind, place) {
            linked.functions.insert(place, name.clone());
        }
        all.push((name, place));
    }
    for Section { kind, at: from, size, about, .. } in &sections {
        let Some(&begin) = begins.get(about).filter(|_| *kind == 9) else { continue };
        for number in 0..size / 16 {
            let at = begin + object.number(from + 16 * number, 8)? as usize / 8;
            let (how, symbol) = (
                object.number(from + 16 * number + 8, 4)? as u32,
                object.number(from + 16 * number + 12, 4)?,
            );
            let (name, place) = all.get(symbol as usize).ok_or("a place of no symbol")?;
            match (how, place) {
                (CALL, Some(place)) => {
                    let distance = (*place as i64 - at as i64 - 1) as i32 as u32;
                    linked.code[at] = linked.code[at] & !0xffff_ffff | u64::from(distance.swap_bytes());
                }
                (ADDRESS, None) if !name.is_empty() => _ = linked.places.insert(at, name.clone()),
                _ => return Err(format!("instruction {at}: a place of kind {how} for '{name}'").into()),
            }
        }
    }
    Ok(linked)
}
