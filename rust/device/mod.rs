// SPDX-License-Identifier: GPL-2.0

//! The devices and ports that connections can be made over.
//!
//! A device is added when ib_core adds it, and removed when ib_core removes it. Each user of
//! the device holds a [`DeviceRef`](crate::ib::device::DeviceRef) in some form (an attachment, an
//! address handle, a query), and ib_core's removal waits until all of these are gone. The removal
//! first closes the set of members, then ends each of them, and last unregisters the MAD agents.

pub(crate) mod attachment;
pub(crate) mod cm_device;
pub(crate) mod devices;
pub(crate) mod port;
pub(crate) mod source;
