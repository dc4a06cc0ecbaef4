// SPDX-License-Identifier: GPL-2.0

//! Events, and the commands that read and write events.

use core::{
    ffi::CStr,
    mem::{align_of, offset_of},
};

use zerocopy::{FromBytes, IntoBytes};

use super::conn::{ConnParam, Ece, UdParam};
use crate::{
    bytes::fill,
    errno::Errno,
    numbered::{from_number, numbered},
};

numbered! {
    /// The kind of an event (`enum rdma_cm_event_type`).
    #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum CmEvent {
        /// The address is resolved.
        AddrResolved = 0 => c"address resolved",
        /// The address could not be resolved.
        AddrError = 1 => c"address error",
        /// The route is resolved.
        RouteResolved = 2 => c"route resolved ",
        /// The route could not be resolved.
        RouteError = 3 => c"route error",
        /// A connection request has arrived.
        ConnectRequest = 4 => c"connect request",
        /// The peer has accepted; the program has to confirm.
        ConnectResponse = 5 => c"connect response",
        /// The connection failed at this end.
        ConnectError = 6 => c"connect error",
        /// The peer does not answer, or does not have the service.
        Unreachable = 7 => c"unreachable",
        /// The peer has rejected the connection.
        Rejected = 8 => c"rejected",
        /// The connection is established.
        Established = 9 => c"established",
        /// The connection has ended.
        Disconnected = 10 => c"disconnected",
        /// The device is being removed.
        DeviceRemoval = 11 => c"device removal",
        /// The multicast group was joined.
        MulticastJoin = 12 => c"multicast join",
        /// The multicast group could not be joined, or the membership was lost.
        MulticastError = 13 => c"multicast error",
        /// The link-layer address of the interface has changed.
        AddrChange = 14 => c"address change",
        /// The time wait has ended: the queue pair may be used again.
        TimewaitExit = 15 => c"timewait exit",
        /// The service was found.
        AddrinfoResolved = 16 => Self::UNKNOWN,
        /// The service could not be found.
        AddrinfoError = 17 => Self::UNKNOWN,
        /// A program has written the event.
        User = 18 => Self::UNKNOWN,
        /// A library has written the event.
        Internal = 19 => Self::UNKNOWN,
    }
    /// Returns the text of `rdma_event_msg()` for the event, byte for byte.
    fn message -> &'static CStr
}

impl CmEvent {
    /// Returns the number of the kind.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The text of `rdma_event_msg()` for an event without a text.
    pub const UNKNOWN: &'static CStr = c"unrecognized event";
}

from_number!(CmEvent, Errno::EINVAL);

/// Size of the parameters of an event, in bytes: the size of [`UdParam`], the largest.
pub const EVENT_PARAM_LEN: usize = 304;

abi_structs! {
    /// The request of [`GetEvent`](super::Command::GetEvent) (`struct rdma_ucm_get_event`).
    pub struct GetEvent: 8 {
        /// Address of an [`EventResp`].
        response: u64 = 0,
    }

    /// The response with an event (`struct rdma_ucm_event_resp`).
    pub struct EventResp: 336 {
        /// The uid of the id or of the multicast membership.
        uid: u64 = 0,
        /// The id; in a connection request, the new id.
        id: u32 = 8,
        /// The [`CmEvent`].
        event: u32 = 12,
        /// 0, a negative errno, or the positive reason of a rejection.
        status: u32 = 16,
        /// Parameters: a [`ConnParam`], a [`UdParam`] or two numbers, then zeros.
        param: [u8; EVENT_PARAM_LEN] = 20,
        /// Zero.
        reserved: u32 = 324,
        /// Enhanced connection establishment (ECE).
        ece: Ece = 328,
    }

    /// The start of an [`EventResp`], which is all of an event without parameters.
    pub struct EventStart: 24 {
        /// The field `uid` of [`EventResp`].
        uid: u64 = 0,
        /// The field `id` of [`EventResp`].
        id: u32 = 8,
        /// The field `event` of [`EventResp`].
        event: u32 = 12,
        /// The field `status` of [`EventResp`].
        status: u32 = 16,
        /// The start of the field `param` of [`EventResp`]: zero.
        none: u32 = 20,
    }
}

impl EventResp {
    /// The least size of a program's buffer, in bytes: the size without `reserved` and `ece`.
    pub const MIN_LEN: usize = 324;

    /// Returns the parameters of the event as those of a connection.
    ///
    /// This is never `None`, because the field is aligned for them.
    pub fn conn_mut(&mut self) -> Option<&mut ConnParam> {
        const {
            assert!(offset_of!(EventResp, param) % align_of::<ConnParam>() == 0);
            assert!(align_of::<EventResp>() % align_of::<ConnParam>() == 0);
        }
        let (conn, _) = ConnParam::mut_from_prefix(&mut self.param).ok()?;
        Some(conn)
    }

    /// Returns the parameters of the event as the destination of a datagram service.
    ///
    /// This is never `None`, because the field is aligned for them.
    pub fn ud(&self) -> Option<&UdParam> {
        const {
            assert!(offset_of!(EventResp, param) % align_of::<UdParam>() == 0);
        }
        let (ud, _) = UdParam::ref_from_prefix(&self.param).ok()?;
        Some(ud)
    }

    /// Sets the parameters of the event to the destination of a datagram service.
    pub fn set_ud(&mut self, ud: &UdParam) {
        self.set_param(ud.as_bytes());
    }

    /// Sets the parameters of the event to the number that the event's writer has given.
    pub fn set_arg(&mut self, arg: u64) {
        self.set_param(&arg.to_ne_bytes());
    }

    fn set_param(&mut self, bytes: &[u8]) {
        self.param.fill(0);
        fill(&mut self.param, bytes);
    }
}

abi_structs! {
    /// The request of [`WriteCmEvent`](super::Command::WriteCmEvent) (`struct
    /// rdma_ucm_write_cm_event`).
    pub struct WriteCmEvent: 320 {
        /// The id.
        id: u32 = 0,
        /// Ignored.
        reserved: u32 = 4,
        /// [`CmEvent::User`] or [`CmEvent::Internal`].
        event: u32 = 8,
        /// Status, which is passed on.
        status: u32 = 12,
        /// Parameters, of which only the first eight bytes are used: see [`WriteCmEvent::arg`].
        param: [u8; EVENT_PARAM_LEN] = 16,
    }
}

impl WriteCmEvent {
    /// Returns the kind of the event.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] unless programs may write events of this kind.
    pub fn kind(&self) -> Result<CmEvent, Errno> {
        match CmEvent::try_from(self.event)? {
            kind @ (CmEvent::User | CmEvent::Internal) => Ok(kind),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the number that the event carries.
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
