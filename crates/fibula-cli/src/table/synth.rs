//! `fibula table synth`: generated tables.

use fibula::memory::Limits;
use fibula::net::{Family, Key, NextHop, Route};
use fibula_feed::{Label, NextHops};
use fibula_workload::table::{PRESETS, Preset, Profile, TableSpec, generate, preset};

use super::args::SynthArgs;
use crate::failure::Failure;
use crate::load::Columns;
use crate::output::Output;
use crate::route_rows::RouteRows;

pub(super) fn run(args: &SynthArgs) -> Result<(), Failure> {
    let mut presets = Vec::new();
    for name in &args.names {
        presets.push(preset(name).ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            Failure::WrongUse(format!("no table '{name}' to generate; there are: {}", names.join(", ")))
        })?);
    }
    // IPv4 comes first in every table.
    presets.sort_by_key(|preset| preset.family);
    let output = Output::new(args.output.as_deref(), [])?;
    output.write(|mut out| {
        let columns = Columns { values: Vec::new(), implied: false, in_place: false };
        let mut rows = RouteRows::new(&mut out, args.form.format(), &columns)?;
        for preset in &presets {
            match preset.family {
                Family::Ipv6 => write::<u128>(args, preset, &mut rows)?,
                _ => write::<u32>(args, preset, &mut rows)?,
            }
        }
        rows.end()?;
        Ok(())
    })
}

fn write<K: Key>(args: &SynthArgs, preset: &Preset, rows: &mut RouteRows<'_>) -> Result<(), Failure> {
    let spec = preset.spec();
    let spec = TableSpec {
        routes: args.routes.unwrap_or(spec.routes),
        next_hops: args.next_hops.unwrap_or(spec.next_hops),
        seed: args.seed.unwrap_or(spec.seed),
    };
    let refuse = |error: &dyn std::fmt::Display| Failure::WrongUse(format!("{}: {error}", preset.name));
    let routes: Vec<Route<K>> = generate(&spec, &Profile::of::<K>()).map_err(|error| refuse(&error))?;
    // Generated next hops are plain numbers.
    let mut labels = NextHops::new(Limits::default());
    for id in routes.iter().map(|route| route.next_hop.id()).max().into_iter().flat_map(|last| 1..=last) {
        let next_hop = labels.intern(Label::Number(id)).map_err(|error| refuse(&error))?;
        debug_assert_eq!(Some(next_hop), NextHop::new(id));
    }
    for &route in &routes {
        rows.add(route, &labels)?;
    }
    Ok(())
}
