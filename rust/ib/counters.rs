// SPDX-License-Identifier: GPL-2.0

//! Message counters in `/sys/class/infiniband/<device>/ports/<port>/`.
//!
//! C header: [`include/rdma/ib_sysfs.h`](srctree/include/rdma/ib_sysfs.h)

use super::{device::DeviceRef, latency::Latencies};
use crate::{bindings, kext::percpu::PerCpuCounters};
use cmproto::{
    dropped::Dropped,
    netlink::CounterKind,
    reject::Reason,
    wire::{self, Attribute, MAD_LEN},
};
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

/// A group of counters per message type; each group is a directory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CounterGroup {
    /// Messages sent, including repetitions.
    TxMsgs = 0,
    /// Messages sent again because they were not answered.
    TxRetries = 1,
    /// Messages received.
    RxMsgs = 2,
    /// Duplicates among the messages received.
    RxDuplicates = 3,
}

/// The names of the directories, in the order of [`CounterGroup`].
const GROUPS: [&CStr; 4] = [
    c"cm_tx_msgs",
    c"cm_tx_retries",
    c"cm_rx_msgs",
    c"cm_rx_duplicates",
];

/// The directory of the counters of dropped messages, which C does not have.
const DROPS_GROUP: &CStr = c"cm_rx_drops";

/// The number of directories of a port.
const DIRS: usize = GROUPS.len() + 1;

/// The file of a counter.
#[repr(C)]
struct Counter {
    // The first field, so that a pointer to the attribute is a pointer to the counter.
    attr: Opaque<bindings::ib_port_attribute>,
    values: Arc<Values>,
    /// The number of the counter.
    number: usize,
}

impl Counter {
    fn new(name: Option<&'static CStr>, values: &Arc<Values>, number: usize) -> Self {
        let mut attr: bindings::ib_port_attribute = pin_init::zeroed();
        attr.attr.name = name.unwrap_or(c"").as_char_ptr();
        attr.attr.mode = 0o444;
        attr.show = Some(show);
        // SAFETY: The attribute is valid, and may be moved after the call.
        unsafe { bindings::rust_rdma_sysfs_attr_init(&raw mut attr.attr) };
        Self {
            attr: Opaque::new(attr),
            values: values.clone(),
            number,
        }
    }

    /// Returns the attribute that sysfs refers to.
    fn attribute(&self) -> *mut bindings::attribute {
        // SAFETY: The field is inside the counter.
        unsafe { &raw mut (*self.attr.get()).attr }
    }
}

/// Reads a file; called by the RDMA core.
///
/// # Safety
///
/// `attr` must be the attribute of a [`Counter`], and `buf` a page.
unsafe extern "C" fn show(
    _device: *mut bindings::ib_device,
    _port: u32,
    attr: *mut bindings::ib_port_attribute,
    buf: *mut c_char,
) -> isize {
    // SAFETY: The attribute is the first field of the counter, which lives as long as the file.
    let counter = unsafe { &*attr.cast::<Counter>() };
    let value = counter.values.sum(counter.number);
    // SAFETY: `buf` is a page by the safety requirements, and the format fits the argument.
    let len = unsafe { bindings::sysfs_emit(buf, c"%llu\n".as_char_ptr(), value) };
    len as isize
}

/// The number of messages that are told apart.
const MESSAGES: usize = Attribute::ALL.len();

/// The number of the first counter of drops, which are behind those of messages.
const FIRST_DROP: usize = GROUPS.len() * MESSAGES;

/// The values of the counters of messages, by group, and of drops.
type Values = PerCpuCounters<{ FIRST_DROP + Dropped::ALL.len() }>;

/// The counters of a port.
pub(crate) struct Counts {
    values: Arc<Values>,
    counters: [[Counter; MESSAGES]; GROUPS.len()],
    drops: [Counter; Dropped::ALL.len()],
    /// REJs that were sent, and that were received, by reason. They have no files.
    rejects: [[Atomic<u64>; Reason::SLOTS]; 2],
    /// Early retries, and requests that were answered after some, by message. They have no files.
    early: [[Atomic<u64>; MESSAGES]; 2],
    /// The latencies of the phases of connections. They have no files.
    pub(crate) latencies: Latencies,
}

// SAFETY: The attributes are constant, and any task may add to the counters.
unsafe impl Send for Counts {}

// SAFETY: The attributes are constant, and any task may add to the counters.
unsafe impl Sync for Counts {}

impl Counts {
    /// Creates counters, all 0, that are not visible yet.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let values = Values::new()?;
        let values = Arc::new(values, GFP_KERNEL)?;
        let latencies = Latencies::new()?;
        let of = &values;
        Arc::init(
            init!(Self {
                counters <- pin_init::init_array_from_fn(|group: usize| {
                    pin_init::init_array_from_fn(move |i| {
                        let name = Attribute::ALL.get(i).map(|message| message.name());
                        Counter::new(name, of, Self::place(group, i))
                    })
                }),
                drops <- pin_init::init_array_from_fn(|i: usize| {
                    let name = Dropped::ALL.get(i).map(|reason| reason.name());
                    Counter::new(name, of, FIRST_DROP.wrapping_add(i))
                }),
                rejects: [const { [const { Atomic::new(0) }; Reason::SLOTS] }; 2],
                early: [const { [const { Atomic::new(0) }; MESSAGES] }; 2],
                latencies,
                values: of.clone(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the number of the counter of messages with the attribute id `attr_id`, if they are
    /// CM messages.
    fn number(group: CounterGroup, attr_id: u16) -> Option<usize> {
        let message = usize::from(attr_id.wrapping_sub(Attribute::Req.id()));
        (message < MESSAGES).then(|| Self::place(group as usize, message))
    }

    /// Returns the number of the counter of a group for the message with the index `message` in
    /// [`Attribute::ALL`].
    fn place(group: usize, message: usize) -> usize {
        group.wrapping_mul(MESSAGES).wrapping_add(message)
    }

    /// Adds `n` to the counter of messages with the attribute id `attr_id`, if it is a CM message.
    pub(crate) fn add(&self, group: CounterGroup, attr_id: u16, n: u64) {
        if let Some(number) = Self::number(group, attr_id) {
            self.values.add(number, n);
        }
    }

    /// Counts a message that was dropped for the reason `why`.
    pub(crate) fn dropped(&self, why: Dropped) {
        self.values.add(FIRST_DROP.wrapping_add(why as usize), 1);
    }

    /// Counts a REJ by its reason, if `mad`, which is sent, is one.
    #[cold]
    pub(crate) fn sent_rej(&self, mad: &[u8; MAD_LEN]) {
        if let Some(reason) = wire::reject_reason(mad) {
            self.rejected(reason, false);
        }
    }

    /// Counts a REJ of its peer that a connection has accepted.
    #[cold]
    pub(crate) fn received_rej(&self, reason: Reason) {
        self.rejected(reason, true);
    }

    fn rejected(&self, reason: Reason, is_received: bool) {
        let rejects = self.rejects.get(usize::from(is_received));
        if let Some(count) = rejects.and_then(|rejects| rejects.get(reason.slot())) {
            count.add(1, Relaxed);
        }
    }

    /// Counts an early retry of a request.
    #[cold]
    pub(crate) fn early_retry(&self, request: Attribute) {
        self.count_early(request, false);
    }

    /// Counts a request that was answered after an early retry.
    #[cold]
    pub(crate) fn early_retry_answered(&self, request: Attribute) {
        self.count_early(request, true);
    }

    fn count_early(&self, request: Attribute, is_answered: bool) {
        let message = usize::from(request.id().wrapping_sub(Attribute::Req.id()));
        let counts = self.early.get(usize::from(is_answered));
        if let Some(count) = counts.and_then(|counts| counts.get(message)) {
            count.add(1, Relaxed);
        }
    }

    /// Calls `visit` for each counter of a kind, with number and name of what is counted, until it
    /// fails. Reasons of rejections that have not occurred are left out.
    pub(crate) fn visit<E>(
        &self,
        kind: CounterKind,
        mut visit: impl FnMut(u16, &CStr, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let group = match kind {
            CounterKind::TxMsgs => CounterGroup::TxMsgs,
            CounterKind::TxRetries => CounterGroup::TxRetries,
            CounterKind::RxMsgs => CounterGroup::RxMsgs,
            CounterKind::RxDuplicates => CounterGroup::RxDuplicates,
            CounterKind::RxDrops => {
                for why in Dropped::ALL {
                    let value = self.values.sum(FIRST_DROP.wrapping_add(why as usize));
                    visit(u16::from(why as u8), why.name(), value)?;
                }
                return Ok(());
            }
            CounterKind::TxRejects => return self.visit_rejects(false, visit),
            CounterKind::RxRejects => return self.visit_rejects(true, visit),
            CounterKind::TxEarlyRetries => return self.visit_early(false, visit),
            CounterKind::EarlyRetriesAnswered => return self.visit_early(true, visit),
        };
        for message in Attribute::ALL {
            let number = Self::number(group, message.id());
            let value = number.map_or(0, |number| self.values.sum(number));
            visit(message.id(), message.name(), value)?;
        }
        Ok(())
    }

    fn visit_early<E>(
        &self,
        is_answered: bool,
        mut visit: impl FnMut(u16, &CStr, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let counts = self.early.get(usize::from(is_answered));
        for (message, count) in Attribute::ALL.into_iter().zip(counts.into_iter().flatten()) {
            visit(message.id(), message.name(), count.load(Relaxed))?;
        }
        Ok(())
    }

    fn visit_rejects<E>(
        &self,
        is_received: bool,
        mut visit: impl FnMut(u16, &CStr, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let rejects = self.rejects.get(usize::from(is_received));
        // A reason is the number of its slot.
        for (code, count) in (0..=u16::MAX).zip(rejects.into_iter().flatten()) {
            let value = count.load(Relaxed);
            if value != 0 {
                visit(code, Reason(code).message(), value)?;
            }
        }
        Ok(())
    }
}

/// The attribute tables for sysfs. A null pointer ends each list.
struct Tables {
    attrs: [[*mut bindings::attribute; Attribute::ALL.len() + 1]; GROUPS.len()],
    drops: [*mut bindings::attribute; Dropped::ALL.len() + 1],
    groups: [bindings::attribute_group; DIRS],
    list: [*const bindings::attribute_group; DIRS + 1],
}

impl Tables {
    /// Creates the tables for `counts`, to which they point.
    fn new(counts: &Counts) -> Result<KBox<Self>> {
        let mut this = KBox::new(
            Self {
                attrs: [[ptr::null_mut(); Attribute::ALL.len() + 1]; GROUPS.len()],
                drops: [ptr::null_mut(); Dropped::ALL.len() + 1],
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

/// Visible counters of a port; dropping it hides them and may sleep.
///
/// # Invariants
///
/// `tables`, which point to `_counts`, are registered at `port` of `device`.
pub(crate) struct PortCounters {
    _counts: Arc<Counts>,
    tables: KBox<Tables>,
    device: DeviceRef,
    port: u32,
}

// SAFETY: The tables and their targets belong to `self`, and do not change.
unsafe impl Send for PortCounters {}

// SAFETY: The tables and their targets belong to `self`, and do not change.
unsafe impl Sync for PortCounters {}

impl PortCounters {
    /// Makes counters visible. May sleep.
    ///
    /// Fails with [`EINVAL`] if there is no such port, [`ENOMEM`], or `EEXIST` if files of these
    /// names exist already.
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
        // INVARIANT: The call above has registered the tables.
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
        // SAFETY: By the type invariant the tables are registered, and the device exists. This
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
