//! Macros that compile one kernel body for every instruction set, and the operations it is written in.

/// Compiles one kernel body for every instruction set: makes a function that takes a [`Present`](super::Present) before
/// its arguments and runs the body that was compiled for that set.
///
/// `scalar` names the function that the portable set runs; `vector` is the body for all others, written over the
/// operations of the module it names. Type parameters follow the name in angle brackets, generic constants in square
/// ones. `no icelake` leaves that set out, and the kernel of AVX-512 runs there: for kernels that were measured to be as fast so. Without
/// a `scalar` function the kernel panics for the portable set: its callers handle that set themselves. A
/// closure in the body is compiled for the set as the body is: that is how a kernel passes its operations to code that
/// is the same for all sets, which then must be `#[inline(always)]`.
#[macro_export]
#[doc(hidden)]
macro_rules! __kernel {
    (@scalar ($scalar:path) ($($argument:ident),*)) => { $scalar($($argument),*) };
    (@scalar () ($($argument:ident),*)) => {{
        let _ = ($(&$argument),*);
        unreachable!("the portable set has no lanes")
    }};
    (@either () $this:block $other:block) => { $this };
    (@either (icelake) $this:block $other:block) => { $other };
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$($parameter:ident: $bound:path),+>)? $([$(const $generic:ident: $kind:ty),+])?
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty;)?
        $(scalar $scalar:path;)?
        $(no $icelake:ident;)?
        vector $op:ident $body:block
    ) => {
        $(#[$meta])*
        #[allow(unsafe_code)]
        #[inline]
        $vis fn $name<$($($parameter: $bound,)+)? $($(const $generic: $kind,)+)?> (
            isa: $crate::simd::Present,
            $($argument: $type),*
        ) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2<$($($parameter: $bound,)+)? $($(const $generic: $kind,)+)?> ($($argument: $type),*) $(-> $result)? {
                use $crate::unstable::simd::avx2 as $op;
                $body
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(
                enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512cd,avx512bw,avx512dq,avx512vl"
            )]
            fn avx512<$($($parameter: $bound,)+)? $($(const $generic: $kind,)+)?> ($($argument: $type),*) $(-> $result)? {
                use $crate::unstable::simd::avx512 as $op;
                $body
            }

            // One body or the other: its own, or that of AVX-512, which every machine with this set has.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(
                enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512cd,avx512bw,avx512dq,avx512vl"
            )]
            #[target_feature(enable = "avx512vpopcntdq,avx512bitalg,avx512vbmi,avx512vbmi2")]
            fn icelake<$($($parameter: $bound,)+)? $($(const $generic: $kind,)+)?> ($($argument: $type),*) $(-> $result)? {
                $crate::__kernel! { @either ($($icelake)?)
                    {
                        use $crate::unstable::simd::icelake as $op;
                        $body
                    }
                    { avx512::<$($($parameter,)+)? $($($generic,)+)?>($($argument),*) }
                }
            }

            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            #[target_feature(enable = "neon")]
            fn neon<$($($parameter: $bound,)+)? $($(const $generic: $kind,)+)?> ($($argument: $type),*) $(-> $result)? {
                use $crate::unstable::simd::neon as $op;
                $body
            }

            match isa.isa() {
                // SAFETY: a `Present` exists only for a set that the machine was found to have.
                #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
                $crate::simd::Isa::Neon => unsafe { neon::<$($($parameter,)+)? $($($generic,)+)?>($($argument),*) },
                // SAFETY: a `Present` exists only for a set that the machine was found to have.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Isa::Avx2 => unsafe { avx2::<$($($parameter,)+)? $($($generic,)+)?>($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Isa::Avx512 => unsafe { avx512::<$($($parameter,)+)? $($($generic,)+)?>($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Isa::Icelake => unsafe { icelake::<$($($parameter,)+)? $($($generic,)+)?>($($argument),*) },
                _ => $crate::__kernel!(@scalar ($($scalar)?) ($($argument),*)),
            }
        }
    };
}
#[doc(inline)]
pub use __kernel as kernel;

/// Declares operations: functions compiled for `$features`, safe to call from code compiled for them.
macro_rules! operations {
    ($features:literal $($(#[$meta:meta])* fn $name:ident $([$($generic:tt)*])? ($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            $(#[$meta])*
            #[allow(clippy::missing_safety_doc, reason = "the compiler asks for the features where it is called")]
            #[inline]
            #[target_feature(enable = $features)]
            pub fn $name $(<$($generic)*>)? ($($argument: $type),*) -> $result $body
        )*
    };
}
pub(crate) use operations;
