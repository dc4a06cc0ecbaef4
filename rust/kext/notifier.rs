// SPDX-License-Identifier: GPL-2.0

//! Notifiers of network devices and neighbours.
//!
//! C headers: [`include/linux/notifier.h`](srctree/include/linux/notifier.h),
//! [`include/net/netevent.h`](srctree/include/net/netevent.h)

use super::netdev::{NetDevice, MAX_ADDR_LEN};
use crate::bindings;
use kernel::{error::to_result, prelude::*, sync::Arc, types::Opaque};

/// The return value of a notifier that lets the chain continue (`NOTIFY_DONE`).
const NOTIFY_DONE: c_int = 0;

/// An event of a network device (`NETDEV_*`).
// Repeats: include/linux/netdevice.h netdev_cmd b4d9ac78360c
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct NetdevEvent(pub(crate) c_ulong);

impl NetdevEvent {
    /// The device was brought up (`NETDEV_UP`).
    pub(crate) const UP: Self = Self(1);
    /// The device was brought down (`NETDEV_DOWN`).
    pub(crate) const DOWN: Self = Self(2);
    /// The state of the device has changed, such as its carrier (`NETDEV_CHANGE`).
    pub(crate) const CHANGE: Self = Self(4);
    /// The device is being unregistered (`NETDEV_UNREGISTER`).
    pub(crate) const UNREGISTER: Self = Self(6);
    /// The active device of a bond has changed (`NETDEV_BONDING_FAILOVER`).
    pub(crate) const BONDING_FAILOVER: Self = Self(13);
}

/// A listener to events of network devices.
pub(crate) trait NetdevListener: Send + Sync + 'static {
    /// Handles an event. Runs with `rtnl_lock()` held, so it should only take notes or leave
    /// groups.
    fn netdev_event(&self, event: NetdevEvent, dev: &NetDevice);
}

/// A neighbour, as seen when its link-layer address changes.
pub(crate) struct Neighbour<'a> {
    /// The device through which it is reached.
    pub(crate) dev: &'a NetDevice,
    /// The IP address of the neighbour.
    pub(crate) addr: NeighbourAddr,
    hw_addr: [u8; MAX_ADDR_LEN],
    hw_addr_len: u8,
}

impl Neighbour<'_> {
    /// Returns the link-layer address.
    pub(crate) fn hw_addr(&self) -> &[u8] {
        self.hw_addr
            .get(..usize::from(self.hw_addr_len))
            .unwrap_or(&[])
    }
}

/// The IP address of a [`Neighbour`], in network byte order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NeighbourAddr {
    /// An IPv4 address.
    V4([u8; 4]),
    /// An IPv6 address.
    V6([u8; 16]),
}

/// A listener to changes of neighbours.
pub(crate) trait NeighbourListener: Send + Sync + 'static {
    /// Handles a change. Runs in atomic context, even with interrupts disabled, and must only take
    /// notes.
    fn neighbour_update(&self, neighbour: &Neighbour<'_>);
}

/// A registration of a [`NetdevListener`]; dropping it unregisters the listener.
///
/// As for any notifier of network devices, registration replays the events of all existing devices,
/// and unregistration tells the listener that all are going.
///
/// # Invariants
///
/// `nb` is registered in the notifier chain of network devices.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct NetdevRegistration<T: NetdevListener> {
    #[pin]
    nb: Opaque<bindings::notifier_block>,
    listener: Arc<T>,
}

// SAFETY: A notifier can be unregistered by any thread, and the listener is `Send` and `Sync`.
unsafe impl<T: NetdevListener> Send for NetdevRegistration<T> {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: NetdevListener> Sync for NetdevRegistration<T> {}

impl<T: NetdevListener> NetdevRegistration<T> {
    /// Creates an initialiser that registers the listener. May sleep.
    pub(crate) fn new(listener: Arc<T>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            listener,
            nb <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(notifier_block(Self::call)) };
                // SAFETY: Just initialised. It does not move, and is unregistered before it is
                // freed. `listener` is initialised before.
                to_result(unsafe { bindings::register_netdevice_notifier(slot) })
            }),
        }? Error)
    }

    /// Passes an event to the listener.
    ///
    /// # Safety
    ///
    /// Called by the notifier chain of network devices with our `nb` and its information.
    unsafe extern "C" fn call(
        nb: *mut bindings::notifier_block,
        event: c_ulong,
        info: *mut c_void,
    ) -> c_int {
        // SAFETY: `nb` is at the start of a registration, which is there while it is registered.
        let this = unsafe { &*nb.cast::<Self>() };
        // SAFETY: `info` is that of the chain. The device lives for the call.
        let dev =
            unsafe { NetDevice::from_raw(bindings::rust_rdma_netdev_notifier_info_to_dev(info)) };
        this.listener.netdev_event(NetdevEvent(event), dev);
        NOTIFY_DONE
    }
}

#[pinned_drop]
impl<T: NetdevListener> PinnedDrop for NetdevRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant. Returns when no call is running.
        unsafe { bindings::unregister_netdevice_notifier(self.nb.get()) };
    }
}

/// A registration of a [`NeighbourListener`]; dropping it unregisters the listener.
///
/// # Invariants
///
/// `nb` is registered in the notifier chain of network events.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct NeighbourRegistration<T: NeighbourListener> {
    #[pin]
    nb: Opaque<bindings::notifier_block>,
    listener: Arc<T>,
}

// SAFETY: A notifier can be unregistered by any thread, and the listener is `Send` and `Sync`.
unsafe impl<T: NeighbourListener> Send for NeighbourRegistration<T> {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: NeighbourListener> Sync for NeighbourRegistration<T> {}

impl<T: NeighbourListener> NeighbourRegistration<T> {
    /// Creates an initialiser that registers the listener. May sleep.
    pub(crate) fn new(listener: Arc<T>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            listener,
            nb <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(notifier_block(Self::call)) };
                // SAFETY: Just initialised. It does not move, and is unregistered before it is
                // freed. `listener` is initialised before.
                to_result(unsafe { bindings::register_netevent_notifier(slot) })
            }),
        }? Error)
    }

    /// Passes an update of a neighbour to the listener.
    ///
    /// # Safety
    ///
    /// Called by the notifier chain of network events with our `nb` and the object of the event.
    unsafe extern "C" fn call(
        nb: *mut bindings::notifier_block,
        event: c_ulong,
        object: *mut c_void,
    ) -> c_int {
        if event != NETEVENT_NEIGH_UPDATE {
            return NOTIFY_DONE;
        }
        // SAFETY: `nb` is at the start of a registration, which is there while it is registered.
        let this = unsafe { &*nb.cast::<Self>() };
        let mut neigh = bindings::rust_rdma_neigh::default();
        // SAFETY: The object of this event is a neighbour, which lives for the call.
        if !unsafe { bindings::rust_rdma_neigh_read(object, &mut neigh) } {
            return NOTIFY_DONE;
        }
        let [a, b, c, d, ..] = neigh.addr;
        let addr = match neigh.family {
            AF_INET => NeighbourAddr::V4([a, b, c, d]),
            AF_INET6 => NeighbourAddr::V6(neigh.addr),
            _ => return NOTIFY_DONE,
        };
        this.listener.neighbour_update(&Neighbour {
            // SAFETY: A neighbour holds its device.
            dev: unsafe { NetDevice::from_raw(neigh.dev) },
            addr,
            hw_addr: neigh.hw_addr,
            hw_addr_len: neigh.hw_addr_len,
        });
        NOTIFY_DONE
    }
}

#[pinned_drop]
impl<T: NeighbourListener> PinnedDrop for NeighbourRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant. Returns when no call is running.
        unsafe { bindings::unregister_netevent_notifier(self.nb.get()) };
    }
}

/// The event that a neighbour changed (`NETEVENT_NEIGH_UPDATE`), the first of `enum
/// netevent_notif_type`.
// Repeats: include/net/netevent.h netevent_notif_type 0665d8f5f633
const NETEVENT_NEIGH_UPDATE: c_ulong = 1;
const AF_INET: c_int = 2;
const AF_INET6: c_int = 10;

/// Returns a notifier block that is not registered yet.
fn notifier_block(
    call: unsafe extern "C" fn(*mut bindings::notifier_block, c_ulong, *mut c_void) -> c_int,
) -> bindings::notifier_block {
    bindings::notifier_block {
        notifier_call: Some(call),
        ..Default::default()
    }
}
