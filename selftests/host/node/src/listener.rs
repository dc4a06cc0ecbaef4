// SPDX-License-Identifier: GPL-2.0

//! Listeners, and their backlog.

use cmproto::{
    addr::SockAddr,
    cm::DestroyCause,
    listen::{ListenView, RequestView},
    node::{Admission, Asker, Declined, Offer},
    private_data,
    qp::QpType,
    ucma::{backlog::Backlog, turn::Turn},
};
use std::collections::BTreeMap;

use crate::{environment::Environment, node::Node, tables::EpId};

/// A user's listener.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    pub addr: SockAddr,
    pub service_id: u64,
    /// A wildcard address is of its own family only.
    pub afonly: bool,
    /// Requests that may wait for the user.
    pub backlog: u32,
    /// The queue pairs that may be connected to it.
    pub qp_type: QpType,
}

/// Returns true if packets of these addresses come and go by the one interface of a node.
fn is_near(addr: &SockAddr) -> bool {
    match addr {
        SockAddr::V4 { addr, .. } => addr[0] == 10,
        SockAddr::V6 { addr, .. } => addr[0] == 0xfd,
        _ => false,
    }
}

impl<E: Environment> Node<E> {
    /// Listens.
    pub fn listen(&mut self, listener: Listener) -> EpId {
        let ep = self.take_ep();
        let mut backlog = Backlog::new();
        backlog.set(listener.backlog);
        self.backlogs.insert(ep, backlog);
        self.listeners.insert(ep, listener);
        ep
    }

    /// Finds the listener that a request with this private data is for.
    pub(crate) fn find_listener(&self, service_id: u64, private_data: &[u8]) -> Option<EpId> {
        let header = private_data::Header::decode(private_data).ok()?;
        let view = RequestView {
            header: &header,
            interface: Some(1),
            port: 1,
        };
        let (ep, _) = self.listeners.iter().find(|(_, listener)| {
            let own = ListenView {
                addr: &listener.addr,
                afonly: listener.afonly,
                bound_if: 0,
                port: None,
            };
            listener.service_id == service_id && own.accepts(&view)
        })?;
        match &header {
            private_data::Header::Ip(ip) if is_near(&ip.src) && ip.dst.to_gid() == self.gid => {
                Some(*ep)
            }
            _ => None,
        }
    }

    /// Notes the turn of a request that was offered to the listener, and forgets the first ones that
    /// were read.
    pub(crate) fn take_turn(&mut self, listener: EpId, turn: Turn, ep: EpId) {
        let turns = self.turns.entry(listener).or_default();
        while let Some(first) = turns.first_entry() {
            let endpoint = self.endpoints.get(first.get());
            if endpoint.is_some_and(E::is_waiting) {
                break;
            }
            first.remove();
        }
        turns.insert(turn, ep);
    }

    /// Returns the turns of the requests that wait for the listener's user, and forgets those of
    /// requests that were read or have gone.
    fn unread(&mut self, listener: EpId) -> &BTreeMap<Turn, EpId> {
        let endpoints = &self.endpoints;
        let turns = self.turns.entry(listener).or_default();
        turns.retain(|_, ep| endpoints.get(ep).is_some_and(E::is_waiting));
        turns
    }

    /// Returns the number of requests that wait for the listener's user.
    pub fn waiting(&mut self, listener: EpId) -> usize {
        self.unread(listener).len()
    }

    /// Returns the request to the listener that its user reads next.
    pub fn next_request(&self, listener: EpId) -> Option<EpId> {
        let mut turns = self.turns.get(&listener)?.values().copied();
        turns.find(|ep| self.endpoints.get(ep).is_some_and(E::is_waiting))
    }

    /// Returns the request to the listener that gives way to another one, if one does.
    fn replaceable(&mut self, listener: EpId) -> Option<EpId> {
        let random = u64::from(self.next_ep()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turns = self.unread(listener);
        let last = turns.last_key_value().map(|(turn, _)| *turn);
        let next = |turn| Some(*turns.range(turn..).next()?.0);
        turns.get(&Turn::replaced(last, random, next)?).copied()
    }

    /// Returns the backlog of the listener. If it has no room, the requests that its user has read
    /// do not count any more.
    fn backlog(&mut self, listener: EpId, asker: Option<Asker>) -> Result<&mut Backlog, Declined> {
        let backlog = self.backlogs.get(&listener).ok_or(Declined::NoRoom)?;
        let has_room = backlog.next_admission(asker) == Ok(Admission::Queued);
        let waiting = match has_room {
            true => usize::MAX,
            false => self.waiting(listener),
        };
        let backlog = self.backlogs.get_mut(&listener).ok_or(Declined::NoRoom)?;
        while backlog.waiting() as usize > waiting {
            backlog.release();
        }
        Ok(backlog)
    }

    /// Returns the admission that one more request would get now.
    pub(crate) fn next_admission(&mut self, listener: EpId, asker: Option<Asker>) -> Offer {
        let admission = self.backlog(listener, asker)?.next_admission(asker)?;
        match admission {
            Admission::Replaces if self.replaceable(listener).is_none() => Err(Declined::NoRoom),
            other => Ok(other),
        }
    }

    /// Admits a request, and ends the one that gives way to it, if one does.
    pub(crate) fn admit(&mut self, listener: EpId, asker: Option<Asker>) -> Offer {
        let replaced = match self.next_admission(listener, asker)? {
            Admission::Replaces => self.replaceable(listener),
            Admission::Queued | Admission::Parked => None,
        };
        let admission = self.backlog(listener, asker)?.admit(asker, || true)?;
        if let Some(replaced) = replaced {
            self.destroy(replaced, DestroyCause::NoMemory);
        }
        Ok(admission)
    }
}
