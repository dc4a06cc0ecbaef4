// SPDX-License-Identifier: GPL-2.0

//! What `rdma resource show cm_id` shows of a connection.
//!
//! C headers: [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h),
//! `drivers/infiniband/core/{restrack,cma_priv}.h`

use super::{device::DeviceRef, trace};
use crate::{bindings, kext::delay};
use cmproto::addr::SockAddr;
use core::{
    marker::PhantomPinned,
    mem,
    ptr::{self, NonNull},
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
    types::Opaque,
};

/// Who owns what belongs to nobody.
const NOBODY: &CStr = c"rdma_cm";

/// The name of a part of the kernel that has identifiers.
///
/// What is shown under a name keeps it: connection requests can be there when the part has
/// destroyed its listener, and its module has gone.
#[derive(Clone)]
pub(crate) enum OwnerName {
    /// Those who speak of messages, and do not say their name.
    IbCm,
    /// A copy of what a part calls itself.
    Part(Arc<NameCopy>),
}

/// A copy of a string of C.
///
/// # Invariants
///
/// It is a string of C, made by `kstrdup()`, and this object's alone.
pub(crate) struct NameCopy(NonNull<c_char>);

// SAFETY: The string is never changed, and any task may free it.
unsafe impl Send for NameCopy {}
// SAFETY: As above.
unsafe impl Sync for NameCopy {}

impl NameCopy {
    /// Copies a string. May sleep. Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// `name` must be a string of C.
    unsafe fn new(name: *const c_char) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let copy = unsafe { bindings::kstrdup(name, bindings::GFP_KERNEL_ACCOUNT) };
        // INVARIANT: It was just made.
        NonNull::new(copy).map(Self).ok_or(ENOMEM)
    }
}

impl Drop for NameCopy {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is ours.
        unsafe { bindings::kfree(self.0.as_ptr().cast()) };
    }
}

impl OwnerName {
    /// Copies a name of C; none of null. May sleep. Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// The name must be null, or a string of C.
    pub(super) unsafe fn copy(name: *const c_char) -> Result<Option<Self>> {
        if name.is_null() {
            return Ok(None);
        }
        // SAFETY: By the safety requirements.
        let name = unsafe { NameCopy::new(name) }?;
        Ok(Some(Self::Part(Arc::new(name, GFP_KERNEL_ACCOUNT)?)))
    }

    /// The string of C, which is there for as long as this name is.
    fn as_char_ptr(&self) -> *const c_char {
        match self {
            Self::IbCm => c"ib_cm".as_char_ptr(),
            Self::Part(name) => name.0.as_ptr(),
        }
    }
}

/// How far the entry is.
enum Entry {
    /// Nobody owns it.
    Blank,
    /// It is getting or losing its owner.
    Busy,
    /// It has an owner.
    Owned,
    /// It is being put into the table of a device.
    Adding,
    /// As before, but is to be taken out again at once.
    Unwanted,
    /// It is shown at a device, which the reference keeps.
    Shown(DeviceRef),
}

/// Whether an identifier is shown, and under which name.
struct Record {
    entry: Entry,
    /// The owner's name, if it is a part of the kernel.
    name: Option<OwnerName>,
}

/// The part of an identifier that ib_core reads, in the layout in which it reads it.
///
/// Its methods can be called by any task at any time; call those that set a value under the lock
/// that protects what they show, so that the values agree.
///
/// # Invariants
///
/// - `raw.res` has an owner (a task or a string) unless `entry` is [`Entry::Blank`] or
///   [`Entry::Busy`]. A string is [`NOBODY`], or that of `name`, which stays until ib_core does not
///   read it any more. While it is [`Entry::Busy`], [`Entry::Adding`] or [`Entry::Unwanted`], only
///   the task that made it so, or that made it [`Entry::Adding`], changes `raw.res`.
/// - `raw.res` is in the table of `raw.id.device` at most while `entry` is none of
///   [`Entry::Blank`] and [`Entry::Owned`]. The device is registered then, and not changed.
#[pin_data(PinnedDrop)]
pub(crate) struct IdHead {
    #[pin]
    raw: Opaque<bindings::rdma_id_private_head>,
    #[pin]
    record: SpinLock<Record>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: ib_core reads the object from any task, and so can its owner.
unsafe impl Send for IdHead {}

// SAFETY: All fields that change are written with volatile or atomic accesses, or by one task at a
// time as the type invariant says.
unsafe impl Sync for IdHead {}

impl IdHead {
    /// Creates an identifier without owner, addresses and device.
    ///
    /// `ps` is an `enum rdma_ucm_port_space`, `qp_type` an `enum ib_qp_type`.
    pub(crate) fn new(ps: u16, qp_type: u8) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(move |slot: *mut bindings::rdma_id_private_head| {
                // The rest is read by nobody, or written by `set_consumer`.
                //
                // SAFETY: `slot` is valid for writes, and zeros are valid addresses, and a valid entry.
                unsafe {
                    let id = &raw mut (*slot).id;
                    (&raw mut (*id).device).write(ptr::null_mut());
                    (&raw mut (*id).context).write(ptr::null_mut());
                    (&raw mut (*id).qp).write(ptr::null_mut());
                    (&raw mut (*id).event_handler).write(None);
                    (&raw mut (*id).route.addr.src_addr).write_bytes(0, 1);
                    (&raw mut (*id).route.addr.dst_addr).write_bytes(0, 1);
                    (&raw mut (*id).route.addr.dev_addr).write_bytes(0, 1);
                    (&raw mut (*id).route.path_rec).write(ptr::null_mut());
                    (&raw mut (*id).route.path_rec_inbound).write(ptr::null_mut());
                    (&raw mut (*id).route.path_rec_outbound).write(ptr::null_mut());
                    (&raw mut (*id).route.num_pri_alt_paths).write(0);
                    (&raw mut (*id).route.num_service_recs).write(0);
                    (&raw mut (*id).route.service_recs).write(ptr::null_mut());
                    (&raw mut (*id).ps).write(u32::from(ps));
                    (&raw mut (*id).qp_type).write(u32::from(qp_type));
                    (&raw mut (*id).port_num).write(0);
                    (&raw mut (*slot).state).write(0);
                    (&raw mut (*slot).consumer).write(ptr::null_mut());
                    (&raw mut (*slot).qp_num).write(0);
                    (&raw mut (*slot).res).write_bytes(0, 1);
                }
            }),
            record <- new_spinlock!(
                Record { entry: Entry::Blank, name: None },
                "rdma_cm_id_head"
            ),
            _pin: PhantomPinned,
        })
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rdma_id_private_head {
        self.raw.get()
    }

    fn res(&self) -> *mut bindings::rdma_restrack_entry {
        // SAFETY: The field is inside the object.
        unsafe { &raw mut (*self.raw.get()).res }
    }

    /// Shows the state, an `enum rdma_cm_state`.
    pub(crate) fn set_state(&self, state: u32) {
        // SAFETY: The field is inside the object; readers take what they find.
        unsafe { (&raw mut (*self.raw.get()).state).write_volatile(state) };
    }

    /// Shows the number of the QP; 0 for none.
    pub(crate) fn set_qp_num(&self, qp_num: u32) {
        // SAFETY: As above.
        unsafe { (&raw mut (*self.raw.get()).qp_num).write_volatile(qp_num) };
    }

    /// Shows the addresses of both ends.
    pub(crate) fn set_addresses(&self, src: &SockAddr, dst: &SockAddr) {
        // SAFETY: The fields are inside the object, longer than any socket address, and aligned for its
        // words; what follows one was zero from the start. Readers may see a mixture, as they do with
        // the C connection manager.
        unsafe {
            let addr = &raw mut (*self.raw.get()).id.route.addr;
            (&raw mut (*addr).src_addr)
                .cast::<[u64; SockAddr::MAX_WORDS]>()
                .write_volatile(src.to_words());
            (&raw mut (*addr).dst_addr)
                .cast::<[u64; SockAddr::MAX_WORDS]>()
                .write_volatile(dst.to_words());
        }
    }

    /// Gives a blank entry its owner.
    ///
    /// # Safety
    ///
    /// `set` must name an owner to the entry that it is given, and return the name whose string it
    /// has set, unless that stays for ever.
    unsafe fn own(
        &self,
        set: impl FnOnce(*mut bindings::rdma_restrack_entry) -> Option<OwnerName>,
    ) {
        {
            let mut record = self.record.lock();
            if !matches!(record.entry, Entry::Blank) {
                return;
            }
            record.entry = Entry::Busy;
        }
        // SAFETY: `entry` is busy, so nobody else is here.
        unsafe {
            bindings::rdma_restrack_new(
                self.res(),
                bindings::rdma_restrack_type_RDMA_RESTRACK_CM_ID,
            )
        };
        let name = set(self.res());
        // INVARIANT: The entry has an owner, and its name is kept.
        let owned = Record {
            entry: Entry::Owned,
            name,
        };
        let before = mem::replace(&mut *self.record.lock(), owned);
        drop(before);
    }

    /// Makes the current task the owner, unless there is one.
    pub(crate) fn own_by_current(&self) {
        // SAFETY: A null name stands for the current task.
        unsafe {
            self.own(|res| {
                bindings::rdma_restrack_set_name(res, ptr::null());
                None
            })
        };
    }

    /// Makes a part of the kernel the owner, unless there is one.
    pub(crate) fn own_by_kernel(&self, name: OwnerName) {
        // SAFETY: The name is set and returned.
        unsafe {
            self.own(|res| {
                bindings::rdma_restrack_set_name(res, name.as_char_ptr());
                Some(name)
            })
        };
    }

    /// Makes the owner of `parent` the owner, unless there is one; if `parent` has none (any more),
    /// the kernel.
    pub(crate) fn own_as(&self, parent: &IdHead) {
        // SAFETY: A task is taken over from an entry that has one, or a name is set: one that
        // stays, or one that is returned.
        unsafe {
            self.own(|res| {
                let record = parent.record.lock();
                let name = record.name.clone();
                match (&record.entry, &name) {
                    (Entry::Blank | Entry::Busy, _) => {
                        bindings::rdma_restrack_set_name(res, NOBODY.as_char_ptr());
                    }
                    (_, Some(name)) => bindings::rdma_restrack_set_name(res, name.as_char_ptr()),
                    // The task stays while the lock is held.
                    (_, None) => bindings::rdma_restrack_parent_name(res, parent.res()),
                }
                name
            })
        };
    }

    /// Shows the identifier at a device, and at one of its ports unless `port` is 0. May sleep.
    ///
    /// Keeps the device until [`IdHead::del`]. If memory is short the identifier is not shown,
    /// without an error.
    ///
    /// Fails with [`EINVAL`] if there is no owner, and [`EBUSY`] if it is shown already.
    pub(crate) fn add(&self, device: &DeviceRef, port: u32) -> Result {
        {
            let mut record = self.record.lock();
            match record.entry {
                Entry::Owned => record.entry = Entry::Adding,
                Entry::Blank => return Err(EINVAL),
                _ => return Err(EBUSY),
            }
        }
        // SAFETY: By the type invariant nobody else is here, and the entry is in no table yet in
        // which somebody could find the device.
        unsafe {
            (*self.raw.get()).id.device = device.as_raw();
            (*self.raw.get()).id.port_num = port;
            bindings::rdma_restrack_add(self.res());
        }
        trace::cma::cm_id_attach(self, device);
        delay::point();
        // INVARIANT: The device is kept by the reference.
        let shown = Entry::Shown(device.clone());
        let before = mem::replace(&mut self.record.lock().entry, shown);
        if matches!(before, Entry::Unwanted) {
            self.del();
        }
        Ok(())
    }

    /// Shows the identifier no more, and ends its ownership. Does nothing if there is none.
    ///
    /// Sleeps until netlink has finished with it, should it be listing it right now. If another task
    /// is about to show it, that one undoes it.
    pub(crate) fn del(&self) {
        let before = {
            let mut record = self.record.lock();
            match record.entry {
                Entry::Owned | Entry::Shown(_) => {}
                Entry::Adding => {
                    record.entry = Entry::Unwanted;
                    return;
                }
                Entry::Blank | Entry::Busy | Entry::Unwanted => return,
            }
            Record {
                entry: mem::replace(&mut record.entry, Entry::Busy),
                name: record.name.take(),
            }
        };
        // SAFETY: `entry` is busy, so nobody else is here. The device and the name are kept by
        // `before`, if there are any. What a later owner finds is as it was at the start.
        unsafe {
            bindings::rdma_restrack_del(self.res());
            (*self.res()).user = false;
            (*self.res()).kern_name = ptr::null();
            (*self.raw.get()).id.device = ptr::null_mut();
            (*self.raw.get()).id.port_num = 0;
        }
        drop(before);
        delay::point();
        self.record.lock().entry = Entry::Blank;
    }

    /// The number by which netlink knows the identifier; means nothing while it is not shown.
    pub(crate) fn id(&self) -> u32 {
        // SAFETY: The field is inside the object.
        unsafe { (&raw const (*self.res()).id).read_volatile() }
    }
}

#[pinned_drop]
impl PinnedDrop for IdHead {
    fn drop(self: Pin<&mut Self>) {
        self.del();
    }
}
