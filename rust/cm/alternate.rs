// SPDX-License-Identifier: GPL-2.0

//! The alternate path of a connection.
//!
//! `cmproto::cm` decides whether it is used. The path and its resources are kept in a box of the
//! connection, because few connections have one. Over InfiniBand either end can ask for another one
//! by a LAP.

use super::{execute::Cause, incoming_mad::IncomingMad, route::Route};
use crate::{
    endpoint::{Alternate, Attachment, Conn, Endpoint, EndpointRef, IdKind, Inner},
    ib::{
        device::Device,
        gid::{GidAttr, GidType},
    },
    kext::{
        delay,
        error::{ResultExt, ToKernel},
        users::UserRef,
    },
};
use cmproto::{
    cm::{AlternateEnd, AprStatus, LapParams, Outgoing, State, Tunable, Unusable},
    errno::Errno,
    path::{FromLink, Path},
    ucma::path::PathRecord,
    ucma_abi::UverbsQpAttr,
    wire::{Lap, ReqPath},
};
use core::{mem, result::Result as CoreResult};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::MutexGuard};

impl Alternate {
    /// Creates the alternate path along `route` from the port of `at`.
    pub(super) fn new(at: Attachment, route: Route) -> Result<KBox<Self>> {
        let this = Self {
            at,
            path: route.path,
            peer: route.peer,
            ah: Some(route.ah),
            pkey_index: route.pkey_index,
            data_lid: route.data_lids.outbound,
        };
        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Adds the path to the attributes of a queue pair.
    #[cold]
    pub(super) fn add_to(&self, attr: &mut UverbsQpAttr) {
        attr.alt_port_num = u8::try_from(self.at.port_num).unwrap_or(0);
        attr.alt_pkey_index = self.pkey_index;
        attr.alt_ah_attr = self.at.address_vector(&self.path, self.data_lid);
    }
}

/// Returns whether the path begins at this port of InfiniBand. May sleep.
fn begins_at(path: &Path, device: &Device, port: u32) -> bool {
    let lids = device.lids(port);
    lids.is_ok_and(|(lid, path_bits)| path.begins_at(lid, path_bits))
}

impl IncomingMad<'_> {
    /// Prepares the alternate path that the sender has `named`, for a connection along `primary`,
    /// like [`prepare`](Self::prepare).
    ///
    /// # Errors
    ///
    /// The reason why the path is not used.
    #[cold]
    pub(super) fn alternate(
        &self,
        named: &ReqPath,
        primary: &Path,
        link: &FromLink,
        user: Option<&UserRef>,
    ) -> CoreResult<KBox<Alternate>, Unusable> {
        self.prepare(&Path::alternate(named, primary, link), user)
    }

    /// Prepares an alternate path. May sleep. It is charged to `user` if it is for a program.
    ///
    /// # Errors
    ///
    /// The reason why the path is not used.
    fn prepare(
        &self,
        path: &Path,
        user: Option<&UserRef>,
    ) -> CoreResult<KBox<Alternate>, Unusable> {
        let device = &self.device.device;
        let gid = GidAttr::find(device, &path.sgid, GidType::Ib, None).ok();
        let port = gid
            .as_ref()
            .and_then(|gid| self.device.port(gid.port_num()));
        let end = AlternateEnd {
            can_migrate: device.can_migrate(),
            has_gid: port.is_some(),
            has_lid: port.is_some_and(|port| begins_at(path, device, port.num)),
            has_pkey: port.is_some_and(|port| device.find_pkey(port.num, path.pkey).is_ok()),
        };
        end.check(path)?;
        let port = port.ok_or(Unusable::UnknownGid)?;
        let at = Attachment::new(self.device, port, gid);
        Route::new(&at, path, path.flow_label, None, user)
            .and_then(|route| Alternate::new(at, route))
            .map_err(|_| Unusable::NoResources)
    }
}

impl Conn {
    /// Returns the path that a message of the connection names, if there is one.
    #[inline]
    pub(super) fn path_in(&self, message: Outgoing) -> Option<&Path> {
        let alternates = self.alternates.as_deref()?;
        let named = match message {
            Outgoing::Lap => &alternates.proposed,
            _ => &alternates.used,
        };
        named.as_ref().map(|alternate| &alternate.path)
    }
}

impl IncomingMad<'_> {
    /// Prepares the path in a LAP like [`prepare`](Self::prepare).
    ///
    /// # Errors
    ///
    /// The status of the APR that refuses the path.
    fn new_alternate(
        &self,
        lap: &Lap<'_>,
        primary: &Path,
        user: Option<&UserRef>,
    ) -> CoreResult<KBox<Alternate>, AprStatus> {
        let is_opa = self.device.device.has_opa_lids(self.port.num);
        let (named, link) = (lap.path(), self.received.source().link(is_opa));
        let path = Path::alternate(&named, primary, &link);
        primary.check_new_alternate(&path)?;
        Ok(self.prepare(&path, user)?)
    }
}

impl Endpoint {
    /// Notes that the queue pair has migrated to the alternate path. Changes nothing if there is
    /// none.
    ///
    /// Fails with `EINVAL` unless the connection is established.
    pub(super) fn migrate(self: &EndpointRef, inner: &mut Inner) -> Result {
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        if !conn.machine.migrate().kernel()? {
            return Ok(());
        }
        // The machine has an alternate path only while there is one here.
        let (Some(other), Some(at), Some(path)) = (
            conn.alternates
                .as_mut()
                .and_then(|paths| paths.used.as_mut()),
            &mut inner.device,
            &mut inner.route.path,
        ) else {
            return Err(EINVAL);
        };
        mem::swap(at, &mut other.at);
        mem::swap(path, &mut other.path);
        mem::swap(&mut conn.peer, &mut other.peer);
        mem::swap(&mut conn.ah, &mut other.ah);
        mem::swap(&mut conn.pkey_index, &mut other.pkey_index);
        mem::swap(&mut conn.data_lid, &mut other.data_lid);
        Ok(())
    }

    /// Handles a LAP over InfiniBand, of the peer of the connection that `inner` has.
    ///
    /// The lock is left while the path is prepared, which may sleep. Without memory nothing is
    /// done, and the peer asks again.
    #[cold]
    pub(super) fn receive_lap<'a>(
        self: &'a EndpointRef,
        mut inner: MutexGuard<'a, Inner>,
        mad: &IncomingMad<'_>,
        lap: &Lap<'_>,
    ) {
        let mut path = Err(AprStatus::Rejected);
        let conn = inner.exchange.conn();
        if conn.is_some_and(|conn| conn.machine.wants_lap(mad.header, lap)) {
            if conn.is_some_and(|conn| conn.peer != mad.origin) {
                // The peer uses the alternate path. The connection has one and is established.
                let _ = self.migrate(&mut inner);
            }
            let Some(primary) = inner.route.path else {
                return;
            };
            drop(inner);
            delay::point();
            path = mad.new_alternate(lap, &primary, self.user());
            inner = self.inner.lock();
        }
        let Some(conn) = inner.exchange.conn_mut() else {
            return;
        };
        if conn.alternates_mut().is_err() {
            return;
        }
        let checked = path.as_ref().map(|_| ()).map_err(|status| *status);
        let received = conn.machine.receive_lap(mad.header, lap, checked);
        if let (true, Some(alternates)) = (received.is_loaded, &mut conn.alternates) {
            alternates.used = path.ok();
        }
        let cause = match self.kind {
            IdKind::IbCm => Cause::Mad(mad.received.bytes()),
            IdKind::User | IdKind::RdmaCm => Cause::None,
        };
        self.execute(&mut inner, received.actions, &cause);
    }

    /// Ends the exchange of a LAP of this end, whose path is the alternate one if it `is_loaded`.
    #[cold]
    pub(super) fn end_lap(inner: &mut Inner, is_loaded: bool) {
        let conn = inner.exchange.conn_mut();
        if let Some(alternates) = conn.and_then(|conn| conn.alternates.as_mut()) {
            let proposed = alternates.proposed.take();
            if is_loaded {
                alternates.used = proposed;
            }
        }
    }

    /// Asks the peer of a connection over InfiniBand to use another alternate path. If it does, the
    /// attributes of the queue pair have the path.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the connection is not an established one over InfiniBand, or if the path is
    ///   the one that is used, does not begin at its device, or is in another partition or has
    ///   another MTU;
    /// - `EOPNOTSUPP` if the device cannot migrate;
    /// - `EBUSY` if the peer has not answered about another path yet;
    /// - `ENOMEM`, and errors of the device.
    pub(crate) fn load_alternate(self: &EndpointRef, record: &PathRecord) -> Result {
        let path = Path::from_record(record, true);
        let device = {
            let inner = self.inner.lock();
            let conn = inner.exchange.conn().filter(|_| inner.is_ib());
            let conn = conn.filter(|conn| conn.machine.state() == State::Established);
            let primary = inner.route.path.as_ref().filter(|_| conn.is_some());
            let primary = primary.ok_or(EINVAL)?;
            primary.check_alternate(&path).kernel()?;
            primary.check_new_alternate(&path).map_err(|_| EINVAL)?;
            inner.device.as_ref().ok_or(EINVAL)?.device.clone()
        };
        if !device.device.can_migrate() {
            return Err(Errno::EOPNOTSUPP.to_kernel());
        }
        let gid = GidAttr::find(&device.device, &path.sgid, GidType::Ib, None);
        let gid = gid.map_err(|_| EINVAL)?;
        let port = device.port(gid.port_num()).ok_or(EINVAL)?;
        if !begins_at(&path, &device.device, port.num) {
            return Err(EINVAL);
        }
        let at = Attachment::new(&device, port, Some(gid));
        let route = Route::new(&at, &path, path.flow_label, None, self.user())?;
        let (packet_life_time, ca_ack_delay) = (path.packet_life_time, route.ca_ack_delay);
        let proposed = Alternate::new(at, route)?;
        delay::point();
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        self.update_retry_policy(&mut inner, now);
        let timeout = inner.tuned(Tunable::ResponseTimeout);
        let params = LapParams {
            packet_life_time,
            ca_ack_delay,
            remote_cm_response_timeout: u8::try_from(timeout).unwrap_or(0),
        };
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        conn.alternates_mut()?;
        let actions = conn.machine.load_alternate(params, now).kernel()?;
        conn.alternates_mut()?.proposed = Some(proposed);
        self.execute(&mut inner, actions, &Cause::None);
        Ok(())
    }
}
