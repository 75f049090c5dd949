use fibula::live::TableKey;
use fibula::memory::Limits;
use fibula::net::{Change, IpPrefix, NextHop, Prefix, Route};
use fibula::rib::Rib;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::*;
use crate::bench::{Document, FamilyInfo};

fn plan() -> UpdatePlan {
    UpdatePlan {
        runs: 2,
        seconds: 0.0,
        prefixes: 20,
        batch: 4,
        batches: vec![1, 8],
        stretches: 2,
        build_routes: 50,
        seed: 1,
    }
}

/// A table, and a trace that adds, replaces, withdraws what is there and what is not.
fn table<K: TableKey>() -> (Rib<K>, Vec<Change<K>>) {
    let spec = if K::BITS == 32 { TableSpec::ipv4() } else { TableSpec::ipv6() };
    let routes = generate::<K>(&TableSpec { routes: 300, ..spec }, &Profile::of::<K>()).unwrap();
    let mut rib = Rib::default();
    for &route in &routes {
        rib.insert(route).unwrap();
    }
    let hop = NextHop::new(77).unwrap();
    let new = Prefix::new(K::from_bits(9 << (K::BITS - 8)), K::BITS).unwrap();
    let mut trace: Vec<Change<K>> =
        routes[..9].iter().map(|route| Change::Insert(Route::new(route.prefix, hop))).collect();
    trace.extend([Change::Insert(Route::new(new, hop)), Change::Insert(Route::new(new, hop))]);
    trace.extend([Change::Remove(routes[20].prefix), Change::Remove(routes[20].prefix)]);
    trace.extend([Change::Insert(Route::new(routes[1].prefix, routes[1].next_hop))]);
    (rib, trace)
}

fn rows<K: TableKey>() -> Vec<UpdateRow>
where
    IpPrefix: From<Prefix<K>>,
{
    let (rib, trace) = table::<K>();
    let mut contestants = Contestant::all(Limits::default());
    contestants.retain(takes_part);
    let mut steps = 0;
    let rows = run(&plan(), &rib, &trace, &contestants, &mut |step| {
        assert!(step.done < step.total);
        steps += 1;
    });
    assert!(steps > contestants.len());
    rows.unwrap()
}

fn everything_is_measured_and_right<K: TableKey>(in_place: &str, rebuilt: &str)
where
    IpPrefix: From<Prefix<K>>,
{
    let rows = rows::<K>();
    assert!(rows.iter().all(|row| row.wrong == 0), "{rows:?}");
    let of = |name: &str, part| -> Vec<&UpdateRow> {
        rows.iter().filter(|row| row.engine == name && row.part == part).collect()
    };
    for part in [RowSubject::Length, RowSubject::Batch, RowSubject::Trace, RowSubject::Build] {
        for row in of(in_place, part) {
            assert!(row.median.unwrap() > 0.0 && row.error.is_none() && row.rebuilt == 0, "{row:?}");
            assert!(row.checked > 0 || part == RowSubject::Build, "{row:?}");
        }
    }
    assert!(of(in_place, RowSubject::Length).len() > 3);
    assert_eq!(of(in_place, RowSubject::Batch).iter().map(|row| row.at).collect::<Vec<_>>(), [1, 8]);
    // Without the three that change nothing.
    assert_eq!(of(in_place, RowSubject::Trace).iter().map(|row| row.at).collect::<Vec<_>>(), [6, 12]);
    assert!(of(rebuilt, RowSubject::Length).is_empty());
    assert!(of(rebuilt, RowSubject::Batch).iter().all(|row| row.rebuilt > 0 && row.update == "rebuild"));
    // A reader is measured, or it is said why not.
    assert!(
        of(in_place, RowSubject::ReadersBeside).iter().all(|row| row.median.is_some() || row.error.is_some())
    );
}

#[test]
fn every_figure_is_measured() {
    everything_is_measured_and_right::<u32>("dir-17-bitmap", "planb");
    everything_is_measured_and_right::<u128>("dir-btree", "planb");
}

#[test]
fn a_record_is_read_again_and_written_about() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = vec![FamilyInfo { family: "ipv4".into(), routes: 300, next_hops: 9 }];
    let mut record = UpdateRecord::with_sizes("2026-01-31", "a table", sizes, plan(), rows::<u32>());
    record.recorded = Some("a-trace".to_owned());
    let path = record.write(folder.path()).unwrap();
    let mut read = UpdateRecord::read(&path).unwrap();
    assert_eq!(read.rows.len(), record.rows.len());

    let mut document = Document { text: String::new(), charts: Vec::new() };
    section(&mut document, &[read.clone()], "charts");
    assert_eq!(document.charts.len(), 3);
    for words in ["## Updates", "| dir-17-bitmap |", "planb (rebuild)", "`a-trace`", "0 were wrong"] {
        assert!(document.text.contains(words), "{words}: {}", document.text);
    }
    assert!(document.charts.iter().all(|(name, svg)| name.ends_with(".svg") && svg.contains("</svg>")));
    // As a record is that was made before an engine could change in place.
    for row in read.rows.iter_mut().filter(|row| row.engine == "dir-17-bitmap") {
        row.update = "rebuild".to_owned();
    }
    let mut old = Document { text: String::new(), charts: Vec::new() };
    section(&mut old, &[read], "charts");
    assert!(old.text.contains("| dir-17-bitmap (rebuild then, in place today) |"), "{}", old.text);
    assert!(old.text.contains("| planb (rebuild) |"));
    let mut nothing = Document { text: String::new(), charts: Vec::new() };
    section(&mut nothing, &[], "charts");
    assert!(nothing.text.is_empty() && nothing.charts.is_empty());
}

#[test]
fn a_plan_without_runs_is_refused() {
    let (rib, _) = table::<u32>();
    let refused = run(&UpdatePlan { runs: 0, ..plan() }, &rib, &[], &[], &mut |_| ());
    assert!(refused.is_err());
}
