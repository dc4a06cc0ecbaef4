// SPDX-License-Identifier: GPL-2.0

//! The device `/dev/infiniband/rdma_cm`, through which librdmacm works.
//!
//! An open file is a [`channel`]. A write to it is a [`command`]; most are about a [`context`],
//! which is what user space knows an endpoint by. What an endpoint tells its context becomes an
//! [`event`] that waits in the channel until a command reads it.
//!
//! No file here takes the lock of an endpoint itself, or calls one with the lock of a channel held.

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

/// Number of the ABI, as netlink reports it.
pub(crate) const ABI_VERSION: u64 = 4;

/// What all channels share.
#[pin_data]
pub(crate) struct Ucma {
    /// The rest of the module.
    core: Arc<Core>,
    /// The contexts of all channels, by number.
    #[pin]
    contexts: IdTable<Context>,
    /// The memberships of all contexts in multicast groups, by number.
    #[pin]
    groups: IdTable<Multicast>,
    /// Contexts of closed files that are being ended in the background.
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

/// The device and its parameters in `/proc/sys`. Dropping it removes both.
#[pin_data]
pub(crate) struct Registration {
    // Fields are dropped in this order: the reverse of the one in which C registers.
    sysctl: sysctl::Registration,
    #[pin]
    device: chardev::Registration<Channel>,
}

impl Registration {
    /// Makes the device appear.
    pub(crate) fn new(core: Arc<Core>) -> impl PinInit<Self, Error> {
        try_pin_init!(Registration {
            device <- chardev::Registration::new(Ucma::new(core)?),
            sysctl: sysctl::Registration::new()?,
        }? Error)
    }

    /// The device, as netlink reports it.
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

    /// Carries out a command.
    ///
    /// Fails with `EACCES` for whoever has other credentials than the one who opened the file:
    /// after a fork the file is of no use to the child.
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
