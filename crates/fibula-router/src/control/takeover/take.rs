//! The router that starts: it takes up where the one that runs is.

use std::collections::BTreeMap;

use super::super::client::{self, Answered, AskError, RoutesOf};
use super::super::{Level, Router, RunError};
use super::{Predecessor, TakeoverError};
use crate::api::{self, ListedRoute, NeighbourState, NextHopWord};
use crate::feed::{Out, Path, Way};
use crate::kernel::sys;
use crate::neighbour::Key;

impl Router<'_> {
    /// Takes over from the router that runs, once its routes are in the tables. Returns whether it has. The feeds in `late` have no
    /// full table in time.
    pub(in super::super) fn take_over(&mut self, late: Option<&[String]>) -> Result<bool, RunError> {
        if let Some(feeds) = late {
            let reason = match feeds {
                [] => "the tables change all the time".to_owned(),
                feeds => format!("feed {} has no full table in time", feeds.join(", ")),
            };
            return Err(TakeoverError::Late(reason).into());
        }
        let Some(mut predecessor) = self.predecessor.take() else { return Ok(true) };
        let done = self.take_from(&mut predecessor);
        match done {
            Ok(true) => {
                let process = predecessor.process();
                predecessor.end();
                self.feeds.take_over();
                (self.log)(Level::Note, &format!("taken over from process {process}"));
                Ok(true)
            }
            done => {
                self.predecessor = Some(predecessor);
                done
            }
        }
    }

    fn take_from(&mut self, predecessor: &mut Predecessor) -> Result<bool, RunError> {
        if !predecessor.has_told {
            self.copy_routes(predecessor)?;
            self.copy_neighbours(predecessor)?;
            predecessor.has_told = true;
            // They are entered into the tables first.
            return Ok(false);
        }
        if let Some(filter) = &self.filter {
            self.kept.take_over(&self.machine, filter, predecessor)?;
        }
        self.kept.take_taps();
        Ok(true)
    }

    /// Copies the routes of feeds whose sessions the other router has. The sessions send them again once they are with this router.
    fn copy_routes(&self, predecessor: &Predecessor) -> Result<(), TakeoverError> {
        let feeds = self.config.feeds.iter().zip(&self.feeds.inherited).enumerate();
        let feeds: BTreeMap<&str, usize> = feeds
            .filter(|(_, (_, inherited))| **inherited)
            .map(|(number, (feed, _))| (&*feed.name, number))
            .collect();
        if feeds.is_empty() {
            return Ok(());
        }
        for (vrf, name) in self.config.vrfs.iter().enumerate() {
            let question = RoutesOf { vrf: name, ..RoutesOf::default() };
            let copied = client::list_routes(predecessor.socket(), &question, |route| {
                self.copy_route(vrf as u16, &feeds, route);
                Ok::<(), AskError>(())
            });
            match copied {
                Ok(()) => {}
                // The VRF is new.
                Err(AskError::Answer(api::AnswerError::Refused(_))) => {}
                Err(error) => return Err(predecessor.broken(error)),
            }
        }
        let mut rib = self.feeds.rib();
        for &feed in feeds.values() {
            rib.feed(feed).state.has_table = true;
        }
        Ok(())
    }

    fn copy_route(&self, vrf: u16, feeds: &BTreeMap<&str, usize>, route: &Answered<ListedRoute>) {
        let ListedRoute { prefix, next_hop, feed, .. } = &route.answer;
        let feed = feed.as_ref().and_then(Option::as_deref).and_then(|name| feeds.get(name));
        let path = next_hop.as_ref().and_then(|next_hop| self.copied_path(vrf, next_hop));
        if let (Some(&feed), Some(path)) = (feed, path) {
            // Sessions have no metrics. A route beyond a limit is refused and counted, as it would be by the session.
            let _ = self.feeds.rib().insert(feed, (vrf, *prefix), 0, path);
        }
    }

    /// Returns the path of a route as the other router shows it. `None` if it leads to an interface that this one does not have.
    fn copied_path(&self, vrf: u16, next_hop: &api::NextHop) -> Option<Path> {
        let way = |way: &api::Way, weight: u64| {
            let out = match &way.interface {
                None => Out::Near(vrf),
                Some(name) => {
                    let fabric = self.shared.fabric();
                    let number = fabric.interfaces.iter().position(|interface| interface.name == *name)?;
                    let device = self.devices.iter().find(|entry| usize::from(*entry.1) == number);
                    match device {
                        Some((&device, _)) => Out::Device(device),
                        None => way.via.map(|_| Out::Near(vrf))?,
                    }
                }
            };
            Some(Way { gateway: way.via, out, weight: u32::try_from(weight).unwrap_or(u32::MAX) })
        };
        let ways: Option<Vec<Way>> = match next_hop {
            api::NextHop::Word(NextHopWord::Blackhole) => return Some(Path::Blackhole),
            api::NextHop::Word(NextHopWord::Unreachable) => return Some(Path::Unreachable),
            api::NextHop::Word(NextHopWord::Prohibit) => return Some(Path::Prohibit),
            api::NextHop::Word(NextHopWord::Local) | api::NextHop::Object { .. } => None,
            api::NextHop::Way(only) => way(only, 1).map(|way| vec![way]),
            api::NextHop::Group(members) => {
                members.iter().map(|member| way(&member.way, member.weight)).collect()
            }
        };
        ways.map(|ways| Path::Ways(ways.into()))
    }

    /// Copies the neighbours that the kernel does not know, and own addresses that are in use.
    fn copy_neighbours(&self, predecessor: &Predecessor) -> Result<(), TakeoverError> {
        let listed = client::neighbours(predecessor.socket()).map_err(|error| predecessor.broken(error))?;
        let fabric = self.shared.fabric();
        for neighbour in listed.answer {
            let number = fabric.interfaces.iter().position(|interface| interface.name == neighbour.interface);
            let Some(number) = number else { continue };
            let key = Key::of(number as u16, neighbour.address);
            match (neighbour.state, neighbour.mac) {
                (NeighbourState::Own, _) => self.shared.own.take_over(key),
                (
                    NeighbourState::Reachable | NeighbourState::Stale | NeighbourState::Verifying,
                    Some(mac),
                ) => {
                    let confirmed = neighbour.state == NeighbourState::Reachable;
                    self.shared.neighbours.learn(key, mac, confirmed, true, sys::now_ns());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
