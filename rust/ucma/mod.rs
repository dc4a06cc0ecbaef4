// SPDX-License-Identifier: GPL-2.0

//! The character device `/dev/infiniband/rdma_cm`, the interface of librdmacm.
//!
//! An open file is a [`channel`]. A write to it is a [`command`], which most often acts on a
//! [`context`], the object that stands for an endpoint in user space. What an endpoint reports to
//! its context becomes an [`event`], which waits in the channel until a command reads it.
//!
//! No file here takes the lock of an endpoint itself, or calls an endpoint with the lock of a
//! channel held.

mod address;
mod by_id;
mod call;
mod channel;
mod closing;
mod command;
mod connect;
mod context;
mod event;
mod multicast;
mod option;
mod place;
mod places;
mod query;
mod queue;

use self::{context::Context, multicast::Multicast};
use crate::{
    core::Core,
    kext::{
        chardev::{self, CharFile, OpenFile, Poll, POLL_IN},
        idtable::IdTable,
        sysctl,
        uaccess::UserBytes,
    },
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    device::Device,
    fs::File,
    prelude::*,
    sync::{aref::ARef, atomic::Atomic, Arc, ArcBorrow},
};

pub(crate) use self::channel::Channel;

/// Version number of the ABI, as netlink reports it.
pub(crate) const ABI_VERSION: u64 = 4;

/// The state that all channels share.
#[pin_data]
pub(crate) struct Ucma {
    /// The tables and services of the module.
    core: Arc<Core>,
    /// The contexts of all channels, by number.
    #[pin]
    contexts: IdTable<Context>,
    /// The memberships of all contexts in multicast groups, by number.
    #[pin]
    groups: IdTable<Multicast>,
    /// Number of contexts of closed files that are being destroyed in the background.
    ending: Atomic<u64>,
}

impl Ucma {
    fn new(core: Arc<Core>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Ucma {
                core,
                contexts <- IdTable::new(),
                groups <- IdTable::new(),
                ending: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }
}

/// The device and its sysctls. Dropping this removes both.
#[pin_data]
pub(crate) struct Registration {
    // Fields are dropped in this order, which is the reverse of the order in which C registers.
    sysctl: sysctl::Registration,
    #[pin]
    device: chardev::Registration<Channel>,
}

impl Registration {
    /// Registers the device and its sysctls.
    pub(crate) fn new(core: Arc<Core>) -> impl PinInit<Self, Error> {
        try_pin_init!(Registration {
            device <- chardev::Registration::new(Ucma::new(core)?),
            sysctl: sysctl::Registration::new()?,
        }? Error)
    }

    /// Returns the device, for netlink.
    pub(crate) fn device(&self) -> ARef<Device> {
        self.device.device()
    }
}

impl CharFile for Channel {
    type Context = Arc<Ucma>;

    const NAME: &'static CStr = c"rdma_cm";
    const NODENAME: &'static CStr = c"infiniband/rdma_cm";
    const MODE: u16 = 0o666;

    fn open(ucma: &Arc<Ucma>, _file: &File) -> Result<Arc<Self>> {
        Channel::new(ucma.clone())
    }

    /// Executes a command.
    ///
    /// Fails with `EACCES` if the caller's credentials are not those with which the file was
    /// opened: a child that inherits the file over a fork cannot use it.
    fn write(
        this: ArcBorrow<'_, Self>,
        file: &OpenFile<'_, Self>,
        user: UserBytes,
    ) -> Result<usize> {
        if !file.opened_by_current() {
            return Err(EACCES);
        }
        command::dispatch(this, file, user)
    }

    fn poll(this: ArcBorrow<'_, Self>, poll: &Poll<'_, Self>) -> u32 {
        if Channel::poll(&this, poll) {
            POLL_IN
        } else {
            0
        }
    }

    fn release(this: Arc<Self>) {
        this.close();
    }
}
