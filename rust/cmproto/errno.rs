// SPDX-License-Identifier: GPL-2.0

//! POSIX error numbers that the connection manager returns.
//!
//! The protocol core cannot use the kernel's error type; the glue converts [`Errno`] once, at
//! the edge.

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// An error number, named as in `include/uapi/asm-generic/errno*.h`.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Errno {
            $($(#[$doc])* $name = $code,)*
        }

        impl Errno {
            /// Every error number there is here, in ascending order.
            pub const ALL: &'static [Errno] = &[$(Errno::$name,)*];

            /// The name, as in `<errno.h>`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                }
            }
        }
    };
}

errnos! {
    /// Operation not permitted.
    EPERM = 1,
    /// No such object.
    ENOENT = 2,
    /// Interrupted by a signal.
    EINTR = 4,
    /// Input or output error.
    EIO = 5,
    /// The device is gone.
    ENXIO = 6,
    /// Nothing there yet.
    EAGAIN = 11,
    /// Out of memory.
    ENOMEM = 12,
    /// Access denied.
    EACCES = 13,
    /// Bad user address.
    EFAULT = 14,
    /// In use.
    EBUSY = 16,
    /// Exists already.
    EEXIST = 17,
    /// No such device.
    ENODEV = 19,
    /// Invalid argument, or not in this state.
    EINVAL = 22,
    /// The response buffer is too small.
    ENOSPC = 28,
    /// Out of range.
    ERANGE = 34,
    /// Not implemented.
    ENOSYS = 38,
    /// No data.
    ENODATA = 61,
    /// Protocol error.
    EPROTO = 71,
    /// Value too large.
    EOVERFLOW = 75,
    /// Message too long.
    EMSGSIZE = 90,
    /// Wrong protocol type.
    EPROTOTYPE = 91,
    /// Protocol not supported.
    EPROTONOSUPPORT = 93,
    /// Operation not supported.
    EOPNOTSUPP = 95,
    /// Address family not supported.
    EAFNOSUPPORT = 97,
    /// Address in use.
    EADDRINUSE = 98,
    /// Address not available.
    EADDRNOTAVAIL = 99,
    /// Network down.
    ENETDOWN = 100,
    /// Network unreachable.
    ENETUNREACH = 101,
    /// Connection aborted.
    ECONNABORTED = 103,
    /// Connection reset by the peer.
    ECONNRESET = 104,
    /// No buffer space.
    ENOBUFS = 105,
    /// Connected already.
    EISCONN = 106,
    /// Not connected.
    ENOTCONN = 107,
    /// Timed out.
    ETIMEDOUT = 110,
    /// Refused by the peer.
    ECONNREFUSED = 111,
    /// Host unreachable.
    EHOSTUNREACH = 113,
    /// In progress already.
    EALREADY = 114,
    /// Now in progress.
    EINPROGRESS = 115,
    /// Cancelled.
    ECANCELED = 125,
    /// Restart the system call (kernel internal, never seen by a program).
    ERESTARTSYS = 512,
    /// Operation not supported (kernel internal number that does reach programs).
    ENOTSUPP = 524,
}

impl Errno {
    /// The positive number on architectures that use asm-generic's (x86, arm64, riscv...).
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The error with positive number `code`.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|e| e.code() == code)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_errno))]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_ascending_and_reversible() {
        assert!(Errno::ALL.windows(2).all(|w| w[0].code() < w[1].code()));
        for e in Errno::ALL {
            assert_eq!(Errno::from_code(e.code()), Some(*e));
        }
        assert_eq!(Errno::from_code(0), None);
        assert_eq!(Errno::from_code(-22), None);
        assert_eq!(Errno::EINVAL.name(), "EINVAL");
    }

    #[test]
    fn codes_are_asm_generic() {
        let table = [
            (Errno::ENXIO, 6),
            (Errno::EINVAL, 22),
            (Errno::ENOSYS, 38),
            (Errno::EPROTOTYPE, 91),
            (Errno::EADDRINUSE, 98),
            (Errno::EADDRNOTAVAIL, 99),
            (Errno::ETIMEDOUT, 110),
            (Errno::ENOTSUPP, 524),
        ];
        for (errno, code) in table {
            assert_eq!(errno.code(), code);
        }
    }
}
