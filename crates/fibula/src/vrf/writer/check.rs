//! The fsck of all VRFs: words lead to tables, and every unit is in use, free or retired.

use crate::check::CheckError;
use crate::fib::in_place;
use crate::fib::units::Unit;
use crate::memory::Cell;
use crate::net::Dual;

use super::{VrfsGarbage, VrfsWriter, of_structure};
use crate::vrf::family::FamilyGarbage;

impl VrfsWriter {
    /// Verifies all invariants.
    pub(in crate::vrf) fn check(&self) -> Result<(), CheckError> {
        let blocks = |tables: usize| vec![0; tables];
        let mut counts = Dual {
            v4: blocks(self.families.v4.arena.entries()),
            v6: blocks(self.families.v6.arena.entries()),
        };
        for (number, sides) in self.tables.iter().enumerate() {
            let word = self.directory[number].read();
            let Some(sides) = sides else {
                CheckError::unless(word == 0, "a number without VRF has no word", number)?;
                continue;
            };
            CheckError::unless(word == self.word(sides), "a VRF's word leads to its tables", number)?;
            let gone = self.gone_of(number as u32);
            self.families.v4.check(&sides.v4, &mut counts.v4, &gone.v4)?;
            self.families.v6.check(&sides.v6, &mut counts.v6, &gone.v6)?;
        }
        let lines = |gone: &FamilyGarbage| match gone {
            FamilyGarbage::Lines(unit) => Some(*unit),
            FamilyGarbage::Unit { .. } => None,
        };
        let (mut v4, mut v6) = (Vec::<Unit>::new(), Vec::<Unit>::new());
        for item in self.books.retired.items() {
            match item {
                VrfsGarbage::V4(gone) => v4.extend(lines(gone)),
                VrfsGarbage::V6(gone) => v6.extend(lines(gone)),
                _ => {}
            }
        }
        self.families.v4.arena.check(&counts.v4, &v4)?;
        self.families.v6.arena.check(&counts.v6, &v6)
    }

    /// Returns the retired units of the structures of a VRF.
    fn gone_of(&self, number: u32) -> Dual<Vec<in_place::RetiredUnit>> {
        let mut all = Dual { v4: Vec::new(), v6: Vec::new() };
        let Some(Some(sides)) = self.tables.get(number as usize) else { return all };
        for item in self.books.retired.items() {
            match item {
                VrfsGarbage::V4(gone) => all.v4.extend(of_structure(gone, number, &sides.v4)),
                VrfsGarbage::V6(gone) => all.v6.extend(of_structure(gone, number, &sides.v6)),
                _ => {}
            }
        }
        all
    }
}
