// SPDX-License-Identifier: GPL-2.0

//! Formatting without an allocator, for the tests.

use core::{
    fmt::{self, Write},
    ops::Deref,
    str,
};

/// A short string.
pub(crate) struct Text {
    buf: [u8; Self::CAPACITY],
    len: usize,
}

impl Text {
    const CAPACITY: usize = 160;
}

impl Default for Text {
    fn default() -> Self {
        Self {
            buf: [0; Self::CAPACITY],
            len: 0,
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.buf[self.len..].get_mut(..text.len());
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.buf[..self.len]).unwrap()
    }
}

/// Returns the text that `value` displays.
pub(crate) fn text(value: impl fmt::Display) -> Text {
    let mut text = Text::default();
    write!(text, "{value}").unwrap();
    text
}
