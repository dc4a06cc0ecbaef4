// SPDX-License-Identifier: GPL-2.0

//! Queue pairs of soft-RoCE, by plain `write()` (`include/uapi/rdma/ib_user_verbs.h`).

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
};

const GET_CONTEXT: u32 = 0;
const ALLOC_PD: u32 = 3;
const CREATE_CQ: u32 = 18;
const CREATE_QP: u32 = 24;

/// `IB_QPT_RC`, `IB_QPT_UD`.
const RC: u32 = 2;
const UD: u32 = 4;

/// A file of a device, whose objects live as long as it.
pub struct Verbs(File);

impl Verbs {
    /// Opens the n-th device and makes a queue pair of each kind. Returns their numbers.
    pub fn new(device: u32) -> io::Result<(Self, [u32; 2])> {
        let path = format!("/dev/infiniband/uverbs{device}");
        let verbs = Self(OpenOptions::new().read(true).write(true).open(path)?);
        verbs.ask(GET_CONTEXT, &[])?;
        let [domain, ..] = verbs.ask(ALLOC_PD, &[])?;
        // User handle; entries; vector; no channel; reserved.
        let [queue, ..] = verbs.ask(CREATE_CQ, &[0, 0, 16, 0, u32::MAX, 0])?;
        let pair = |kind: u32| {
            let mut words = [0, 0, domain, queue, queue, 0, 4, 4, 1, 1, 0, 0];
            words[11] = kind << 8;
            verbs.ask(CREATE_QP, &words).map(|answer| answer[1])
        };
        let pairs = [pair(RC)?, pair(UD)?];
        Ok((verbs, pairs))
    }

    /// Writes a command with these words behind the address of the answer, which is returned.
    fn ask(&self, command: u32, words: &[u32]) -> io::Result<[u32; 16]> {
        let mut answer = Box::new([0u32; 16]);
        let address = answer.as_mut_ptr().expose_provenance() as u64;
        let len = (4 + words.len()) as u32;
        let mut request = vec![
            command,
            len | 16 << 16,
            address as u32,
            (address >> 32) as u32,
        ];
        request.extend(words);
        let bytes: Vec<u8> = request.iter().flat_map(|word| word.to_ne_bytes()).collect();
        (&self.0).write_all(&bytes)?;
        // SAFETY: The kernel has written the answer, behind the compiler's back.
        Ok(unsafe { std::ptr::read_volatile(&raw const *answer) })
    }
}
