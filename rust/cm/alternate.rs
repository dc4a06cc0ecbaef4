// SPDX-License-Identifier: GPL-2.0

//! The alternate path of a connection.
//!
//! `cmproto::cm` decides whether it is used. The path and its resources are kept in a box of the
//! connection, because few connections have one.

use super::{incoming_mad::IncomingMad, route::Route};
use crate::{
    endpoint::{Alternate, Attachment, Endpoint, EndpointRef, Inner},
    ib::gid::{GidAttr, GidType},
    kext::{error::ResultExt, users::UserRef},
};
use cmproto::{
    cm::{AlternateEnd, Unusable},
    path::{FromLink, Path},
    ucma_abi::UverbsQpAttr,
    wire::ReqPath,
};
use core::{mem, result::Result as CoreResult};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*};

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

impl IncomingMad<'_> {
    /// Prepares the alternate path that the sender has `named`, for a connection along `primary`.
    /// May sleep. It is charged to `user` if it is for a program.
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
        let path = Path::alternate(named, primary, link);
        let device = &self.device.device;
        let gid = GidAttr::find(device, &path.sgid, GidType::Ib, None).ok();
        let port = gid
            .as_ref()
            .and_then(|gid| self.device.port(gid.port_num()));
        let end = AlternateEnd {
            can_migrate: device.can_migrate(),
            has_gid: port.is_some(),
            has_pkey: port.is_some_and(|port| device.find_pkey(port.num, path.pkey).is_ok()),
        };
        end.check(&path)?;
        let port = port.ok_or(Unusable::UnknownGid)?;
        let at = Attachment::new(self.device, port, gid);
        Route::new(&at, &path, path.flow_label, None, user)
            .and_then(|route| Alternate::new(at, route))
            .map_err(|_| Unusable::NoResources)
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
            &mut conn.alternate,
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
}
