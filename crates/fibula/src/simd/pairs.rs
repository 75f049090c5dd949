//! Sixteen lanes as two vectors of eight, for sets whose registers hold no more.

/// Declares the operations of sixteen lanes over those of eight in `super`.
macro_rules! sixteen_by_pairs {
    ($features:literal) => {
        use crate::simd::table::Cell32;
        use crate::simd::{Leading, Longs, WIDE, Words, operations};

        /// A vector of sixteen 32-bit lanes.
        #[derive(Clone, Copy)]
        pub struct W(super::V, super::V);
        /// A mask: true or false for each lane.
        #[derive(Clone, Copy)]
        pub struct M(super::M, super::M);
        /// Byte offsets in bounds.
        #[derive(Clone, Copy)]
        pub struct Places(super::Places8, super::Places8);
        /// A shift count for all lanes.
        pub type Count = super::Count;
        /// Eight entries to pick from.
        pub type Eight = super::V;

        operations! { $features
            /// Returns the value in every lane.
            fn splat(value: u32) -> W { W(super::splat(value), super::splat(value)) }
            /// Loads the lanes from an array.
            fn load(from: &[u32; WIDE]) -> W {
                let [low, high] = halves(from);
                W(super::load(low), super::load(high))
            }
            /// Stores the lanes to an array.
            fn store(to: &mut [u32; WIDE], a: W) -> () {
                let (low, high) = to.split_at_mut(WIDE / 2);
                super::store(low.try_into().expect("half"), a.0);
                super::store(high.try_into().expect("half"), a.1);
            }
            /// Loads the entries of [`pick`].
            fn eight(from: &[u32; WIDE / 2]) -> Eight { super::load(from) }
            /// Returns a shift count below 32.
            fn count(bits: u32) -> Count { super::count(bits) }
            /// Adds, wrapping.
            fn add(a: W, b: W) -> W { W(super::add(a.0, b.0), super::add(a.1, b.1)) }
            /// Subtracts, wrapping.
            fn sub(a: W, b: W) -> W { W(super::sub(a.0, b.0), super::sub(a.1, b.1)) }
            /// Returns the bits set in both.
            fn and(a: W, b: W) -> W { W(super::and(a.0, b.0), super::and(a.1, b.1)) }
            /// Returns the bits set in either.
            fn or(a: W, b: W) -> W { W(super::or(a.0, b.0), super::or(a.1, b.1)) }
            /// Returns the bits set in the second alone.
            fn but(a: W, b: W) -> W { W(super::only(a.0, b.0), super::only(a.1, b.1)) }
            /// Shifts left by a constant.
            fn shl[const BITS: i32](a: W) -> W { W(super::shl::<BITS>(a.0), super::shl::<BITS>(a.1)) }
            /// Shifts right by a constant, filling with zeros.
            fn shr[const BITS: i32](a: W) -> W { W(super::shr::<BITS>(a.0), super::shr::<BITS>(a.1)) }
            /// Shifts all lanes left by one count.
            fn shl_by(a: W, by: Count) -> W { W(super::shl_by(a.0, by), super::shl_by(a.1, by)) }
            /// Shifts all lanes right by one count.
            fn shr_by(a: W, by: Count) -> W { W(super::shr_by(a.0, by), super::shr_by(a.1, by)) }
            /// Shifts each lane left by its own count; 32 and more give 0.
            fn shlv(a: W, by: W) -> W { W(super::shlv(a.0, by.0), super::shlv(a.1, by.1)) }
            /// Shifts each lane right by its own count; 32 and more give 0.
            fn shrv(a: W, by: W) -> W { W(super::shrv(a.0, by.0), super::shrv(a.1, by.1)) }
            /// Returns `table[index % 8]`.
            fn pick(table: Eight, index: W) -> W { W(super::pick(table, index.0), super::pick(table, index.1)) }
            /// Returns whether the lane has the one bit that `bits` has there.
            fn test(a: W, bits: W) -> M { M(super::test(a.0, bits.0), super::test(a.1, bits.1)) }
            /// Compares for equality.
            fn eq(a: W, b: W) -> M { M(super::eq(a.0, b.0), super::eq(a.1, b.1)) }
            /// Returns whether the first is less than or equal to the second, unsigned.
            fn up_to(a: W, b: W) -> M { M(super::up_to(a.0, b.0), super::up_to(a.1, b.1)) }
            /// True where both are.
            fn both(a: M, b: M) -> M { M(super::both(a.0, b.0), super::both(a.1, b.1)) }
            /// Returns one bit for each lane, lane 0 lowest.
            fn bits(m: M) -> u32 { super::bits(m.0) | super::bits(m.1) << (WIDE / 2) }
            /// Returns `a` where the mask is true, else `b`.
            fn select(m: M, a: W, b: W) -> W { W(super::select(m.0, a.0, b.0), super::select(m.1, a.1, b.1)) }
            /// Returns `a` where the mask is true, else 0.
            fn keep(m: M, a: W) -> W { W(super::keep(m.0, a.0), super::keep(m.1, a.1)) }
            /// Reads the elements at the lanes' indices; an index past the end reads the last element.
            fn gather[C: Cell32](table: Words<'_, C>, index: W) -> W {
                W(super::gather_cells(table, index.0), super::gather_cells(table, index.1))
            }
            /// Reads the elements of the keys in the lanes.
            fn gather_leading(table: Leading<'_>, key: W) -> W {
                W(super::gather_leading(table, key.0), super::gather_leading(table, key.1))
            }
            /// Returns the places of values of 2^`width` bytes that follow the elements at the lanes' indices, by their
            /// [`ranks`] where the mask is true and else rank 0; of a width only the lower two bits count.
            fn ranked(table: Longs<'_>, index: W, by: W, counts: M, width: W) -> Places {
                Places(
                    super::ranked(table, index.0, by.0, counts.0, width.0),
                    super::ranked(table, index.1, by.1, counts.1, width.1),
                )
            }
            /// Reads the 32 bits at places of this table.
            fn at_places(table: Longs<'_>, places: Places) -> W {
                W(super::at_places(table, places.0), super::at_places(table, places.1))
            }
            /// Reads the elements at the lanes' indices, clamped, shifts each left by its count (64 and more give
            /// 0), and counts the bits that are set then.
            fn ranks(table: Longs<'_>, index: W, by: W) -> W {
                W(super::ranks(table, index.0, by.0), super::ranks(table, index.1, by.1))
            }
            /// Like [`ranks`], with the upper halves of the elements.
            fn ranks_and_upper(table: Longs<'_>, index: W, by: W) -> [W; 2] {
                let low = super::ranks_and_upper(table, index.0, by.0);
                let high = super::ranks_and_upper(table, index.1, by.1);
                [W(low[0], high[0]), W(low[1], high[1])]
            }
            /// Like [`ranks`], of the 64 bits at byte offsets.
            fn ranks_at(table: Longs<'_>, offset: W, by: W) -> W {
                W(super::ranks_at(table, offset.0, by.0), super::ranks_at(table, offset.1, by.1))
            }
            /// Counts the set bits of each byte.
            fn byte_counts(a: W) -> W { W(super::byte_counts(a.0), super::byte_counts(a.1)) }
            /// Reads the 32 bits at the lanes' byte offsets, clamped.
            fn at_bytes(table: Longs<'_>, offset: W) -> W {
                W(super::at_bytes(table, offset.0), super::at_bytes(table, offset.1))
            }
        }

        /// The lower and the upper eight lanes.
        fn halves(lanes: &[u32; WIDE]) -> [&[u32; WIDE / 2]; 2] {
            [0, WIDE / 2].map(|at| lanes[at..].first_chunk().expect("sixteen are two eights"))
        }
    };
}
pub(crate) use sixteen_by_pairs;
