// SPDX-License-Identifier: GPL-2.0

//! The error numbers that the connection manager returns.
//!
//! The protocol core cannot use the kernel's error type. The glue converts [`Errno`] once, at the
//! boundary.

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        crate::numbered::numbered! {
            /// An error number, named as in `include/uapi/asm-generic/errno*.h`.
            #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
            #[repr(i32)]
            pub enum Errno {
                $($(#[$doc])* $name = $code => stringify!($name),)*
            }
            /// Returns the name of the error number, as in `<errno.h>`.
            fn name -> &'static str
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
    /// Device or object has gone.
    ENXIO = 6,
    /// Try again.
    EAGAIN = 11,
    /// Out of memory.
    ENOMEM = 12,
    /// Access denied.
    EACCES = 13,
    /// Bad user address.
    EFAULT = 14,
    /// Device or resource busy.
    EBUSY = 16,
    /// Object exists already.
    EEXIST = 17,
    /// No such device.
    ENODEV = 19,
    /// Invalid argument, or not allowed in this state.
    EINVAL = 22,
    /// Too many objects of the user.
    EMFILE = 24,
    /// No space in the buffer.
    ENOSPC = 28,
    /// Result out of range.
    ERANGE = 34,
    /// Function not implemented.
    ENOSYS = 38,
    /// No data available.
    ENODATA = 61,
    /// Protocol error.
    EPROTO = 71,
    /// Value too large for the field.
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
    /// Address already in use.
    EADDRINUSE = 98,
    /// Address cannot be assigned.
    EADDRNOTAVAIL = 99,
    /// Network is down.
    ENETDOWN = 100,
    /// Network is unreachable.
    ENETUNREACH = 101,
    /// Connection aborted.
    ECONNABORTED = 103,
    /// Connection reset by the peer.
    ECONNRESET = 104,
    /// No buffer space.
    ENOBUFS = 105,
    /// Already connected.
    EISCONN = 106,
    /// Not connected.
    ENOTCONN = 107,
    /// Connection timed out.
    ETIMEDOUT = 110,
    /// Connection refused by the peer.
    ECONNREFUSED = 111,
    /// Host is unreachable.
    EHOSTUNREACH = 113,
    /// Operation already in progress, or done.
    EALREADY = 114,
    /// Operation now in progress.
    EINPROGRESS = 115,
    /// Operation cancelled.
    ECANCELED = 125,
    /// Restart the system call (kernel internal, never seen by a program).
    ERESTARTSYS = 512,
    /// Operation not supported (kernel internal number that does reach programs).
    ENOTSUPP = 524,
}

impl Errno {
    /// Returns the positive error number, as on all architectures that use asm-generic's numbers
    /// (x86, arm64, riscv and others).
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// Returns the error with the positive number `code`, if there is one.
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
            assert_eq!(Errno::from_code(e.code()), Some(e));
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
