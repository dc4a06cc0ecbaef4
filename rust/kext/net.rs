// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use crate::bindings;
use core::ptr::{self, NonNull};
use kernel::{
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque,
};

/// A network namespace (`struct net`).
///
/// # Invariants
///
/// Instances are always counted by the namespace's own counter.
#[repr(transparent)]
pub(crate) struct Net(Opaque<bindings::net>);

// SAFETY: References to namespaces can be used and put by any thread.
unsafe impl Send for Net {}
// SAFETY: A namespace is counted atomically, and the fields that are read here are read atomically.
unsafe impl Sync for Net {}

// SAFETY: The type invariant says that instances are counted.
unsafe impl AlwaysRefCounted for Net {
    fn inc_ref(&self) {
        // SAFETY: The reference proves that the counter is not zero.
        unsafe { bindings::rust_rdma_get_net(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up a reference.
        unsafe { bindings::rust_rdma_put_net(obj.as_ptr().cast()) };
    }
}

impl Net {
    /// Returns the namespace of the current task.
    pub(crate) fn current() -> ARef<Self> {
        // SAFETY: Just an FFI call, which returns a counted reference.
        unsafe { Self::from_counted(bindings::rust_rdma_get_current_net()) }
            .unwrap_or_else(|| Self::init().into())
    }

    /// Returns the initial namespace.
    pub(crate) fn init() -> &'static Self {
        // SAFETY: The initial namespace lives for ever. A `Net` is transparent.
        unsafe { Self::from_raw((&raw mut bindings::init_net).cast()) }
    }

    /// Creates a reference from a C pointer.
    ///
    /// # Safety
    ///
    /// The namespace must be valid, and its counter not zero, for the duration of `'a`.
    pub(crate) unsafe fn from_raw<'a>(net: *mut bindings::net) -> &'a Self {
        // SAFETY: By the safety requirements; `Net` is transparent.
        unsafe { &*net.cast() }
    }

    /// Takes over a counted reference from C; the result is `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The caller must own the reference, and must not use it any more.
    pub(crate) unsafe fn from_counted(net: *mut bindings::net) -> Option<ARef<Self>> {
        // SAFETY: By the safety requirements; `Net` is transparent.
        NonNull::new(net.cast()).map(|net| unsafe { ARef::from_raw(net) })
    }

    /// Returns the C object.
    pub(crate) fn as_raw(&self) -> *mut bindings::net {
        self.0.get()
    }

    /// Returns whether both are the same namespace.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }

    /// Returns a key for hashing, which differs between namespaces that exist at the same time.
    ///
    /// The key is a kernel address and must not be shown to user space.
    pub(crate) fn hash_key(&self) -> u64 {
        let addr = ptr::from_ref(self).addr();
        // Lossless on 64-bit machines.
        u64::try_from(addr).unwrap_or(u64::MAX)
    }

    /// Returns the number that a user of the initial user namespace has in the user namespace of
    /// this one, or `None` if it has none there.
    pub(crate) fn user_as_seen(&self, user: u32) -> Option<u32> {
        // SAFETY: The namespace is valid.
        let seen = unsafe { bindings::rust_rdma_net_user_seen(self.as_raw(), user) };
        (seen != u32::MAX).then_some(seen)
    }

    /// Returns the first and the last port for automatic binding (`net.ipv4.ip_local_port_range`).
    pub(crate) fn local_port_range(&self) -> (u16, u16) {
        let (mut low, mut high) = (0, 0);
        // SAFETY: The namespace is valid, and so are the places for the results.
        unsafe {
            bindings::rust_rdma_inet_get_local_port_range(self.as_raw(), &mut low, &mut high)
        };
        let port = |n: c_int, default| u16::try_from(n).unwrap_or(default);
        (port(low, 0), port(high, u16::MAX))
    }

    /// Returns whether sockets on the IPv6 wildcard are IPv6-only by default
    /// (`net.ipv6.bindv6only`).
    pub(crate) fn bindv6only(&self) -> bool {
        // SAFETY: The namespace is valid.
        unsafe { bindings::rust_rdma_net_bindv6only(self.as_raw()) }
    }
}

impl PartialEq for Net {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other)
    }
}

impl Eq for Net {}
