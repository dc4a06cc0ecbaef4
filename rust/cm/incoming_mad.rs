// SPDX-License-Identifier: GPL-2.0

//! A received message, and where it was received.

use super::reply_path::ReplyPath;
use crate::{
    device::port::Port,
    endpoint::CmDevice,
    globals::Globals,
    ib::mad::{Agent, ReceivedMad},
};
use cmproto::{origin::Origin, wire::Header};
use kernel::{error::Result, sync::Arc};

/// A received message, and the port that has received it.
pub(super) struct IncomingMad<'a> {
    pub(super) globals: &'a Arc<Globals>,
    pub(super) port: &'a Port,
    pub(super) device: &'a Arc<CmDevice>,
    pub(super) agent: &'a Arc<Agent>,
    pub(super) received: &'a ReceivedMad,
    pub(super) header: &'a Header,
    /// The origin of the message.
    pub(super) origin: Origin,
}

impl IncomingMad<'_> {
    /// Returns the path to the sender of the message.
    ///
    /// Fails if the message was sent to a GID that the device does not have.
    pub(super) fn reply_path(&self) -> Result<ReplyPath> {
        ReplyPath::of(self.port, self.device, self.received)
    }
}
