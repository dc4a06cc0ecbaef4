// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading.

use crate::{
    cma::{device::CmDevice, neighbours::NetworkListener},
    core::Core,
    endpoint::Endpoint,
    ib::{
        client::{ClientOps, NlInfo, Registration, Slot},
        device::DeviceRef,
        kapi,
    },
    kext::{
        configfs, delay,
        loaded::module_is_loaded,
        notifier::{NeighbourRegistration, NetdevRegistration},
        slab::SlabCache,
    },
    ucma,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    device::Device,
    prelude::*,
    sync::{aref::ARef, Arc, SetOnce},
};

/// What this module takes the place of; they cannot be loaded at the same time.
const RIVALS: [&CStr; 3] = [c"rdma_ucm", c"rdma_cm", c"ib_cm"];

/// What ib_core knows of the module.
pub(crate) struct Client {
    core: Arc<Core>,
    /// The character device, for netlink.
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
        self.core.add_device(device)
    }

    fn remove(&self, _device: &DeviceRef, data: Arc<CmDevice>) {
        self.core.remove_device(&data);
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
/// Fields are dropped in this order, the reverse of the one in which they are made: first the
/// devices go, then the door through which users came, then what runs by itself.
#[pin_data]
pub(crate) struct RdmaCm {
    // Nobody has it open: who uses it holds a reference to the module.
    _settings: Option<Pin<KBox<configfs::Registration<Core>>>>,
    _kernel: kapi::Registration,
    #[pin]
    _client: Registration<Client>,
    #[pin]
    _ucma: ucma::Registration,
    #[pin]
    _neighbours: NeighbourRegistration<NetworkListener>,
    #[pin]
    _netdevs: NetdevRegistration<NetworkListener>,
    _stop: Stop,
    // Nothing refers to an endpoint any more.
    _endpoints: Arc<SlabCache<Endpoint>>,
}

/// Stops what runs by itself when it is dropped.
struct Stop(Arc<Core>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl kernel::InPlaceModule for RdmaCm {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            refuse_rivals()?;
            delay::announce();
            let endpoints = Arc::new(SlabCache::new(c"rdma_cm_endpoint")?, GFP_KERNEL)?;
            let core = Core::new(endpoints.clone())?;
            let client = Arc::new(
                Client {
                    core: core.clone(),
                    chardev: SetOnce::new(),
                },
                GFP_KERNEL,
            )?;
            let shown = client.clone();
            let network = Arc::new(NetworkListener(core.clone()), GFP_KERNEL)?;
            Ok(try_pin_init!(RdmaCm {
                _endpoints: endpoints,
                _stop: Stop(core.clone()),
                _client <- Registration::new(client),
                _: { refuse_taken_ports(&core)?; },
                _kernel: kapi::Registration::new(core.clone()),
                _neighbours <- NeighbourRegistration::new(network.clone()),
                _netdevs <- NetdevRegistration::new(network),
                // Last: once there is a door, a user may be inside, and loading must not fail.
                _ucma <- ucma::Registration::new(core.clone()),
                _: { shown.chardev.populate(_ucma.device()); },
                _settings: show_settings(core),
            }? Error))
        })
    }
}

/// Lets administrators set things; the module works without, too, and loading must not fail any more.
fn show_settings(core: Arc<Core>) -> Option<Pin<KBox<configfs::Registration<Core>>>> {
    KBox::pin_init(configfs::Registration::new(core), GFP_KERNEL)
        .inspect_err(|error| pr_err!("no settings in configfs: error {}\n", error.to_errno()))
        .ok()
}

/// Fails with `EBUSY` if a C module is loaded that this one takes the place of.
fn refuse_rivals() -> Result {
    for rival in RIVALS {
        if module_is_loaded(rival) {
            pr_err!(
                "{} is loaded: unload it first (modprobe -r rdma_ucm)\n",
                rival
            );
            return Err(EBUSY);
        }
    }
    Ok(())
}

/// Fails with `EBUSY` if somebody else receives the CM's messages.
fn refuse_taken_ports(core: &Core) -> Result {
    if core.is_port_taken() {
        pr_err!("another connection manager uses the devices: unload it first\n");
        return Err(EBUSY);
    }
    Ok(())
}
