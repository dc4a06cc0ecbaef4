// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading.

use crate::{
    cma::network::NetworkListener,
    endpoint::{CmDevice, Slabs},
    globals::Globals,
    ib::{
        client::{ClientOps, NlInfo, Registration, Slot},
        device::DeviceRef,
        layout,
    },
    kernel_api::ffi,
    kext::{
        configfs, delay,
        loaded::module_is_loaded,
        notifier::{NeighbourRegistration, NetdevRegistration},
    },
    netlink, ucma,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    device::Device,
    fmt,
    prelude::*,
    sync::{aref::ARef, Arc, SetOnce},
};

/// The modules that this one replaces, and that must not be loaded at the same time.
const CONFLICTING_MODULES: [&CStr; 3] = [c"rdma_ucm", c"rdma_cm", c"ib_cm"];

/// The module as a client of ib_core.
pub(crate) struct Client {
    globals: Arc<Globals>,
    /// The character device, which netlink asks for.
    chardev: SetOnce<ARef<Device>>,
}

static CLIENT: Slot<Client> = Slot::new();

impl ClientOps for Client {
    type Data = CmDevice;

    const NAME: &'static CStr = c"rdma_cm";

    fn slot() -> &'static Slot<Self> {
        &CLIENT
    }

    fn add(&self, device: &DeviceRef) -> Result<Arc<CmDevice>> {
        self.globals.add_device(device)
    }

    fn remove(&self, _device: &DeviceRef, data: Arc<CmDevice>) {
        self.globals.remove_device(&data);
    }

    fn global_nl_info(&self) -> Option<NlInfo<'_>> {
        Some(NlInfo {
            cdev: self.chardev.as_ref()?,
            abi: ucma::ABI_VERSION,
        })
    }
}

/// The loaded module.
///
/// Fields are dropped in this order, the reverse of their creation: first the devices, then the
/// interfaces to users, then timers, work items and queries.
#[pin_data]
pub(crate) struct RdmaCm {
    // No dump is under way, because it would hold a reference to the module.
    _netlink: Option<Pin<KBox<netlink::Registration>>>,
    // No directory is in use, because its user would hold a reference to the module.
    _settings: Option<Pin<KBox<configfs::Registration<Globals>>>>,
    _kernel: ffi::Registration,
    #[pin]
    _client: Registration<Client>,
    #[pin]
    _ucma: ucma::Registration,
    #[pin]
    _neighbours: NeighbourRegistration<NetworkListener>,
    #[pin]
    _netdevs: NetdevRegistration<NetworkListener>,
    _shutdown: ShutdownGuard,
    // No reference to an endpoint is left.
    _endpoints: Arc<Slabs>,
    // No context and no event is left.
    _slabs: Arc<ucma::Slabs>,
}

/// A guard that stops timers, work items and queries when dropped.
struct ShutdownGuard(Arc<Globals>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl kernel::InPlaceModule for RdmaCm {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            check_conflicting_modules()?;
            check_layout()?;
            delay::announce();
            let endpoints = Slabs::new()?;
            let slabs = ucma::Slabs::new()?;
            let globals = Globals::new(endpoints.clone())?;
            let client = Arc::new(
                Client {
                    globals: globals.clone(),
                    chardev: SetOnce::new(),
                },
                GFP_KERNEL,
            )?;
            let shown = client.clone();
            let network = Arc::new(NetworkListener(globals.clone()), GFP_KERNEL)?;
            Ok(try_pin_init!(RdmaCm {
                _slabs: slabs.clone(),
                _endpoints: endpoints,
                _shutdown: ShutdownGuard(globals.clone()),
                _client <- Registration::new(client),
                _: { check_taken_ports(&globals)?; },
                _kernel: ffi::Registration::new(globals.clone()),
                _neighbours <- NeighbourRegistration::new(network.clone()),
                _netdevs <- NetdevRegistration::new(network),
                // The character device is registered last, because a program may open it at once,
                // and then loading must not fail.
                _ucma <- ucma::Registration::new(globals.clone(), slabs),
                _: { shown.chardev.populate(_ucma.device()); },
                _settings: show_settings(globals.clone()),
                _netlink: answer_netlink(globals),
            }? Error))
        })
    }
}

/// Registers the settings in configfs.
///
/// An error is only logged, because the module works without them and loading must not fail any
/// more.
fn show_settings(globals: Arc<Globals>) -> Option<Pin<KBox<configfs::Registration<Globals>>>> {
    KBox::pin_init(configfs::Registration::new(globals), GFP_KERNEL)
        .inspect_err(|error| pr_err!("no settings in configfs: error {}\n", error.to_errno()))
        .ok()
}

/// Registers the generic netlink family. An error is only logged, as with the settings.
fn answer_netlink(globals: Arc<Globals>) -> Option<Pin<KBox<netlink::Registration>>> {
    let events = globals.events.group.clone();
    KBox::pin_init(
        netlink::Registration::new(netlink::Family(globals), events),
        GFP_KERNEL,
    )
    .inspect_err(|error| pr_err!("no netlink family: error {}\n", error.to_errno()))
    .ok()
}

/// Fails with `EBUSY` if one of the C modules is loaded that this one replaces.
fn check_conflicting_modules() -> Result {
    for name in CONFLICTING_MODULES {
        if module_is_loaded(name) {
            pr_err!(
                "{} is loaded: unload it first (modprobe -r rdma_ucm)\n",
                name
            );
            return Err(EBUSY);
        }
    }
    Ok(())
}

/// Fails with `ENOEXEC` if `ib_core` has another layout than the one that this module is built for.
fn check_layout() -> Result {
    let Some(misfit) = layout::difference()? else {
        return Ok(());
    };
    pr_err!(
        "another ib_core than this module is built for: {}{} of {} is {}, not {}\n",
        misfit.member.map_or("the size", |_| "the offset of "),
        misfit.member.unwrap_or(""),
        misfit.structure,
        Shown(misfit.found),
        misfit.expected
    );
    Err(ENOEXEC)
}

/// A number that may be unknown.
struct Shown(Option<u32>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => fmt::Display::fmt(&number, f),
            None => f.write_str("unknown"),
        }
    }
}

/// Fails with `EBUSY` if another module receives the CM messages of a port.
fn check_taken_ports(globals: &Globals) -> Result {
    if globals.is_port_taken() {
        pr_err!("another connection manager uses the devices: unload it first\n");
        return Err(EBUSY);
    }
    Ok(())
}
