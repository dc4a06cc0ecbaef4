// SPDX-License-Identifier: GPL-2.0

//! The binary interface of `/dev/infiniband/rdma_cm` (`include/uapi/rdma/rdma_user_cm.h`).
//!
//! Every structure here has the size and the offsets of its C counterpart, checked when the
//! program is compiled, for 32-bit and 64-bit programs alike. None has padding: where C leaves a
//! gap there is a reserved field, so that writing a structure to a user never shows memory that
//! was not meant. Fields are in host byte order except those of a [`zerocopy::big_endian`] type.
//!
//! Socket addresses are plain bytes here; [`SockAddr::from_bytes`](crate::addr::SockAddr) makes
//! sense of them.

use crate::errno::Errno;

/// Derives what makes a C structure, and asserts its size and the offsets of its fields.
macro_rules! abi_struct {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $size:literal {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $offset:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Copy,
            Clone,
            Debug,
            PartialEq,
            Eq,
            zerocopy_derive::FromBytes,
            zerocopy_derive::Immutable,
            zerocopy_derive::IntoBytes,
            zerocopy_derive::KnownLayout,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$doc])* pub $field: $ty,)*
        }

        const _: () = {
            assert!(core::mem::size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };
    };
}

mod command;
mod conn;
mod event;
mod option;
mod path;
mod qp_attr;
mod query;

pub use self::command::*;
pub use self::conn::*;
pub use self::event::*;
pub use self::option::*;
pub use self::path::*;
pub use self::qp_attr::*;
pub use self::query::*;

pub use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Version of the interface, as in `/sys/class/misc/rdma_cm/abi_version`.
pub const ABI_VERSION: u32 = 4;
/// Size of private data in requests and events, in bytes; no message carries as much.
pub const MAX_PRIVATE_DATA: usize = 256;
/// Size of `struct sockaddr_in6`, in bytes.
pub const SOCKADDR_IN6_LEN: usize = 28;

abi_struct! {
    /// What every write starts with (`struct rdma_ucm_cmd_hdr`).
    pub struct CommandHeader: 8 {
        /// The [`Command`].
        cmd: u32 = 0,
        /// Bytes of the request that follow.
        r#in: u16 = 4,
        /// Bytes of the buffer for the response.
        out: u16 = 6,
    }
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// A command number (`RDMA_USER_CM_CMD_*`).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Command {
            $($(#[$doc])* $name = $number,)*
        }

        impl Command {
            /// Every command, by number, without gaps.
            pub const ALL: [Command; 25] = [$(Command::$name,)*];
        }
    };
}

commands! {
    /// Makes an id.
    CreateId = 0,
    /// Destroys an id.
    DestroyId = 1,
    /// Binds to an IP address.
    BindIp = 2,
    /// Resolves an IP address.
    ResolveIp = 3,
    /// Resolves a route.
    ResolveRoute = 4,
    /// Asks for the route.
    QueryRoute = 5,
    /// Connects.
    Connect = 6,
    /// Listens.
    Listen = 7,
    /// Accepts a request, or the answer to one.
    Accept = 8,
    /// Rejects a request.
    Reject = 9,
    /// Disconnects.
    Disconnect = 10,
    /// Asks for the attributes of a queue pair.
    InitQpAttr = 11,
    /// Waits for an event.
    GetEvent = 12,
    /// Not implemented.
    GetOption = 13,
    /// Sets an option.
    SetOption = 14,
    /// Tells of an event on a queue pair.
    Notify = 15,
    /// Joins the multicast group of an IP address.
    JoinIpMcast = 16,
    /// Leaves a multicast group.
    LeaveMcast = 17,
    /// Moves an id to another open file.
    MigrateId = 18,
    /// Asks for addresses, paths, GIDs or service records.
    Query = 19,
    /// Binds to an address of any family.
    Bind = 20,
    /// Resolves an address of any family.
    ResolveAddr = 21,
    /// Joins the multicast group of an address of any family.
    JoinMcast = 22,
    /// Asks the subnet administrator for a service.
    ResolveIbService = 23,
    /// Queues an event of the program's own.
    WriteCmEvent = 24,
}

impl Command {
    /// The command number.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl TryFrom<u32> for Command {
    type Error = Errno;

    /// [`Errno::EINVAL`] for a number that is no command.
    fn try_from(number: u32) -> Result<Self, Errno> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Self::ALL.get(n).copied())
            .ok_or(Errno::EINVAL)
    }
}

/// The request in `bytes`, with zeros for what is missing at its end. Bytes after it are ignored.
pub fn read_padded<T: FromBytes + IntoBytes>(bytes: &[u8]) -> T {
    let mut request = T::new_zeroed();
    for (to, from) in request.as_mut_bytes().iter_mut().zip(bytes) {
        *to = *from;
    }
    request
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_abi))]
mod tests {
    use super::*;

    #[test]
    fn commands_are_their_index() {
        for (n, command) in Command::ALL.into_iter().enumerate() {
            assert_eq!(command.number() as usize, n);
            assert_eq!(Command::try_from(n as u32), Ok(command));
        }
        assert_eq!(Command::try_from(25), Err(Errno::EINVAL));
        assert_eq!(Command::try_from(u32::MAX), Err(Errno::EINVAL));
    }

    #[test]
    fn header_bytes() {
        let header = CommandHeader {
            cmd: 6,
            r#in: 288,
            out: 0,
        };
        let bytes = header.as_bytes();
        assert_eq!(bytes[..4], 6u32.to_ne_bytes());
        assert_eq!(bytes[4..6], 288u16.to_ne_bytes());
        assert_eq!(bytes[6..], 0u16.to_ne_bytes());
    }

    #[test]
    fn short_requests_are_padded() {
        let whole = Listen { id: 5, backlog: 7 };
        let bytes = whole.as_bytes();
        assert_eq!(read_padded::<Listen>(bytes), whole);
        assert_eq!(
            read_padded::<Listen>(&bytes[..4]),
            Listen { id: 5, backlog: 0 }
        );
        assert_eq!(read_padded::<Listen>(&[]), Listen::new_zeroed());
        let mut longer = [0xff; 17];
        longer[..8].copy_from_slice(bytes);
        assert_eq!(read_padded::<Listen>(&longer), whole);
    }
}
