// SPDX-License-Identifier: GPL-2.0

//! Counters of messages, below `/sys/class/infiniband/<device>/ports/<port>/`.
//!
//! C header: [`include/rdma/ib_sysfs.h`](srctree/include/rdma/ib_sysfs.h)

use super::device::DeviceRef;
use crate::bindings;
use cmproto::dropped::Dropped;
use core::ptr;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{ordering::Relaxed, Atomic},
        Arc,
    },
    types::Opaque,
};

/// What is counted of each message; each is a directory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CounterGroup {
    /// Messages sent, including repetitions.
    TxMsgs = 0,
    /// Repetitions among them.
    TxRetries = 1,
    /// Messages received.
    RxMsgs = 2,
    /// Repetitions among them.
    RxDuplicates = 3,
}

/// The names of their directories, in the order of [`CounterGroup`].
const GROUPS: [&CStr; 4] = [
    c"cm_tx_msgs",
    c"cm_tx_retries",
    c"cm_rx_msgs",
    c"cm_rx_duplicates",
];

/// The directory of what was dropped, which C does not have.
const DROPS_GROUP: &CStr = c"cm_rx_drops";

/// The names of its files, in the order of [`Dropped`].
const DROPS: [&CStr; Dropped::ALL.len()] = [
    c"truncated",
    c"header",
    c"attribute",
    c"unknown",
    c"mismatch",
    c"stranger",
    c"unexpected",
    c"unsupported",
    c"overload",
    c"unreachable",
];

/// The number of directories.
const DIRS: usize = GROUPS.len() + 1;

/// The names of the files, in the order of the attribute ids of the messages (IBTA 16.7.3).
const MESSAGES: [&CStr; 11] = [
    c"req",
    c"mra",
    c"rej",
    c"rep",
    c"rtu",
    c"dreq",
    c"drep",
    c"sidr_req",
    c"sidr_rep",
    c"lap",
    c"apr",
];

/// The attribute id of the first of them.
const FIRST_ATTR_ID: u16 = 0x10;

/// A file with a counter.
#[repr(C)]
struct Counter {
    // At the start, so that a pointer to it leads to the counter.
    attr: Opaque<bindings::ib_port_attribute>,
    value: Atomic<u64>,
}

impl Counter {
    fn new(name: Option<&'static CStr>) -> Self {
        let mut attr: bindings::ib_port_attribute = pin_init::zeroed();
        attr.attr.name = name.unwrap_or(c"").as_char_ptr();
        attr.attr.mode = 0o444;
        attr.show = Some(show);
        // SAFETY: The attribute is valid; all that is set there may be moved.
        unsafe { bindings::rust_rdma_sysfs_attr_init(&raw mut attr.attr) };
        Self {
            attr: Opaque::new(attr),
            value: Atomic::new(0),
        }
    }

    /// The attribute, which sysfs knows the counter by.
    fn attribute(&self) -> *mut bindings::attribute {
        // SAFETY: The field is inside the counter.
        unsafe { &raw mut (*self.attr.get()).attr }
    }
}

/// Called when a file is read.
///
/// # Safety
///
/// `attr` must be that of a [`Counter`], and `buf` a page.
unsafe extern "C" fn show(
    _device: *mut bindings::ib_device,
    _port: u32,
    attr: *mut bindings::ib_port_attribute,
    buf: *mut c_char,
) -> isize {
    // SAFETY: The attribute is at the start of the counter, which is there as long as the file is.
    let counter = unsafe { &*attr.cast::<Counter>() };
    let value = counter.value.load(Relaxed);
    // SAFETY: `buf` is a page, as this function demands, and the format fits the argument.
    let len = unsafe { bindings::sysfs_emit(buf, c"%llu\n".as_char_ptr(), value) };
    len as isize
}

/// The counters of a port.
pub(crate) struct Counts {
    counters: [[Counter; MESSAGES.len()]; GROUPS.len()],
    drops: [Counter; DROPS.len()],
}

// SAFETY: The attributes are constant, and the values are atomic.
unsafe impl Send for Counts {}

// SAFETY: As above.
unsafe impl Sync for Counts {}

impl Counts {
    /// Makes counters, all 0, that nobody sees yet.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::init(
            init!(Self {
                counters <- pin_init::init_array_from_fn(|_| {
                    pin_init::init_array_from_fn(|i| Counter::new(MESSAGES.get(i).copied()))
                }),
                drops <- pin_init::init_array_from_fn(|i| Counter::new(DROPS.get(i).copied())),
            }),
            GFP_KERNEL,
        )
    }

    fn counter(&self, group: CounterGroup, attr_id: u16) -> Option<&Counter> {
        let message = usize::from(attr_id.wrapping_sub(FIRST_ATTR_ID));
        self.counters.get(group as usize)?.get(message)
    }

    /// Counts `n` messages with the attribute id `attr_id`, if it is one of the CM's.
    pub(crate) fn add(&self, group: CounterGroup, attr_id: u16, n: u64) {
        if let Some(counter) = self.counter(group, attr_id) {
            counter.value.add(n, Relaxed);
        }
    }

    /// Counts a message that was dropped.
    pub(crate) fn dropped(&self, why: Dropped) {
        if let Some(counter) = self.drops.get(why as usize) {
            counter.value.add(1, Relaxed);
        }
    }

    /// How many messages with the attribute id `attr_id` were counted.
    pub(crate) fn get(&self, group: CounterGroup, attr_id: u16) -> u64 {
        self.counter(group, attr_id)
            .map_or(0, |counter| counter.value.load(Relaxed))
    }
}

/// What sysfs needs to find the counters. NULL ends each list.
struct Tables {
    attrs: [[*mut bindings::attribute; MESSAGES.len() + 1]; GROUPS.len()],
    drops: [*mut bindings::attribute; DROPS.len() + 1],
    groups: [bindings::attribute_group; DIRS],
    list: [*const bindings::attribute_group; DIRS + 1],
}

impl Tables {
    /// Makes the tables for `counts`, which they point to.
    fn new(counts: &Counts) -> Result<KBox<Self>> {
        let mut this = KBox::new(
            Self {
                attrs: [[ptr::null_mut(); MESSAGES.len() + 1]; GROUPS.len()],
                drops: [ptr::null_mut(); DROPS.len() + 1],
                groups: [pin_init::zeroed(); DIRS],
                list: [ptr::null(); DIRS + 1],
            },
            GFP_KERNEL,
        )?;
        let Self {
            attrs,
            drops,
            groups,
            list,
        } = &mut *this;
        for (to, from) in attrs.iter_mut().zip(&counts.counters) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.attribute();
            }
        }
        for (to, from) in drops.iter_mut().zip(&counts.drops) {
            *to = from.attribute();
        }
        let [of_messages @ .., of_drops] = &mut *groups;
        for ((to, attrs), name) in of_messages.iter_mut().zip(attrs).zip(GROUPS) {
            to.name = name.as_char_ptr();
            to.__bindgen_anon_2.attrs = attrs.as_mut_ptr();
        }
        of_drops.name = DROPS_GROUP.as_char_ptr();
        of_drops.__bindgen_anon_2.attrs = drops.as_mut_ptr();
        for (to, from) in list.iter_mut().zip(&*groups) {
            *to = from;
        }
        Ok(this)
    }
}

/// The counters of a port while they are shown. Shown no more when dropped, which may sleep.
///
/// # Invariants
///
/// `tables`, which lead to `_counts`, are registered at `port` of `device`.
pub(crate) struct PortCounters {
    _counts: Arc<Counts>,
    tables: KBox<Tables>,
    device: DeviceRef,
    port: u32,
}

// SAFETY: What the tables point to belongs to `self`, and does not change.
unsafe impl Send for PortCounters {}

// SAFETY: As above.
unsafe impl Sync for PortCounters {}

impl PortCounters {
    /// Shows counters. May sleep.
    ///
    /// Fails with [`EINVAL`] if there is no such port, [`ENOMEM`], or `EEXIST` if somebody shows
    /// files of these names already.
    pub(crate) fn register(device: &DeviceRef, port: u32, counts: &Arc<Counts>) -> Result<Self> {
        if !device.is_port_valid(port) {
            return Err(EINVAL);
        }
        let mut tables = Tables::new(counts)?;
        // SAFETY: The device is registered and has the port. The tables and the counters stay where
        // they are until the groups are unregistered.
        to_result(unsafe {
            bindings::ib_port_register_client_groups(
                device.as_raw(),
                port,
                tables.list.as_mut_ptr(),
            )
        })?;
        // INVARIANT: Just registered.
        Ok(Self {
            _counts: counts.clone(),
            tables,
            device: device.clone(),
            port,
        })
    }
}

impl Drop for PortCounters {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the tables are registered, and the device is there. This
        // waits for readers of the files.
        unsafe {
            bindings::ib_port_unregister_client_groups(
                self.device.as_raw(),
                self.port,
                self.tables.list.as_mut_ptr(),
            )
        };
    }
}
