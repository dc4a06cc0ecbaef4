// SPDX-License-Identifier: GPL-2.0

//! The verbs of a connection, as in `<rdma/ib_cm.h>`, except the one that sends a REQ.
//!
//! They are called with the lock of the endpoint, unless they say that they take it. Each fails
//! with `EINVAL` if there is no connection, if its state does not allow the verb, or if there is
//! too much private data; nothing has changed then.

use super::execute::Cause;
use crate::{
    endpoint::{Connection, Endpoint, EndpointRef, Exchange, Inner, RetransmitMemory},
    ib::trace::icm::{self, IcmId},
    kext::error::ResultExt,
};
use cmproto::{
    cm::{AcceptParams, Actions, DestroyCause},
    errno::Errno,
    event::Phase,
    ibcm::{COMM_EST, PATH_MIG},
    node::RemoteIds,
    reject::Reason,
    time::Duration,
};
use kernel::prelude::*;

impl Endpoint {
    /// Answers a REQ with a REP. The parameters of the port are added to `params`.
    pub(crate) fn send_rep(
        self: &EndpointRef,
        inner: &mut Inner,
        mut params: AcceptParams,
        private_data: &[u8],
    ) -> Result {
        let now = self.globals.now();
        params.target_ack_delay = inner.cm_port().map_or(0, |port| port.ca_ack_delay);
        self.update_retry_policy(inner, now);
        let buffer = RetransmitMemory::from_cache(&self.globals.slabs.buffers)?;
        self.verb(
            inner,
            |machine| {
                machine.provide(buffer);
                machine.accept(&params, private_data, now)
            },
            |id, _| icm::icm_send_rep_err(id.local_id, id.state),
        )?;
        inner.qp.psn = params.starting_psn;
        inner.qp.num = params.local_qpn;
        inner.srq = params.srq;
        if let Some(port) = inner.cm_port() {
            let took = Duration::from_millis(self.created().elapsed_ms());
            port.counts.latencies.count(Phase::Accept, took);
        }
        Ok(())
    }

    /// Answers a REP with an RTU.
    pub(crate) fn send_rtu(self: &EndpointRef, inner: &mut Inner, private_data: &[u8]) -> Result {
        let now = self.globals.now();
        self.verb(
            inner,
            |machine| machine.establish(private_data, now),
            |id, _| icm::icm_send_cm_rtu_err(id),
        )
    }

    /// Rejects a REQ or a REP. `info` is the additional reject information.
    pub(crate) fn send_rej(
        self: &EndpointRef,
        inner: &mut Inner,
        reason: Reason,
        info: &[u8],
        private_data: &[u8],
    ) -> Result {
        let now = self.globals.now();
        self.verb(
            inner,
            |machine| machine.reject(reason, info, private_data, now),
            |id, _| {
                icm::icm_send_rej(id, reason.0);
                icm::icm_send_unknown_rej_err(id);
            },
        )
    }

    /// Ends a connection with a DREQ.
    pub(crate) fn send_dreq(self: &EndpointRef, inner: &mut Inner, private_data: &[u8]) -> Result {
        let now = self.globals.now();
        self.update_retry_policy(inner, now);
        self.verb(
            inner,
            |machine| machine.disconnect(private_data, now),
            |id, _| icm::icm_dreq_skipped(id),
        )
    }

    /// Answers a DREQ with a DREP.
    pub(crate) fn send_drep(self: &EndpointRef, inner: &mut Inner, private_data: &[u8]) -> Result {
        let now = self.globals.now();
        self.verb(
            inner,
            |machine| machine.confirm_disconnect(private_data, now),
            |id, _| icm::icm_send_drep_err(id),
        )
    }

    /// Handles an event of the consumer's queue pair, an `enum ib_event_type`. Takes the lock of
    /// the endpoint.
    ///
    /// Fails with `EISCONN` if the connection is established already, with `EADDRINUSE` if the
    /// queue pair of the peer belongs to another connection, and with `EINVAL` for other events.
    pub(crate) fn notify_cm(self: &EndpointRef, event: u32) -> Result {
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        match event {
            COMM_EST => {
                if conn.machine.wants_rtu() {
                    let ids = RemoteIds::of(&conn.machine, conn.peer);
                    if let Err(other) = self.confirm(conn, &ids, now) {
                        drop(inner);
                        other.stale_peer(ids.peer.origin);
                        return Err(Errno::EADDRINUSE).kernel();
                    }
                }
                self.verb(
                    &mut inner,
                    |machine| machine.notify_established(now),
                    |id, error| {
                        if error == Errno::EINVAL {
                            icm::icm_establish_err(id);
                        }
                    },
                )
            }
            PATH_MIG => self.migrate(&mut inner),
            _ => Err(EINVAL),
        }
    }

    /// Ends the connection or the resolution, if there is one: sends the last message that the
    /// protocol demands in its state, which is a REJ, a DREQ, a DREP, a SIDR_REP or none.
    pub(crate) fn destroy_cm(self: &EndpointRef, inner: &mut Inner, cause: DestroyCause) {
        match &mut inner.exchange {
            Exchange::Connection(conn) => {
                let actions = conn.machine.destroy(cause, self.globals.now());
                self.execute(inner, actions, &Cause::None);
            }
            Exchange::Sidr(sidr) => {
                let actions = sidr.machine.destroy(cause, self.globals.now());
                self.execute_sidr(inner, actions, None);
            }
            Exchange::None | Exchange::Iwarp(_) => {}
        }
    }

    /// Makes a transition of the connection. If it is refused, `refused` traces that.
    fn verb(
        self: &EndpointRef,
        inner: &mut Inner,
        call: impl FnOnce(&mut Connection) -> Result<Actions, Errno>,
        refused: impl FnOnce(&IcmId<'_>, Errno),
    ) -> Result {
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        let actions = call(&mut conn.machine);
        if let Err(error) = actions {
            refused(&self.icm_id(conn), error);
        }
        self.execute(inner, actions.kernel()?, &Cause::None);
        Ok(())
    }
}
