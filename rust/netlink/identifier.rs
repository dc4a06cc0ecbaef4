// SPDX-License-Identifier: GPL-2.0

//! The attributes of an identifier that connections and listeners have in common.

use super::port::put_device;
use crate::{
    endpoint::{Attachment, CmDevice, Endpoint, Inner},
    ib::restrack::Owner,
    kext::{
        net::Net,
        netlink::{Message, Request},
        users::User,
    },
};
use cmproto::{
    addr::SockAddr,
    cm::{Tunable, Tuning},
    cma::State,
    netlink::{Attr, Viewer},
    stored_addr::StoredAddr,
};
use kernel::{prelude::*, sync::Arc};

/// The contents of a message that are about an identifier.
pub(super) struct Identifier {
    number: u32,
    user: Option<u32>,
    owner: Option<Owner>,
    port_space: u16,
    age_ms: u64,
    device: Option<Arc<CmDevice>>,
    state: State,
    src: SockAddr,
    /// The tunables in force, as far as they are known.
    tuning: Tuning,
    /// The [bits](Tunable::bit) of those of them that the consumer has set.
    own: u32,
}

/// Returns whether a viewer in the network namespace `net` sees an endpoint.
pub(super) fn is_visible(endpoint: &Endpoint, viewer: &Viewer, net: &Net) -> bool {
    let owner = endpoint.user().map(|user| user.number());
    endpoint.net.ptr_eq(net) && viewer.sees(owner)
}

impl Identifier {
    /// Creates the contents for an endpoint, which is locked.
    pub(super) fn of(endpoint: &Endpoint, inner: &Inner) -> Self {
        // Where another CM sends the messages the port's values mean nothing.
        let port = inner.cm_port().filter(|_| !inner.is_iwarp());
        let device = inner.device.as_ref();
        Identifier {
            number: endpoint.id_priv.number(),
            user: endpoint.user().map(|user| User::number(user)),
            owner: endpoint.id_priv.owner(),
            port_space: endpoint.ps.number(),
            age_ms: endpoint.created().elapsed_ms(),
            device: device.map(|at: &Attachment| at.device.clone()),
            state: inner.state(),
            src: endpoint.src(inner).read(),
            tuning: inner.tuning_at(port),
            own: inner.tuning.own_bits(),
        }
    }

    /// Adds the attributes.
    pub(super) fn put(&self, request: &Request<'_>, message: &mut Message<'_>) -> Result {
        message.u32(Attr::Number as u16, self.number)?;
        if let Some(device) = &self.device {
            put_device(device, message)?;
        }
        if let Some(user) = self.user.and_then(|user| request.user_as_seen(user)) {
            message.u32(Attr::Uid as u16, user)?;
        }
        match &self.owner {
            // The reader is the current task.
            Some(Owner::Task(task)) => match u32::try_from(task.tgid_nr_ns(None)) {
                Ok(0) | Err(_) => {}
                Ok(pid) => message.u32(Attr::Pid as u16, pid)?,
            },
            Some(Owner::Part(name)) => message.text(Attr::Owner as u16, name.as_bytes())?,
            None => {}
        }
        message.u32(Attr::PortSpace as u16, self.port_space.into())?;
        message.u32(Attr::State as u16, self.state as u32)?;
        put_address(Attr::Src, &self.src, message)?;
        message.uint(Attr::Age as u16, self.age_ms)?;
        for tunable in Tunable::ALL {
            if let Some(value) = self.tuning.own(tunable) {
                message.u32(Attr::of(tunable) as u16, value)?;
            }
        }
        message.u32(Attr::SetOnId as u16, self.own)
    }
}

/// Adds an address, unless it is unspecified.
pub(super) fn put_address(attr: Attr, addr: &SockAddr, message: &mut Message<'_>) -> Result {
    match addr.to_bytes().get(..addr.len()) {
        Some(bytes) if !addr.is_unspec() => message.bytes(attr as u16, bytes),
        _ => Ok(()),
    }
}
