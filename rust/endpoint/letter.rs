// SPDX-License-Identifier: GPL-2.0

//! Memory for the message of a connection that may have to be sent again.

use cmproto::{
    cm::{self, Letter},
    errno::Errno,
};
use core::ops::{Deref, DerefMut};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*};

/// The state machine of a connection, with memory of its own for the message that waits for its
/// answer.
pub(crate) type Connection = cm::Connection<LetterBox>;

/// Memory for a message, which is charged to the memory cgroup of the task that sends it.
pub(crate) struct LetterBox(KBox<Letter>);

impl Deref for LetterBox {
    type Target = Letter;

    fn deref(&self) -> &Letter {
        &self.0
    }
}

impl DerefMut for LetterBox {
    fn deref_mut(&mut self) -> &mut Letter {
        &mut self.0
    }
}

impl cm::LetterBox for LetterBox {
    fn new() -> Result<Self, Errno> {
        match KBox::new(Letter::EMPTY, GFP_KERNEL_ACCOUNT) {
            Ok(letter) => Ok(Self(letter)),
            Err(_) => Err(Errno::ENOMEM),
        }
    }
}
