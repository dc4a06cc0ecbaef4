// SPDX-License-Identifier: GPL-2.0

//! Members of multicast groups, of which a subnet administrator knows.
//!
//! # Life of a membership
//!
//! The RDMA core joins once for all members of this host that are of one kind, and leaves with the
//! last of them. It tells a member at once if the group is joined already, but always on a work queue;
//! and once more, later, if the group is lost. The end of a membership waits until such a call is
//! over, so an [`SaMembership`] that is dropped ends in the background, and can be dropped anywhere.
//! That waits for no administrator.
//!
//! Lock order: the lock of a membership is a leaf; it is held for a copy of a reference.

use super::{check_port, record, McMember, McRequest, SaClient};
use crate::{
    bindings,
    ib::device::{Device, DeviceRef},
    kext::{
        delay,
        error::from_code,
        gate::{Gate, OwnedGuard},
        reclaim::NoIo,
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

/// Who wants to know what becomes of a membership.
///
/// The calls come one at a time for a membership, in process context as [said](super) for all; they
/// may sleep, and may drop the [`SaMembership`].
pub(crate) trait JoinDone: Send + Sync + 'static {
    /// The port is a member of the group, with the group's properties; or it is not. Called at most
    /// once.
    ///
    /// The result can be, among others, `ETIMEDOUT`, [`EINVAL`] (refused, or the group is not as
    /// asked for), [`EIO`] (the message could not be sent), [`EINTR`] (the device goes away),
    /// [`EAGAIN`] (the administrator is not known at the moment) and [`ENOMEM`]. After an error there
    /// are no more calls.
    fn join_done(self: Arc<Self>, result: Result<McMember>);

    /// The port is no member any more, for instance because the link was lost or there is another
    /// administrator (`ENETRESET`). There are no more calls; to join again, make a new membership.
    fn group_lost(self: Arc<Self>, error: Error);
}

/// What the calls need.
struct State {
    /// Until there are no more calls, or they are not wanted any more.
    context: Option<Arc<dyn JoinDone>>,
    is_joined: bool,
}

/// A membership as the RDMA core sees it.
///
/// # Invariants
///
/// `raw` is null, or a membership of the RDMA core that belongs to this object and whose context points
/// to it.
#[pin_data(PinnedDrop)]
struct Membership {
    raw: Atomic<*mut bindings::ib_sa_multicast>,
    #[pin]
    state: SpinLock<State>,
    #[pin]
    work: Work<Self>,
    queue: Arc<OwnedQueue>,
    _device: DeviceRef,
    // Dropped last: whoever closes the gate waits for it, and has the last reference to the queue.
    _inside: OwnedGuard,
}

impl_has_work! {
    impl HasWork<Self> for Membership { self.work }
}

// SAFETY: Any task may end a membership; all else may be used by any task.
unsafe impl Send for Membership {}

// SAFETY: As above.
unsafe impl Sync for Membership {}

impl WorkItem for Membership {
    type Pointer = Pin<KBox<Self>>;

    /// Ends what was dropped.
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
            // SAFETY: By the type invariant the membership is ours. This is no callback of it, because
            // a `SaMembership` does this on a work queue. Nobody calls back any more when this returns,
            // so that nobody refers to the object.
            unsafe { bindings::ib_sa_free_multicast(raw) };
        }
    }
}

/// Called when a group has been joined, or could not be, or is lost. Returns 0, which leaves the
/// membership with its owner.
///
/// # Safety
///
/// To be called by the RDMA core only, for a membership of [`SaClient::join`].
unsafe extern "C" fn on_member(status: c_int, multicast: *mut bindings::ib_sa_multicast) -> c_int {
    let _scope = NoIo::begin();
    // SAFETY: By the invariant of `Membership`, whose end waits for us. The pointer may not have been
    // stored there yet, but the context was set before.
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
        // There is no second success.
        (0, true) => (),
        (error, false) => context.join_done(Err(from_code(error))),
        (error, true) => context.group_lost(from_code(error)),
    }
    0
}

/// A membership in a group, or a request for one. Dropping it leaves the group, in the background.
///
/// The drop never waits. After it the calls of [`JoinDone`] do not start any more; one may be running,
/// so the drop may happen there, and with locks held that are taken there.
#[must_use = "dropping it leaves the group"]
pub(crate) struct SaMembership(
    /// Always there, but for the drop.
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
    /// Joins a group. May sleep. `context` hears of the result, also if the port is a member already,
    /// perhaps before this returns, but never in this task.
    ///
    /// The administrator is asked for about three seconds, once at a time for a group.
    ///
    /// Fails, without calling `context`, with `EOPNOTSUPP` if the port has no administrator,
    /// [`ENODEV`] if the module is going away, and [`ENOMEM`].
    pub(crate) fn join(
        &self,
        device: &DeviceRef,
        port: u32,
        request: &McRequest,
        context: Arc<dyn JoinDone>,
    ) -> Result<SaMembership> {
        check_port(device, port)?;
        let inside = Gate::enter_owned(&self.gate).ok_or(ENODEV)?;
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
                _inside: inside,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut rec = record::member_to_raw(&request.record());
        let context: *const Membership = &*membership;
        // SAFETY: The device is registered and its port has an administrator; the client is registered,
        // and the record is copied. The callback accepts the context until the membership has ended,
        // which is before the object is freed.
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
        // INVARIANT: It was made for this object.
        membership.raw.store(raw, Relaxed);
        Ok(SaMembership(Some(membership)))
    }
}

/// The properties of a group that some client on this host is a member of, or is about to be, for
/// instance the broadcast group of an interface of IP over InfiniBand. Does not ask the administrator,
/// or sleep.
///
/// Fails with `EADDRNOTAVAIL` if nobody is, [`ENODEV`] if the device has no groups, and `EOPNOTSUPP`
/// if the port has no administrator.
pub(crate) fn broadcast_group(device: &Device, port: u32, mgid: &Gid) -> Result<McMember> {
    check_port(device, port)?;
    let mut mgid = bindings::ib_gid { raw: mgid.0 };
    let mut rec = pin_init::zeroed();
    // SAFETY: The device is registered and its port has an administrator. The rest is used during the
    // call only.
    to_result(unsafe {
        bindings::ib_sa_get_mcmember_rec(device.as_raw(), port, &raw mut mgid, &raw mut rec)
    })?;
    Ok(record::member_from_raw(&rec))
}
