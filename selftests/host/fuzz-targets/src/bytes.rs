// SPDX-License-Identifier: GPL-2.0

//! Values from the bytes of a fuzzer.

/// The bytes that are left. Behind their end there are zeros.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next `n` bytes, or as many as there are.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// The next `N` bytes, zeros if there are no more.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let head = self.take(N);
        array[..head.len()].copy_from_slice(head);
        array
    }

    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Some bytes, at most 255.
    pub fn some(&mut self) -> &'a [u8] {
        let n = self.u8();
        self.take(n.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
