// SPDX-License-Identifier: GPL-2.0

//! Serialisation of the callbacks of a consumer.

use super::{queue::Queued, KernelId};
use kernel::sync::MutexGuard;

/// The right to call the handler of a consumer.
///
/// There is one at a time for an identifier. The identifier is not destroyed while this exists,
/// except by the callback itself. A connection request is told in the turn of the listener, because
/// its consumer does not know the new identifier yet.
pub(crate) struct Turn<'a> {
    _handler: MutexGuard<'a, ()>,
}

impl KernelId {
    /// Waits for the turn of the identifier, and removes the oldest event from its queue.
    ///
    /// Returns `None` if the queue is empty, or the consumer has destroyed the identifier.
    pub(super) fn next_turn(&self) -> Option<(Turn<'_>, Queued)> {
        let turn = Turn {
            _handler: self.handler.lock(),
        };
        // A task that closes the queue holds the handler's lock, or is called by the task that
        // does.
        let queued = self.pop()?;
        Some((turn, queued))
    }
}
