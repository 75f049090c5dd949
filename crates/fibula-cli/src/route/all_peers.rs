//! The paths of all peers for some prefixes, as a router's table of BGP shows them.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use fibula::net::{IpPrefix, parse_address};
use fibula_feed::event::{Action, Event, Peer};
use fibula_feed::select::Rank;
use fibula_feed::{Label, Selection, Value};

use super::args::ShowArgs;
use super::query::{self, exit_code, nothing};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::load::{self, Columns};
use crate::lookup::LookupArgs;
use crate::messages::Messages;
use crate::options::SourceArgs;
use crate::route_rows::RouteRows;
use crate::validation::States;

/// The paths of a prefix, by peer and path identifier.
type Paths = BTreeMap<(Option<Peer>, Option<u32>), (Rank, Label)>;

/// All paths of the prefixes that are of interest.
#[derive(Default)]
struct PathCollector {
    prefixes: BTreeMap<IpPrefix, Paths>,
    /// The states of routes, where they are wanted.
    states: Option<States>,
}

impl PathCollector {
    /// Follows an event of a peer.
    fn apply(&mut self, event: Event, is_wanted: &dyn Fn(IpPrefix) -> bool) {
        let peer = event.peer;
        match event.action {
            Action::Announce(route) if is_wanted(route.path.prefix) => {
                let rank = Rank { path_len: route.path_len, peer, feed: 0, path_id: route.path.id };
                let paths = self.prefixes.entry(route.path.prefix).or_default();
                paths.insert((peer, route.path.id), (rank, route.next_hop));
            }
            Action::Withdraw(path) => {
                if let Some(paths) = self.prefixes.get_mut(&path.prefix) {
                    paths.remove(&(peer, path.id));
                }
            }
            Action::SessionEnd => {
                self.prefixes.values_mut().for_each(|paths| paths.retain(|(of, _), _| *of != peer));
            }
            Action::Announce(_) | Action::Nothing => {}
        }
    }

    /// Reads the tables, and keeps the paths of the prefixes that are wanted.
    fn read(
        source: &SourceArgs,
        columns: &Columns,
        messages: Messages,
        is_wanted: &(dyn Fn(IpPrefix) -> bool + Sync),
    ) -> Result<Self, Failure> {
        let mut options = source.feed.options();
        if source.feed.options().selection == Selection::MostRoutes {
            options.selection = Selection::Best;
        }
        options.values = vec![Value::NextHop];
        options.values.extend(columns.values.iter().cloned());
        let states = States::new(&options.values, &source.feed, messages)?;
        if let Some(states) = &states {
            options.values = states.loaded().to_vec();
        }
        let mut found = Self { states, ..Self::default() };
        for path in &source.table {
            let mut each = |event| {
                found.apply(event, is_wanted);
                Ok(())
            };
            load::tell(path, &options, &mut each, messages)?;
        }
        found.prefixes.retain(|_, paths| !paths.is_empty());
        Ok(found)
    }

    /// Writes the paths of a prefix, the best one first.
    fn write(&self, prefix: IpPrefix, rows: &mut RouteRows<'_>) -> io::Result<()> {
        let Some(paths) = self.prefixes.get(&prefix) else { return Ok(()) };
        let mut ranked: Vec<&(Rank, Label)> = paths.values().collect();
        ranked.sort_by(|(one, _), (other, _)| {
            if one.stays(other).0 { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        ranked.into_iter().try_for_each(|(_, label)| match &self.states {
            Some(states) => rows.put(&prefix, &states.label(prefix, label)),
            None => rows.put(&prefix, label),
        })
    }

    /// Returns the longest prefix with a path that contains this one.
    fn longest(&self, of: IpPrefix) -> Option<IpPrefix> {
        self.prefixes.keys().copied().filter(|&prefix| contains(prefix, of)).max_by_key(|prefix| prefix.len())
    }
}

/// Returns the fields that are shown of each path after its next hop.
fn columns(source: &SourceArgs) -> Columns {
    let mut values = vec![Value::Peer, Value::PeerAs, Value::AsPath];
    values.extend(
        source.feed.columns().into_iter().filter(|value| !values.contains(value)).collect::<Vec<_>>(),
    );
    Columns { values, implied: false, in_place: false }
}

/// `fibula route show --all-peers`.
pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let Some(prefixes) = query::prefixes(args)? else {
        return Err(Failure::WrongUse(
            "--all-peers needs a prefix; for all routes of all peers: fibula table convert --to bgpdump --all-peers"
                .to_owned(),
        ));
    };
    let (source, messages) = (&args.source, Messages::new(args.quiet.quiet));
    let columns = columns(source);
    let is_shown = |prefix: IpPrefix, wanted: IpPrefix| {
        prefix == wanted
            || (args.include_super && contains(prefix, wanted))
            || (args.include_sub && contains(wanted, prefix))
    };
    // A prefix without a route of its own gets the names of the routes around it.
    let is_wanted = |prefix: IpPrefix| {
        prefixes.iter().any(|&wanted| is_shown(prefix, wanted) || contains(prefix, wanted))
    };
    let mut out = args.output.open(&source.table)?;
    let found = PathCollector::read(source, &columns, messages, &is_wanted)?;
    let shown = |prefix: IpPrefix| prefixes.iter().any(|&wanted| is_shown(prefix, wanted));
    let mut rows = RouteRows::new(&mut out, args.output.format(), &columns)?;
    for &prefix in found.prefixes.keys().filter(|&&prefix| shown(prefix)) {
        found.write(prefix, &mut rows)?;
    }
    let count = rows.end()?;
    out.finish()?;
    for &wanted in &prefixes {
        if !found.prefixes.keys().any(|&prefix| is_shown(prefix, wanted)) {
            let longest = found.longest(wanted).map(|prefix| prefix.to_string());
            messages.note(nothing(&wanted, longest.as_deref()));
        }
    }
    Ok(exit_code(count))
}

/// `fibula route get --all-peers`.
pub(super) fn get(args: &LookupArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    if args.addresses.is_empty() {
        return Err(Failure::WrongUse("--all-peers needs addresses on the command line".to_owned()));
    }
    let mut addresses = Vec::new();
    for text in &args.addresses {
        let address = parse_address(text.as_bytes()).map_err(|error| {
            Failure::BadInput(format!("'{text}' is not an IP address ({})", error.reason()))
        })?;
        addresses.push(IpPrefix::from(address));
    }
    let columns = columns(&args.source);
    let is_wanted = |prefix: IpPrefix| addresses.iter().any(|&address| contains(prefix, address));
    let mut out = Answer::new(args.how.output.as_deref(), &args.source.table)?;
    let found = PathCollector::read(&args.source, &columns, messages, &is_wanted)?;
    let mut rows = RouteRows::new(&mut out, args.rows()?, &columns)?;
    for (&address, text) in addresses.iter().zip(&args.addresses) {
        match found.longest(address) {
            Some(prefix) => found.write(prefix, &mut rows)?,
            None => messages.note(format_args!("{text}: no route")),
        }
    }
    let count = rows.end()?;
    out.finish()?;
    Ok(exit_code(count))
}

/// Returns whether all addresses of `inner` are in `outer`.
fn contains(outer: IpPrefix, inner: IpPrefix) -> bool {
    match (outer, inner) {
        (IpPrefix::V4(outer), IpPrefix::V4(inner)) => outer.covers(inner),
        (IpPrefix::V6(outer), IpPrefix::V6(inner)) => outer.covers(inner),
        _ => false,
    }
}
