//! `fibula route show`: the best routes.

use std::process::ExitCode;

use fibula::net::{IpPrefix, Key, Prefix, Route};
use fibula::rib::Rib;

use super::args::ShowArgs;
use super::query::{self, exit_code, nothing};
use crate::failure::Failure;
use crate::load;
use crate::messages::Messages;
use crate::options::Format;
use crate::route_rows::{self, RouteRows};

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let prefixes = query::prefixes(args)?;
    let messages = Messages::new(args.quiet.quiet);
    let format = args.output.format();
    let mut out = args.output.open(&args.source.table)?;
    let (table, columns) =
        load::load_columns(&args.source.table, &args.source.feed, format == Format::Text, messages)?;
    let Some(prefixes) = prefixes else {
        let count = route_rows::write_all(&table, &mut out, format, &columns)?;
        out.finish()?;
        return Ok(exit_code(count));
    };
    let mut rows = RouteRows::new(&mut out, format, &columns)?;
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for prefix in prefixes {
        match prefix {
            IpPrefix::V4(prefix) => found(args, &table.ribs.v4, prefix, &mut v4, messages),
            IpPrefix::V6(prefix) => found(args, &table.ribs.v6, prefix, &mut v6, messages),
        }
    }
    in_order(&mut v4).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
    in_order(&mut v6).iter().try_for_each(|&route| rows.add(route, &table.next_hops))?;
    let count = rows.end()?;
    out.finish()?;
    Ok(exit_code(count))
}

/// Adds the routes of a prefix, or reports the nearest ones.
fn found<K: Key>(
    args: &ShowArgs,
    rib: &Rib<K>,
    prefix: Prefix<K>,
    routes: &mut Vec<Route<K>>,
    messages: Messages,
) {
    let before = routes.len();
    if args.include_super {
        routes.extend(rib.covers(prefix));
    }
    if args.include_sub {
        routes.extend(rib.subnets(prefix));
    } else {
        routes.extend(rib.get(prefix).map(|next_hop| Route::new(prefix, next_hop)));
    }
    if routes.len() == before {
        let longest = rib.covers(prefix).last().map(|route| route.prefix.to_string());
        messages.note(nothing(&prefix, longest.as_deref()));
    }
}

/// Each route once.
fn in_order<K: Key>(routes: &mut Vec<Route<K>>) -> &[Route<K>] {
    routes.sort_unstable_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    routes.dedup();
    routes
}
