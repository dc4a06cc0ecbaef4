// SPDX-License-Identifier: GPL-2.0

//! The object of an endpoint at the iWARP CM.

use crate::ib::iw::{IwId, IwListener};
use cmproto::iwarp::Connection;
use kernel::{prelude::*, sync::Arc};

/// The object of an endpoint at the iWARP CM.
pub(crate) enum Iwarp {
    /// A connection, or the request for one.
    Connection(IwarpConnection),
    /// A listener at the endpoint's device.
    Listener(IwListener),
}

/// A connection at the iWARP CM, or the request for one.
pub(crate) struct IwarpConnection {
    /// The state machine of the connection.
    pub(crate) machine: Connection,
    /// The identifier at the iWARP CM.
    pub(crate) id: Arc<IwId>,
    /// The private data of the peer's answer, while the answer is held back from the consumer.
    pub(crate) held: KVec<u8>,
}

impl Iwarp {
    /// Ends the connection or listener. Waits for no peer. Called without a lock.
    pub(crate) fn end(this: KBox<Self>) {
        match KBox::into_inner(this) {
            // A request that was not answered may be refused within the event that brought it,
            // where [`IwId::destroy`] must not be called. Its identifier is dropped, and so
            // destroyed in the background.
            Iwarp::Connection(IwarpConnection { machine, id, .. }) => {
                if machine.is_attempt_over() {
                    IwId::destroy(id);
                }
            }
            Iwarp::Listener(listener) => drop(listener),
        }
    }
}
