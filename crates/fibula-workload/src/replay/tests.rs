use super::*;

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

fn steps(count: u32) -> Vec<Step> {
    (0..count)
        .map(|at| {
            let prefix: IpPrefix = if at % 3 == 0 {
                Prefix::<u128>::masked(0x2001 << 112 | u128::from(at % 40) << 80, 48).unwrap().into()
            } else {
                Prefix::<u32>::masked(10 << 24 | (at % 50) << 8, 24).unwrap().into()
            };
            let next_hop = (at % 5 != 0).then(|| hop(1 + at % 9));
            Step { micros: u64::from(at) * 10, prefix, next_hop }
        })
        .collect()
}

#[test]
fn changes_are_counted_verified_and_taken_back() {
    for (rate, loops) in
        [(Rate::Max, 1), (Rate::Max, 2), (Rate::PerSecond(1e6), 1), (Rate::Recorded(10.0), 1)]
    {
        let table = Table::new().unwrap();
        let _ = table.insert("10.0.3.0/24".parse::<IpPrefix>().unwrap(), hop(77)).unwrap();
        let plan =
            Plan { rate, loops, batch: 7, verify: 1, idle: Duration::from_millis(1), ..Plan::default() };
        let mut heard = (0, 0);
        let report = replay(&table, &steps(500), &plan, |done, all| heard = (done, all)).unwrap();
        assert!(report.totals.changed > 0 && report.totals.unchanged + report.totals.absent > 0);
        assert!(report.verified > 500 && report.wrong == 0, "{report:?}");
        assert!(heard.0 == report.calls && heard.1 > 0, "{heard:?}");
        assert_eq!((report.idle_mlps.len(), report.busy_mlps.len()), (1, 1));
        if loops > 1 {
            assert_eq!(
                (table.len().unwrap(), table.get("10.0.3.0/24".parse::<IpPrefix>().unwrap())),
                (1, Ok(Some(hop(77))))
            );
        } else {
            let counted: usize = report.totals.changed + report.totals.unchanged + report.totals.absent;
            assert_eq!(counted, 500);
        }
        table.check().unwrap();
    }
}

#[test]
fn nothing_to_do_is_said() {
    let table = Table::new().unwrap();
    let plan = Plan { batch: 0, ..Plan::default() };
    assert!(replay(&table, &steps(1), &plan, |_, _| {}).is_err());
    let plan = Plan { readers: 0, ..Plan::default() };
    let report = replay(&table, &[], &plan, |_, _| {}).unwrap();
    assert_eq!((report.totals.changed, report.loss()), (0, None));
}
