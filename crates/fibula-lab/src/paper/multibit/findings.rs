//! What the committed record finds otherwise than the paper.

use super::super::definition::Finding;

pub(super) const ALL: &[Finding] = &[];
