// SPDX-License-Identifier: GPL-2.0

//! Serialisation of the callbacks of a consumer.

use super::{queue::Queued, KernelId};
use kernel::sync::MutexGuard;

/// The right to call the handler of a consumer.
///
/// There is one at a time for an identifier. The identifier is not destroyed while this exists,
/// except by the callback itself. A connection request is delivered under the listener's guard,
/// because its consumer does not know the new identifier yet.
pub(crate) struct HandlerGuard<'a> {
    _handler: MutexGuard<'a, ()>,
}

impl KernelId {
    /// Locks the handler of the identifier, and removes the oldest event from its queue.
    ///
    /// Returns `None` if the queue is empty, or the consumer has destroyed the identifier.
    pub(super) fn lock_handler_for_next(&self) -> Option<(HandlerGuard<'_>, Queued)> {
        let guard = HandlerGuard {
            _handler: self.handler.lock(),
        };
        // A task that closes the queue holds the handler's lock, or is called by the task that
        // does.
        let queued = self.pop()?;
        Some((guard, queued))
    }
}
