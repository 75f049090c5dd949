//! The IPv4 addresses that routers do not forward, and that some networks use all the same.

/// A set of such addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Martians {
    /// 0.0.0.0/8 but 0.0.0.0 (RFC 1122, section 3.2.1.3).
    pub this_network: bool,
    /// 169.254.0.0/16 (RFC 3927, section 2.7).
    pub link_local: bool,
    /// 240.0.0.0/4 but 255.255.255.255 (RFC 1112, section 4).
    pub reserved: bool,
}

impl Martians {
    /// The names of the sets that may be accepted.
    pub const NAMES: [&str; 3] = ["this-network", "link-local", "reserved"];

    /// Adds a set by its name. Returns whether there is one of this name.
    pub fn insert(&mut self, name: &str) -> bool {
        let sets = [&mut self.this_network, &mut self.link_local, &mut self.reserved];
        let found = Self::NAMES.iter().zip(sets).find(|(known, _)| **known == name);
        found.map(|(_, set)| *set = true).is_some()
    }

    /// Returns whether the address is in the set.
    #[must_use]
    pub const fn contains(self, address: u32) -> bool {
        match address >> 24 {
            0 => self.this_network && address != 0,
            169 => self.link_local && address >> 16 == 0xa9fe,
            240..=255 => self.reserved && address != u32::MAX,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ipv4::{is_martian_destination, is_martian_source};
    use super::*;

    #[test]
    fn martians_are_accepted_by_name_and_no_others_with_them() {
        let samples = [
            ("this-network", 0x0000_0001),
            ("this-network", 0x00ff_ffff),
            ("link-local", 0xa9fe_0000),
            ("link-local", 0xa9fe_ffff),
            ("reserved", 0xf000_0000),
            ("reserved", 0xffff_fffe),
            ("", 0),
            ("", 0x7f00_0001),
            ("", u32::MAX),
        ];
        for name in ["", "this-network", "link-local", "reserved"] {
            let mut accepted = Martians::default();
            assert_eq!(accepted.insert(name), !name.is_empty());
            for (of, address) in samples {
                let refused = of.is_empty() || of != name;
                assert_eq!(is_martian_source(address, accepted), refused, "{name}: {address:08x}");
                assert_eq!(is_martian_destination(address, accepted), refused, "{name}: {address:08x}");
            }
            assert!(
                is_martian_source(0xe000_0001, accepted) && !is_martian_destination(0xe000_0001, accepted)
            );
            assert!(!is_martian_source(0xa9ff_0000, accepted) && !is_martian_source(0x0a00_0001, accepted));
        }
    }
}
