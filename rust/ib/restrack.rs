// SPDX-License-Identifier: GPL-2.0

//! Resource tracking: the entries of `rdma resource show cm_id`.
//!
//! C headers: [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h),
//! `drivers/infiniband/core/{restrack,cma_priv}.h`

use super::{device::DeviceRef, trace};
use crate::{bindings, kext::delay};
use cmproto::{addr::SockAddr, qp::QpType, stored_addr::StoredAddr};
use core::{
    marker::{PhantomData, PhantomPinned},
    mem,
    ptr::{self, NonNull},
    slice,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_spinlock,
    prelude::*,
    sync::{aref::ARef, Arc, SpinLock},
    task::Task,
    types::Opaque,
};

/// The owner of entries whose parent has no owner.
const NOBODY: &CStr = c"rdma_cm";

/// The name of an in-kernel owner of identifiers.
///
/// An entry that is shown keeps its name, because a connection request can outlive the listener and
/// the module of its owner.
#[derive(Clone)]
pub(crate) enum OwnerName {
    /// The consumers of the IB CM, which do not pass a name.
    IbCm,
    /// A copy of the name that a consumer has passed.
    Part(Arc<NameCopy>),
}

/// A copy of a C string.
///
/// # Invariants
///
/// The pointer is that of a C string made by `kstrdup()`, which this object owns.
pub(crate) struct NameCopy(NonNull<c_char>);

// SAFETY: The string is not changed, and any task may free it.
unsafe impl Send for NameCopy {}
// SAFETY: The string is not changed.
unsafe impl Sync for NameCopy {}

impl NameCopy {
    /// Copies a string. May sleep. Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// `name` must be a C string.
    unsafe fn new(name: *const c_char) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let copy = unsafe { bindings::kstrdup(name, bindings::GFP_KERNEL_ACCOUNT) };
        // INVARIANT: The copy was made above.
        NonNull::new(copy).map(Self).ok_or(ENOMEM)
    }
}

impl Drop for NameCopy {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the string is ours.
        unsafe { bindings::kfree(self.0.as_ptr().cast()) };
    }
}

impl OwnerName {
    /// Copies a name of C, or returns `None` for a null pointer. May sleep. Fails with [`ENOMEM`].
    ///
    /// # Safety
    ///
    /// The name must be null, or a C string.
    pub(crate) unsafe fn copy(name: *const c_char) -> Result<Option<Self>> {
        if name.is_null() {
            return Ok(None);
        }
        // SAFETY: By the safety requirements.
        let name = unsafe { NameCopy::new(name) }?;
        Ok(Some(Self::Part(Arc::new(name, GFP_KERNEL_ACCOUNT)?)))
    }

    /// The length from which on a name is cut off.
    const MAX_LEN: usize = 255;

    /// Returns the name.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let name = self.as_char_ptr();
        // SAFETY: The string is not changed, and lives as long as this name.
        unsafe { slice::from_raw_parts(name.cast(), bindings::strnlen(name, Self::MAX_LEN)) }
    }

    /// Returns the C string, which lives as long as this name.
    fn as_char_ptr(&self) -> *const c_char {
        match self {
            Self::IbCm => c"ib_cm".as_char_ptr(),
            Self::Part(name) => name.0.as_ptr(),
        }
    }
}

/// The owner of an identifier.
pub(crate) enum Owner {
    /// A task, which may have ended.
    Task(ARef<Task>),
    /// A part of the kernel.
    Part(OwnerName),
}

/// The state of a resource entry.
enum Entry {
    /// The entry has no owner.
    Blank,
    /// An owner is being set or removed.
    Busy,
    /// The entry has an owner.
    Owned,
    /// The entry is being added to the table of a device.
    Adding,
    /// The entry is in the table of a device, which is kept.
    Shown,
}

/// The state of the resource entry of an identifier, and its owner.
struct Record {
    entry: Entry,
    /// Set if the name of the owner is [`OwnerName::IbCm`].
    is_ib_cm: bool,
    /// The name of the owner, if it is another one in the kernel.
    name: Option<Arc<NameCopy>>,
    /// Keeps the device at which the entry is shown.
    device: Option<DeviceRef>,
}

impl Record {
    /// Creates the record of an entry that is not shown, whose owner has the name `name` if it is
    /// in the kernel.
    fn new(entry: Entry, name: Option<OwnerName>) -> Self {
        let (is_ib_cm, name) = match name {
            Some(OwnerName::IbCm) => (true, None),
            Some(OwnerName::Part(name)) => (false, Some(name)),
            None => (false, None),
        };
        Self {
            entry,
            is_ib_cm,
            name,
            device: None,
        }
    }

    /// Returns the name of the owner, if it is in the kernel.
    fn owner(&self) -> Option<OwnerName> {
        match &self.name {
            Some(name) => Some(OwnerName::Part(name.clone())),
            None => self.is_ib_cm.then_some(OwnerName::IbCm),
        }
    }
}

/// The part of an identifier that ib_core reads, in the layout of C.
///
/// Methods can be called by any task at any time. A method that sets a value should be called under
/// the lock that protects the original of the value, so that both agree.
///
/// # Invariants
///
/// - `raw.res` has an owner (a task or a string) unless `entry` is [`Entry::Blank`] or
///   [`Entry::Busy`]. A string is [`NOBODY`], or that of `name`, which is kept until ib_core does
///   not read it any more. While the state is [`Entry::Busy`] or [`Entry::Adding`], `raw.res` is
///   changed only by the task that has set this state.
/// - `raw.res` can be in the table of `raw.id.device` only while `entry` is neither
///   [`Entry::Blank`] nor [`Entry::Owned`]. The device is registered then, and the pointer is not
///   changed.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct RdmaIdPrivate {
    #[pin]
    raw: Opaque<bindings::rdma_id_private_head>,
    #[pin]
    record: SpinLock<Record>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: ib_core reads the object from any task, and so may its owner.
unsafe impl Send for RdmaIdPrivate {}

// SAFETY: All fields that change are written with volatile or atomic accesses, or by one task at a
// time as the type invariant says.
unsafe impl Sync for RdmaIdPrivate {}

impl RdmaIdPrivate {
    /// Creates an identifier without an owner, addresses or a device.
    ///
    /// `ps` is an `enum rdma_ucm_port_space`.
    pub(crate) fn new(ps: u16, qp_type: QpType) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(move |slot: *mut bindings::rdma_id_private_head| {
                // The fields that are not set are not read, or are written by `set_consumer`.
                //
                // SAFETY: `slot` is valid for writes, and zeros are valid addresses, and a valid
                // entry.
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
                    (&raw mut (*id).qp_type).write(u32::from(qp_type.0));
                    (&raw mut (*id).port_num).write(0);
                    (&raw mut (*slot).state).write(0);
                    (&raw mut (*slot).consumer).write(ptr::null_mut());
                    (&raw mut (*slot).qp_num).write(0);
                    (&raw mut (*slot).res).write_bytes(0, 1);
                    (&raw mut (*slot).iw).write(ptr::null_mut());
                }
            }),
            record <- new_spinlock!(
                Record::new(Entry::Blank, None),
                "rdma_cm_id_head"
            ),
            _pin: PhantomPinned,
        })
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::rdma_id_private_head {
        self.raw.get()
    }

    fn res(&self) -> *mut bindings::rdma_restrack_entry {
        // SAFETY: The field is inside the object.
        unsafe { &raw mut (*self.raw.get()).res }
    }

    /// Sets the state, an `enum rdma_cm_state`.
    pub(crate) fn set_state(&self, state: u32) {
        // SAFETY: The field is inside the object; readers accept any value.
        unsafe { (&raw mut (*self.raw.get()).state).write_volatile(state) };
    }

    /// Sets the QP number; 0 for none.
    pub(crate) fn set_qp_num(&self, qp_num: u32) {
        // SAFETY: The field is inside the object; readers accept any value.
        unsafe { (&raw mut (*self.raw.get()).qp_num).write_volatile(qp_num) };
    }

    /// Sets the identifier at the iWARP CM, or null, which drivers ask for (`rdma_iw_cm_id()`).
    ///
    /// It must not be destroyed before [`RdmaIdPrivate::del`] has returned, or before it is
    /// replaced here.
    pub(super) fn set_iw(&self, iw: *mut bindings::iw_cm_id) {
        // SAFETY: The field is inside the object; readers accept a null pointer.
        unsafe { (&raw mut (*self.raw.get()).iw).write_volatile(iw) };
    }

    /// Returns whether there is an identifier at the iWARP CM. Can be called in any context.
    pub(crate) fn has_iw(&self) -> bool {
        // SAFETY: The field is inside the object.
        !unsafe { (&raw const (*self.raw.get()).iw).read_volatile() }.is_null()
    }

    /// Removes the identifier at the iWARP CM.
    pub(crate) fn hide_iw(&self) {
        self.set_iw(ptr::null_mut());
    }

    /// Sets the address of this end.
    pub(crate) fn set_src(&self, src: &SockAddr) {
        // SAFETY: The field is inside the object.
        unsafe { write_address(&raw mut (*self.raw.get()).id.route.addr.src_addr, src) };
    }

    /// Sets the address of the other end.
    pub(crate) fn set_dst(&self, dst: &SockAddr) {
        // SAFETY: The field is inside the object.
        unsafe { write_address(&raw mut (*self.raw.get()).id.route.addr.dst_addr, dst) };
    }

    /// Returns the address of this end.
    #[inline]
    pub(crate) fn src(&self) -> ShownAddr<'_> {
        // SAFETY: The field is inside the object.
        unsafe { ShownAddr::new(&raw const (*self.raw.get()).id.route.addr.src_addr) }
    }

    /// Returns the address of the other end.
    #[inline]
    pub(crate) fn dst(&self) -> ShownAddr<'_> {
        // SAFETY: The field is inside the object.
        unsafe { ShownAddr::new(&raw const (*self.raw.get()).id.route.addr.dst_addr) }
    }

    /// Sets the owner of an entry that has none.
    ///
    /// # Safety
    ///
    /// `set` must set an owner for the entry that it is given. It must return the name whose string
    /// it has set, unless that string is static.
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
        // SAFETY: The state is busy, so that no other task changes the entry.
        unsafe {
            bindings::rdma_restrack_new(
                self.res(),
                bindings::rdma_restrack_type_RDMA_RESTRACK_CM_ID,
            )
        };
        let name = set(self.res());
        // INVARIANT: The entry has an owner, and its name is kept.
        let owned = Record::new(Entry::Owned, name);
        let before = mem::replace(&mut *self.record.lock(), owned);
        drop(before);
    }

    /// Makes the current task the owner, unless there is an owner.
    pub(crate) fn own_by_current(&self) {
        // SAFETY: A null name stands for the current task.
        unsafe {
            self.own(|res| {
                bindings::rdma_restrack_set_name(res, ptr::null());
                None
            })
        };
    }

    /// Makes a part of the kernel the owner, unless there is an owner.
    pub(crate) fn own_by_kernel(&self, name: OwnerName) {
        // SAFETY: The name is set and returned.
        unsafe {
            self.own(|res| {
                bindings::rdma_restrack_set_name(res, name.as_char_ptr());
                Some(name)
            })
        };
    }

    /// Makes the owner of `parent` the owner, unless there is an owner.
    ///
    /// If `parent` has no owner (any more), the kernel becomes the owner.
    pub(crate) fn own_as(&self, parent: &RdmaIdPrivate) {
        // SAFETY: The owner is a task, taken over from an entry that has one, or a name, which is
        // static or returned.
        unsafe {
            self.own(|res| {
                let record = parent.record.lock();
                let name = record.owner();
                match (&record.entry, &name) {
                    (Entry::Blank | Entry::Busy, _) => {
                        bindings::rdma_restrack_set_name(res, NOBODY.as_char_ptr());
                    }
                    (_, Some(name)) => bindings::rdma_restrack_set_name(res, name.as_char_ptr()),
                    // The task cannot go away while the lock is held.
                    (_, None) => bindings::rdma_restrack_parent_name(res, parent.res()),
                }
                name
            })
        };
    }

    /// Returns the owner, if there is one.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let record = self.record.lock();
        if matches!(record.entry, Entry::Blank | Entry::Busy) {
            return None;
        }
        if let Some(name) = record.owner() {
            return Some(Owner::Part(name));
        }
        // SAFETY: By the type invariant the entry has an owner, which is not changed while the lock
        // is held. `Task` is transparent.
        unsafe {
            let task = (*self.res()).task.cast::<Task>();
            (!task.is_null()).then(|| Owner::Task((&*task).into()))
        }
    }

    /// Returns the number by which netlink names the identifier; 0 until it is shown at a device.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: The field is inside the object; it may be written at the same time.
        unsafe { (&raw const (*self.res()).id).read_volatile() }
    }

    /// Shows the identifier at a device, and at one of its ports unless `port` is 0. May sleep.
    ///
    /// Keeps the device until [`RdmaIdPrivate::del`]. If memory is short the identifier is not
    /// shown, without an error.
    ///
    /// Fails with [`EINVAL`] if there is no owner, and [`EBUSY`] if the identifier is shown
    /// already.
    pub(crate) fn add(&self, device: &DeviceRef, port: u32) -> Result {
        {
            let mut record = self.record.lock();
            match record.entry {
                Entry::Owned => record.entry = Entry::Adding,
                Entry::Blank => return Err(EINVAL),
                _ => return Err(EBUSY),
            }
        }
        // SAFETY: By the type invariant no other task changes the entry, and the entry is not yet
        // in a table in which a reader could find the device.
        unsafe {
            (*self.raw.get()).id.device = device.as_raw();
            (*self.raw.get()).id.port_num = port;
            bindings::rdma_restrack_add(self.res());
        }
        trace::cma::cm_id_attach(self, device);
        delay::point();
        let device = device.clone();
        let mut record = self.record.lock();
        // INVARIANT: The reference keeps the device.
        record.device = Some(device);
        record.entry = Entry::Shown;
        Ok(())
    }

    /// Hides the identifier and removes its owner. Does nothing if there is no owner.
    ///
    /// Sleeps until a netlink dump that is reading the entry has finished. An identifier that
    /// another task is about to show stays: who hides one knows that it was shown, or has taken it
    /// from all who could show it.
    pub(crate) fn del(&self) {
        let before = {
            let mut record = self.record.lock();
            match record.entry {
                Entry::Owned | Entry::Shown => {}
                Entry::Blank | Entry::Busy | Entry::Adding => return,
            }
            mem::replace(&mut *record, Record::new(Entry::Busy, None))
        };
        // SAFETY: The state is busy, so that no other task changes the entry. `before` keeps the
        // device and the name, if there are any. The fields get their initial values for a later
        // owner.
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
}

/// Writes an address of an identifier. Readers may see a mixture of two addresses, as they do with
/// the C connection manager.
///
/// # Safety
///
/// `to` must be valid, with zeros behind an address.
unsafe fn write_address(to: *mut bindings::__kernel_sockaddr_storage, addr: &SockAddr) {
    let words = to.cast::<[u64; SockAddr::MAX_WORDS]>();
    // SAFETY: By the safety requirements. It is longer than any address, and aligned for the words.
    unsafe { words.write_volatile(addr.to_words()) };
}

/// An address of an identifier. If it is written at the same time, a reader gets a mixture of two
/// addresses.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
pub(crate) struct ShownAddr<'a> {
    addr: *const bindings::__kernel_sockaddr_storage,
    _identifier: PhantomData<&'a RdmaIdPrivate>,
}

impl ShownAddr<'_> {
    /// Borrows an address.
    ///
    /// # Safety
    ///
    /// `addr` must be valid as long as the result is used.
    #[inline]
    unsafe fn new(addr: *const bindings::__kernel_sockaddr_storage) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            addr,
            _identifier: PhantomData,
        }
    }
}

impl StoredAddr for ShownAddr<'_> {
    #[inline]
    fn word(&self, index: usize) -> u64 {
        if index >= SockAddr::MAX_WORDS {
            return 0;
        }
        // SAFETY: By the type invariant. The address is longer than these words, and aligned for
        // them.
        unsafe { self.addr.cast::<u64>().add(index).read_volatile() }
    }
}

#[pinned_drop]
impl PinnedDrop for RdmaIdPrivate {
    fn drop(self: Pin<&mut Self>) {
        self.del();
    }
}
