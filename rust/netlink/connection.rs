// SPDX-License-Identifier: GPL-2.0

//! The connections, and the attempts at one: the endpoints that are attached to a device.

use super::identifier::{is_visible, put_address, Identifier};
use crate::{
    endpoint::{EndpointRef, Exchange},
    globals::Globals,
    kext::{
        net::Net,
        netlink::{Answer, Message, Request},
    },
    table::members,
};
use cmproto::{
    addr::SockAddr,
    cm::{self, RoundTrip},
    cma::State,
    netlink::{Attr, Command, Viewer},
};
use kernel::prelude::*;

/// The place of an endpoint in the order of devices and their members.
#[derive(Clone, Copy)]
pub(super) struct Place {
    device: u32,
    member: members::Place,
}

impl Place {
    /// The first place.
    pub(super) const FIRST: Self = Place {
        device: 0,
        member: members::Place::FIRST,
    };

    /// Returns the next place.
    pub(super) fn after(self) -> Self {
        Place {
            member: self.member.after(),
            ..self
        }
    }
}

/// Returns the first endpoint from `place` on that is attached to a device, and its place.
pub(super) fn from(globals: &Globals, place: Place) -> Option<(Place, EndpointRef)> {
    globals.devices.find_map_from(place.device, |at| {
        let device = at.device.index();
        let next = if device == place.device {
            place.member
        } else {
            members::Place::FIRST
        };
        let (member, endpoint) = at.members.from(next)?;
        Some((Place { device, member }, endpoint))
    })
}

/// The contents of the message about a connection.
struct Connection {
    identifier: Identifier,
    port: u32,
    dst: SockAddr,
    qp_type: u8,
    qp_number: u32,
    /// `None` over iWARP.
    state: Option<cm::State>,
    retries: u8,
    trip: RoundTrip,
}

impl Connection {
    /// Creates the contents for an endpoint, unless it is a listener or not attached any more.
    fn of(endpoint: &EndpointRef) -> Option<Self> {
        let globals = &endpoint.globals;
        endpoint.with_lock(|endpoint, inner| {
            let at = inner.device.as_ref()?;
            if inner.state() == State::Listen {
                return None;
            }
            let view = inner.exchange.peer();
            let view = view.and_then(|peer| globals.round_trips.view(&peer, globals.now()));
            Some(Connection {
                identifier: Identifier::of(endpoint, inner),
                port: at.port_num,
                dst: endpoint.dst(inner),
                qp_type: endpoint.qp_type.0,
                qp_number: inner.qp.num,
                state: match inner.exchange {
                    Exchange::Iwarp(_) => None,
                    _ => Some(inner.cm_state()),
                },
                retries: inner.exchange.conn().map_or(0, |conn| conn.retries),
                trip: view.map_or(RoundTrip::UNKNOWN, |view| view.trip),
            })
        })
    }

    /// Adds the attributes.
    fn put(&self, request: &Request<'_>, message: &mut Message<'_>) -> Result {
        self.identifier.put(request, message)?;
        message.u32(Attr::Port as u16, self.port)?;
        put_address(Attr::Dst, &self.dst, message)?;
        message.u32(Attr::QpType as u16, self.qp_type.into())?;
        message.u32(Attr::QpNumber as u16, self.qp_number)?;
        if let Some(state) = self.state {
            message.u32(Attr::CmState as u16, state as u32)?;
        }
        message.u32(Attr::Retries as u16, self.retries.into())?;
        put_trip(self.trip, message)
    }
}

/// Adds the answer times of a peer, if there was an answer.
pub(super) fn put_trip(trip: RoundTrip, message: &mut Message<'_>) -> Result {
    if let Some((mean, deviation)) = trip.estimate() {
        message.uint(Attr::RoundTrip as u16, mean.as_micros())?;
        message.uint(Attr::RoundTripVar as u16, deviation.as_micros())?;
    }
    Ok(())
}

/// Dumps the connections from `place` on that the viewer sees.
pub(super) fn connections(
    globals: &Globals,
    viewer: &Viewer,
    net: &Net,
    place: &mut Place,
    out: &mut Answer<'_>,
) -> Result {
    while let Some((at, endpoint)) = from(globals, *place) {
        if is_visible(&endpoint, viewer, net) {
            if let Some(connection) = Connection::of(&endpoint) {
                out.message(Command::ConnectionGet as u8, |request, message| {
                    connection.put(request, message)
                })?;
            }
        }
        *place = at.after();
    }
    Ok(())
}
