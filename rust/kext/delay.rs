// SPDX-License-Identifier: GPL-2.0

//! Delays that make the window of a race wide, in a test build (`make DELAYS=<seed>`).
//!
//! [`point`] stands wherever another task may come in between: where a lock is left and taken again,
//! where a look is repeated, and around what somebody else waits for. In any other build it is nothing.

/// Another task may come in between here. Sleeps for a random time in a test build. No spin lock is held.
#[inline(always)]
pub(crate) fn point() {
    #[cfg(rdma_delays)]
    on::sleep();
}

/// Says so in the log if there are delays.
#[inline(always)]
pub(crate) fn announce() {
    #[cfg(rdma_delays)]
    kernel::pr_info!("a test build with delays, seed {}\n", on::SEED);
}

#[cfg(rdma_delays)]
mod on {
    use kernel::{
        sync::atomic::{Atomic, Relaxed},
        time::{delay::fsleep, Delta},
    };

    /// What the delays are made of, besides how many there were.
    pub(super) const SEED: u64 = parse(env!("RDMA_DELAYS").as_bytes());

    /// How many points were passed.
    static PASSED: Atomic<u64> = Atomic::new(0);

    /// The number that `digits` stand for.
    const fn parse(mut digits: &[u8]) -> u64 {
        let mut number: u64 = 0;
        while let [first, rest @ ..] = digits {
            number = number
                .wrapping_mul(10)
                .wrapping_add((*first).wrapping_sub(b'0') as u64);
            digits = rest;
        }
        number
    }

    /// A number that looks random, of the `nth` point (splitmix64).
    fn random(nth: u64) -> u64 {
        let mut z = SEED.wrapping_add(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Half of the points sleep: most for less than others need for a few steps, some for as long as a
    /// whole command takes.
    pub(super) fn sleep() {
        let random = random(PASSED.fetch_add(1, Relaxed));
        let longest = match random & 15 {
            0..8 => return,
            8..13 => 100,
            13..15 => 2_000,
            _ => 20_000,
        };
        let delay = (random >> 4) % longest;
        fsleep(Delta::from_micros(i64::try_from(delay).unwrap_or(0)));
    }
}
