//! Maps and sets for `serde`: maps of prefix to value, sequences of prefixes.
//!
//! Prefixes are text in every format. A prefix that appears twice is an error, also where the values are equal; so is memory
//! that runs out.

use core::fmt::{self, Display};
use core::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::net::{IpPrefix, Key, Prefix};
use crate::rib::RibError;

use super::addresses::AddressSet;
use super::ip::IpPrefixMap;
use super::prefix_map::PrefixMap;
use super::set::PrefixSet;

fn twice<E: de::Error>(prefix: impl Display) -> E {
    E::custom(format_args!("prefix {prefix} appears twice"))
}

/// Inserts an entry that must be new. Returns the value that it replaced.
type Insert<M, P, V> = fn(&mut M, P, V) -> Result<Option<V>, RibError>;

/// Reads a map of prefixes.
struct MapVisitor<M, P, V> {
    map: M,
    insert: Insert<M, P, V>,
}

impl<'de, M, P: Deserialize<'de> + Copy + Display, V: Deserialize<'de>> Visitor<'de> for MapVisitor<M, P, V> {
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of prefixes to values")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<M, A::Error> {
        while let Some((prefix, value)) = entries.next_entry::<P, V>()? {
            match (self.insert)(&mut self.map, prefix, value) {
                Ok(None) => {}
                // Refused, because one of the two values would be lost without a word.
                Ok(Some(_)) => return Err(twice(prefix)),
                Err(error) => return Err(de::Error::custom(error)),
            }
        }
        Ok(self.map)
    }
}

/// A map of prefix to value, in order.
impl<K: Key, V: Serialize> Serialize for PrefixMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (prefix, value) in self {
            map.serialize_entry(&prefix, value)?;
        }
        map.end()
    }
}

/// From a map of prefix to value, in any order. A prefix that appears twice is an error.
impl<'de, K: Key, V: Deserialize<'de>> Deserialize<'de> for PrefixMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let insert: Insert<Self, Prefix<K>, V> = |map, prefix, value| map.try_insert(prefix, value);
        deserializer.deserialize_map(MapVisitor { map: Self::new(), insert })
    }
}

/// A map of prefix to value, in order, IPv4 first.
impl<V: Serialize> Serialize for IpPrefixMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (prefix, value) in self.iter() {
            map.serialize_entry(&prefix, value)?;
        }
        map.end()
    }
}

/// From a map of prefix to value, in any order. A prefix that appears twice is an error.
impl<'de, V: Deserialize<'de>> Deserialize<'de> for IpPrefixMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let insert: Insert<Self, IpPrefix, V> = |map, prefix, value| map.try_insert(prefix, value);
        deserializer.deserialize_map(MapVisitor { map: Self::new(), insert })
    }
}

/// A sequence of prefixes, in order.
impl<K: Key> Serialize for PrefixSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// From a sequence of prefixes, in any order. A prefix that appears twice is an error.
impl<'de, K: Key> Deserialize<'de> for PrefixSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(SetVisitor(PhantomData))
    }
}

struct SetVisitor<K>(PhantomData<K>);

impl<'de, K: Key> Visitor<'de> for SetVisitor<K> {
    type Value = PrefixSet<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence of prefixes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut prefixes: A) -> Result<PrefixSet<K>, A::Error> {
        let mut set = PrefixSet::new();
        while let Some(prefix) = prefixes.next_element::<Prefix<K>>()? {
            match set.try_insert(prefix) {
                Ok(true) => {}
                Ok(false) => return Err(twice(prefix)),
                Err(error) => return Err(de::Error::custom(error)),
            }
        }
        Ok(set)
    }
}

/// A sequence of the fewest prefixes, in order.
impl<K: Key> Serialize for AddressSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without a length, which takes as long to count as to write.
        serializer.collect_seq(self.prefixes())
    }
}

/// From a sequence of prefixes, in any order, which may overlap.
impl<'de, K: Key> Deserialize<'de> for AddressSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Prefix<K>>::deserialize(deserializer)?.into_iter().collect())
    }
}
