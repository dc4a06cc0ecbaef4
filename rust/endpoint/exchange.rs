// SPDX-License-Identifier: GPL-2.0

//! The exchange with a peer that an endpoint is engaged in.

use super::{
    iwarp::{Iwarp, IwarpConnection},
    retransmit_buffer::{Connection, RetransmitMemory},
    Attachment, EndpointRef,
};
use crate::{
    ib::ah::Ah,
    kext::slab::SlabBox,
    table::{
        comm_ids::CommId, parked::Parked, remote_ids::RemoteIdClaim, sidr_requests::SidrRequest,
    },
};
use cmproto::{
    cm::{self, RetryPolicy, Waiting},
    node::ExchangeView,
    origin::Origin,
    path::Path,
    sidr::Resolution,
    time::Instant,
};
use core::mem;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*};

/// The alternate path of a connection, and what is needed to send messages along it.
pub(crate) struct Alternate {
    /// The port at which the path begins.
    pub(crate) at: Attachment,
    /// The path.
    pub(crate) path: Path,
    /// The source of the peer's messages along the path.
    pub(crate) peer: Origin,
    /// The address handle of the peer.
    pub(crate) ah: Option<Ah>,
    /// Index of the P_Key of the messages.
    pub(crate) pkey_index: u16,
    /// The LID that data is sent to; 0 if it is the LID of the path.
    pub(crate) data_lid: u16,
}

/// The alternate paths of a connection, which few connections have.
#[derive(Default)]
pub(crate) struct Alternates {
    /// The alternate path, if there is one.
    pub(crate) used: Option<KBox<Alternate>>,
    /// The path that the LAP of this end proposes, until that is answered.
    pub(crate) proposed: Option<KBox<Alternate>>,
}

/// A connection that exists, or that a REQ asks for.
pub(crate) struct Conn {
    /// The state machine of the IB CM.
    pub(crate) machine: Connection,
    /// The local communication id.
    pub(crate) comm_id: CommId<EndpointRef>,
    /// The peer's communication id and QPN, as long as this connection is the one that is found by
    /// them.
    pub(crate) remote_ids: Option<RemoteIdClaim<EndpointRef>>,
    /// The source from which messages are accepted.
    pub(crate) peer: Origin,
    /// The address handle of the peer.
    pub(crate) ah: Option<Ah>,
    /// The alternate paths, if there were any.
    pub(crate) alternates: Option<KBox<Alternates>>,
    /// Index of the P_Key of the messages.
    pub(crate) pkey_index: u16,
    /// The LID that data is sent to; 0 if it is the LID of the path.
    pub(crate) data_lid: u16,
    /// Counts the request as parked while it waits in addition to a full backlog.
    pub(crate) parked: Option<Parked>,
    /// Number of messages that were sent again, 255 at most.
    pub(crate) retries: u8,
    /// The state before the transition that is under way, for tracepoints.
    pub(crate) before: cm::State,
}

/// A SIDR (service ID resolution) that this end has asked for, or has been asked for.
pub(crate) struct Sidr {
    /// The state machine of the IB CM.
    pub(crate) machine: Resolution,
    /// The communication id of the requesting side, which is the request ID of the SIDR_REQ.
    pub(crate) comm_id: Option<CommId<EndpointRef>>,
    /// The responding side's entry of the SIDR_REQ, until it is answered.
    pub(crate) request: Option<SidrRequest<EndpointRef>>,
    /// The source from which the answer is accepted, or from which the SIDR_REQ came.
    pub(crate) peer: Origin,
    /// The address handle of the peer.
    pub(crate) ah: Option<Ah>,
    /// Index of the P_Key of the messages.
    pub(crate) pkey_index: u16,
}

impl Alternates {
    /// Creates the alternate paths of a connection that has the path `used`.
    pub(crate) fn of(used: KBox<Alternate>) -> Result<KBox<Self>> {
        let this = Self {
            used: Some(used),
            proposed: None,
        };
        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }
}

impl Conn {
    /// Returns the alternate path, if there is one.
    #[inline]
    pub(crate) fn alternate(&self) -> Option<&Alternate> {
        self.alternates.as_ref()?.used.as_deref()
    }

    /// Returns the alternate paths, to be changed. Fails with [`ENOMEM`].
    pub(crate) fn alternates_mut(&mut self) -> Result<&mut Alternates> {
        match &mut self.alternates {
            Some(alternates) => Ok(alternates),
            none => Ok(none.insert(KBox::new(Alternates::default(), GFP_KERNEL_ACCOUNT)?)),
        }
    }
}

/// The exchange with a peer that an endpoint is engaged in.
// The kind is looked at for each action of a connection: it has a byte of its own, which costs less
// than one that has to be worked out from unused values of a field.
#[repr(u8)]
pub(crate) enum Exchange {
    /// There is no exchange.
    None,
    /// A connection of the InfiniBand CM, or the attempt at one. It has memory of its own, because
    /// listeners and identifiers that are not used have none.
    Connection(SlabBox<Conn>),
    /// A service ID resolution.
    Sidr(KBox<Sidr>),
    /// A connection or a listener at the iWARP CM.
    Iwarp(KBox<Iwarp>),
}

impl Exchange {
    /// Returns the connection of the InfiniBand CM, if there is one.
    #[inline]
    pub(crate) fn conn(&self) -> Option<&Conn> {
        match self {
            Exchange::Connection(conn) => Some(conn),
            _ => None,
        }
    }

    /// Returns the connection of the InfiniBand CM, if there is one.
    #[inline]
    pub(crate) fn conn_mut(&mut self) -> Option<&mut Conn> {
        match self {
            Exchange::Connection(conn) => Some(conn),
            _ => None,
        }
    }

    /// Returns the service ID resolution, if there is one.
    #[inline]
    pub(crate) fn sidr(&self) -> Option<&Sidr> {
        match self {
            Exchange::Sidr(sidr) => Some(sidr),
            _ => None,
        }
    }

    /// Returns the service ID resolution, if there is one.
    #[inline]
    pub(crate) fn sidr_mut(&mut self) -> Option<&mut Sidr> {
        match self {
            Exchange::Sidr(sidr) => Some(sidr),
            _ => None,
        }
    }

    /// Returns the object at the iWARP CM, if there is one.
    pub(crate) fn iwarp(&self) -> Option<&Iwarp> {
        match self {
            Exchange::Iwarp(iwarp) => Some(iwarp),
            _ => None,
        }
    }

    /// Returns the connection at the iWARP CM, if there is one.
    pub(crate) fn iwarp_connection_mut(&mut self) -> Option<&mut IwarpConnection> {
        match self {
            Exchange::Iwarp(iwarp) => match &mut **iwarp {
                Iwarp::Connection(connection) => Some(connection),
                Iwarp::Listener(_) => None,
            },
            _ => None,
        }
    }

    /// Takes the object at the iWARP CM out, if there is one.
    pub(crate) fn take_iwarp(&mut self) -> Option<KBox<Iwarp>> {
        match self {
            Exchange::Iwarp(_) => match mem::replace(self, Exchange::None) {
                Exchange::Iwarp(iwarp) => Some(iwarp),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the peer of an exchange of the InfiniBand CM.
    #[inline]
    pub(crate) fn peer(&self) -> Option<Origin> {
        match self {
            Exchange::Connection(conn) => Some(conn.peer),
            Exchange::Sidr(sidr) => Some(sidr.peer),
            Exchange::None | Exchange::Iwarp(_) => None,
        }
    }

    /// Returns the peer of an exchange of the InfiniBand CM, and the request that waits for its
    /// answer.
    #[inline]
    pub(crate) fn waiting(&self) -> Option<(&Origin, Option<Waiting>)> {
        match self {
            Exchange::Connection(conn) => Some((&conn.peer, conn.machine.waiting())),
            Exchange::Sidr(sidr) => Some((&sidr.peer, sidr.machine.waiting())),
            Exchange::None | Exchange::Iwarp(_) => None,
        }
    }

    /// Returns the time at which an exchange of the InfiniBand CM has to be looked at.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Exchange::Connection(conn) => conn.machine.deadline(),
            Exchange::Sidr(sidr) => sidr.machine.deadline(),
            Exchange::None | Exchange::Iwarp(_) => None,
        }
    }

    /// Sets the policy for the retries of an exchange of the InfiniBand CM.
    #[inline]
    pub(crate) fn set_retry_policy(&mut self, policy: RetryPolicy) {
        match self {
            Exchange::Connection(conn) => conn.machine.set_retry_policy(policy),
            Exchange::Sidr(sidr) => sidr.machine.set_retry_policy(policy),
            Exchange::None | Exchange::Iwarp(_) => {}
        }
    }

    /// Returns the source of a message, as the view by which it is judged has it: messages of the
    /// peer may also come along the alternate path.
    #[inline]
    pub(crate) fn source(&self, origin: Origin) -> Origin {
        let Some(conn) = self.conn() else {
            return origin;
        };
        match conn.alternate() {
            Some(alternate) if alternate.peer == origin => conn.peer,
            _ => origin,
        }
    }

    /// Returns the view by which `cmproto::node` judges messages of the InfiniBand CM.
    #[inline]
    pub(crate) fn view(&self) -> ExchangeView<'_, RetransmitMemory> {
        match self {
            Exchange::Connection(conn) => ExchangeView::Connection(&conn.machine, conn.peer),
            Exchange::Sidr(sidr) => ExchangeView::Resolution(&sidr.machine, sidr.peer),
            Exchange::None | Exchange::Iwarp(_) => ExchangeView::None,
        }
    }
}
