// SPDX-License-Identifier: GPL-2.0

//! The parameters of ibcm.

use crate::bindings;

/// The service id of the listener that is there instead of the tests, if it is wanted.
pub(crate) fn resident() -> Option<u64> {
    // SAFETY: It may always be asked.
    let service_id = unsafe { bindings::rust_test_service() };
    (service_id != 0).then_some(service_id)
}

/// Returns true if the only tests are those of alternate paths that C does not pass.
pub(crate) fn migrates() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_migrates() }
}

/// Returns true if the only tests are those of alternate paths of established connections.
pub(crate) fn proposes() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_proposes() }
}

/// Returns true if the only test is that of a request whose time the port bounds.
pub(crate) fn bounded() -> bool {
    // SAFETY: It may always be asked.
    unsafe { bindings::rust_test_bounded() }
}
