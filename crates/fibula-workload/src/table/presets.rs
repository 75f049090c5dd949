//! Named sizes of tables, for command lines and benchmark records.

use fibula::net::Family;

use super::TableSpec;

/// A named size of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// The family.
    pub family: Family,
    /// Number of routes.
    pub routes: usize,
}

impl Preset {
    const fn ipv4(name: &'static str, routes: usize) -> Self {
        Self { name, family: Family::Ipv4, routes }
    }

    const fn ipv6(name: &'static str, routes: usize) -> Self {
        Self { name, family: Family::Ipv6, routes }
    }

    /// Returns the spec of this size, with the default next hops and seed of the family.
    #[must_use]
    pub const fn spec(&self) -> TableSpec {
        let family = if matches!(self.family, Family::Ipv6) { TableSpec::ipv6() } else { TableSpec::ipv4() };
        TableSpec { routes: self.routes, ..family }
    }
}

/// Finds the preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<Preset> {
    PRESETS.iter().find(|preset| preset.name == name).copied()
}

/// All presets.
///
/// IPv4 presets with a year have about the size of the default-free table at the beginning of that year, to a few
/// percent. IPv6 presets with a year have the sizes of the PlanB paper's tables (section 4). The other sizes are
/// synthetic, as in that paper.
pub const PRESETS: &[Preset] = &[
    Preset::ipv4("ipv4", TableSpec::ipv4().routes),
    Preset::ipv6("ipv6", TableSpec::ipv6().routes),
    Preset::ipv4("ipv4-2008", 245_000),
    Preset::ipv4("ipv4-2009", 285_000),
    Preset::ipv4("ipv4-2010", 315_000),
    Preset::ipv4("ipv4-2011", 345_000),
    Preset::ipv4("ipv4-2012", 390_000),
    Preset::ipv4("ipv4-2013", 440_000),
    Preset::ipv4("ipv4-2014", 490_000),
    Preset::ipv4("ipv4-2015", 540_000),
    Preset::ipv4("ipv4-2016", 590_000),
    Preset::ipv4("ipv4-2017", 650_000),
    Preset::ipv4("ipv4-2018", 700_000),
    Preset::ipv4("ipv4-2019", 760_000),
    Preset::ipv4("ipv4-2020", 815_000),
    Preset::ipv4("ipv4-2021", 865_000),
    Preset::ipv4("ipv4-2022", 905_000),
    Preset::ipv4("ipv4-2023", 940_000),
    Preset::ipv4("ipv4-2024", 945_000),
    Preset::ipv4("ipv4-1m", 1_000_000),
    Preset::ipv4("ipv4-2m", 2_000_000),
    Preset::ipv4("ipv4-4m", 4_000_000),
    Preset::ipv6("ipv6-2019", 76_342),
    Preset::ipv6("ipv6-2020", 95_504),
    Preset::ipv6("ipv6-2021", 143_823),
    Preset::ipv6("ipv6-2022", 168_572),
    Preset::ipv6("ipv6-2023", 199_801),
    Preset::ipv6("ipv6-2024", 226_222),
    Preset::ipv6("ipv6-2025", 235_466),
    Preset::ipv6("ipv6-250k", 250_000),
    Preset::ipv6("ipv6-500k", 500_000),
    Preset::ipv6("ipv6-750k", 750_000),
    Preset::ipv6("ipv6-1m", 1_000_000),
    Preset::ipv6("ipv6-4m", 4_000_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_say_the_family() {
        for (index, line) in PRESETS.iter().enumerate() {
            assert_eq!(preset(line.name), Some(*line));
            assert!(PRESETS[..index].iter().all(|other| other.name != line.name), "{}", line.name);
            assert!(line.name.starts_with(&line.family.to_string().to_lowercase()));
        }
        assert_eq!(preset("ipv4-1999"), None);
    }
}
