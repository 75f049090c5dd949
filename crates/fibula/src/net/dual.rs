//! One value for each address family.

/// A pair of values, one for IPv4 and one for IPv6: keys, results, tables, structures.
///
/// Pairs of tables have methods of their own, see [`DualRib`](crate::rib::DualRib), and so have pairs of structures, see
/// [`DualFib`](crate::fib::DualFib).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dual<V4, V6 = V4> {
    /// The value for IPv4.
    pub v4: V4,
    /// The value for IPv6.
    pub v6: V6,
}

impl<V4, V6> Dual<V4, V6> {
    /// Returns the pair of the two.
    pub const fn new(v4: V4, v6: V6) -> Self {
        Self { v4, v6 }
    }

    /// Returns references to both.
    pub const fn as_ref(&self) -> Dual<&V4, &V6> {
        Dual { v4: &self.v4, v6: &self.v6 }
    }

    /// Returns mutable references to both.
    pub const fn as_mut(&mut self) -> Dual<&mut V4, &mut V6> {
        Dual { v4: &mut self.v4, v6: &mut self.v6 }
    }
}
