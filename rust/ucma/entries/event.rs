// SPDX-License-Identifier: GPL-2.0

//! Events on their way from the endpoint to the program that reads them.

use crate::{
    endpoint::{ConnEventParam, Ece, Event, EventParam, UdEventParam},
    kext::slab::{SlabBox, SlabBoxCache, SlabMemory, Wait},
};
use cmproto::{
    bytes::fill,
    ucma_abi::{self as abi, CmEvent, EventResp, EventStart, FromZeros},
};
use kernel::{alloc::AllocError, prelude::*};

/// An event that was not read yet.
pub(crate) struct Unread {
    /// The position of the event among all events of the channel that it happened in.
    seq: u64,
    kind: CmEvent,
    /// 0, a negative errno, or the reason that the peer gave.
    status: i32,
    /// Set while a reader has taken the event and it is still in its slot.
    pub(super) is_taken: bool,
    /// The event in the layout of the ABI, if it has parameters.
    resp: Option<EventRespBox>,
}

impl Unread {
    /// Creates an event for the context or group `id`, with the user's value `uid` and the position
    /// `seq` among the events of its channel.
    ///
    /// `memory` is used if the event has parameters. Without it, parameters are reported as zeros.
    pub(crate) fn new(
        uid: u64,
        event: &Event<'_>,
        memory: Option<ParamReservation>,
        id: u32,
        seq: u64,
    ) -> Self {
        let mut unread = Unread {
            seq,
            kind: event.kind,
            status: event.status,
            is_taken: false,
            resp: None,
        };
        unread.resp = memory
            .filter(|_| event.param.is_some())
            .map(|memory| memory.fill(&unread.start(uid, id), event));
        unread
    }

    /// Returns the event of the endpoint that this one was made of, if it is a connection request.
    pub(crate) fn request(&mut self, is_datagram: bool) -> Event<'_> {
        let mut event = Event::new(self.kind, self.status);
        let Some(resp) = &mut self.resp else {
            return event;
        };
        event.ece = Ece {
            vendor_id: resp.ece.vendor_id,
            attr_mod: resp.ece.attr_mod,
        };
        event.param = if is_datagram {
            resp.ud().map_or(EventParam::None, ud_of_user)
        } else {
            resp.conn_mut()
                .map_or(EventParam::None, |conn| conn_of_user(conn))
        };
        event
    }

    /// Returns whether a program wrote the event (`WRITE_CM_EVENT`).
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.kind, CmEvent::User | CmEvent::Internal)
    }

    /// Returns the position of the event among all events of the channel that it happened in.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the start of the event in the layout of the ABI, for the context or group `id` with
    /// the user's value `uid`.
    pub(crate) fn start(&self, uid: u64, id: u32) -> EventStart {
        EventStart {
            uid,
            id,
            event: self.kind.number(),
            status: u32::from_ne_bytes(self.status.to_ne_bytes()),
            none: 0,
        }
    }

    /// Returns the event in the layout of the ABI, if it has parameters. A reader takes it, and
    /// puts it back if the event stays unread.
    pub(crate) fn resp(&mut self) -> &mut Option<EventRespBox> {
        &mut self.resp
    }
}

/// An event with parameters, in the layout of the ABI.
pub(crate) type EventRespBox = SlabBox<EventResp>;

/// The slab cache of events with parameters.
pub(crate) type ParamCache = SlabBoxCache<EventResp>;

/// Memory for the parameters of an event.
pub(crate) struct ParamReservation(SlabMemory<EventResp>);

impl ParamReservation {
    pub(crate) fn new(params: &ParamCache, wait: Wait) -> Result<Self, AllocError> {
        params.reserve(wait).map(Self)
    }

    /// Returns the memory of an event that was read.
    pub(crate) fn of_read(resp: EventRespBox) -> Self {
        Self(resp.into_memory())
    }

    /// Fills the memory with `event`, in the layout of the ABI.
    fn fill(self, start: &EventStart, event: &Event<'_>) -> EventRespBox {
        // All of it is copied to the user.
        let mut resp = self.0.zeroed();
        resp.uid = start.uid;
        resp.id = start.id;
        resp.event = start.event;
        resp.status = start.status;
        resp.ece = abi::Ece {
            vendor_id: event.ece.vendor_id,
            attr_mod: event.ece.attr_mod,
        };
        match &event.param {
            EventParam::Conn(conn) => {
                if let Some(param) = resp.conn_mut() {
                    conn_to_user(conn, param);
                }
            }
            EventParam::Ud(ud) => resp.set_ud(&ud_to_user(ud)),
            EventParam::Arg(arg) => resp.set_arg(*arg),
            EventParam::None | EventParam::Message(_) => {}
        }
        resp
    }
}

/// Converts the parameters of a connection to the layout of the ABI. `param` is all zeros; its
/// Q_Key and `valid` stay 0.
fn conn_to_user(conn: &ConnEventParam<'_>, param: &mut abi::ConnParam) {
    fill(&mut param.private_data, conn.private_data.bytes());
    param.private_data_len = conn.private_data.len();
    param.responder_resources = conn.responder_resources;
    param.initiator_depth = conn.initiator_depth;
    param.flow_control = conn.flow_control;
    param.retry_count = conn.retry_count;
    param.rnr_retry_count = conn.rnr_retry_count;
    param.srq = conn.srq;
    param.qp_num = conn.qp_num;
}

/// Returns the bytes of the private data in the layout of the ABI that are in use.
fn private_data(data: &[u8], len: u8) -> &[u8] {
    data.get(..usize::from(len)).unwrap_or(data)
}

/// Converts the parameters of a connection from the layout of the ABI.
fn conn_of_user(param: &abi::ConnParam) -> EventParam<'_> {
    let data = private_data(&param.private_data, param.private_data_len);
    EventParam::Conn(ConnEventParam {
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq,
        qp_num: param.qp_num,
        ..ConnEventParam::with_private_data(data)
    })
}

/// Converts the parameters of a datagram service from the layout of the ABI.
fn ud_of_user(param: &abi::UdParam) -> EventParam<'_> {
    let data = private_data(&param.private_data, param.private_data_len);
    EventParam::Ud(UdEventParam {
        qp_num: param.qp_num,
        qkey: param.qkey,
        ah_attr: param.ah_attr,
        ..UdEventParam::with_private_data(data)
    })
}

/// Converts the parameters of a datagram service to the layout of the ABI.
fn ud_to_user(ud: &UdEventParam<'_>) -> abi::UdParam {
    let mut param = abi::UdParam::new_zeroed();
    fill(&mut param.private_data, ud.private_data.bytes());
    param.private_data_len = ud.private_data.len();
    param.qp_num = ud.qp_num;
    param.qkey = ud.qkey;
    param.ah_attr = ud.ah_attr;
    param
}
