// SPDX-License-Identifier: GPL-2.0

//! Whose turn it is to be told.

use super::{queue::Queued, KernelId};
use kernel::sync::MutexGuard;

/// The right to call the callbacks of a consumer: it has an identifier that is not destroyed, and
/// will not be for as long as this is there, but by what is called.
///
/// There is one at a time for an identifier. A connection request is told by the turn of the
/// listener: its consumer has not seen the identifier of the request yet.
pub(crate) struct Turn<'a> {
    _handler: MutexGuard<'a, ()>,
}

impl KernelId {
    /// Waits for the turn of the identifier, and takes out the oldest of what its consumer is to be
    /// told; none if there is nothing, or the consumer has destroyed the identifier.
    pub(super) fn next_turn(&self) -> Option<(Turn<'_>, Queued)> {
        let turn = Turn {
            _handler: self.handler.lock(),
        };
        // Whoever closes the queue has the lock, or is called by who has it.
        let queued = self.pop()?;
        Some((turn, queued))
    }
}
