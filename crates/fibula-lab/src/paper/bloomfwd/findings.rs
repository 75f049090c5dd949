//! What the committed records find otherwise than the paper.

use super::super::definition::Finding;

pub(super) const ALL: &[Finding] = &[];
