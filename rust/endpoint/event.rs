// SPDX-License-Identifier: GPL-2.0

//! Events of an endpoint.

use crate::kext::users::UserRef;
use cmproto::{
    ucma_abi::{CmEvent, UverbsAhAttr},
    wire::MAD_LEN,
};
use kernel::sync::Arc;
use zerocopy::FromZeros;

/// The most private data, in bytes, that an event carries, which is what its 8-bit length field
/// allows. iWARP uses all of it; messages of the IB CM carry at most 216 bytes (IBTA 12.11.1).
pub(super) const MAX_PRIVATE_DATA: usize = 255;

/// Enhanced connection establishment (ECE): vendor-specific options that the two ends agree on
/// (`struct rdma_ucm_ece`).
#[derive(Clone, Copy, Default)]
pub(crate) struct Ece {
    /// Vendor id, 24 bits.
    pub(crate) vendor_id: u32,
    /// The attribute modifier of the REQ or REP.
    pub(crate) attr_mod: u32,
}

/// The parameters of a connection that a consumer passes to connect or accept (`struct
/// rdma_ucm_conn_param`).
pub(crate) struct ConnParam<'a> {
    /// QPN of this end; 24 bits.
    pub(crate) qp_num: u32,
    /// Q_Key of this end's datagrams; 0 for the default of the port space.
    pub(crate) qkey: u32,
    /// Private data for the peer.
    pub(crate) private_data: &'a [u8],
    /// Non-zero if the QP uses a shared receive queue.
    pub(crate) srq: u8,
    /// The most RDMA reads and atomics that this end serves at a time.
    pub(crate) responder_resources: u8,
    /// The most RDMA reads and atomics that this end has outstanding at a time.
    pub(crate) initiator_depth: u8,
    /// Non-zero for end-to-end flow control.
    pub(crate) flow_control: u8,
    /// Retry count of the QP, 0..=7; larger values count as 7.
    pub(crate) retry_count: u8,
    /// RNR retry count of the QP, 0..=7; larger values count as 7.
    pub(crate) rnr_retry_count: u8,
    /// The user who pays for the connection of a program.
    pub(crate) user: Option<&'a UserRef>,
}

/// The private data that an event reports: the whole field of the peer's message.
#[derive(Clone, Copy)]
pub(crate) struct PrivateData<'a>(&'a [u8]);

impl<'a> PrivateData<'a> {
    /// Creates the private data of an event, cut to what an event carries.
    pub(crate) fn new(data: &'a [u8]) -> Self {
        PrivateData(data.get(..MAX_PRIVATE_DATA).unwrap_or(data))
    }

    /// Returns the data.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the length of the data, in bytes.
    pub(crate) fn len(&self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX)
    }
}

/// The connection parameters that an event reports, as seen from this end.
#[derive(Clone, Copy)]
pub(crate) struct ConnEventParam<'a> {
    /// The peer's private data.
    pub(crate) private_data: PrivateData<'a>,
    /// The most RDMA reads and atomics that this end may serve at a time.
    pub(crate) responder_resources: u8,
    /// The most RDMA reads and atomics that this end may have outstanding at a time.
    pub(crate) initiator_depth: u8,
    /// Non-zero for end-to-end flow control.
    pub(crate) flow_control: u8,
    /// Retry count of the QP.
    pub(crate) retry_count: u8,
    /// RNR retry count of the QP.
    pub(crate) rnr_retry_count: u8,
    /// Non-zero if the peer's QP uses a shared receive queue.
    pub(crate) srq: u8,
    /// QPN of the peer; 24 bits.
    pub(crate) qp_num: u32,
}

impl<'a> ConnEventParam<'a> {
    /// Creates parameters that are zero, but for the private data.
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

/// The destination of datagrams that an event reports: a peer or a multicast group.
#[derive(Clone, Copy)]
pub(crate) struct UdEventParam<'a> {
    /// The peer's private data.
    pub(crate) private_data: PrivateData<'a>,
    /// The address vector of the destination.
    pub(crate) ah_attr: UverbsAhAttr,
    /// QPN of the destination; 24 bits.
    pub(crate) qp_num: u32,
    /// Q_Key of the destination.
    pub(crate) qkey: u32,
}

impl<'a> UdEventParam<'a> {
    /// Creates parameters that are zero, but for the private data.
    pub(crate) fn with_private_data(data: &'a [u8]) -> Self {
        UdEventParam {
            private_data: PrivateData::new(data),
            ah_attr: FromZeros::new_zeroed(),
            qp_num: 0,
            qkey: 0,
        }
    }
}

/// The parameters of an event, depending on its kind. Private data is borrowed from the message:
/// a consumer that keeps the event copies it, as [`OwnedEvent`](super::OwnedEvent) does.
#[derive(Clone)]
pub(crate) enum EventParam<'a> {
    /// The event has no parameters.
    None,
    /// Parameters of a connection.
    Conn(ConnEventParam<'a>),
    /// The destination of a datagram service or of a multicast group.
    Ud(UdEventParam<'a>),
    /// The argument of an event that a program wrote.
    Arg(u64),
    /// The received MAD of a connection request, for a consumer of the InfiniBand CM.
    Message(Arc<[u8; MAD_LEN]>),
}

impl<'a> EventParam<'a> {
    /// Returns whether the event has parameters.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, EventParam::None)
    }

    /// Returns the private data, which is empty if there is none.
    pub(super) fn private_data(&self) -> &'a [u8] {
        match self {
            EventParam::Conn(conn) => conn.private_data.bytes(),
            EventParam::Ud(ud) => ud.private_data.bytes(),
            EventParam::None | EventParam::Arg(_) | EventParam::Message(_) => &[],
        }
    }

    /// Returns the same parameters with other private data.
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

/// An event of an endpoint.
#[derive(Clone)]
pub(crate) struct Event<'a> {
    /// The kind of event.
    pub(crate) kind: CmEvent,
    /// 0, a negative errno, the reason of a REJ, or the status of a SIDR_REP.
    pub(crate) status: i32,
    /// The parameters of the event.
    pub(crate) param: EventParam<'a>,
    /// The ECE of the peer's message.
    pub(crate) ece: Ece,
}

impl<'a> Event<'a> {
    /// Returns the event with this address vector, if it is one of a datagram service.
    #[cold]
    pub(crate) fn with_vector(&self, ah_attr: UverbsAhAttr) -> Event<'a> {
        let param = match &self.param {
            EventParam::Ud(param) => EventParam::Ud(UdEventParam { ah_attr, ..*param }),
            other => other.clone(),
        };
        Event { param, ..*self }
    }
}

impl Event<'_> {
    /// Creates an event with a status and without parameters.
    pub(crate) fn new(kind: CmEvent, status: i32) -> Self {
        Event {
            kind,
            status,
            param: EventParam::None,
            ece: Ece::default(),
        }
    }
}
