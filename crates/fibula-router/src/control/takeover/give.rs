//! The router that runs: what it gives to its successor, and what it does for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::super::{Doors, Level, Router};
use super::{Given, Successor, Wish, cannot};

impl Router<'_> {
    /// Returns what a successor is given, or why there cannot be one.
    fn items(&self, doors: &Doors) -> Result<Vec<(Given, OwnedFd)>, String> {
        if self.begin_ns.is_some() {
            return Err("it does not forward yet: try again when it does".into());
        }
        if self.successor.is_some() {
            return Err("another one is taking it over".into());
        }
        if let Some(why) = cannot(&self.config) {
            return Err(why);
        }
        let mut items = Vec::new();
        let mut offer = |item: Given, descriptor: BorrowedFd<'_>| -> io::Result<()> {
            items.push((item, descriptor.try_clone_to_owned()?));
            Ok(())
        };
        let done = doors
            .offer(&mut offer)
            .and_then(|()| self.feeds.offer(&mut offer))
            .and_then(|()| self.kept.offer(&mut offer));
        done.map_err(|error| error.to_string())?;
        Ok(items)
    }

    /// Answers a client that asks to take over.
    pub(in super::super) fn meet_successor(
        &mut self,
        stream: UnixStream,
        doors: &Doors,
    ) -> Result<(), String> {
        let items = self.items(doors)?;
        let items: Vec<_> =
            items.iter().map(|(item, descriptor)| (item.clone(), descriptor.as_fd())).collect();
        stream.set_nonblocking(false).map_err(|error| error.to_string())?;
        // A client that goes away early gets no answer, which is not an error.
        if let Ok(successor) = Successor::offer(stream, &items) {
            let process = successor.process().map_or_else(String::new, |process| format!(" {process}"));
            (self.log)(Level::Note, &format!("process{process} prepares to take over"));
            self.successor = Some(successor);
        }
        Ok(())
    }

    /// Does what the successor wishes. Returns whether it forwards now, so that this router ends.
    pub(in super::super) fn follow_successor(&mut self) -> bool {
        while let Some(wish) = self.successor.as_mut().and_then(Successor::wish) {
            match wish {
                Wish::Done => return true,
                Wish::Release => {
                    self.kept.release();
                    if let Some(successor) = &mut self.successor {
                        successor.released();
                    }
                }
                Wish::GivenUp => {
                    self.successor = None;
                    self.kept.resume();
                    self.follow_devices();
                    (self.log)(Level::Warning, "the successor has given up: this router goes on");
                }
            }
        }
        false
    }
}
