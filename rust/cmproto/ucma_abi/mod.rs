// SPDX-License-Identifier: GPL-2.0

//! The binary interface of `/dev/infiniband/rdma_cm` (`include/uapi/rdma/rdma_user_cm.h`).
//!
//! Every structure here has the size and the offsets of its C counterpart, for 32-bit and 64-bit
//! programs alike; the compiler checks that. None has padding: where C leaves a gap there is a
//! reserved field, so that a structure that is written to user space never leaks kernel memory.
//! Fields are in host byte order, except those of a [`zerocopy::big_endian`] type.
//!
//! Socket addresses are plain bytes here; [`SockAddr::from_bytes`](crate::addr::SockAddr) parses
//! them.

use crate::errno::Errno;
use crate::numbered::{from_number, numbered};

/// Derives the traits of C structures, and checks their sizes and the offsets of their fields.
macro_rules! abi_structs {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident: $size:literal {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $offset:literal,)*
        }
    )*) => {$(
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
    )*};
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
/// Size of the private data in requests and events, in bytes. No message carries as much.
pub const MAX_PRIVATE_DATA: usize = 256;
/// Size of `struct sockaddr_in6`, in bytes.
pub const SOCKADDR_IN6_LEN: usize = 28;

abi_structs! {
    /// The header at the start of every write (`struct rdma_ucm_cmd_hdr`).
    pub struct CommandHeader: 8 {
        /// The [`Command`].
        cmd: u32 = 0,
        /// Length of the request that follows, in bytes.
        r#in: u16 = 4,
        /// Size of the buffer for the response, in bytes.
        out: u16 = 6,
    }
}

numbered! {
    /// A command number (`RDMA_USER_CM_CMD_*`).
    #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u32)]
    pub enum Command {
        /// Creates an id.
        CreateId = 0,
        /// Destroys an id.
        DestroyId = 1,
        /// Binds to an IP address.
        BindIp = 2,
        /// Resolves an IP address.
        ResolveIp = 3,
        /// Resolves a route.
        ResolveRoute = 4,
        /// Returns addresses, device and path.
        QueryRoute = 5,
        /// Sends a connection request.
        Connect = 6,
        /// Listens for connection requests.
        Listen = 7,
        /// Accepts a connection request, or confirms the answer to one.
        Accept = 8,
        /// Rejects a connection request.
        Reject = 9,
        /// Ends a connection.
        Disconnect = 10,
        /// Returns the attributes of a queue pair.
        InitQpAttr = 11,
        /// Waits for an event and reads it.
        GetEvent = 12,
        /// This command is not implemented.
        GetOption = 13,
        /// Sets an option.
        SetOption = 14,
        /// Passes an event of a queue pair to its connection.
        Notify = 15,
        /// Joins the multicast group of an IP address.
        JoinIpMcast = 16,
        /// Leaves a multicast group.
        LeaveMcast = 17,
        /// Moves an id to another open file.
        MigrateId = 18,
        /// Returns addresses, paths, GIDs or service records.
        Query = 19,
        /// Binds to an address of any family.
        Bind = 20,
        /// Resolves an address of any family.
        ResolveAddr = 21,
        /// Joins the multicast group of an address of any family.
        JoinMcast = 22,
        /// Asks the subnet administrator for a service.
        ResolveIbService = 23,
        /// Queues an event that the program makes itself.
        WriteCmEvent = 24,
    }
}
from_number!(Command, Errno::EINVAL);

impl Command {
    /// Returns the number of the command.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// Returns the request in `bytes`. Bytes that are missing at the end are zero; bytes behind it are
/// ignored.
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
