//! The feature `serde`: what is written is read again, and errors say what is wrong.

use std::collections::BTreeMap;

use fibula::map::{AddressSet, IpPrefixMap, PrefixMap, PrefixSet};
use fibula::net::{IpPrefix, Key, Prefix};
use fibula_proof::tables::{Model, Random};
use serde::Deserialize;

fn error<T: for<'de> Deserialize<'de>>(json: &str) -> String {
    serde_json::from_str::<T>(json).err().expect("it must be refused").to_string()
}

#[test]
fn maps_are_maps_and_sets_are_sequences() {
    let json = r#"{"0.0.0.0/0":["default"],"192.0.2.0/24":[],"2001:db8::/32":["a","b"]}"#;
    let map: IpPrefixMap<Vec<String>> = serde_json::from_str(json).unwrap();
    assert_eq!((map.v4.len(), map.v6.len()), (2, 1));
    assert_eq!(serde_json::to_string(&map).unwrap(), json);
    assert_eq!(serde_json::to_string(&map.v6).unwrap(), r#"{"2001:db8::/32":["a","b"]}"#);
    let set: PrefixSet<u32> = serde_json::from_str(r#"["192.0.2.0/24","10.0.0.0/8","10.0.0.0/9"]"#).unwrap();
    assert_eq!(serde_json::to_string(&set).unwrap(), r#"["10.0.0.0/8","10.0.0.0/9","192.0.2.0/24"]"#);
    let addresses: AddressSet<u32> =
        serde_json::from_str(r#"["10.128.0.0/9","10.0.0.0/8","11.0.0.0/8"]"#).unwrap();
    assert_eq!(serde_json::to_string(&addresses).unwrap(), r#"["10.0.0.0/7"]"#);
    let either: Vec<IpPrefix> = serde_json::from_str(r#"["10.0.0.0/8","::/0"]"#).unwrap();
    assert_eq!(serde_json::to_string(&either).unwrap(), r#"["10.0.0.0/8","::/0"]"#);
}

#[test]
fn they_are_fields_of_a_configuration() {
    #[derive(Deserialize)]
    struct Config {
        allow: AddressSet<u32>,
        sites: IpPrefixMap<String>,
    }
    let text =
        "allow = ['10.0.0.0/8', '192.0.2.7']\n[sites]\n'10.1.0.0/16' = 'lab'\n'2001:db8::/32' = 'office'\n";
    let config: Config = toml::from_str(text).unwrap();
    assert!(config.allow.contains(0xc000_0207) && !config.allow.contains(0xc000_0208));
    assert_eq!(config.sites.values().collect::<Vec<_>>(), ["lab", "office"]);
}

#[test]
fn errors_say_what_is_wrong() {
    type Map = PrefixMap<u32, u32>;
    assert!(
        error::<Map>(r#"{"10.0.0.0/8":1,"10.0.0.0/8":1}"#).starts_with("prefix 10.0.0.0/8 appears twice")
    );
    assert!(
        error::<PrefixSet<u32>>(r#"["10.0.0.0/8","10.0.0.0/8"]"#)
            .starts_with("prefix 10.0.0.0/8 appears twice")
    );
    let host_bits = "'10.0.0.1/8': host bits set after /8; did you mean 10.0.0.0/8? (at byte 8)";
    assert!(error::<Map>(r#"{"10.0.0.1/8":1}"#).starts_with(host_bits));
    assert!(error::<Prefix<u128>>(r#""10.0.0.0/8""#).starts_with("'10.0.0.0/8': not an IP address"));
    assert!(
        error::<IpPrefixMap<u32>>(r#"{"2001:db8::/129":1}"#)
            .contains("prefix length 129 is above the 128 bits")
    );
    assert!(error::<Map>(r#"{"10.0.0.0/8":"x"}"#).contains("expected u32"));
    assert!(error::<Map>("[]").contains("expected a map of prefixes to values"));
    assert!(error::<PrefixSet<u32>>("{}").contains("expected a sequence of prefixes"));
    assert!(error::<PrefixSet<u32>>("[7]").contains("expected a prefix such as"));
}

fn round_trip<K: Key>() {
    let mut random = Random(37);
    for _ in 0..40 {
        let model = Model::<K>::random(&mut random, 80, 9);
        let map: PrefixMap<K, u32> = model.0.iter().map(|(&prefix, hop)| (prefix, hop.id())).collect();
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::from_str::<PrefixMap<K, u32>>(&json).unwrap(), map);
        let texts: BTreeMap<String, u32> = serde_json::from_str(&json).unwrap();
        assert!(map.iter().all(|(prefix, value)| texts.get(&prefix.to_string()) == Some(value)));
        let set: PrefixSet<K> = map.keys().collect();
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<PrefixSet<K>>(&json).unwrap(), set);
        let addresses = AddressSet::from(&set);
        let json = serde_json::to_string(&addresses).unwrap();
        assert_eq!(serde_json::from_str::<AddressSet<K>>(&json).unwrap(), addresses);
    }
}

#[test]
fn what_is_written_is_read_again() {
    round_trip::<u32>();
    round_trip::<u128>();
}
