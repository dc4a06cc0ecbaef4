// SPDX-License-Identifier: GPL-2.0

//! Events, and the commands that read and write them.

use core::{
    ffi::CStr,
    mem::{align_of, offset_of},
};

use zerocopy::{FromBytes, IntoBytes};

use super::conn::{ConnParam, Ece, UdParam};
use crate::{bytes::fill, errno::Errno};

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The kind of an event (`enum rdma_cm_event_type`).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum CmEvent {
            $($(#[$doc])* $name = $number,)*
        }

        impl CmEvent {
            /// Every kind, by number, without gaps.
            pub const ALL: [CmEvent; 20] = [$(CmEvent::$name,)*];
        }
    };
}

events! {
    /// The address is resolved.
    AddrResolved = 0,
    /// The address could not be resolved.
    AddrError = 1,
    /// The route is resolved.
    RouteResolved = 2,
    /// The route could not be resolved.
    RouteError = 3,
    /// Somebody wants to connect.
    ConnectRequest = 4,
    /// The other end accepted; the program has to confirm.
    ConnectResponse = 5,
    /// Connecting failed on this side.
    ConnectError = 6,
    /// The other end does not answer, or has no such service.
    Unreachable = 7,
    /// The other end refused.
    Rejected = 8,
    /// Connected.
    Established = 9,
    /// Disconnected.
    Disconnected = 10,
    /// The device is going away.
    DeviceRemoval = 11,
    /// The multicast group is joined.
    MulticastJoin = 12,
    /// The multicast group could not be joined, or is lost.
    MulticastError = 13,
    /// The hardware behind the address changed.
    AddrChange = 14,
    /// The queue pair may be used again.
    TimewaitExit = 15,
    /// A service is found.
    AddrinfoResolved = 16,
    /// A service could not be found.
    AddrinfoError = 17,
    /// Written by a program.
    User = 18,
    /// Written by a library.
    Internal = 19,
}

impl CmEvent {
    /// The number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The words that `rdma_event_msg()` has for the event, byte for byte.
    pub const fn message(self) -> &'static CStr {
        match self {
            Self::AddrResolved => c"address resolved",
            Self::AddrError => c"address error",
            Self::RouteResolved => c"route resolved ",
            Self::RouteError => c"route error",
            Self::ConnectRequest => c"connect request",
            Self::ConnectResponse => c"connect response",
            Self::ConnectError => c"connect error",
            Self::Unreachable => c"unreachable",
            Self::Rejected => c"rejected",
            Self::Established => c"established",
            Self::Disconnected => c"disconnected",
            Self::DeviceRemoval => c"device removal",
            Self::MulticastJoin => c"multicast join",
            Self::MulticastError => c"multicast error",
            Self::AddrChange => c"address change",
            Self::TimewaitExit => c"timewait exit",
            Self::AddrinfoResolved | Self::AddrinfoError | Self::User | Self::Internal => {
                Self::UNKNOWN
            }
        }
    }

    /// The words for an event that has none.
    pub const UNKNOWN: &'static CStr = c"unrecognized event";
}

impl TryFrom<u32> for CmEvent {
    type Error = Errno;

    /// [`Errno::EINVAL`] for a number that is no event.
    fn try_from(number: u32) -> Result<Self, Errno> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Self::ALL.get(n).copied())
            .ok_or(Errno::EINVAL)
    }
}

/// Size of what comes with an event, in bytes: that of [`UdParam`], the largest.
pub const EVENT_PARAM_LEN: usize = 304;

abi_struct! {
    /// [`GetEvent`](super::Command::GetEvent) (`struct rdma_ucm_get_event`).
    pub struct GetEvent: 8 {
        /// Address of an [`EventResp`].
        response: u64 = 0,
    }
}

abi_struct! {
    /// An event (`struct rdma_ucm_event_resp`).
    pub struct EventResp: 336 {
        /// What the program gave the id, or the multicast membership.
        uid: u64 = 0,
        /// The id; of a connection request the new one.
        id: u32 = 8,
        /// The [`CmEvent`].
        event: u32 = 12,
        /// 0, a negative error number, or the positive code of a rejection.
        status: u32 = 16,
        /// A [`ConnParam`], a [`UdParam`] or two numbers, then zeros.
        param: [u8; EVENT_PARAM_LEN] = 20,
        /// Zero.
        reserved: u32 = 324,
        /// Enhanced connection establishment.
        ece: Ece = 328,
    }
}

abi_struct! {
    /// The start of an [`EventResp`], all of an event with which nothing comes.
    pub struct EventStart: 24 {
        /// As in [`EventResp`].
        uid: u64 = 0,
        /// As in [`EventResp`].
        id: u32 = 8,
        /// As in [`EventResp`].
        event: u32 = 12,
        /// As in [`EventResp`].
        status: u32 = 16,
        /// The start of `param`: zero.
        none: u32 = 20,
    }
}

impl EventResp {
    /// Size without `reserved` and `ece`, the least that a program must take, in bytes.
    pub const MIN_LEN: usize = 324;

    /// What comes with the event, as parameters of a connection.
    ///
    /// `None` never: they have the alignment for it.
    pub fn conn_mut(&mut self) -> Option<&mut ConnParam> {
        const {
            assert!(offset_of!(EventResp, param) % align_of::<ConnParam>() == 0);
            assert!(align_of::<EventResp>() % align_of::<ConnParam>() == 0);
        }
        let (conn, _) = ConnParam::mut_from_prefix(&mut self.param).ok()?;
        Some(conn)
    }

    /// Sets what comes with the event: how to reach a datagram service.
    pub fn set_ud(&mut self, ud: &UdParam) {
        self.set_param(ud.as_bytes());
    }

    /// Sets what comes with the event: a number of the writer's own.
    pub fn set_arg(&mut self, arg: u64) {
        self.set_param(&arg.to_ne_bytes());
    }

    fn set_param(&mut self, bytes: &[u8]) {
        self.param.fill(0);
        fill(&mut self.param, bytes);
    }
}

abi_struct! {
    /// [`WriteCmEvent`](super::Command::WriteCmEvent) (`struct rdma_ucm_write_cm_event`).
    pub struct WriteCmEvent: 320 {
        /// The id.
        id: u32 = 0,
        /// Ignored.
        reserved: u32 = 4,
        /// [`CmEvent::User`] or [`CmEvent::Internal`].
        event: u32 = 8,
        /// Status, passed on.
        status: u32 = 12,
        /// Only the first eight bytes are looked at: see [`WriteCmEvent::arg`].
        param: [u8; EVENT_PARAM_LEN] = 16,
    }
}

impl WriteCmEvent {
    /// The kind of the event.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] unless it is one that programs write.
    pub fn kind(&self) -> Result<CmEvent, Errno> {
        match CmEvent::try_from(self.event)? {
            kind @ (CmEvent::User | CmEvent::Internal) => Ok(kind),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The number that the event carries.
    pub const fn arg(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.param;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_abi_event)
)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn events_are_their_index() {
        for (n, event) in CmEvent::ALL.into_iter().enumerate() {
            assert_eq!(event.number() as usize, n);
            assert_eq!(CmEvent::try_from(n as u32), Ok(event));
        }
        assert_eq!(CmEvent::try_from(20), Err(Errno::EINVAL));
    }

    #[test]
    fn events_up_to_15_have_words() {
        for event in CmEvent::ALL {
            let has_words = event.message() != CmEvent::UNKNOWN;
            assert_eq!((event, has_words), (event, event.number() <= 15));
        }
    }

    #[test]
    fn params_start_the_union_and_zero_the_rest() {
        let mut event = EventResp::new_zeroed();
        event.param.fill(0xff);
        let mut conn = ConnParam::new_zeroed();
        conn.qp_num = 0x1234;
        conn.rnr_retry_count = 7;
        event.param.fill(0);
        *event.conn_mut().unwrap() = conn;
        assert_eq!(event.param[..4], 0x1234u32.to_ne_bytes());
        assert_eq!(event.param[270], 7);
        assert_eq!(event.param[272..], [0; 32]);

        let mut ud = UdParam::new_zeroed();
        ud.private_data_len = 136;
        event.set_ud(&ud);
        assert_eq!(event.param[296], 136);

        event.set_arg(0x0102_0304_0506_0708);
        assert_eq!(event.param[..8], 0x0102_0304_0506_0708u64.to_ne_bytes());
        assert!(event.param[8..].iter().all(|b| *b == 0));

        let mut write = WriteCmEvent::new_zeroed();
        write.param = event.param;
        assert_eq!(write.arg(), 0x0102_0304_0506_0708);
    }

    #[test]
    fn programs_write_two_kinds() {
        let mut write = WriteCmEvent::new_zeroed();
        for number in (0..100).chain([u32::MAX]) {
            write.event = number;
            let kind = match number {
                18 => Ok(CmEvent::User),
                19 => Ok(CmEvent::Internal),
                _ => Err(Errno::EINVAL),
            };
            assert_eq!(write.kind(), kind);
        }
    }
}
