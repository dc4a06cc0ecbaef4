// SPDX-License-Identifier: GPL-2.0

//! One endpoint of a node: its state machine, and what the module keeps beside it.

use cmproto::{
    cm::{self, Connection, DestroyCause, RetryPolicy},
    cma,
    errno::Errno,
    node::{Asker, ExchangeView, RemoteIds},
    origin::Origin,
    sidr::{self, Resolution},
    time::Instant,
    wire::{Header, Message},
};

use crate::{alternate::Paths, tables::EpId};

/// The state machine of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Each of the two is large.
pub enum Machine {
    Connection(Connection),
    Resolution(Resolution),
}

/// The actions that a step of a [`Machine`] asks for.
pub enum Actions {
    Connection(cm::Actions),
    Resolution(sidr::Actions),
}

impl From<cm::Actions> for Actions {
    fn from(actions: cm::Actions) -> Self {
        Self::Connection(actions)
    }
}

impl From<sidr::Actions> for Actions {
    fn from(actions: sidr::Actions) -> Self {
        Self::Resolution(actions)
    }
}

impl Machine {
    /// Returns the connection, if it is one.
    pub fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Connection(connection) => Some(connection),
            Self::Resolution(_) => None,
        }
    }

    /// Returns the connection, to be changed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is none.
    pub(crate) fn connection_mut(&mut self) -> Result<&mut Connection, Errno> {
        match self {
            Self::Connection(connection) => Ok(connection),
            Self::Resolution(_) => Err(Errno::EINVAL),
        }
    }

    /// Returns the resolution, if it is one.
    pub fn resolution(&self) -> Option<&Resolution> {
        match self {
            Self::Resolution(resolution) => Some(resolution),
            Self::Connection(_) => None,
        }
    }

    /// Returns the resolution, to be changed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is none.
    pub(crate) fn resolution_mut(&mut self) -> Result<&mut Resolution, Errno> {
        match self {
            Self::Resolution(resolution) => Ok(resolution),
            Self::Connection(_) => Err(Errno::EINVAL),
        }
    }

    /// Returns when the timer runs out.
    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Connection(connection) => connection.deadline(),
            Self::Resolution(resolution) => resolution.deadline(),
        }
    }

    /// Returns whether it is over for good.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Connection(connection) => connection.is_closed(),
            Self::Resolution(resolution) => resolution.is_closed(),
        }
    }

    /// Sets how soon requests are sent early.
    pub fn set_retry_policy(&mut self, policy: RetryPolicy) {
        match self {
            Self::Connection(connection) => connection.set_retry_policy(policy),
            Self::Resolution(resolution) => resolution.set_retry_policy(policy),
        }
    }

    pub(crate) fn timeout(&mut self, now: Instant) -> Actions {
        match self {
            Self::Connection(connection) => connection.timeout(now).into(),
            Self::Resolution(resolution) => resolution.timeout(now).into(),
        }
    }

    pub(crate) fn destroy(&mut self, cause: DestroyCause, now: Instant) -> Actions {
        match self {
            Self::Connection(connection) => connection.destroy(cause, now).into(),
            Self::Resolution(resolution) => resolution.destroy(cause, now).into(),
        }
    }

    pub(crate) fn receive(
        &mut self,
        header: &Header,
        message: &Message<'_>,
        now: Instant,
    ) -> Actions {
        match self {
            Self::Connection(connection) => connection.receive(header, message, now).into(),
            Self::Resolution(resolution) => resolution.receive(message, now).into(),
        }
    }

    pub(crate) fn duplicate_req(&mut self, now: Instant) -> Actions {
        match self {
            Self::Connection(connection) => connection.duplicate_req(now).into(),
            Self::Resolution(resolution) => resolution.duplicate_req(now).into(),
        }
    }
}

/// An endpoint that connects or resolves a service id, or that a request was made to.
#[derive(Debug)]
pub struct Endpoint<W> {
    pub machine: Machine,
    /// The address that its messages go to, and the only one that they may come from.
    pub peer: Origin,
    /// The listener that a request was for; `None` on the active side.
    pub listener: Option<EpId>,
    /// The ids of its peer, of which the communication id is in the table.
    pub remote_ids: Option<RemoteIds>,
    /// The queue pair of its peer is in the table, too.
    pub is_confirmed: bool,
    /// The sender of a received request that may be parked.
    pub asker: Option<Asker>,
    /// The key in the table of SIDR requests.
    pub sidr_request: Option<(Origin, u32)>,
    /// The paths over InfiniBand.
    pub paths: Paths,
    pub state: cma::State,
    pub qkey: cma::Qkey,
    /// There is a user who hears of events.
    pub has_user: bool,
    pub is_destroyed: bool,
    /// The data that the environment keeps with it.
    pub watch: W,
}

impl<W> Endpoint<W> {
    /// Creates an endpoint in state `CONNECT`. On the active side it has a user.
    pub(crate) fn new(machine: Machine, peer: Origin, listener: Option<EpId>, watch: W) -> Self {
        Self {
            machine,
            peer,
            listener,
            remote_ids: None,
            is_confirmed: false,
            asker: None,
            sidr_request: None,
            paths: Paths::default(),
            state: cma::State::Connect,
            qkey: cma::Qkey::unknown(),
            has_user: listener.is_none(),
            is_destroyed: false,
            watch,
        }
    }

    /// Returns its communication id, or its request id if it asks.
    pub fn comm_id(&self) -> Option<u32> {
        match &self.machine {
            Machine::Connection(connection) => Some(connection.local_comm_id()),
            // The request id of a received SIDR_REQ is the peer's.
            Machine::Resolution(resolution) => {
                self.listener.is_none().then(|| resolution.request_id())
            }
        }
    }

    pub(crate) fn exchange(&self) -> ExchangeView<'_> {
        match &self.machine {
            Machine::Connection(connection) => ExchangeView::Connection(connection, self.peer),
            Machine::Resolution(resolution) => ExchangeView::Resolution(resolution, self.peer),
        }
    }
}
