// SPDX-License-Identifier: GPL-2.0

//! Clients of the RDMA core: kernel modules that are told of RDMA devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::{DeviceRef, LastRef};
use crate::{bindings, kext::error::ToKernel};
use atomics::Published;
use cmproto::errno::Errno;
use core::{
    marker::PhantomPinned,
    ptr::{self, NonNull},
};
use kernel::{
    error::{from_result, to_result},
    prelude::*,
    sync::Arc,
    types::Opaque,
};

/// A character device, for the answer to a netlink query for a client's device.
pub(crate) struct NlInfo<'a> {
    /// The character device.
    pub(crate) cdev: &'a kernel::device::Device,
    /// The version of the ABI that the character device implements.
    pub(crate) abi: u64,
}

/// A client of the RDMA core.
///
/// The methods are called in process context and may sleep. Calls for one device never overlap;
/// calls for different devices may.
pub(crate) trait ClientOps: Send + Sync + Sized + 'static {
    /// The data that the client keeps per device.
    type Data: Send + Sync + 'static;

    /// The name by which netlink finds the client.
    const NAME: &'static CStr;

    /// Returns the static place where the callbacks find the client.
    ///
    /// The RDMA core passes no context when it adds a device, so a `static` is needed. One client
    /// at a time can be registered there.
    fn slot() -> &'static Slot<Self>;

    /// Handles the arrival of a device. A copy of `device` may be kept until [`ClientOps::remove`].
    ///
    /// An error means that the client does not use the device.
    fn add(&self, device: &DeviceRef) -> Result<Arc<Self::Data>>;

    /// Handles the removal of a device.
    ///
    /// Everything that was made of the device must be dropped soon, because the RDMA core then
    /// waits for the last [`DeviceRef`].
    fn remove(&self, device: &DeviceRef, data: Arc<Self::Data>);

    /// Returns the character device of the client, if it has one.
    fn global_nl_info(&self) -> Option<NlInfo<'_>> {
        None
    }
}

/// The static place where callbacks of the RDMA core find a client.
///
/// # Invariants
///
/// Neither `ops` nor `client` is published, or `client` belongs to a [`Registration`] and `ops` is
/// valid until that has unregistered it.
pub(crate) struct Slot<T> {
    ops: Published<T>,
    client: Published<bindings::ib_client>,
}

impl<T> Slot<T> {
    /// Creates an empty slot.
    pub(crate) const fn new() -> Self {
        Self {
            ops: Published::new(),
            client: Published::new(),
        }
    }
}

/// The client data of a device.
struct Context<T: ClientOps> {
    data: Arc<T::Data>,
    device: DeviceRef,
    last_ref: LastRef,
}

/// A registered client; dropping it removes all devices and unregisters the client.
///
/// # Invariants
///
/// `client` is registered, and the slot of `T` leads to it and to `ops`.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<T: ClientOps> {
    #[pin]
    client: Opaque<bindings::ib_client>,
    ops: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A client can be unregistered by any task, and `T` is `Send` and `Sync`.
unsafe impl<T: ClientOps> Send for Registration<T> {}

// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: ClientOps> Sync for Registration<T> {}

impl<T: ClientOps> Registration<T> {
    /// Registers `ops`, and adds all present devices before it returns.
    ///
    /// Fails with [`EBUSY`] if the slot is in use.
    pub(crate) fn new(ops: Arc<T>) -> impl PinInit<Self, Error> {
        let target = NonNull::from(&*ops);
        // INVARIANT: `register` registers the client and fills the slot.
        try_pin_init!(Self {
            ops,
            client <- Opaque::try_ffi_init(move |client| {
                // SAFETY: `client` is valid for writes and pinned. `ops` keeps the target of
                // `target` until the client is unregistered, even if a later step fails.
                unsafe { Self::register(client, target) }
            }),
            _pin: PhantomPinned,
        })
    }

    /// Fills the slot and registers the client.
    ///
    /// # Safety
    ///
    /// `client` must be valid for writes, stay where it is, and `ops` must be valid, both until the
    /// client is unregistered.
    unsafe fn register(client: *mut bindings::ib_client, ops: NonNull<T>) -> Result {
        let slot = T::slot();
        if !slot.client.claim(NonNull::new(client).ok_or(EINVAL)?) {
            return Err(EBUSY);
        }
        slot.ops.publish(ops);

        // SAFETY: `client` is valid for writes, and all other fields of a client are zero.
        unsafe {
            client.write(pin_init::zeroed());
            (*client).name = T::NAME.as_char_ptr();
            (*client).add = Some(Self::add);
            (*client).remove = Some(Self::remove);
            (*client).get_global_nl_info = Some(Self::get_global_nl_info);
        }
        // SAFETY: The client is complete, and it stays where it is.
        let result = to_result(unsafe { bindings::ib_register_client(client) });
        if result.is_err() {
            Self::clear_slot();
        }
        result
    }

    /// Empties the slot. The client must have been unregistered.
    fn clear_slot() {
        let slot = T::slot();
        slot.ops.withdraw();
        slot.client.withdraw();
    }

    /// Returns the registered client.
    ///
    /// # Safety
    ///
    /// To be called in a callback of the client only; the result must not be used after the
    /// callback.
    unsafe fn ops<'a>() -> Result<&'a T> {
        let ops = T::slot().ops.get().ok_or(ENODEV)?;
        // SAFETY: By the invariant of `Slot`, which is filled while there are callbacks.
        Ok(unsafe { ops.as_ref() })
    }

    /// Adds a device; called by the RDMA core.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, for a device that was not added yet.
    unsafe extern "C" fn add(device: *mut bindings::ib_device) -> c_int {
        from_result(|| {
            // SAFETY: This is a callback.
            let ops = unsafe { Self::ops() }?;
            let device_ptr = NonNull::new(device).ok_or(EINVAL)?;
            let context = KBox::<Context<T>>::new_uninit(GFP_KERNEL)?;
            // SAFETY: The device stays registered until `add` fails or `remove` returns; both wait
            // for the handle.
            let (device_ref, last_ref) = unsafe { DeviceRef::new(device_ptr) }?;

            let data = match ops.add(&device_ref) {
                Ok(data) => data,
                Err(e) => {
                    let name = device_ref.name();
                    drop(device_ref);
                    last_ref.wait(&name);
                    return Err(e);
                }
            };
            let context = KBox::write(
                context,
                Context::<T> {
                    data,
                    device: device_ref,
                    last_ref,
                },
            );
            let client = T::slot()
                .client
                .get()
                .map_or(ptr::null_mut(), NonNull::as_ptr);
            // SAFETY: The device is being added for this client, which is the time to set its data.
            unsafe { bindings::ib_set_client_data(device, client, KBox::into_raw(context).cast()) };
            Ok(0)
        })
    }

    /// Removes a device; called by the RDMA core.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, once for a device that [`Self::add`] has accepted.
    unsafe extern "C" fn remove(_device: *mut bindings::ib_device, data: *mut c_void) {
        // SAFETY: `add` set the data to a box, and only this last call for the device takes it.
        let context = unsafe { KBox::<Context<T>>::from_raw(data.cast()) };
        let Context {
            data,
            device,
            last_ref,
        } = KBox::into_inner(context);
        let name = device.name();
        // SAFETY: This is a callback.
        match unsafe { Self::ops() } {
            Ok(ops) => ops.remove(&device, data),
            Err(_) => drop(data),
        }
        drop(device);
        last_ref.wait(&name);
    }

    /// Fills in the character device for a netlink query; called by the RDMA core.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, with a struct to be filled.
    unsafe extern "C" fn get_global_nl_info(info: *mut bindings::ib_client_nl_info) -> c_int {
        from_result(|| {
            // SAFETY: This is a callback.
            let ops = unsafe { Self::ops() }?;
            let ours = ops.global_nl_info().ok_or(Errno::EOPNOTSUPP.to_kernel())?;
            // SAFETY: The RDMA core passes a valid struct, and takes a reference to the device
            // before the client can be unregistered, until which `ops` keeps the device.
            unsafe {
                let cdev: *const kernel::device::Device = ours.cdev;
                (*info).cdev = cdev.cast_mut().cast();
                (*info).abi = ours.abi;
            }
            Ok(0)
        })
    }
}

#[pinned_drop]
impl<T: ClientOps> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the client is registered. This waits for all callbacks.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        Self::clear_slot();
    }
}
