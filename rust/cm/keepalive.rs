// SPDX-License-Identifier: GPL-2.0

//! The watch over an established connection.

use super::execute::Cause;
use crate::endpoint::{Connection, Endpoint, EndpointRef, Inner};
use cmproto::cm::Actions;

impl Endpoint {
    /// Asks the peer of a connection as often as the tuning says, which has changed.
    pub(crate) fn keepalive_changed(self: &EndpointRef, inner: &mut Inner) {
        let now = self.globals.now();
        let interval = inner.limits().keepalive;
        self.watch(inner, |machine| machine.set_keepalive(interval, now));
    }

    /// Changes what a connection watches for, and carries out what follows.
    pub(super) fn watch(
        self: &EndpointRef,
        inner: &mut Inner,
        change: impl FnOnce(&mut Connection) -> Actions,
    ) {
        if let Some(conn) = inner.exchange.conn_mut() {
            let actions = change(&mut conn.machine);
            self.execute(inner, actions, &Cause::None);
        }
    }
}
