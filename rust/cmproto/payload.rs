// SPDX-License-Identifier: GPL-2.0

//! The private data of a message, kept for when the message is sent again.

use crate::bytes::fill;

/// Additional information and private data of the last message that had some: one of `M`, with up
/// to `MAX` bytes.
///
/// # Invariants
///
/// `info_len + len` bytes of `bytes` are in use: first the additional information, then the private
/// data. All further bytes are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload<M, const MAX: usize> {
    owner: Option<M>,
    info_len: u8,
    len: u8,
    bytes: [u8; MAX],
}

impl<M: PartialEq, const MAX: usize> Payload<M, MAX> {
    /// A payload without private data.
    pub(crate) const EMPTY: Self = Self {
        owner: None,
        info_len: 0,
        len: 0,
        bytes: [0; MAX],
    };

    /// Creates the payload of the message `owner`, from additional information and private data.
    /// Returns `None` if they do not fit.
    pub(crate) fn new(owner: M, info: &[u8], data: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX];
        let (head, tail) = bytes.split_at_mut_checked(info.len())?;
        head.copy_from_slice(info);
        tail.get_mut(..data.len())?.copy_from_slice(data);
        // INVARIANT: the lengths are those of the data that was just copied.
        Some(Self {
            owner: Some(owner),
            info_len: u8::try_from(info.len()).ok()?,
            len: u8::try_from(data.len()).ok()?,
            bytes,
        })
    }

    /// Stores `data`, cut to the size of the buffer, for the message `owner`.
    pub(crate) fn set(&mut self, owner: M, data: &[u8]) {
        self.clear();
        // INVARIANT: the length is that of the copied data, and nothing else is in use.
        self.len = u8::try_from(fill(&mut self.bytes, data)).unwrap_or(0);
        self.owner = Some(owner);
    }

    /// Removes the data.
    pub(crate) fn clear(&mut self) {
        let used = usize::from(self.info_len).saturating_add(usize::from(self.len));
        if let Some(used) = self.bytes.get_mut(..used) {
            used.fill(0);
        }
        // INVARIANT: the bytes that were in use are zero now.
        self.owner = None;
        self.info_len = 0;
        self.len = 0;
    }

    /// Returns the additional information and the private data of `message`, empty if they are
    /// those of another one.
    pub(crate) fn of(&self, message: M) -> (&[u8], &[u8]) {
        if self.owner != Some(message) {
            return (&[], &[]);
        }
        let (info, rest) = self
            .bytes
            .split_at_checked(usize::from(self.info_len))
            .unwrap_or((&[], &[]));
        (info, rest.get(..usize::from(self.len)).unwrap_or(&[]))
    }
}
