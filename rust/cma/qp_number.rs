// SPDX-License-Identifier: GPL-2.0

//! The numbers of queue pairs that programs connect with, and the owners of these queue pairs.

use crate::{
    endpoint::{Endpoint, EndpointRef, Event, IdKind, Inner},
    ib::device::DeviceRef,
    kext::{cred, delay, error::ResultExt},
    table::qp_numbers::QpNumberClaim,
};
use cmproto::{
    cm::{self, DestroyCause},
    cma::Trigger,
    qp::QpType,
    reject::Reason,
    ucma::qp_number::{self, Maker, QpAccess},
    ucma_abi::CmEvent,
};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*};

/// The most connections that give way before a call returns. More than a few are those of somebody
/// who wants the call to take long.
const FEW: usize = 16;

impl Endpoint {
    /// Returns the RDMA device of the endpoint, if it has one.
    fn rdma_device(&self) -> Option<DeviceRef> {
        let inner = self.inner.lock();
        Some(inner.device.as_ref()?.device.device.clone())
    }

    /// Ends connections of others with the number `number`, if it is that of a queue pair of the
    /// caller. To be called before the peer sees the number, and without a lock.
    #[inline]
    pub(super) fn take_qp_number(self: &EndpointRef, number: u32) {
        if self.globals.qp_numbers.is_claimed(number) {
            self.take_claimed_qp_number(number);
        }
    }

    #[cold]
    fn take_claimed_qp_number(self: &EndpointRef, number: u32) {
        let Some(device) = self.rdma_device() else {
            return;
        };
        let (maker, caller) = (device.qp_maker(number), cred::current_user());
        let users = match (self.kind, maker) {
            (IdKind::User, _)
                if qp_number::qp_access(maker, || caller, self.qp_type) != Ok(QpAccess::Owner) =>
            {
                return;
            }
            (IdKind::User, Some(Maker::Process { user, .. })) => [caller, user],
            (IdKind::User, _) => [caller; 2],
            // A part of the kernel has its own queue pairs only. No program is the user with this
            // number, which is that of none.
            (_, Some(Maker::Kernel)) => [u32::MAX; 2],
            (_, _) => return,
        };
        let (globals, index) = (self.globals.clone(), device.index());
        for _ in 0..FEW {
            match globals.qp_numbers.take_other(number, index, users) {
                Some(other) => other.give_way(),
                None => return,
            }
        }
        let rest = globals.clone();
        // Without memory they are in the way, as they are with C.
        let _ = globals.callbacks.try_spawn(GFP_KERNEL, move || {
            while let Some(other) = rest.qp_numbers.take_other(number, index, users) {
                other.give_way();
            }
        });
    }

    /// Checks whether the caller may name the queue pair with the number `number`. If there is
    /// none, an endpoint of a program claims the number until it ends.
    ///
    /// Fails with `EPERM` if the queue pair is another's, and with `ENOMEM`.
    #[inline]
    pub(super) fn claim_qp_number(self: &EndpointRef, inner: &Inner, number: u32) -> Result {
        match self.qp_access(inner, number)? {
            QpAccess::Owner | QpAccess::Shared => Ok(()),
            QpAccess::NoQp => self.claim_free_qp_number(inner, number),
        }
    }

    /// Claims the number `number`, which is that of no queue pair.
    ///
    /// When the claim is in the table, the owner is looked up again. So a process that gets a
    /// queue pair with the number at the same time either is seen here, or finds the claim.
    #[cold]
    fn claim_free_qp_number(self: &EndpointRef, inner: &Inner, number: u32) -> Result {
        let slot = inner.consumer.as_ref().and_then(|c| c.claim_slot());
        let (Some(slot), Some(attachment)) = (slot, &inner.device) else {
            return Ok(());
        };
        // Datagrams make no connection that could be in the way.
        if self.qp_type == QpType::UD {
            return Ok(());
        }
        let (table, index) = (&self.globals.qp_numbers, attachment.device.device.index());
        let claim = QpNumberClaim::new(table, number, index, cred::current_user(), self.clone())?;
        delay::point();
        self.qp_access(inner, number)?;
        slot.put(claim);
        Ok(())
    }

    /// Returns the relation of the caller to the queue pair with the number `number`, at the device
    /// of the endpoint.
    ///
    /// Fails with `EPERM` if it may not be named, unless a part of the kernel asks.
    #[inline]
    pub(super) fn qp_access(&self, inner: &Inner, number: u32) -> Result<QpAccess> {
        let (IdKind::User, Some(attachment)) = (self.kind, &inner.device) else {
            return Ok(QpAccess::Owner);
        };
        let maker = attachment.device.device.qp_maker(number);
        qp_number::qp_access(maker, cred::current_user, self.qp_type).kernel()
    }

    /// Ends the connection of this endpoint, whose number is that of another's queue pair by now.
    /// The consumer is told what it would be told by a peer that has found that out.
    fn give_way(self: &EndpointRef) {
        let mut inner = self.inner.lock();
        let Some(conn) = inner.exchange.conn() else {
            return;
        };
        let event = match conn.machine.state() {
            cm::State::Idle | cm::State::Timewait => return,
            cm::State::DreqRcvd => None,
            cm::State::Established | cm::State::DreqSent => Some((CmEvent::Disconnected, 0)),
            _ => Some((CmEvent::Rejected, Reason::STALE_CONN.0)),
        };
        self.destroy_cm(&mut inner, DestroyCause::Superseded);
        if let Some((kind, status)) = event {
            if kind == CmEvent::Disconnected {
                // A state that has no connection any more stays as it is.
                let _ = self.step(&mut inner, Trigger::Disconnected);
            }
            self.deliver(&inner, &Event::new(kind, i32::from(status)));
        }
    }
}
