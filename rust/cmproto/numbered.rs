// SPDX-License-Identifier: GPL-2.0

//! Enumerations as tables.

/// Declares an enumeration with the list of all its values, `ALL`.
///
/// A line has a value, perhaps its number, and perhaps a text or the like behind `=>`, which the
/// function returns that is declared at the end.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $value:ident $(= $number:literal)?,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $value $(= $number)?,)*
        }

        impl $name {
            /// All values, in the order of their numbers.
            pub const ALL: [Self; [$(stringify!($value)),*].len()] = [$(Self::$value,)*];
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $value:ident $(= $number:literal)? => $text:expr,)*
        }
        $(#[$function_doc:meta])*
        fn $function:ident -> $ty:ty
    ) => {
        $crate::numbered::numbered! {
            $(#[$meta])*
            pub enum $name {
                $($(#[$doc])* $value $(= $number)?,)*
            }
        }

        impl $name {
            $(#[$function_doc])*
            pub const fn $function(self) -> $ty {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }
    };
}
pub(crate) use numbered;

/// Implements the conversion of a number to a value of an enumeration whose numbers start with 0
/// and have no gaps.
macro_rules! from_number {
    ($name:ident, $errno:expr) => {
        impl TryFrom<u32> for $name {
            type Error = $crate::errno::Errno;

            #[doc = concat!("Converts a number. Fails with [`", stringify!($errno), "`] if there")]
            /// is no such value.
            fn try_from(number: u32) -> Result<Self, $crate::errno::Errno> {
                usize::try_from(number)
                    .ok()
                    .and_then(|n| Self::ALL.get(n).copied())
                    .ok_or($errno)
            }
        }
    };
}
pub(crate) use from_number;
