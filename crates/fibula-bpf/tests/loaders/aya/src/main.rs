//! A loader with aya: takes pinned maps, refuses a program that was compiled for others, and runs the program once for each source.
//!
//! loader OBJECT NAME=PINS... -- SOURCE...: prints each source and what the program does with its packet; code 3 if it is refused

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;

use aya::EbpfLoader;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use fibula_bpf::BpfTable;

const DROP: u32 = 1;

/// A frame from an address, with as much of its headers as the program reads.
fn frame(source: Ipv4Addr) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[26..30].copy_from_slice(&source.octets());
    frame
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = arguments.split(|word| word == "--");
    let (Some([object, tables @ ..]), Some(sources)) = (parts.next(), parts.next()) else {
        return Err("loader OBJECT NAME=PINS... -- SOURCE...".into());
    };
    let bytes = std::fs::read(object)?;
    let parsed = aya_obj::Object::parse(&bytes)?;
    let mut paths = Vec::new();
    for table in tables {
        let (name, pins) = table.split_once('=').ok_or("NAME=PINS")?;
        // aya takes a pinned map whatever its size is.
        let maps = parsed.maps.iter().map(|(map, definition)| (map.as_str(), definition.value_size()));
        BpfTable::open(Path::new(pins))?.options().refuse_other(name, maps)?;
        let of_table = |map: &&String| map.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
        let maps = parsed.maps.keys().filter(of_table);
        paths.extend(maps.map(|map| (map.clone(), Path::new(pins).join(&map[name.len() + 1..]))));
    }
    let mut loader = EbpfLoader::new();
    for (map, path) in &paths {
        loader.map_pin_path(map, path.as_path());
    }
    let mut loaded = loader.load(&bytes)?;
    let program: &mut Xdp = loaded.program_mut("block").ok_or("no program 'block'")?.try_into()?;
    program.load()?;
    for source in sources {
        let options = TestRunOptions { data_in: Some(&frame(source.parse()?)), ..TestRunOptions::new() };
        let verdict = program.test_run(options)?.return_value;
        println!("{source} {}", if verdict == DROP { "drop" } else { "pass" });
    }
    Ok(())
}

fn main() -> ExitCode {
    run().map_or_else(
        |error| {
            println!("refused: {error}");
            ExitCode::from(3)
        },
        |()| ExitCode::SUCCESS,
    )
}
