// SPDX-License-Identifier: GPL-2.0

//! Multicast memberships of ports, which are registered at a subnet administrator.
//!
//! # Lifetime of a membership
//!
//! The RDMA core joins a group once for all members of this host with the same join state, and
//! leaves it with the last of them. It reports success at once if the group is joined already, but
//! always on a work queue; and it reports once more, later, if the group is lost. The end of a
//! membership waits until such a callback has returned. So an [`SaMembership`] that is dropped ends
//! in the background, and can be dropped anywhere. That does not wait for the administrator.
//!
//! Lock order: the lock of a membership is a leaf; it is held only to copy a reference.

use super::{check_port, record, McMember, McRequest, SaClient};
use crate::{
    bindings,
    ib::device::{Device, DeviceRef},
    kext::{
        delay,
        error::from_code,
        reclaim::NoIo,
        use_count::{OwnedUse, UseCount},
        workqueue::OwnedQueue,
    },
};
use cmproto::addr::Gid;
use core::ptr;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::{from_err_ptr, to_result},
    impl_has_work, new_spinlock, new_work,
    prelude::*,
    sync::{
        atomic::{ordering::Relaxed, Atomic},
        Arc, SpinLock,
    },
    workqueue::{Work, WorkItem},
};

/// A receiver of the results of a membership.
///
/// Calls for one membership come one at a time, in process context as [described](super) for all
/// callbacks; they may sleep, and may drop the [`SaMembership`].
pub(crate) trait JoinDone: Send + Sync + 'static {
    /// Handles the result of the join: the properties of the group, or an error. Called at most
    /// once.
    ///
    /// The error can be, among others, `ETIMEDOUT`, [`EINVAL`] (the join was refused, or the group
    /// has other properties), [`EIO`] (the message could not be sent), [`EINTR`] (the device is
    /// being removed), [`EAGAIN`] (the administrator is not known at the moment) and [`ENOMEM`].
    /// After an error there are no more calls.
    fn join_done(self: Arc<Self>, result: Result<McMember>);

    /// Handles the loss of the membership. There are no more calls.
    ///
    /// A membership is lost for instance if the link goes down or the administrator changes
    /// (`ENETRESET`). To join again, create a new membership.
    fn group_lost(self: Arc<Self>, error: Error);
}

/// The state that the callbacks use.
struct State {
    /// The receiver, until it gets no more calls.
    context: Option<Arc<dyn JoinDone>>,
    is_joined: bool,
}

/// The part of a membership that the RDMA core refers to.
///
/// # Invariants
///
/// `raw` is null, or a membership of the RDMA core that this object owns and whose context points
/// to this object.
#[pin_data(PinnedDrop)]
struct Membership {
    raw: Atomic<*mut bindings::ib_sa_multicast>,
    #[pin]
    state: SpinLock<State>,
    #[pin]
    work: Work<Self>,
    queue: Arc<OwnedQueue>,
    _device: DeviceRef,
    // Dropped last: the task that closes the count waits for this use, and has the last reference
    // to the queue.
    _use: OwnedUse,
}

impl_has_work! {
    impl HasWork<Self> for Membership { self.work }
}

// SAFETY: Any task may end a membership; all other fields may be used by any task.
unsafe impl Send for Membership {}

// SAFETY: The fields that change are atomic or have a lock.
unsafe impl Sync for Membership {}

impl WorkItem for Membership {
    type Pointer = Pin<KBox<Self>>;

    /// Ends a membership that was dropped.
    fn run(this: Pin<KBox<Self>>) {
        let _scope = NoIo::begin();
        drop(this);
    }
}

#[pinned_drop]
impl PinnedDrop for Membership {
    fn drop(self: Pin<&mut Self>) {
        let raw = self.raw.load(Relaxed);
        if !raw.is_null() {
            // SAFETY: By the type invariant the membership is ours. This is not called by its
            // callback, because a `SaMembership` does this on a work queue. When this returns there
            // are no more callbacks, so that nobody refers to the object.
            unsafe { bindings::ib_sa_free_multicast(raw) };
        }
    }
}

/// Handles a change of a membership; called by the RDMA core.
///
/// Returns 0, so that the owner keeps the membership.
///
/// # Safety
///
/// Only the RDMA core may call this, for a membership of [`SaClient::join`].
unsafe extern "C" fn on_member(status: c_int, multicast: *mut bindings::ib_sa_multicast) -> c_int {
    let _scope = NoIo::begin();
    // SAFETY: By the invariant of `Membership`, whose end waits for this callback. The pointer may
    // not have been stored there yet, but the context was set before.
    let this = unsafe { &*(*multicast).context.cast_const().cast::<Membership>() };
    let mut state = this.state.lock();
    let was_joined = state.is_joined;
    let context = if status == 0 {
        state.is_joined = true;
        state.context.clone()
    } else {
        state.context.take()
    };
    drop(state);
    delay::point();
    let Some(context) = context else {
        return 0;
    };
    match (status, was_joined) {
        (0, false) => {
            // SAFETY: The record was filled before the call, and is not written after it.
            let record = unsafe { record::member_from_raw(&(*multicast).rec) };
            context.join_done(Ok(record));
        }
        // Success is reported once.
        (0, true) => (),
        (error, false) => context.join_done(Err(from_code(error))),
        (error, true) => context.group_lost(from_code(error)),
    }
    0
}

/// A membership in a group, or a pending request for one; dropping it leaves the group.
///
/// The group is left in the background: the drop never waits. After it, [`JoinDone`] is not called
/// any more. A call may be running, so the membership may be dropped in that call, and with locks
/// held that the call takes.
#[must_use = "dropping it leaves the group"]
pub(crate) struct SaMembership(
    /// The membership; `None` only while this is dropped.
    Option<Pin<KBox<Membership>>>,
);

impl Drop for SaMembership {
    fn drop(&mut self) {
        if let Some(membership) = self.0.take() {
            let context = membership.state.lock().context.take();
            drop(context);
            let queue = membership.queue.clone();
            queue.enqueue::<_, 0>(membership);
        }
    }
}

impl SaClient {
    /// Joins a group. May sleep.
    ///
    /// `context` is told of the result, even if the port is a member already; perhaps before this
    /// returns, but not by this task. The administrator is asked for about three seconds, with one
    /// request at a time for a group.
    ///
    /// Fails, without calling `context`, with `EOPNOTSUPP` if the port has no administrator,
    /// [`ENODEV`] if the module is being unloaded, and [`ENOMEM`].
    pub(crate) fn join(
        &self,
        device: &DeviceRef,
        port: u32,
        request: &McRequest,
        context: Arc<dyn JoinDone>,
    ) -> Result<SaMembership> {
        check_port(device, port)?;
        let in_use = UseCount::try_get_owned(&self.users).ok_or(ENODEV)?;
        let (queue, device) = (self.queue.clone(), device.clone());
        let state = State {
            context: Some(context),
            is_joined: false,
        };
        let device_raw = device.as_raw();
        let membership = KBox::pin_init(
            pin_init!(Membership {
                raw: Atomic::new(ptr::null_mut()),
                state <- new_spinlock!(state, "rdma_cm_sa_membership"),
                work <- new_work!("rdma_cm_sa_membership"),
                queue,
                _device: device,
                _use: in_use,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut rec = record::member_to_raw(&request.record());
        let context: *const Membership = &*membership;
        // SAFETY: The device is registered and its port has an administrator; the client is
        // registered, and the record is copied. The callback accepts the context until the
        // membership has ended, which is before the object is freed.
        let raw = from_err_ptr(unsafe {
            bindings::ib_sa_join_multicast(
                self.client.raw.get(),
                device_raw,
                port,
                &raw mut rec,
                request.mask().to_be(),
                bindings::GFP_KERNEL_ACCOUNT,
                Some(on_member),
                context.cast_mut().cast(),
            )
        })?;
        // INVARIANT: The membership was made for this object.
        membership.raw.store(raw, Relaxed);
        Ok(SaMembership(Some(membership)))
    }
}

/// Returns the properties of a group that a client on this host has joined or is joining.
///
/// That is for instance the broadcast group of an interface of IP over InfiniBand. Does not ask the
/// administrator, and does not sleep.
///
/// Fails with `EADDRNOTAVAIL` if no client has joined, [`ENODEV`] if the device has no groups, and
/// `EOPNOTSUPP` if the port has no administrator.
pub(crate) fn broadcast_group(device: &Device, port: u32, mgid: &Gid) -> Result<McMember> {
    check_port(device, port)?;
    let mut mgid = bindings::ib_gid { raw: mgid.0 };
    let mut rec = pin_init::zeroed();
    // SAFETY: The device is registered and its port has an administrator. The other arguments are
    // used during the call only.
    to_result(unsafe {
        bindings::ib_sa_get_mcmember_rec(device.as_raw(), port, &raw mut mgid, &raw mut rec)
    })?;
    Ok(record::member_from_raw(&rec))
}
