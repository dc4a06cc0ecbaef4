// SPDX-License-Identifier: GPL-2.0

//! A driver of iWARP whose accept does not return.

use super::device::Device;
use crate::bindings;

/// A device whose accept does not return for one queue pair, until this is dropped, or for 40 s.
pub(crate) struct StuckAccept(Device);

impl StuckAccept {
    /// Nobody may be about to accept at the device, and only one of these may be at a time.
    pub(crate) fn begin(device: &Device, qpn: u32) -> Self {
        // SAFETY: The device is there.
        unsafe { bindings::rust_test_stick_accept(device.as_raw(), qpn) };
        Self(device.clone())
    }

    /// Waits until the answer is sent and the accept does not return, or for a minute.
    pub(crate) fn wait(&self) {
        // SAFETY: It may always be waited for.
        unsafe { bindings::rust_test_wait_stuck() };
    }

    /// Returns true if the answer is sent and the accept has not returned.
    pub(crate) fn is_stuck(&self) -> bool {
        // SAFETY: It may always be asked.
        unsafe { bindings::rust_test_is_stuck() }
    }
}

impl Drop for StuckAccept {
    fn drop(&mut self) {
        // SAFETY: The device is there.
        unsafe { bindings::rust_test_free_accept(self.0.as_raw()) };
    }
}
