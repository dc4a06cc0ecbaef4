// SPDX-License-Identifier: GPL-2.0

//! The endpoint of a request, which is a child of its listener.

use super::matched_listener::MatchedListener;
use crate::{
    endpoint::{Attachment, Consumer, Endpoint, EndpointRef, Inner},
    ib::interface::Interface,
    kext::users::IdCharge,
};
use cmproto::{
    cm::DestroyCause,
    cma::Trigger,
    node::{Admission, Asker, Declined},
};
use kernel::{prelude::*, sync::Arc};

/// Initializes the endpoint of a request: its addresses and its attachment to the device, after
/// `fill` has set the connection or resolution. If that fails, the endpoint is ended.
pub(super) fn init_child(
    child: &EndpointRef,
    matched: &MatchedListener<'_>,
    attachment: Attachment,
    fill: impl FnOnce(&mut Inner) -> Result,
) -> Result {
    let link = match matched {
        MatchedListener::Address(target, _) if !attachment.is_roce() => target.link(),
        _ => Ok((None, 0)),
    };
    let mut inner = child.inner.lock();
    let mut filled = fill(&mut inner);
    match link {
        Ok((link, pkey)) => (inner.resolution.dev_addr, inner.addr.pkey) = (link, pkey),
        Err(error) => filled = Err(error),
    }
    if let MatchedListener::Address(target, listener) = matched {
        child.set_addresses(&mut inner, &target.src, &target.dst);
        inner.addr.port_group = listener.port_group;
        if let Some(netdev) = &target.netdev {
            inner.addr.bound_if = netdev.ifindex();
            inner.interface = Interface::of(netdev);
        }
    }
    let started = filled.and_then(|()| child.step(&mut inner, Trigger::Request));
    child.show(&inner);
    let attached = started.and_then(|()| child.attach(&mut inner, attachment));
    drop(inner);
    if attached.is_err() {
        child.end(DestroyCause::NoMemory);
    }
    attached
}

/// Checks whether the consumer would accept a request from `asker` now, even if only to park it,
/// and charges it.
///
/// A request that meets a full backlog costs no more than this check. Fails
/// like [`Consumer::connect_request`].
pub(super) fn takes_requests(
    listener: &Endpoint,
    asker: Option<Asker>,
) -> Result<(Admission, Option<IdCharge>), Declined> {
    let consumer = listener.inner.lock().consumer.clone();
    match consumer {
        Some(consumer) => consumer.takes_requests(asker),
        None => Ok((Admission::Queued, None)),
    }
}

/// Returns the consumer of `listener`, to which a request can be offered with
/// [`Consumer::connect_request`].
///
/// The consumer must be dropped after what that returns, which is the lock of the request's
/// endpoint. Fails with [`Declined::Gone`] if the listener has ended. The listener may be one whose
/// LISTEN fails at the moment: its consumer can be offered a request that was found before in any
/// case.
pub(crate) fn consumer_of(listener: &Endpoint) -> Result<Arc<dyn Consumer>, Declined> {
    listener.inner.lock().consumer.clone().ok_or(Declined::Gone)
}
