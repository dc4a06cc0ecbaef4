// SPDX-License-Identifier: GPL-2.0

//! What an endpoint tells its consumer.

use super::{EndpointRef, Inner};
use cmproto::{
    ibcm::EventType,
    ucma::backlog::Admission,
    ucma_abi::{CmEvent, UverbsAhAttr},
    wire::MAD_LEN,
};
use kernel::{prelude::*, sync::Arc};
use zerocopy::FromZeros;

/// The most private data that an event carries, by its length field. iWARP uses all of it, the
/// messages of the IB CM at most 216 bytes (IBTA 12.11.1).
pub(super) const MAX_PRIVATE_DATA: usize = 255;

/// Enhanced connection establishment: what the two ends agree on beyond the IBTA's fields
/// (`struct rdma_ucm_ece`).
#[derive(Clone, Copy, Default)]
pub(crate) struct Ece {
    /// Vendor id, 24 bits.
    pub(crate) vendor_id: u32,
    /// The attribute modifier of the REQ or REP.
    pub(crate) attr_mod: u32,
}

/// What a consumer passes to connect or accept (`struct rdma_ucm_conn_param`).
pub(crate) struct ConnParam<'a> {
    /// QP of this end; 24 bits.
    pub(crate) qp_num: u32,
    /// Q_Key of this end's datagrams; 0 for the usual one.
    pub(crate) qkey: u32,
    /// Private data for the peer.
    pub(crate) private_data: &'a [u8],
    /// Non-zero if the QP uses a shared receive queue.
    pub(crate) srq: u8,
    /// RDMA reads and atomics that this end serves at a time.
    pub(crate) responder_resources: u8,
    /// RDMA reads and atomics that this end has outstanding at a time.
    pub(crate) initiator_depth: u8,
    /// Non-zero for end-to-end flow control.
    pub(crate) flow_control: u8,
    /// Retries of the QP, 0..=7; more is taken as 7.
    pub(crate) retry_count: u8,
    /// Receiver-not-ready retries of the QP, 0..=7; more is taken as 7.
    pub(crate) rnr_retry_count: u8,
}

/// The private data that an event reports: all of the field of the peer's message.
#[derive(Clone, Copy)]
pub(crate) struct PrivateData<'a>(&'a [u8]);

impl<'a> PrivateData<'a> {
    /// As much of `data` as an event carries.
    pub(crate) fn new(data: &'a [u8]) -> Self {
        PrivateData(data.get(..MAX_PRIVATE_DATA).unwrap_or(data))
    }

    /// The data.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Their length.
    pub(crate) fn len(&self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX)
    }
}

/// The connection parameters that an event reports, as this end sees them.
#[derive(Clone, Copy)]
pub(crate) struct ConnEventParam<'a> {
    /// The peer's private data.
    pub(crate) private_data: PrivateData<'a>,
    /// RDMA reads and atomics that this end may serve.
    pub(crate) responder_resources: u8,
    /// RDMA reads and atomics that this end may have outstanding.
    pub(crate) initiator_depth: u8,
    /// End-to-end flow control.
    pub(crate) flow_control: u8,
    /// Retries of the QP.
    pub(crate) retry_count: u8,
    /// Receiver-not-ready retries of the QP.
    pub(crate) rnr_retry_count: u8,
    /// Whether the peer's QP uses a shared receive queue.
    pub(crate) srq: u8,
    /// The peer's QP.
    pub(crate) qp_num: u32,
}

impl<'a> ConnEventParam<'a> {
    /// Parameters that hold nothing but private data.
    pub(crate) fn with_private_data(data: &'a [u8]) -> Self {
        ConnEventParam {
            private_data: PrivateData::new(data),
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: 0,
            qp_num: 0,
        }
    }
}

/// How datagrams get to where an event says.
#[derive(Clone, Copy)]
pub(crate) struct UdEventParam<'a> {
    /// The peer's private data.
    pub(crate) private_data: PrivateData<'a>,
    /// The way there.
    pub(crate) ah_attr: UverbsAhAttr,
    /// The QP there.
    pub(crate) qp_num: u32,
    /// Its Q_Key.
    pub(crate) qkey: u32,
}

impl<'a> UdEventParam<'a> {
    /// Parameters that hold nothing but private data.
    pub(crate) fn with_private_data(data: &'a [u8]) -> Self {
        UdEventParam {
            private_data: PrivateData::new(data),
            ah_attr: FromZeros::new_zeroed(),
            qp_num: 0,
            qkey: 0,
        }
    }
}

/// What comes with an event, by its kind. Private data is borrowed: whoever keeps the event copies them, as
/// [`KeptEvent`](super::KeptEvent) does.
#[derive(Clone)]
pub(crate) enum EventParam<'a> {
    /// Nothing.
    None,
    /// A connection's parameters.
    Conn(ConnEventParam<'a>),
    /// A datagram service's, or a multicast group's.
    Ud(UdEventParam<'a>),
    /// A number that means something to whoever wrote the event.
    Arg(u64),
    /// The message itself, of a request for somebody who speaks of messages.
    Message(Arc<[u8; MAD_LEN]>),
}

impl<'a> EventParam<'a> {
    /// Whether there is something.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, EventParam::None)
    }

    /// The private data.
    pub(super) fn private_data(&self) -> &'a [u8] {
        match self {
            EventParam::Conn(conn) => conn.private_data.bytes(),
            EventParam::Ud(ud) => ud.private_data.bytes(),
            EventParam::None | EventParam::Arg(_) | EventParam::Message(_) => &[],
        }
    }

    /// The same with other private data.
    pub(super) fn with_private_data<'b>(&self, data: &'b [u8]) -> EventParam<'b> {
        match self {
            EventParam::None => EventParam::None,
            EventParam::Conn(conn) => EventParam::Conn(ConnEventParam {
                responder_resources: conn.responder_resources,
                initiator_depth: conn.initiator_depth,
                flow_control: conn.flow_control,
                retry_count: conn.retry_count,
                rnr_retry_count: conn.rnr_retry_count,
                srq: conn.srq,
                qp_num: conn.qp_num,
                ..ConnEventParam::with_private_data(data)
            }),
            EventParam::Ud(ud) => EventParam::Ud(UdEventParam {
                ah_attr: ud.ah_attr,
                qp_num: ud.qp_num,
                qkey: ud.qkey,
                ..UdEventParam::with_private_data(data)
            }),
            EventParam::Arg(arg) => EventParam::Arg(*arg),
            EventParam::Message(mad) => EventParam::Message(mad.clone()),
        }
    }
}

/// One event.
#[derive(Clone)]
pub(crate) struct Event<'a> {
    /// What happened.
    pub(crate) kind: CmEvent,
    /// 0, a negative errno, the reason of a REJ, or the status of a SIDR_REP.
    pub(crate) status: i32,
    /// What comes with it.
    pub(crate) param: EventParam<'a>,
    /// What the peer said about ECE.
    pub(crate) ece: Ece,
}

impl Event<'_> {
    /// An event with nothing but a status.
    pub(crate) fn new(kind: CmEvent, status: i32) -> Self {
        Event {
            kind,
            status,
            param: EventParam::None,
            ece: Ece::default(),
        }
    }
}

/// Whoever owns an endpoint: a context of a user's channel, or a kernel consumer.
pub(crate) trait Consumer: Send + Sync {
    /// Whether this is a part of the kernel, whose callback runs later and uses the device.
    ///
    /// It is then for the consumer to destroy the endpoint when the device goes: the removal of the
    /// device waits for that.
    fn is_kernel(&self) -> bool {
        false
    }

    /// Takes an event, and sees to its being [traced](Endpoint::traced) when the owner is told.
    ///
    /// Called with the endpoint's lock held, in the order in which things happened: it queues the
    /// event and returns. It does not lock the endpoint, which is `inner`, and does not fail.
    fn event(&self, inner: &Inner, event: &Event<'_>);

    /// Takes what was made of a message, likewise, for an endpoint whose consumer speaks of
    /// [messages](Endpoint::speaks_messages); `mad` is what arrived, if something did.
    fn message(&self, _event: EventType, _mad: Option<Arc<[u8; MAD_LEN]>>) {}

    /// The conversation of such an endpoint may have moved on. Called with the endpoint's lock held.
    fn moved(&self, _inner: &Inner) {}

    /// Takes an event of a multicast group that the endpoint was told to join as `group`, likewise.
    fn group_event(&self, inner: &Inner, group: u64, event: &Event<'_>);

    /// Whether a connection request would be taken now, a guess that saves work. As many as `parking`
    /// may wait beyond the backlog. Fails as [`connect_request`](Self::connect_request).
    ///
    /// Called with no lock held.
    fn takes_requests(&self, parking: u32) -> Result;

    /// Offers a connection request that arrived for this listener.
    ///
    /// Called with no lock held, possibly while the listener is being destroyed. The consumer
    /// gives `child` a consumer of its own ([`Endpoint::set_consumer`]) before anybody can see the
    /// request. `ENOMEM` means "not now" (the backlog is full): the peer hears nothing and tries
    /// again. `ENOSPC`: so many requests are parked already. Any other error refuses the connection.
    fn connect_request(
        &self,
        child: &EndpointRef,
        event: &Event<'_>,
        parking: u32,
    ) -> Result<Admission>;

    /// Says that the device is gone, before the event that says so. The endpoint is dead.
    ///
    /// Called with the endpoint's lock held.
    fn device_removed(&self);
}
