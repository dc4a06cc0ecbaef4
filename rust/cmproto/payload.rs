// SPDX-License-Identifier: GPL-2.0

//! The private data of a message, kept for when the message is sent again.

use crate::bytes::fill;

/// Additional information and private data of the last message, if it had some: one of `M`, with
/// up to `MAX` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload<M, const MAX: usize>(Option<Data<M, MAX>>);

/// The data of a message.
///
/// # Invariants
///
/// `info_len + len` bytes of `bytes` are in use: first the additional information, then the private
/// data. All further bytes are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Data<M, const MAX: usize> {
    owner: M,
    info_len: u8,
    len: u8,
    bytes: [u8; MAX],
}

impl<M: PartialEq, const MAX: usize> Payload<M, MAX> {
    /// A payload without private data.
    pub(crate) const EMPTY: Self = Self(None);

    /// Returns a payload without private data, of which no more than that is written.
    #[inline(always)]
    pub(crate) const fn empty() -> Self {
        Self(None)
    }

    /// Creates the payload of the message `owner`, from additional information and private data.
    /// Returns `None` if they do not fit.
    pub(crate) fn new(owner: M, info: &[u8], data: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX];
        let (head, tail) = bytes.split_at_mut_checked(info.len())?;
        head.copy_from_slice(info);
        tail.get_mut(..data.len())?.copy_from_slice(data);
        // INVARIANT: the lengths are those of the data that was just copied.
        Some(Self(Some(Data {
            owner,
            info_len: u8::try_from(info.len()).ok()?,
            len: u8::try_from(data.len()).ok()?,
            bytes,
        })))
    }

    /// Stores `data`, cut to the size of the buffer, for the message `owner`.
    pub(crate) fn set(&mut self, owner: M, data: &[u8]) {
        if data.is_empty() {
            return self.clear();
        }
        let stored = self.0.insert(Data {
            owner,
            info_len: 0,
            len: 0,
            bytes: [0; MAX],
        });
        // INVARIANT: the length is that of the copied data, and nothing else is in use.
        stored.len = u8::try_from(fill(&mut stored.bytes, data)).unwrap_or(0);
    }

    /// Removes the data.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns the additional information and the private data of `message`, empty if they are
    /// those of another one.
    pub(crate) fn of(&self, message: M) -> (&[u8], &[u8]) {
        let Some(data) = self.0.as_ref().filter(|data| data.owner == message) else {
            return (&[], &[]);
        };
        let (info, rest) = data
            .bytes
            .split_at_checked(usize::from(data.info_len))
            .unwrap_or((&[], &[]));
        (info, rest.get(..usize::from(data.len)).unwrap_or(&[]))
    }
}
