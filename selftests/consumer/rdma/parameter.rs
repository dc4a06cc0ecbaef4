// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module.

use crate::bindings;
use core::net::Ipv4Addr;
use kernel::prelude::*;

fn address(text: &CStr) -> Option<Ipv4Addr> {
    text.to_str().ok()?.parse().ok()
}

/// The address of the device of cmid.
pub(crate) fn ipv4() -> Result<Ipv4Addr> {
    // SAFETY: The parameter is a string that lives as long as the module.
    address(unsafe { CStr::from_char_ptr(bindings::rust_test_ipv4()) }).ok_or(EINVAL)
}

/// The address of a server at another device, if there is one.
pub(crate) fn peer() -> Option<Ipv4Addr> {
    // SAFETY: The parameter is a string that lives as long as the module.
    address(unsafe { CStr::from_char_ptr(bindings::rust_test_peer()) })
}

/// The error, without its sign, of what is asked for when the device has gone; 0 if it stays.
pub(crate) fn removal() -> u32 {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_removal() }
}

/// The port of the identifier that is there instead of the tests, if it is wanted.
pub(crate) fn resident() -> Option<u16> {
    // SAFETY: It may always be asked.
    let port = unsafe { bindings::rust_test_resident() };
    (port != 0).then_some(port)
}

/// Returns true if the module resolves the address, and does not listen there.
pub(crate) fn resolves() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_resolves() }
}

/// The type of the nodes that it is confined to; 0 if to none.
pub(crate) fn node_type() -> u32 {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_node_type() }
}

/// Returns true if the device is to be taken away while the lock of all network interfaces is held.
pub(crate) fn lock() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_lock() }
}

/// Returns true if a claim to the queue pair of a connection ends it, as with C.
pub(crate) fn claims_end() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_claims_end() }
}

/// Returns true if the only test is that of identifiers which are destroyed in their own callbacks.
pub(crate) fn own() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_own() }
}

/// Returns true if the only tests are those of listeners that share their address.
pub(crate) fn shares() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_shares() }
}

/// Returns true if the test is the one with a driver that does not return from accept.
pub(crate) fn stuck() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_stuck_only() }
}
