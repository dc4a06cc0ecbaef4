// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::bindings;
use core::ptr::{self, NonNull};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{Acquire, Atomic, Full, Release},
        Arc,
    },
    types::Opaque,
};

/// The client of the RDMA core that stands for the module.
struct Client(Opaque<bindings::ib_client>);

// SAFETY: Only the one `Registration` there is and the RDMA core use it.
unsafe impl Sync for Client {}

static CLIENT: Client = Client(Opaque::zeroed());

/// True if [`CLIENT`] belongs to a [`Registration`].
static TAKEN: Atomic<bool> = Atomic::new(false);

/// A device that is looked for.
struct Sought {
    /// The name of the device.
    name: fn() -> *const c_char,
    /// The device, once it has come. Written by callbacks of [`CLIENT`] only.
    found: Atomic<*const bindings::ib_device>,
}

/// The device that the module's parameter `device` names, and that which `other` names.
static FIRST: Sought = Sought::new(|| {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_device() }
});
static OTHER: Sought = Sought::new(|| {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_other_device() }
});

impl Sought {
    const fn new(name: fn() -> *const c_char) -> Self {
        Self {
            name,
            found: Atomic::new(ptr::null()),
        }
    }

    /// Returns true if the device has this name.
    fn is_called(&self, name: &[c_char]) -> bool {
        // SAFETY: The parameter is a string that stays as long as the module.
        let wanted = unsafe { CStr::from_char_ptr((self.name)()) }.to_bytes_with_nul();
        name.get(..wanted.len()) == Some(wanted)
    }

    fn device(&self, registration: Arc<Registration>) -> Result<Device> {
        let device = NonNull::new(self.found.load(Acquire).cast_mut()).ok_or(ENODEV)?;
        // INVARIANT: The client has been told of the device.
        Ok(Device(Arc::new(
            Shared {
                device,
                registration,
            },
            GFP_KERNEL,
        )?))
    }
}

/// Called when a device has come.
///
/// # Safety
///
/// To be called by the RDMA core only.
unsafe extern "C" fn add(device: *mut bindings::ib_device) -> c_int {
    // SAFETY: The device stays while it is added, and its name is an array within it.
    let name = unsafe { &(*device).name };
    for sought in [&FIRST, &OTHER] {
        if sought.is_called(name) {
            sought.found.store(device.cast_const(), Release);
        }
    }
    0
}

/// Called when a device goes.
///
/// # Safety
///
/// To be called by the RDMA core only.
unsafe extern "C" fn removed(_device: *mut bindings::ib_device, _data: *mut c_void) {}

/// The registration of [`CLIENT`]. While there is one, [`TAKEN`] is set.
struct Registration;

impl Registration {
    fn new() -> Result<Self> {
        TAKEN.cmpxchg(false, true, Full).map_err(|_| EBUSY)?;
        let client = CLIENT.0.get();
        // SAFETY: Nobody else has the client. It is all zeros but for what is set here, and static.
        let registered = to_result(unsafe {
            client.write(pin_init::zeroed());
            (*client).name = <crate::LocalModule as kernel::ModuleMetadata>::NAME.as_char_ptr();
            (*client).add = Some(add);
            (*client).remove = Some(removed);
            bindings::ib_register_client(client)
        });
        if let Err(e) = registered {
            TAKEN.store(false, Release);
            return Err(e);
        }
        Ok(Self)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: The client is registered.
        unsafe { bindings::ib_unregister_client(CLIENT.0.get()) };
        for sought in [&FIRST, &OTHER] {
            sought.found.store(ptr::null(), Release);
        }
        TAKEN.store(false, Release);
    }
}

struct Shared {
    device: NonNull<bindings::ib_device>,
    registration: Arc<Registration>,
}

/// A device. Cheap to clone.
///
/// # Invariants
///
/// The device has been added to the client that is registered as long as this lives. Its removal is
/// not waited for: the suite does not remove it meanwhile.
#[derive(Clone)]
pub(crate) struct Device(Arc<Shared>);

// SAFETY: The RDMA core lets any task use a device.
unsafe impl Send for Device {}

// SAFETY: As above.
unsafe impl Sync for Device {}

impl Device {
    /// Finds the device that the module's parameter names, and stays a client of the RDMA core until
    /// all that use it are dropped. There can be one at a time.
    pub(crate) fn find() -> Result<Self> {
        FIRST.device(Arc::new(Registration::new()?, GFP_KERNEL)?)
    }

    /// The device that the module's parameter `other` names.
    pub(crate) fn other(&self) -> Result<Self> {
        OTHER.device(self.0.registration.clone())
    }

    /// The device as the RDMA core knows it.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.device.as_ptr()
    }

    /// Returns true if a port has an InfiniBand link layer.
    pub(crate) fn is_ib(&self, port: u32) -> bool {
        // SAFETY: The device is there by the type invariant, and has that port.
        unsafe { bindings::rust_test_is_ib(self.as_raw(), port) }
    }

    /// The LID of a port.
    pub(crate) fn lid(&self, port: u32) -> Result<u32> {
        let mut attr = bindings::ib_port_attr::default();
        // SAFETY: The device is there by the type invariant; any port can be asked for.
        to_result(unsafe { bindings::ib_query_port(self.as_raw(), port, &mut attr) })?;
        Ok(attr.lid)
    }

    /// The number of LIDs of a port, less one.
    pub(crate) fn path_bits(&self, port: u32) -> Result<u8> {
        let mut lmc = 0;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_get_cached_lmc(self.as_raw(), port, &mut lmc) })?;
        Ok(!(0xff << lmc.min(7)))
    }

    /// The GUID of the node, in network byte order.
    pub(crate) fn node_guid(&self) -> u64 {
        // SAFETY: The device is there by the type invariant.
        unsafe { (*self.as_raw()).node_guid }
    }
}
