//! Shows the rules for packets and their hits.

use std::io::{self, Write};

use fibula_router::api::{Filters, RuleTable};

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
    if none { writeln!(out, "no rules: all packets pass") } else { Ok(()) }
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

    fn printed(line: &str) -> String {
        let mut out = Vec::new();
        print(&mut out, &api::read(line).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rules_have_a_line_each() {
        let line = concat!(
            r#"{"forward":{"rules":[{"number":1,"line":12,"rule":"deny any","packets":1200,"bytes":72000}],"#,
            r#""default":"permit","default_packets":3,"default_bytes":180},"local":null,"#,
            r#""lists":[{"name":"own","file":"own.txt","prefixes":2000,"error":"line 3: own.txt: no"}]}"#
        );
        assert_eq!(
            printed(line),
            "filter.forward: packets that are forwarded\n\
             \x20number  line        packets             bytes  rule\n\
             \x20     1    12          1,200            72,000  deny any\n\
             default                    3               180  permit the rest\n\
             prefix list own: 2,000 prefixes from own.txt\n\
             \x20 the present file is not in use: line 3: own.txt: no\n"
        );
        assert_eq!(printed(r#"{"forward":null,"local":null,"lists":[]}"#), "no rules: all packets pass\n");
    }
}
