//! `fibula bpf`: tables in maps of the kernel, for BPF programs.

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use fibula::net::{Family, Key, NextHop, Route};
use fibula::rib::{DualRib, Rib};
use fibula_bpf::{Backend, BpfError, BpfTable, Capability, Engine, Options, State, live_table, unload};
use fibula_feed::{Label, LoadedRoutes};
use serde_json::{Value, json};

use crate::answer::AnswerArgs;
use crate::failure::{Failure, code};
use crate::load;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FamilyName, Format, QuietArgs, SourceArgs, parse_size};
use crate::text::{bytes, thousands};

mod feeds;
mod follow;

/// Put routing tables into the kernel, for BPF programs that look addresses up
///
/// Programs in XDP, tc and cgroups include fibula_bpf.h and find the longest prefix of an address in maps that these commands make,
/// fill and keep up to date. The maps are pinned in a folder below /sys/fs/bpf; loaders of programs take them from there. It takes
/// root, or CAP_BPF and a folder there that is yours.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula bpf load --table blocked.txt --pin /sys/fs/bpf/blocked
  fibula bpf get --pin /sys/fs/bpf/blocked 192.0.2.1
  fibula bpf follow --table blocked.txt --pin /sys/fs/bpf/blocked
  fibula bpf show --pin /sys/fs/bpf/blocked --json
  fibula bpf unload --pin /sys/fs/bpf/blocked")]
pub(crate) struct BpfArgs {
    #[command(subcommand)]
    command: BpfCommand,
}

#[derive(Debug, Subcommand)]
enum BpfCommand {
    Load(Box<LoadArgs>),
    Follow(Box<FollowArgs>),
    Get(BpfGetArgs),
    Check(Box<BpfCheckArgs>),
    Show(BpfShowArgs),
    Header(HeaderArgs),
    Unload(UnloadArgs),
}

/// Make maps of a table, and pin them in a new folder
///
/// Next hops must be numbers from 1 on: they are the answers that programs get, and 0 is no route. Their meaning is up to the program,
/// such as an index of an array. A table of other next hops has numbers in a column (--value-columns, --value origin-as).
///
/// A table has one family; name it with --family if the file has both. The kernel takes the room of the maps at once: for a
/// full table of today twice over, or for twice this table if that is more. Programs are compiled for the room; 'fibula bpf
/// header' prints their definitions if it is not the usual one.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the maps are filled and pinned
  2  wrong use
  3  the table cannot be read or has no room, or something is pinned there
  4  the kernel refuses BPF, or lacks a feature

Examples:
  fibula bpf load --table blocked.txt --pin /sys/fs/bpf/blocked
  fibula bpf load --table rib.gz --value origin-as --family ipv4 --next-hops 4294967295 --pin /sys/fs/bpf/origins
  fibula bpf load --table rib.gz --family ipv6 --pin /sys/fs/bpf/routes6 --dry-run")]
struct LoadArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Pin the maps in this folder, which must not be there yet
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,

    /// Use this engine: dir-18-lines or dir-17-bitmap for IPv4, dir-btree for IPv6 [default: dir-18-lines, dir-btree]
    #[arg(short = 'a', long, value_name = "NAME", value_parser = engine)]
    engine: Option<Engine>,

    /// Take room for values up to this one, where the engine has more entries for wider values [default: the largest of the table]
    #[arg(long, value_name = "NUMBER")]
    next_hops: Option<u32>,

    /// Take at least this many bytes of room for each array but the entries; K, M and G are powers of 1,024
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    room: Option<usize>,

    /// Put the words into an arena instead of arrays (Linux 6.9): it takes memory for what is written, and programs fit whatever the room
    /// is. They are compiled by clang 19, after the lines of 'fibula bpf header', and have one such table at most
    #[arg(long, conflicts_with = "room")]
    arena: bool,

    /// Print the maps that would be made, the kernel's features and the rights that loaders of programs need, and make nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    output: AnswerArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

/// Keep pinned maps up to date with a table or with feeds, until a signal
///
/// A table is read again when its file is replaced, and at SIGHUP. Only the routes that differ are changed, without a system call for
/// each, and a program sees for each address its answer before or after. A table that cannot be read or has no room is reported, and
/// programs keep the answers that they have. So they do when this command ends, however it ends; 'fibula bpf show' then shows the age of
/// its last heartbeat, and another follower can go on in the same maps.
///
/// Two folders, one of each family, follow one table together.
///
/// With --feeds the routes come from a routing daemon instead: FRR by FPM, BIRD and others through the kernel's tables, routers by BMP, or
/// files of MRT. The file has [[feed]] tables as that of 'fibula router', and a table [numbers] of the next hops. Programs keep their
/// answers until each feed has its first full table, for at most 'start_after' seconds.
#[derive(Debug, Args)]
#[command(mut_args(|arg| if OF_FOLLOW.contains(&arg.get_id().as_str()) { arg } else { arg.conflicts_with("feeds") }))]
#[command(mut_arg("table", |arg| match arg.is_required_set() {
    true => arg.required(false).required_unless_present("feeds"),
    false => arg,
}))]
#[command(after_help = "\
Exit codes:
  0  a signal ended it
  2  wrong use
  3  the table or the file of feeds cannot be read at first, or has no room or another engine; or another process follows there
  4  the kernel refuses BPF, or a feed cannot be opened

Examples:
  fibula bpf follow --table blocked.txt --pin /sys/fs/bpf/blocked
  fibula bpf follow --table rib.gz --value origin-as --pin /sys/fs/bpf/as4 --pin /sys/fs/bpf/as6
  fibula bpf follow --feeds feeds.toml --pin /sys/fs/bpf/routes")]
struct FollowArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Take the routes of the feeds of this file instead of a table
    #[arg(long, value_name = "FILE")]
    feeds: Option<PathBuf>,

    /// Keep the maps of this folder; repeat it for the other family
    #[arg(long, value_name = "FOLDER", required = true)]
    pin: Vec<PathBuf>,

    /// How to wait until programs have left words that were replaced
    #[arg(long, value_enum, value_name = "WAY", default_value_t)]
    grace: GraceName,

    /// Look at the file of the table as often as this, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,

    /// End after the first reading, or after the first full table of the feeds, instead of waiting for changes
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    quiet: QuietArgs,
}

/// Options of `follow` that are not about a table.
const OF_FOLLOW: [&str; 5] = ["feeds", "pin", "grace", "once", "quiet"];

/// Ways of waiting for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum GraceName {
    /// membarrier where it works, otherwise a map of maps
    #[default]
    Auto,
    /// The system call membarrier: not with nohz_full, nor on one processor
    Membarrier,
    /// The update of a map of maps
    MapOfMaps,
}

/// Look addresses up in pinned maps, as programs do
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  all addresses have routes
  1  one has none
  2  wrong use, or an address of the other family
  3  nothing of Fibula is pinned there

Examples:
  fibula bpf get --pin /sys/fs/bpf/blocked 192.0.2.1 198.51.100.1")]
struct BpfGetArgs {
    /// The folder of the maps
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,

    /// The addresses
    #[arg(value_name = "ADDRESS", required = true)]
    addresses: Vec<IpAddr>,

    #[command(flatten)]
    output: AnswerArgs,
}

/// Compare pinned maps with a table, at both ends of each prefix and next to them
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  all answers are the same
  1  one differs
  2  wrong use
  3  the table cannot be read, or nothing of Fibula is pinned there

Examples:
  fibula bpf check --table blocked.txt --pin /sys/fs/bpf/blocked")]
struct BpfCheckArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// The folder of the maps
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,

    #[command(flatten)]
    quiet: QuietArgs,
}

/// Show a pinned table: engine, routes, memory, and the age of the follower's heartbeat
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  there is a table
  2  wrong use
  3  nothing of Fibula is pinned there

Examples:
  fibula bpf show --pin /sys/fs/bpf/blocked
  fibula bpf show --pin /sys/fs/bpf/blocked --json")]
struct BpfShowArgs {
    /// The folder of the maps
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,

    #[command(flatten)]
    output: AnswerArgs,
}

/// Print the definitions that programs for pinned maps have before they include fibula_bpf.h
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the lines are printed
  2  wrong use
  3  nothing of Fibula is pinned there

Examples:
  fibula bpf header --pin /sys/fs/bpf/origins > rooms.h")]
struct HeaderArgs {
    /// The folder of the maps
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,
}

/// Remove pinned maps
///
/// Programs that have the maps keep them, with the answers of this moment. The kernel frees them when the last program has gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the folder is gone
  2  wrong use
  3  nothing of Fibula is pinned there, or a process follows a table there

Examples:
  fibula bpf unload --pin /sys/fs/bpf/blocked")]
struct UnloadArgs {
    /// The folder of the maps
    #[arg(long, value_name = "FOLDER")]
    pin: PathBuf,
}

pub(crate) fn run(args: &BpfArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        BpfCommand::Load(args) => load(args),
        BpfCommand::Follow(args) => follow::run(args),
        BpfCommand::Get(args) => get(args),
        BpfCommand::Check(args) => check(args),
        BpfCommand::Show(args) => show(args),
        BpfCommand::Header(args) => header(args),
        BpfCommand::Unload(args) => unload(&args.pin).map(|()| ExitCode::SUCCESS).map_err(failure),
    }
}

fn engine(text: &str) -> Result<Engine, String> {
    Engine::named(text).ok_or_else(|| {
        let names: Vec<&str> = Engine::ALL.iter().map(|engine| engine.name()).collect();
        format!("programs look up in {}", names.join(", "))
    })
}

fn failure(error: BpfError) -> Failure {
    match error {
        BpfError::Permission | BpfError::Kernel { .. } => Failure::NotAvailable(error.to_string()),
        BpfError::Room { .. } => Failure::WrongUse(error.to_string()),
        other => Failure::BadInput(other.to_string()),
    }
}

/// Returns the routes with the numbers that their next hops are.
fn numbered(loaded: &LoadedRoutes) -> Result<DualRib, Failure> {
    Ok(DualRib::new(renumbered(&loaded.ribs.v4, loaded)?, renumbered(&loaded.ribs.v6, loaded)?))
}

fn renumbered<K: Key>(rib: &Rib<K>, loaded: &LoadedRoutes) -> Result<Rib<K>, Failure> {
    let mut numbered = Rib::default();
    for route in rib.iter() {
        let label = loaded.next_hops.label(route.next_hop);
        let number = match label {
            Some(&Label::Number(number)) => NextHop::new(number),
            _ => None,
        };
        let Some(next_hop) = number else {
            let label = label.map_or_else(String::new, ToString::to_string);
            return Err(Failure::BadInput(format!(
                "{}: '{label}' is not a number from 1 on, and programs get numbers: take a column of numbers with \
                 --value-columns, or --value origin-as",
                route.prefix
            )));
        };
        numbered
            .insert(Route::new(route.prefix, next_hop))
            .map_err(|error| Failure::BadInput(error.to_string()))?;
    }
    Ok(numbered)
}

fn read(source: &SourceArgs, messages: Messages) -> Result<DualRib, Failure> {
    numbered(&load::load_feeds(&source.table, &source.feed, messages)?)
}

/// Returns the family that is meant.
fn family_of(args: &LoadArgs, ribs: &DualRib) -> Result<Family, Failure> {
    let named = match args.source.feed.family {
        Some(FamilyName::Ipv4) => Some(Family::Ipv4),
        Some(FamilyName::Ipv6) => Some(Family::Ipv6),
        None => None,
    };
    let by_engine = args.engine.map(Engine::family);
    if let (Some(named), Some(engine)) = (named, args.engine)
        && engine.family() != named
    {
        return Err(Failure::WrongUse(format!("{} is an engine of {}", engine.name(), engine.family())));
    }
    named.or(by_engine).map_or_else(
        || match (ribs.v4.is_empty(), ribs.v6.is_empty()) {
            (false, false) => Err(Failure::WrongUse(
                "the table has both families, and maps have one: name it with --family, and load the other into another folder"
                    .to_owned(),
            )),
            (true, false) => Ok(Family::Ipv6),
            _ => Ok(Family::Ipv4),
        },
        Ok,
    )
}

fn load(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let mut out = args.output.open(&args.source.table)?;
    let ribs = read(&args.source, messages)?;
    let family = family_of(args, &ribs)?;
    let engine = args.engine.unwrap_or(Engine::of(family));
    let ribs = of_families(ribs, &[engine]);
    let routes = ribs.len();
    let largest = largest(&ribs.v4).max(largest(&ribs.v6));
    let table = live_table(ribs, &[engine]).map_err(|error| Failure::BadInput(error.to_string()))?;
    let greatest = args.next_hops.unwrap_or(largest);
    let mut options = Options::fitting(engine, &table, greatest).map_err(failure)?;
    if let Some(room) = args.room {
        options = options.with_at_least(room).map_err(failure)?;
    }
    if args.arena {
        options = options.in_arena();
    }
    let is_usual = options == Options::of(engine);
    if args.dry_run {
        let tried = BpfTable::create(&options);
        let kernel = tried.as_ref().map_or_else(ToString::to_string, |_| "has all that is needed".to_owned());
        let missing = Capability::missing(&Capability::OF_LOADERS);
        let rights = match &missing[..] {
            [] => "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, which loaders of programs need".to_owned(),
            _ => format!(
                "missing: {}: run loaders of programs as root, or with these (setcap)",
                missing.join(", ")
            ),
        };
        let record = json!({
            "engine": engine.name(), "family": family.name(), "routes": routes, "memory": options.backend.name(),
            "room_bytes": rooms(&options), "map_bytes": options.map_bytes(), "usual_rooms": is_usual, "kernel": kernel,
            "rights": rights,
        });
        write(&mut out, args.output.format(), &record)?;
        out.finish()?;
        return tried.map(|_| ExitCode::SUCCESS).map_err(failure);
    }
    let maps = BpfTable::create(&options).map_err(failure)?;
    maps.fill(&table).map_err(failure)?;
    maps.pin(&args.pin).map_err(failure)?;
    write(&mut out, args.output.format(), &record(&args.pin, &maps.state()))?;
    out.finish()?;
    let differs = match options.backend {
        Backend::Arena => Some("after lines that say that they are in an arena"),
        _ => (!is_usual).then_some("with their room"),
    };
    if let Some(differs) = differs {
        let pin = args.pin.display();
        messages.note(format_args!(
            "programs for these maps are compiled {differs}: fibula bpf header --pin {pin}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the largest next hop, 0 without routes.
fn largest<K: Key>(rib: &Rib<K>) -> u32 {
    rib.iter().map(|route| route.next_hop.id()).max().unwrap_or(0)
}

fn rooms(options: &Options) -> Vec<u64> {
    options.rooms.iter().take(options.engine.word_bytes().len()).map(|&room| 1 << room).collect()
}

/// Leaves out the routes of families that no maps have.
fn of_families(mut ribs: DualRib, engines: &[Engine]) -> DualRib {
    if !engines.iter().any(|engine| engine.family() == Family::Ipv4) {
        ribs.v4 = Rib::default();
    }
    if !engines.iter().any(|engine| engine.family() == Family::Ipv6) {
        ribs.v6 = Rib::default();
    }
    ribs
}

fn get(args: &BpfGetArgs) -> Result<ExitCode, Failure> {
    let mut out = args.output.open([])?;
    let maps = BpfTable::open(&args.pin).map_err(failure)?;
    let mut rows = Vec::new();
    for &address in &args.addresses {
        let found = maps.get(address).map_err(|family| {
            Failure::WrongUse(format!("{address}: the maps in {} are of {family}", args.pin.display()))
        })?;
        rows.push((address, NextHop::new(found)));
    }
    match args.output.format() {
        Format::Text => {
            for (address, found) in &rows {
                match found {
                    Some(next_hop) => writeln!(out, "{address} {}", next_hop.id())?,
                    None => writeln!(out, "{address} no route")?,
                }
            }
        }
        format => {
            let object = |(address, found): &(IpAddr, Option<NextHop>)| {
                object(json!({ "address": address.to_string(), "value": found.map(NextHop::id) }))
            };
            let records: Vec<Object> = rows.iter().map(object).collect();
            objects::write(&mut out, format, &["address", "value"], &records)?;
        }
    }
    out.finish()?;
    let all = rows.iter().all(|(_, found)| found.is_some());
    Ok(if all { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}

fn check(args: &BpfCheckArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let ribs = read(&args.source, messages)?;
    let maps = BpfTable::open(&args.pin).map_err(failure)?;
    let (count, wrong) = maps.check(&ribs);
    let mut out = crate::answer::Answer::new(None, [])?;
    let code = match wrong {
        None => {
            writeln!(out, "{} addresses have the table's answers", thousands(count as u64))?;
            ExitCode::SUCCESS
        }
        Some((address, found, right)) => {
            writeln!(out, "{address}: {found} in the maps, {right} in the table (0: no route)")?;
            code::NOTHING_FOUND.into()
        }
    };
    out.finish()?;
    Ok(code)
}

fn show(args: &BpfShowArgs) -> Result<ExitCode, Failure> {
    let mut out = args.output.open([])?;
    let maps = BpfTable::open(&args.pin).map_err(failure)?;
    write(&mut out, args.output.format(), &record(&args.pin, &maps.state()))?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn header(args: &HeaderArgs) -> Result<ExitCode, Failure> {
    let maps = BpfTable::open(&args.pin).map_err(failure)?;
    let mut out = crate::answer::Answer::new(None, [])?;
    write!(out, "{}", maps.options().c_header())?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the record of pinned maps.
fn record(pin: &Path, state: &State) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let age = (state.heartbeat > 0).then(|| now.saturating_sub(state.heartbeat));
    json!({
        "pin": pin.display().to_string(),
        "engine": state.options.engine.name(),
        "family": state.options.engine.family().name(),
        "routes": state.routes,
        "used_bytes": state.bytes,
        "memory": state.options.backend.name(),
        "map_bytes": state.options.map_bytes(),
        "room_bytes": rooms(&state.options),
        "shape": format!("{} {}", state.number.0, state.number.1),
        "generation": state.generation,
        "version": state.version,
        "followed": state.is_followed,
        "follower": (state.follower > 0).then_some(state.follower),
        "heartbeat_age_s": age,
    })
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Writes one record: as lines of names and values for people.
fn write(out: &mut dyn Write, format: Format, record: &Value) -> Result<(), Failure> {
    let record = object(record.clone());
    if format != Format::Text {
        let columns: Vec<&str> = record.keys().map(String::as_str).collect();
        objects::write(out, format, &columns, std::slice::from_ref(&record))?;
        return Ok(());
    }
    for (name, value) in &record {
        let text = match value {
            Value::Null => "none".to_owned(),
            Value::Bool(is) => (if *is { "yes" } else { "no" }).to_owned(),
            Value::String(text) => text.clone(),
            Value::Number(number) if name.ends_with("_bytes") => bytes(number.as_u64().unwrap_or(0) as usize),
            Value::Array(all) => {
                let sizes = all.iter().filter_map(Value::as_u64).map(|size| bytes(size as usize));
                sizes.collect::<Vec<_>>().join(", ")
            }
            other => other.as_u64().map_or_else(|| other.to_string(), thousands),
        };
        writeln!(out, "{:<16} {text}", name.replace('_', " "))?;
    }
    Ok(())
}
