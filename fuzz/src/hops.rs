//! Next hops and groups, in any order of calls: against what each number means, with a reader that stays pinned.

use std::collections::BTreeMap;

use fibula::Table;
use fibula::hops::{HopsError, NextHops, Resolved};
use fibula::net::{NextHop, Prefix};

/// The longest stream; longer ones only slow the search.
const RECORDS: usize = 200;

/// What a number means: the value of a next hop, `None` if it is withdrawn; or the members of a group.
#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    Hop(Option<u32>),
    Group(Vec<NextHop>),
}

#[derive(Default)]
struct Model {
    /// Numbers with a hold, and how many.
    held: BTreeMap<NextHop, (Meaning, u32)>,
    routes: BTreeMap<u8, NextHop>,
}

impl Model {
    fn pick(&self, byte: u8) -> Option<NextHop> {
        self.held.keys().nth(usize::from(byte) % self.held.len().max(1)).copied()
    }

    fn value(&self, hop: NextHop) -> Option<u32> {
        match self.held.get(&hop) {
            Some((Meaning::Hop(value), _)) => *value,
            _ => None,
        }
    }
}

pub(crate) fn follow(bytes: &[u8]) {
    let table = Table::new().expect("memory");
    let hops = NextHops::new(&table).expect("the table has no next hops");
    let mut model = Model::default();
    let (mut reader, mut holding) = (hops.reader().expect("memory"), hops.reader().expect("memory"));
    let pinned = holding.pin();
    for (serial, record) in bytes.chunks_exact(3).take(RECORDS).enumerate() {
        step(&hops, &mut model, [record[0], record[1], record[2]], serial as u32);
        hops.check().unwrap_or_else(|error| panic!("{error}"));
        let pin = reader.pin();
        for (&block, &id) in &model.routes {
            let resolved = pin.lookup(u32::from(block) << 24, serial as u32);
            // What has no hold may have been changed by nobody, and is not followed.
            let Some((meaning, _)) = model.held.get(&id) else { continue };
            let is_right = match (meaning, resolved) {
                (Meaning::Hop(Some(value)), Resolved::Found { member, value: found }) => {
                    member == id && found == value
                }
                (Meaning::Hop(None), Resolved::Withdrawn(withdrawn)) => withdrawn == id,
                (Meaning::Group(members), Resolved::Found { member, .. }) => members.contains(&member),
                (Meaning::Group(members), Resolved::Withdrawn(_)) => {
                    let followed = members.iter().filter(|member| model.held.contains_key(member));
                    followed.into_iter().all(|&member| model.value(member).is_none())
                }
                _ => false,
            };
            assert!(is_right, "{block}: {meaning:?}, {resolved:?}");
        }
        let _ = pinned.lookup(u32::from(record[1]) << 24, u32::from(record[2]));
    }
}

fn step(hops: &NextHops<u32>, model: &mut Model, [act, one, two]: [u8; 3], serial: u32) {
    let Some(id) = model.pick(one) else {
        let id = hops.add(serial).expect("memory");
        model.held.insert(id, (Meaning::Hop(Some(serial)), 1));
        return;
    };
    let is_hop = matches!(model.held[&id].0, Meaning::Hop(_));
    match act % 9 {
        0 if model.held.len() < 40 => {
            let id = hops.add(serial).expect("memory");
            assert!(model.held.insert(id, (Meaning::Hop(Some(serial)), 1)).is_none(), "{id} was in use");
        }
        1 => match hops.change(id, serial) {
            Ok(()) => model.held.get_mut(&id).expect("it is held").0 = Meaning::Hop(Some(serial)),
            Err(error) => assert!(!is_hop && error == HopsError::IsGroup(id), "{error}"),
        },
        2 => match hops.withdraw(id) {
            Ok(was) => {
                assert_eq!(was, model.value(id).is_some());
                model.held.get_mut(&id).expect("it is held").0 = Meaning::Hop(None);
            }
            Err(error) => assert!(!is_hop && error == HopsError::IsGroup(id), "{error}"),
        },
        3 => {
            hops.release(id).expect("it has a hold");
            let (_, holds) = model.held.get_mut(&id).expect("it is held");
            *holds -= 1;
            if *holds == 0 {
                model.held.remove(&id);
            }
        }
        4 | 5 => {
            let members: Vec<_> = (0..1 + two % 4)
                .filter_map(|more| {
                    Some((model.pick(one.wrapping_add(more * 7))?, 1 + u32::from(two >> more & 3)))
                })
                .collect();
            let numbers: Vec<_> = members.iter().map(|&(member, _)| member).collect();
            let is_twice = numbers.iter().enumerate().any(|(at, member)| numbers[..at].contains(member));
            let is_good =
                !is_twice && numbers.iter().all(|member| matches!(model.held[member].0, Meaning::Hop(_)));
            if act % 9 == 4 {
                match hops.add_group(&members) {
                    Ok(group) => {
                        assert!(is_good, "{members:?}");
                        let entry = model.held.entry(group).or_insert((Meaning::Group(numbers), 0));
                        assert!(matches!(entry.0, Meaning::Group(_)), "{group} was in use");
                        entry.1 += 1;
                    }
                    Err(error) => assert!(!is_good, "{error}"),
                }
            } else if hops.change_group(id, &members).is_ok() {
                assert!(is_good && !is_hop && model.held[&id].1 == 1, "{members:?}");
                model.held.get_mut(&id).expect("it is held").0 = Meaning::Group(numbers);
            }
        }
        6 | 7 => {
            let prefix = Prefix::<u32>::masked(u32::from(two) << 24, 8).expect("the length fits");
            let _ = hops.routed().insert(prefix, id).expect("memory");
            model.routes.insert(two, id);
        }
        _ => {
            let prefix = Prefix::<u32>::masked(u32::from(two) << 24, 8).expect("the length fits");
            let _ = hops.routed().remove(prefix).expect("memory");
            model.routes.remove(&two);
        }
    }
}
