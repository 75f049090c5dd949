//! Shows the rules for packets and their hits, and the policers.

use std::io::{self, Write};

use fibula_router::api::{Filters, ListedPolicer, RuleTable};

use crate::text::thousands;

pub(super) fn print(out: &mut impl Write, answer: &Filters) -> io::Result<()> {
    let mut none = true;
    for (name, packets, table) in [
        ("forward", "packets that are forwarded", &answer.forward),
        ("local", "packets to the router", &answer.local),
    ] {
        let Some(table) = table else { continue };
        none = false;
        writeln!(out, "filter.{name}: {packets}")?;
        rules(out, table)?;
    }
    for list in &answer.lists {
        let file = list.file.as_ref().map_or_else(String::new, |file| format!(" from {file}"));
        writeln!(out, "prefix list {}: {} prefixes{file}", list.name, thousands(list.prefixes))?;
        if let Some(error) = &list.error {
            writeln!(out, "  the present file is not in use: {error}")?;
        }
    }
    if none {
        writeln!(out, "no rules: all packets pass")?;
    }
    policers(out, &answer.policers)
}

fn policers(out: &mut impl Write, policers: &[ListedPolicer]) -> io::Result<()> {
    if policers.is_empty() {
        return Ok(());
    }
    writeln!(out, "policer: packets to the machine, by class")?;
    writeln!(out, "{:>10}{:>12}{:>12}{:>15}{:>15}", "class", "a second", "at once", "passed", "dropped")?;
    for policer in policers {
        let limit = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), thousands);
        let (rate, burst) = (limit(policer.rate), limit(policer.burst));
        let (passed, dropped) = (thousands(policer.passed), thousands(policer.dropped));
        writeln!(out, "{:>10}{rate:>12}{burst:>12}{passed:>15}{dropped:>15}", policer.class)?;
    }
    Ok(())
}

fn rules(out: &mut impl Write, table: &RuleTable) -> io::Result<()> {
    writeln!(out, "{:>7}{:>6}{:>15}{:>18}  rule", "number", "line", "packets", "bytes")?;
    for rule in &table.rules {
        let (packets, bytes) = (thousands(rule.packets), thousands(rule.bytes));
        writeln!(out, "{:>7}{:>6}{packets:>15}{bytes:>18}  {}", rule.number, rule.line, rule.rule)?;
    }
    let (packets, bytes) = (thousands(table.default_packets), thousands(table.default_bytes));
    writeln!(out, "{:>7}{:>6}{packets:>15}{bytes:>18}  {} the rest", "default", "", table.default)
}

#[cfg(test)]
mod tests {
    use fibula_router::api;

    use super::*;
    use crate::router::show;

    fn printed(line: &str) -> String {
        show::tests::printed(|out| print(out, &api::read(line).unwrap()))
    }

    #[test]
    fn rules_have_a_line_each() {
        let line = concat!(
            r#"{"forward":{"rules":[{"number":1,"line":12,"rule":"deny any","packets":1200,"bytes":72000}],"#,
            r#""default":"permit","default_packets":3,"default_bytes":180},"local":null,"#,
            r#""lists":[{"name":"own","file":"own.txt","prefixes":2000,"error":"line 3: own.txt: no"}],"#,
            r#""policers":[{"class":"bgp","rate":null,"burst":null,"passed":9,"dropped":0},"#,
            r#"{"class":"icmp","rate":1000,"burst":500,"passed":1500,"dropped":2}]}"#
        );
        assert_eq!(
            printed(line),
            "filter.forward: packets that are forwarded\n\
             \x20number  line        packets             bytes  rule\n\
             \x20     1    12          1,200            72,000  deny any\n\
             default                    3               180  permit the rest\n\
             prefix list own: 2,000 prefixes from own.txt\n\
             \x20 the present file is not in use: line 3: own.txt: no\n\
             policer: packets to the machine, by class\n\
             \x20    class    a second     at once         passed        dropped\n\
             \x20      bgp   unlimited   unlimited              9              0\n\
             \x20     icmp       1,000         500          1,500              2\n"
        );
        assert_eq!(
            printed(r#"{"forward":null,"local":null,"lists":[],"policers":[]}"#),
            "no rules: all packets pass\n"
        );
    }
}
