//! Columns of addresses to columns of ids: what parsing in bulk gains, and what a column costs over a batch.
//!
//! Looks the same addresses up in the same engine: as texts one by one (`parse_address`, then batches of 256), as a column of text in two
//! shapes, as one batch of keys, and as a column of keys. Every answer is compared before and after. The ways take turns, and a ratio
//! is the median of those of the rounds. Times are processor times of the thread, so that other programs disturb less.

use std::hint::black_box;
use std::net::IpAddr;

use clap::Args;
use fibula::fib::{Fib, registry};
use fibula::memory::Limits;
use fibula::net::{Key, Keys, NextHop, Route, RouteSlice, parse_address};
use fibula_column::{ByteRows, Column, LookupOptions, TableView};
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::traffic;

use super::{Outcome, cpu_ns};
use crate::command::engines::engine;
use crate::command::figures::FigureTables;

#[derive(Debug, Args)]
pub(super) struct ColumnsArgs {
    /// The tables, of either family or of both
    #[arg(value_name = "FILE", required = true)]
    tables: Vec<String>,

    /// Keep the figures in records/values
    #[arg(long)]
    record: bool,

    /// The engine for IPv4
    #[arg(long, value_name = "ENGINE", default_value = "dir-18-lines", value_parser = engine(), hide_possible_values = true)]
    engine: String,

    /// The engine for IPv6
    #[arg(long, value_name = "ENGINE", default_value = "dir-btree", value_parser = engine(), hide_possible_values = true)]
    engine_v6: String,

    /// Number of addresses
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    keys: usize,

    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
}

const BATCH: usize = 256;

const HEADER: [&str; 4] =
    ["", "million a second", "over the way it is compared with", "in a quarter to three quarters of rounds"];

pub(super) fn run(args: &ColumnsArgs) -> Outcome {
    let mut figures = FigureTables::new("columns", &args.tables);
    for file in &args.tables {
        let ribs = Loader::new(LoadOptions::default()).load(file.as_str())?.ribs;
        let name = file.rsplit('/').next().unwrap_or(file);
        measure::<u32>(&mut figures, name, ribs.v4.iter().collect(), &args.engine, args)?;
        measure::<u128>(&mut figures, name, ribs.v6.iter().collect(), &args.engine_v6, args)?;
    }
    figures.keep(args.record)
}

/// A family of addresses, for what differs between the two.
trait ColumnKey: Key {
    fn view(fib: &dyn Fib<Self>) -> TableView<'_>;
    fn column(keys: &[Self]) -> Column<'_>;
    fn of(address: IpAddr) -> Option<Self>;
    fn text(self) -> String;
}

impl ColumnKey for u32 {
    fn view(fib: &dyn Fib<Self>) -> TableView<'_> {
        TableView::new(Some(fib), None)
    }

    fn column(keys: &[Self]) -> Column<'_> {
        Column::ipv4(keys)
    }

    fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => Some(address.to_bits()),
            IpAddr::V6(_) => None,
        }
    }

    fn text(self) -> String {
        std::net::Ipv4Addr::from_bits(self).to_string()
    }
}

impl ColumnKey for u128 {
    fn view(fib: &dyn Fib<Self>) -> TableView<'_> {
        TableView::new(None, Some(fib))
    }

    fn column(keys: &[Self]) -> Column<'_> {
        Column::ipv6(keys)
    }

    fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address.to_bits()),
        }
    }

    fn text(self) -> String {
        std::net::Ipv6Addr::from_bits(self).to_string()
    }
}

/// The same addresses in all the forms that are compared.
struct Forms<K> {
    keys: Vec<K>,
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    views: Vec<[u8; 16]>,
}

impl<K: ColumnKey> Forms<K> {
    fn new(keys: Vec<K>) -> Self {
        let (mut offsets, mut bytes, mut views) = (vec![0], Vec::new(), Vec::new());
        for key in &keys {
            let (text, start) = (key.text(), bytes.len() as i32);
            bytes.extend_from_slice(text.as_bytes());
            offsets.push(bytes.len() as i32);
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(text.len() as i32).to_ne_bytes());
            if let Some(inline) = view[4..].get_mut(..text.len()) {
                inline.copy_from_slice(text.as_bytes());
            } else {
                view[4..8].copy_from_slice(&text.as_bytes()[..4]);
                view[12..].copy_from_slice(&start.to_ne_bytes());
            }
            views.push(view);
        }
        Self { keys, offsets, bytes, views }
    }

    /// Looks texts up one by one, but for the batches of their keys.
    fn one_by_one(&self, fib: &dyn Fib<K>, results: &mut [Option<NextHop>]) {
        let mut block = [K::ZERO; BATCH];
        let mut rows = self.offsets.windows(2);
        for results in results.chunks_mut(BATCH) {
            for (key, row) in block.iter_mut().zip(rows.by_ref().take(results.len())) {
                let text = &self.bytes[row[0] as usize..row[1] as usize];
                *key = parse_address(text).ok().and_then(K::of).unwrap_or(K::ZERO);
            }
            fib.lookup_batch(&block[..results.len()], results);
        }
    }
}

/// The ways, in the order of the rows, and the way that each is compared with.
const WAYS: [(&str, usize); 6] = [
    ("texts, one by one", 0),
    ("column of text", 0),
    ("column of views of text", 0),
    ("one batch of keys", 3),
    ("column of keys", 3),
    ("column of addresses in network order", 3),
];

fn measure<K: ColumnKey>(
    figures: &mut FigureTables,
    table: &str,
    routes: Vec<Route<K>>,
    engine: &str,
    args: &ColumnsArgs,
) -> Outcome {
    if routes.is_empty() {
        return Ok(());
    }
    let routes = RouteSlice::new(&routes)?;
    let keys = traffic::find::<K>("match").map(|pattern| (pattern.generate)(&routes, args.keys, 1));
    let forms = Forms::new(keys.ok_or("there is no MATCH")??);
    let fib = registry::find::<K>(engine)?.build(&routes, Limits::default())?;
    let network: Vec<u8> = forms.keys.iter().flat_map(|key| key.to_network().as_ref().to_vec()).collect();
    let layout = if K::BITS == 32 {
        fibula_column::AddressLayout::NetworkIpv4
    } else {
        fibula_column::AddressLayout::NetworkIpv6
    };
    let columns = [
        Column::text(ByteRows::offsets32(&forms.offsets, &forms.bytes)),
        Column::text(ByteRows::views(&forms.views, vec![&forms.bytes])),
        K::column(&forms.keys),
        Column::packed(&network, layout),
    ];
    let view = K::view(&*fib);
    let mut results = vec![None; forms.keys.len()];
    let mut ids = vec![0; forms.keys.len()];
    let mut time = |way: usize| -> Outcome<f64> {
        let start = cpu_ns();
        match way {
            0 => forms.one_by_one(&*fib, black_box(&mut results)),
            3 => fib.batch(Keys::Host(black_box(&forms.keys))).run(&mut results),
            way => {
                let column = black_box(&columns[[0, 0, 1, 0, 2, 3][way]]);
                view.lookup(column, &mut ids, &LookupOptions::default()).map(drop)?;
            }
        }
        let time = cpu_ns() - start;
        let is_right = match way {
            0 | 3 => forms.keys.iter().zip(&results).all(|(&key, &result)| fib.lookup_key(key) == result),
            _ => ids.iter().zip(&results).all(|(&id, &result)| NextHop::new(id) == result),
        };
        if is_right { Ok(time) } else { Err(format!("a wrong answer: {}", WAYS[way].0).into()) }
    };
    for way in 0..WAYS.len() {
        time(way)?;
    }
    let mut rounds = Vec::new();
    for _ in 0..args.rounds.max(1) {
        let mut round = [0.0; WAYS.len()];
        for (way, of_way) in round.iter_mut().enumerate() {
            *of_way = time(way)?;
        }
        rounds.push(round);
    }
    let title = format!(
        "{table}, {}: {} routes in {engine}, {} addresses",
        K::FAMILY,
        fibula::net::Routes::len(&routes),
        forms.keys.len()
    );
    figures.table(title, &HEADER);
    for (way, &(name, base)) in WAYS.iter().enumerate() {
        let rate =
            quarters(rounds.iter().map(|round| 1e3 * forms.keys.len() as f64 / round[way]).collect())[1];
        let [low, ratio, high] = quarters(rounds.iter().map(|round| round[base] / round[way]).collect());
        figures.row(vec![
            name.to_owned(),
            format!("{rate:.1}"),
            format!("{ratio:.2}"),
            format!("{low:.2} to {high:.2}"),
        ]);
    }
    Ok(())
}

/// Returns the first quartile, the median and the third quartile.
fn quarters(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values.len() / 4, values.len() / 2, values.len() * 3 / 4].map(|at| values[at.min(values.len() - 1)])
}
