// SPDX-License-Identifier: GPL-2.0

//! Numbers of C that have names.

/// Defines a type for the numbers of an enum of C, some of which have names.
///
/// Not an enum: C may say, and a test may ask for, what has no name here.
macro_rules! numbers {
    ($($(#[$meta:meta])* $type:ident { $($name:ident = $value:ident,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $type(pub(crate) u32);

        impl $type {
            $(pub(crate) const $name: Self = Self(crate::bindings::$value);)*

            /// The number, as the status of an event has it.
            #[allow(dead_code)]
            pub(crate) const fn status(self) -> i32 {
                self.0 as i32
            }
        }
    )*};
}

pub(super) use numbers;
