// SPDX-License-Identifier: GPL-2.0

//! The registration of the character device, and what its files do.

use super::{
    channel::Channel,
    closing, command,
    globals::{Slabs, Ucma},
};
use crate::{
    globals::Globals,
    kext::{
        chardev::{self, CharFile, OpenFile, Poll, POLL_IN},
        cred::Lineage,
        seq_file::SeqFile,
        sysctl,
        uaccess::UserBytes,
    },
};
use kernel::{
    device::Device,
    fs::File,
    prelude::*,
    sync::{aref::ARef, Arc, ArcBorrow},
};

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
    pub(crate) fn new(globals: Arc<Globals>, slabs: Arc<Slabs>) -> impl PinInit<Self, Error> {
        try_pin_init!(Registration {
            device <- chardev::Registration::new(Ucma::new(globals, slabs)?),
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

    fn open(ucma: &Arc<Ucma>, file: &File) -> Result<Arc<Self>> {
        let user = ucma.globals.users.open(&Lineage::of_opener(file))?;
        Channel::new(ucma.clone(), user)
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

    fn show(this: ArcBorrow<'_, Self>, out: &SeqFile) {
        this.user.as_ref().show(out);
    }

    fn release(this: Arc<Self>) {
        closing::end(&this.ucma, this.close());
    }
}
