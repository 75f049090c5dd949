//! Links that fall: the packets of their next hops move before anything else follows the kernel.

use super::{Level, Router, plan};

impl Router<'_> {
    /// Takes the next hops of links that have fallen out of use. All else that follows from it takes longer, up to seconds where
    /// tables of the configuration are planned again.
    pub(super) fn leave_fallen_links(&mut self) {
        let fabric = self.shared.fabric();
        let lines = fabric.interfaces.iter().zip(&self.config.interfaces).enumerate();
        let fallen = lines.filter(|(_, (interface, line))| {
            interface.up && !line.removed && !plan::is_up(line, &self.machine)
        });
        let fallen: Vec<usize> = fallen.map(|(number, _)| number).collect();
        if fallen.is_empty() {
            return;
        }
        let mut interfaces = fabric.interfaces.clone();
        fallen.iter().for_each(|&number| interfaces[number].up = false);
        let mut after = fabric.with_hops(self.outage.in_use(&self.hops, &interfaces));
        after.interfaces = interfaces;
        self.publish(after);
        for number in fallen {
            let line = &self.config.interfaces[number];
            let is_missing = !self.missing_device(line).is_empty();
            self.tell_link(number, &fabric.interfaces[number].name, (false, is_missing));
        }
    }

    /// Logs the new state of a link, and forgets its neighbours when it is down.
    pub(super) fn tell_link(&mut self, number: usize, name: &str, (up, missing): (bool, bool)) {
        // A device that is gone is logged as gone.
        if !missing {
            let word = if up { "up" } else { "down" };
            (self.log)(Level::Note, &format!("interface {name}: link {word}"));
        }
        if !up {
            // Other stations may be at the other end when the link comes up again.
            self.shared.neighbours.forget_interface(number as u16);
        }
    }
}
