//! Each form as people paste it, read by the loader.

use crate::{Columns, LoadOptions, LoadedRoutes, Loader, Report, Source, TableForm, Value};

/// Returns the table of a text, with these values.
fn table(text: &str, values: &str, set: impl FnOnce(&mut LoadOptions)) -> Result<LoadedRoutes, String> {
    let values: Vec<Value> =
        values.split(',').filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()).collect();
    let mut options = LoadOptions { values, ..LoadOptions::default() };
    set(&mut options);
    Loader::new(options).load(Source::reader("x", text.as_bytes())).map_err(|error| error.to_string())
}

fn routes(table: &LoadedRoutes) -> Vec<String> {
    let all = table.ribs.iter();
    all.map(|(prefix, label)| format!("{prefix} {}", table.next_hops.label(label).unwrap())).collect()
}

fn read(text: &str, values: &str) -> Vec<String> {
    routes(&table(text, values, |_| {}).unwrap())
}

fn report(text: &str) -> Report {
    table(text, "", |_| {}).unwrap().reports.remove(0)
}

fn bad(text: &str) -> Vec<String> {
    report(text).first_bad.iter().map(|bad| format!("{}: {}", bad.line(), bad.error().reason())).collect()
}

fn form(text: &str) -> &'static str {
    report(text).form.unwrap().name
}

#[test]
fn every_form_reads_its_example_and_has_hostile_inputs() {
    for form in TableForm::ALL {
        assert!(!form.hostile.is_empty(), "{form:?} has no hostile inputs");
        assert!(!form.what.is_empty() && !form.written_by.is_empty() && !form.recognised.is_empty());
        assert_eq!(TableForm::named(form.name), Some(form));
        if form.is_text() {
            assert_eq!(report(form.example).form, Some(form), "{form:?}");
            let named = table(form.example, "", |options| options.form = Some(form)).unwrap();
            assert!(routes(&named)[0].starts_with("198.51.100.0/24 "), "{form:?}");
            assert_eq!(report(form.example).bad_lines, 0, "{form:?}");
        }
    }
}

#[test]
fn the_guide_has_the_list() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/routes.md");
    let page = std::fs::read_to_string(page).unwrap();
    let remedy = "run 'cargo run -p fibula-feed --example forms'";
    assert!(page.contains(&format!("-->\n{}<!-- End", TableForm::guide())), "{remedy}");
}

#[test]
fn csv_has_named_columns() {
    let own = "prefix,next_hop,origin_as,as_path\n10.0.0.0/8,192.0.2.1,64500,\"64501 64500\"\n::/0,eth0,,\n";
    assert_eq!(read(own, ""), ["10.0.0.0/8 192.0.2.1", "::/0 eth0"]);
    assert_eq!(
        read(own, "next-hop,origin-as,as-path"),
        ["10.0.0.0/8 192.0.2.1 64500 64501 64500", "::/0 eth0 - -"]
    );
    let geo = "network,geoname_id,country\n1.0.0.0/24,2077456,\"Korea, Republic of\"\n1.0.1.0/24,,x\nx,1,2\n";
    assert_eq!(read(geo, ""), ["1.0.0.0/24 2077456", "1.0.1.0/24 -"]);
    assert_eq!(bad(geo), ["4: not an IP address: unexpected 'x'"]);
    assert_eq!(read(geo, "country")[0], "1.0.0.0/24 Korea, Republic of");
    let ranges = "start,end,value\n10.0.0.0,10.0.0.2,7\n10.0.0.9,10.0.0.1,8\n::,::7,9\n::,10.0.0.1,10\n";
    assert_eq!(read(ranges, ""), ["10.0.0.0/31 7", "10.0.0.2/32 7", "::/125 9"]);
    assert_eq!(
        bad(ranges),
        ["3: the range ends before it begins", "5: the range begins and ends in different families"]
    );
}

#[test]
fn columns_are_found_by_their_content() {
    // A host followed by its next hop is not a range.
    assert_eq!(read("1.0.0.0,1.0.0.255,AU\n1.0.1.0,1.0.1.0,CN", ""), ["1.0.0.0/24 AU", "1.0.1.0/32 CN"]);
    assert_eq!(read("::,\"::7\",\"A, B\"\n", ""), ["::/125 A, B"]);
    assert_eq!(read("1.0.0.0,1.0.0.255\n", ""), ["1.0.0.0/32 1.0.0.255"]);
    assert_eq!(read("10.0.0.0/8,office,64500\n", "3"), ["10.0.0.0/8 64500"]);
    assert_eq!(
        read("16777216,16777471,\"AS64500 A\"\n16777472,16777727,B\n", ""),
        ["1.0.0.0/24 AS64500 A", "1.0.1.0/24 B"]
    );
    assert_eq!(read("1.0.0.0\t1.0.0.255\t64500\tAU\t\"Odd\n", "")[0], "1.0.0.0/24 64500");
    assert_eq!(read("site;subnet;vlan\nlab;10.0.0.0/8;7\n", "site"), ["10.0.0.0/8 lab"]);
    assert_eq!(
        read("site|where\nlab|10.0.0.0/8\noffice|11.0.0.0/8\n", ""),
        ["10.0.0.0/8 lab", "11.0.0.0/8 office"]
    );
    assert_eq!(read("64500\t10.0.0.0/8\t31\n64501\t11.0.0.0/8\t30\n", "origin-as")[0], "10.0.0.0/8 64500");
    assert_eq!(read("network,netmask,gw\n10.0.0.0,255.0.0.0,192.0.2.1\n", ""), ["10.0.0.0/8 192.0.2.1"]);
    let registry = "2|apnic|20240101|2|19830613|20240101|+1000\napnic|*|ipv4|*|1|summary\n\
        apnic|AU|ipv4|1.0.0.0|768|20110811|assigned\napnic|JP|ipv6|2001:200::|35|19990813|allocated\n";
    assert_eq!(read(registry, ""), ["1.0.0.0/23 AU", "1.0.2.0/24 AU", "2001:200::/35 JP"]);
    let options = |prefix: &str| {
        let prefix = Some(prefix.to_owned());
        move |options: &mut LoadOptions| options.columns = Columns { prefix, ..Columns::default() }
    };
    let odd = "a,b\n10.0.0.0/8,11.0.0.0/8\n";
    assert_eq!(routes(&table(odd, "", options("b")).unwrap()), ["11.0.0.0/8 10.0.0.0/8"]);
    let refused = table(odd, "", options("c")).unwrap_err();
    assert_eq!(refused, "x: no columns 'c' with prefixes or ranges; its first line has: a, b");
}

#[test]
fn a_stray_quote_costs_its_own_line() {
    let rows = |count: usize| (0..count).map(|at| format!("10.0.{at}.0/24,a\n")).collect::<String>();
    let stray = format!("prefix,name\n10.1.0.0/24,\"x\n{}", rows(40));
    assert_eq!(read(&stray, "").len(), 40);
    assert_eq!(bad(&stray), ["2: unterminated quote"]);
    // A closing quote stands before a separator or the end of its line.
    let odd = "prefix,name\n10.1.0.0/24,\"x\"y\n10.0.0.0/24,a\n";
    assert_eq!(
        (read(odd, ""), bad(odd)),
        (vec!["10.0.0.0/24 a".into()], vec!["2: unexpected text after the closing quote".into()])
    );
    let joined = "prefix,name,n\n10.0.0.0/24,\"two\nlines\",1\n10.0.1.0/24,b,2\n";
    assert_eq!(read(joined, "name,n"), ["10.0.0.0/24 two lines 1", "10.0.1.0/24 b 2"]);
    let open = "prefix,name\n10.0.0.0/24,a\n10.0.1.0/24,\"b\n";
    assert_eq!((read(open, "").len(), bad(open)), (1, vec!["3: unterminated quote".into()]));
}

#[test]
fn of_nested_ranges_the_smaller_one_answers() {
    let (small, large) = ("10.0.0.0,10.0.0.255,small", "10.0.0.0,10.0.1.127,large");
    for lines in [[small, large], [large, small]] {
        let text = format!("start,end,name\n{}\n", lines.join("\n"));
        assert_eq!(read(&text, ""), ["10.0.0.0/24 small", "10.0.1.0/25 large"], "{text}");
    }
    let text = "10.0.0.0-10.0.2.255 outer\n10.0.0.0-10.0.1.127 inner\n10.0.1.0/25 own\n";
    assert_eq!(
        read(text, ""),
        ["10.0.0.0/23 outer", "10.0.0.0/24 inner", "10.0.1.0/25 own", "10.0.2.0/24 outer"]
    );
}

#[test]
fn json_has_lines_lists_and_what_routers_print() {
    let lines =
        "{\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"eth0\"}\n{\"prefix\":\"::/0\",\"next_hop\":null}\n";
    assert_eq!(read(lines, ""), ["10.0.0.0/8 eth0", "::/0 -"]);
    let list = "[\n  {\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"1\",\"a\":{\"b\":[{\"c\":\"d\"}]}},\n  {\"prefix\":\"11.0.0.0/8\"}\n]\n";
    assert_eq!(read(list, "a.b.0.c"), ["10.0.0.0/8 d", "11.0.0.0/8 -"]);
    let vtysh = r#"{
  "0.0.0.0/0":[
    {"prefix":"0.0.0.0/0","protocol":"kernel","nexthops":[{"ip":"192.0.2.9","interfaceName":"e9"}]},
    {"prefix":"0.0.0.0/0","protocol":"bgp","selected":true,"nexthops":[
      {"ip":"192.0.2.1","active":true,"interfaceName":"e0"}]}
  ],
  "10.0.0.0/8":[{"prefix":"10.0.0.0/8","protocol":"connected","selected":true,
    "nexthops":[{"directlyConnected":true,"interfaceName":"e1"}]}]
}"#;
    assert_eq!(read(vtysh, ""), ["0.0.0.0/0 192.0.2.1", "10.0.0.0/8 e1"]);
    assert_eq!(read(vtysh, "protocol"), ["0.0.0.0/0 bgp", "10.0.0.0/8 connected"]);
    let linux = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"e0"},{"dst":"10.0.0.0/8","dev":"e1"}]"#;
    assert_eq!(read(linux, ""), ["0.0.0.0/0 192.0.2.1", "10.0.0.0/8 e1"]);
    let cloud = "{\n \"syncToken\":\"1\",\n \"prefixes\":[{\"ip_prefix\":\"3.0.0.0/15\",\"region\":\"x\",\"service\":\"EC2\"}]\n}";
    assert_eq!(read(cloud, "service"), ["3.0.0.0/15 EC2"]);
    let map = r#"{"10.0.0.0/8":"office","11.0.0.0/8":{"site":"lab","n":7}}"#;
    assert_eq!(read(map, ""), ["10.0.0.0/8 office", "11.0.0.0/8 lab"]);
    let lists = r#"{"hooks":["10.0.0.0/8","2001:db8::/32"],"verifiable":true,"web":["11.0.0.0/8"],"domains":["a.example"]}"#;
    assert_eq!(read(lists, ""), ["10.0.0.0/8 hooks", "11.0.0.0/8 web", "2001:db8::/32 hooks"]);
    assert_eq!(read(r#"["10.0.0.0/8","11.0.0.1"]"#, ""), ["10.0.0.0/8 -", "11.0.0.1/32 -"]);
}

#[test]
fn json_of_any_length_is_read_as_short_json() {
    let entry = |at: usize| {
        format!(
            "{{\"dst\":\"10.{}.{}.0/24\",\"gateway\":\"192.0.2.{}\",\"flags\":[]}}",
            at >> 8,
            at & 255,
            at % 250
        )
    };
    let entries: Vec<String> = (0..9_000).map(entry).collect();
    let all = |text: String| read(&text, "gateway").len();
    assert_eq!(all(format!("[{}]", entries.join(","))), 9_000);
    assert_eq!(all(entries.join("\n")), 9_000);
    assert_eq!(all(entries.concat()), 9_000);
    // Names around a list are there, however long the list is.
    let long = format!("{{\"a\":{{\"region\":\"x\",\"list\":[{}]}}}}", entries.join(","));
    assert_eq!(read(&long, "region")[8_999], "10.35.39.0/24 x");
    let strings: Vec<String> =
        (0..20_000).map(|at| format!("\"10.{}.{}.0/24\"", at >> 8, at & 255)).collect();
    let strings = format!(
        "{{\"values\":[{{\"name\":\"n\",\"properties\":{{\"addressPrefixes\":[{}]}}}}]}}",
        strings.join(",")
    );
    assert_eq!((read(&strings, "").len(), &*read(&strings, "name")[3]), (20_000, "10.0.3.0/24 n"));
    let routes: Vec<String> = (0..5_000)
        .map(|at| format!("\"10.{}.{}.0/24\":[{{\"protocol\":\"bgp\",\"selected\":true,\"nexthops\":[{{\"ip\":\"192.0.2.1\",\"fib\":true}}]}}]", at >> 8, at & 255))
        .collect();
    let vrfs = format!("{{\"default\":{{{}}},\"red\":{{{}}}}}", routes.join(","), routes[..7].join(","));
    let report = report(&vrfs);
    assert_eq!((report.routes_v4, report.other_vrfs.get("red"), report.bad_lines), (5_000, Some(&7), 0));
    let red = table(&vrfs, "", |options| options.vrf = Some("red".into())).unwrap();
    assert_eq!(routes_of(&red), 7);
    let refused = table(&vrfs, "", |options| options.vrf = Some("blue".into())).unwrap_err();
    assert_eq!(refused, "x: no route is in the VRF 'blue'; choose one with --vrf: default, red");
}

fn routes_of(table: &LoadedRoutes) -> usize {
    table.ribs.v4.len()
}

#[test]
fn what_is_not_json_costs_its_own_entry() {
    let good = "{\"prefix\":\"10.0.0.0/8\",\"v\":\"a\"}";
    for (text, expected) in [
        (format!("{good}\n{{\"prefix\":\"11.0.0.0/8\",}}\n{{\"a\":1}}\n{good}"), 2),
        (format!("[{{\"broadcast\",\"dst\":\"127.0.0.0\",\"dev\":\"lo\"}},{good}]"), 1),
        (format!("[{good},{{\"prefix\":\"2001:db8:23::/44\"}},{{\"prefix\":\"12.0.0.0/8\"}}]"), 1),
        (format!("{{\"prefixes\":[{good},nonsense,{good}],\"more\":1}}"), 1),
        (format!("{good}\nerror: timed out\n{good}"), 1),
        (format!("[{good},{{\"prefix\":\"11.0.0.0/8\",\"a\":{{\"b\":[1,}}}},{good}]"), 1),
        (format!("[{good},{{\"flags\":[]}}]"), 1),
        (format!("[{good},{{\"prefix\":\"11.0.0.0/8\""), 1),
    ] {
        let report = report(&text);
        assert_eq!((report.bad_lines, report.ribs_v4()), (expected, true), "{text}: {:?}", report.first_bad);
    }
}

trait HasRoutes {
    fn ribs_v4(&self) -> bool;
}

impl HasRoutes for Report {
    fn ribs_v4(&self) -> bool {
        self.routes_v4 > 0
    }
}

#[test]
fn linux_prints_routes() {
    let text = "default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100 \n\
        10.0.0.0/8 proto bgp metric 20 \n\tnexthop via 192.0.2.2 dev eth1 weight 1 \n\tnexthop via 192.0.2.3 dev eth2 weight 1 \n\
        192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.7 \n\
        unreachable 10.9.0.0/16 metric 4278198272\n\
        192.0.2.255 dev eth0\n\
        2001:db8::/32 dev eth0 proto kernel metric 256 pref medium\n\
        default via fe80::1 dev eth0 proto ra\n";
    assert_eq!(
        read(text, ""),
        [
            "0.0.0.0/0 192.0.2.1",
            "10.0.0.0/8 192.0.2.2",
            "10.9.0.0/16 unreachable",
            "192.0.2.0/24 eth0",
            "192.0.2.255/32 eth0",
            "::/0 fe80::1",
            "2001:db8::/32 eth0",
        ]
    );
    assert_eq!(read(text, "dev,proto")[0], "0.0.0.0/0 eth0 dhcp");
    // The lowest metric, and of equals the first.
    let metrics = "10.0.0.0/8 via 192.0.2.1 dev a metric 9\n10.0.0.0/8 via 192.0.2.2 dev a metric 5\n10.0.0.0/8 via 192.0.2.3 dev a metric 5\n";
    assert_eq!(read(metrics, ""), ["10.0.0.0/8 192.0.2.2"]);
    let tables = "10.0.0.0/8 via 192.0.2.1 dev a \n10.0.0.0/8 via 192.0.2.2 dev a table 7 \nlocal 192.0.2.9 dev lo table local \n";
    assert_eq!(read(tables, ""), ["10.0.0.0/8 192.0.2.1"]);
    let seven = table(tables, "", |options| options.vrf = Some("7".into())).unwrap();
    assert_eq!(routes(&seven), ["10.0.0.0/8 192.0.2.2"]);
    let v6 = "default dev wg0 metric 1024 pref medium\n2001:db8::/64 dev lan proto kernel metric 256 pref medium\ndefault from 2001:db8:9::/48 via fe80::2 dev w metric 1\n";
    assert_eq!(read(v6, ""), ["::/0 wg0", "2001:db8::/64 lan"]);
}

#[test]
fn bird_prints_routes() {
    let two = "BIRD 2.0.12 ready.\nTable master4:\n\
        10.0.0.0/8           unicast [b1 2024-01-01] * (100) [AS64500i]\n\tvia 192.0.2.1 on eth0\n\
        \x20                    unicast [b2 2024-01-01] (100) [AS64501i]\n\tvia 192.0.2.2 on eth1\n\
        10.1.0.0/16          unreachable [static1 2024-01-01] * (200)\n\
        192.0.2.0/24         unicast [direct1 2024-01-01] * (240)\n\tdev eth0\n\n\
        Table master6:\n::/0                 unicast [b6 12:00:00] * (100) [AS64502?]\n\tvia fe80::1 on eth0\n\
        Table t_cust:\n10.0.0.0/8           unicast [c1 2024-01-01] * (100)\n\tvia 192.0.2.99 on eth9\n";
    assert_eq!(
        read(two, ""),
        ["10.0.0.0/8 192.0.2.1", "10.1.0.0/16 unreachable", "192.0.2.0/24 eth0", "::/0 fe80::1"]
    );
    assert_eq!(read(two, "origin-as,protocol,dev")[0], "10.0.0.0/8 64500 b1 eth0");
    let customer = table(two, "", |options| options.vrf = Some("t_cust".into())).unwrap();
    assert_eq!(routes(&customer), ["10.0.0.0/8 192.0.2.99"]);
    let one = "BIRD 1.6.8 ready.\r\n10.0.0.0/8         via 192.0.2.1 on eth0 [b1 2024-01-01] * (100) [AS64500i]\r\n\
        \x20                  via 192.0.2.2 on eth0 [b2 2024-01-01] (100) [AS64500i]\r\n\
        192.0.2.0/24       dev eth0 [direct1 2024-01-01] * (240)\r\n";
    assert_eq!(read(one, ""), ["10.0.0.0/8 192.0.2.1", "192.0.2.0/24 eth0"]);
    let all = "10.0.0.0/8  unicast [b1 12:00 from 192.0.2.9] * (100) [AS64501i]\n\tvia 192.0.2.1 on e\n\tType: BGP univ\n\
        \tBGP.as_path: 64500 64501\n\tBGP.community: (64500,1) (64500,2)\n\tBGP.large_community: (64500, 1, 2)\n\tBGP.local_pref: 70\n";
    assert_eq!(
        read(all, "as-path,communities,BGP.local_pref"),
        ["10.0.0.0/8 64500 64501 64500:1 64500:2 64500:1:2 70"]
    );
}

#[test]
fn vtysh_prints_routes() {
    let text = "router# show ip route\nCodes: K - kernel route, C - connected, S - static,\n       > - selected route, * - FIB route\n\n\
        S   10.0.0.0/8 [200/0] via 192.0.2.8, eth0, weight 1, 00:01\n\
        B>  10.0.0.0/8 [20/0] via 203.0.113.9 (recursive), weight 1, 00:10:00\n\
        \x20 *                   via 192.0.2.1, eth0, weight 1, 00:10:00\n\
        S>* 10.9.0.0/16 [1/0] unreachable (blackhole), weight 1, 00:00:10\n\
        O   10.8.0.0/16 [110/10] is directly connected, eth1, 00:01:00\n\
        C>* 192.0.2.0/24 is directly connected, eth0, 00:13:31\n\n\
        VRF red:\nC>* 198.51.100.0/24 is directly connected, red0, 00:13:31\n";
    assert_eq!(read(text, ""), ["10.0.0.0/8 192.0.2.1", "10.9.0.0/16 blackhole", "192.0.2.0/24 eth0"]);
    assert_eq!(read(text, "protocol,dev")[0], "10.0.0.0/8 bgp eth0");
    let red = table(text, "", |options| options.vrf = Some("red".into())).unwrap();
    assert_eq!(routes(&red), ["198.51.100.0/24 red0"]);
}

#[test]
fn bgp_tables_have_the_best_path_of_a_prefix() {
    let text = "BGP table version is 5, local router ID is 192.0.2.9\nStatus codes: s suppressed, * valid, > best\n\n\
        \x20    Network          Next Hop            Metric LocPrf Weight Path\n\
        \x20*   10.0.0.0         192.0.2.1                0             0 64500 64501 i\n\
        \x20*>                   192.0.2.2                     100      0 64502 {64503,64504} ?\n\
        \x20*>i198.51.100.0/24   192.0.2.3                0    100      0 i\n\
        \x20*>  2001:db8:1234:5678::/64\n\
        \x20                     2001:db8::1              0             0 64505 i\n\n\
        Displayed  3 routes and 4 total paths\n";
    assert_eq!(
        read(text, "next-hop,as-path,origin-as"),
        [
            "10.0.0.0/8 192.0.2.2 64502 {64503,64504} 64503,64504",
            "198.51.100.0/24 192.0.2.3 - -",
            "2001:db8:1234:5678::/64 2001:db8::1 64505 64505",
        ]
    );
    assert_eq!(report(text).bad_lines, 0);
}

#[test]
fn netstat_prints_routes() {
    let v4 = "Kernel IP routing table\nDestination     Gateway         Genmask         Flags   MSS Window  irtt Iface\n\
        0.0.0.0         192.0.2.1       0.0.0.0         UG        0 0          0 eth0\n\
        192.0.2.0       0.0.0.0         255.255.255.0   U         0 0          0 eth0\n\
        10.9.0.0        -               255.255.0.0     !H        0 0          0 -\n";
    assert_eq!(read(v4, ""), ["0.0.0.0/0 192.0.2.1", "10.9.0.0/16 unreachable", "192.0.2.0/24 eth0"]);
    let v6 = "Kernel IPv6 routing table\nDestination                    Next Hop                   Flag Met Ref Use If\n\
        2001:db8::/64                  [::]                       U    256 1     0 eth0\n\
        [::]/0                         fe80::1                    UG   1024 5     0 eth0\n\
        [::]/0                         fe80::2                    UG   512 5     0 eth1\n";
    assert_eq!(read(v6, ""), ["::/0 fe80::2", "2001:db8::/64 eth0"]);
}

#[test]
fn lists_have_no_values() {
    assert_eq!(
        read("; DROP\n192.0.2.0/24 ; SBL1\n10.0.0.1\n10.0.1.0-10.0.1.255\n10.2.0.0 255.255.0.0\n", ""),
        ["10.0.0.1/32 -", "10.0.1.0/24 -", "10.2.0.0/16 -", "192.0.2.0/24 -"]
    );
    // Among routes a line without a next hop is a bad one.
    assert_eq!(bad("10.0.0.0/8 1\n11.0.0.0/8 2\n12.0.0.0/8\n"), ["3: no next hop after the prefix"]);
}

#[test]
fn the_first_lines_settle_the_form() {
    for (text, expected) in [
        ("10.0.0.0/8 1\n", "lines"),
        ("10.0.0.0\t8\t64500_64501,64502\n", "lines"),
        ("10.0.0.0/8 1,2\n", "lines"),
        ("# a,b\n10.0.0.0/8 a\n", "lines"),
        ("10.0.0.0 255.0.0.0 192.0.2.1\n", "lines"),
        ("192.0.2.0/24\tUnited States\n198.51.100.0/24\tFrance\n", "csv"),
        ("My networks, exported\n\nnetwork,name\n10.0.0.0/8,a\n", "csv"),
        (
            "root@r:~# vtysh -c 'show ip route json'\n{\"10.0.0.0/8\":[{\"protocol\":\"static\",\"nexthops\":[{\"ip\":\"192.0.2.1\"}]}]}\n",
            "json",
        ),
        (
            "TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|7 8|IGP|192.0.2.9|0|0||NAG||\nTABLE_DUMP2|1|B|192.0.2.1|7|11.0.0.0/8|7 x\nTABLE_DUMP2|1|B|192.0.2.1|7|12.0.0.0/8|7 8|IGP|192.0.2.9|0|0||NAG||\n",
            "lines",
        ),
        ("$ ip route\ndefault via 192.0.2.1 dev eth0\n", "ip-route"),
    ] {
        assert_eq!(form(text), expected, "{text}");
    }
    assert_eq!(table("", "", |_| {}).unwrap().ribs.len(), 0);
    let bsd = "Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\ndefault            192.0.2.1          UGS         em0\n";
    let refused = table(bsd, "", |_| {}).unwrap_err();
    assert!(
        refused.starts_with("x: the output of 'netstat -r' of BSD or macOS is not read; read instead: "),
        "{refused}"
    );
    let refused = table("hello, world\n", "", |_| {}).unwrap_err();
    assert!(
        refused.len() < 300 && refused.contains("vtysh") && refused.contains("docs/guide/routes.md"),
        "{refused}"
    );
}

#[test]
fn columns_under_a_header_are_read_where_each_word_has_one() {
    let text = "host# cilium ip list\nIP                 IDENTITY   SOURCE\n0.0.0.0/0          2\n10.29.2.92/32      51185      k8s\n";
    assert_eq!(form(text), "columns");
    assert_eq!(read(text, ""), ["0.0.0.0/0 2", "10.29.2.92/32 51185"]);
    assert_eq!(read(text, "IDENTITY,SOURCE"), ["0.0.0.0/0 2 -", "10.29.2.92/32 51185 k8s"]);
    let text = "Routing Tables: Public\n\nDestination/Mask    Proto  Pre  Cost   NextHop         Interface\n\
                10.1.0.0/16         Static 60   0      192.0.2.1       Vlan12\n\
                10.2.0.0/16         OSPF   10   123456 192.0.2.2       Vlan13\n";
    assert_eq!(read(text, ""), ["10.1.0.0/16 192.0.2.1", "10.2.0.0/16 192.0.2.2"]);
    // A prefix that is wider than its column moves the words after it: they could be of either column.
    let text = "CIDR           IDENTITY  SOURCE\n10.0.0.0/8     1         a\n10.1.0.0/16    1         a\n10.2.0.0/16    1         a\n\
                2001:db8:1:2:3::/80 2  b\n-------\nTotal: 2\n";
    assert_eq!(read(text, "").len(), 3);
    assert_eq!(
        bad(text),
        ["5: a word overlaps two columns, or comes before the first", "7: not an IP address: unexpected 'T'"],
    );
}

#[test]
fn json_without_prefixes_is_refused_as_such() {
    let error = table("{\"src_ip\":\"192.0.2.1\"}\n{\"src_ip\":\"192.0.2.2\"}\n", "", |_| {}).unwrap_err();
    assert!(error.contains("no field holds a prefix"), "{error}");
}
