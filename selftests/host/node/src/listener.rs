// SPDX-License-Identifier: GPL-2.0

//! Listeners, and their backlog.

use cmproto::{
    addr::SockAddr,
    listen::{ListenView, RequestView},
    node::Offer,
    private_data,
    qp::QpType,
    ucma::backlog::Backlog,
};

use crate::{endpoint::Endpoint, environment::Environment, node::Node, tables::EpId};

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

    /// Returns the number of requests that wait for the listener's user.
    pub fn waiting(&self, listener: EpId) -> usize {
        let is_waiting = |endpoint: &&Endpoint<E::Watch>| {
            endpoint.listener == Some(listener) && E::is_waiting(endpoint)
        };
        self.endpoints.values().filter(is_waiting).count()
    }

    /// Returns the position that one more request would have in the backlog. A SIDR_REQ is not parked.
    pub(crate) fn next_admission(&self, listener: EpId, is_sidr: bool) -> Offer {
        let limit = self.listeners.get(&listener).map_or(0, |own| own.backlog);
        let parking = match is_sidr {
            true => 0,
            false => self.tuning.parking(),
        };
        let mut backlog = Backlog::new();
        backlog.set(limit);
        for _ in 0..self.waiting(listener) {
            let _ = backlog.admit(parking);
        }
        backlog.next_admission(parking)
    }
}
