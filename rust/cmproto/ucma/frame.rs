// SPDX-License-Identifier: GPL-2.0

//! The frame of a command: what the header of a write says about it.

use crate::{
    errno::Errno,
    ucma_abi::{Command, CommandHeader},
};
use core::mem::size_of;

/// A command header that is consistent with the write that it starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The command.
    pub command: Command,
    /// Length of the request behind the header, in bytes. The write has at least that many.
    pub request_len: usize,
    /// Size of the buffer for the response, in bytes.
    pub response_len: usize,
}

impl Frame {
    /// Checks the header of a write of `len` bytes, header included.
    ///
    /// Bytes beyond the request are allowed.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if there is no such command, or if the request is longer than the write.
    pub fn new(header: &CommandHeader, len: usize) -> Result<Self, Errno> {
        let command = Command::try_from(header.cmd)?;
        let request_len = usize::from(header.r#in);
        if request_len.saturating_add(size_of::<CommandHeader>()) > len {
            return Err(Errno::EINVAL);
        }
        Ok(Frame {
            command,
            request_len,
            response_len: header.out.into(),
        })
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_frame))]
mod tests {
    use super::*;

    fn frame(cmd: u32, r#in: u16, len: usize) -> Result<Frame, Errno> {
        Frame::new(&CommandHeader { cmd, r#in, out: 7 }, len)
    }

    #[test]
    fn every_command_and_no_other() {
        for number in 0..25 {
            let frame = frame(number, 0, 8).unwrap();
            assert_eq!(frame.command.number(), number);
            assert_eq!(frame.response_len, 7);
        }
        for number in [25, 26, 32, 0x100, u32::MAX] {
            assert_eq!((number, frame(number, 0, 8)), (number, Err(Errno::EINVAL)));
        }
    }

    #[test]
    fn the_request_lies_within_the_write() {
        for (request, len, good) in [
            (0, 8, true),
            (0, 100, true),
            (24, 32, true),
            (24, 33, true),
            (24, 31, false),
            (u16::MAX, 65_542, false),
            (u16::MAX, 65_543, true),
            (u16::MAX, usize::MAX, true),
        ] {
            let frame = frame(0, request, len);
            assert_eq!((request, len, frame.is_ok()), (request, len, good));
        }
    }
}
