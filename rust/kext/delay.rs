// SPDX-License-Identifier: GPL-2.0

//! Delays that widen the window of a race, in a test build (`--cfg rdma_delays`).
//!
//! A [`point`] marks a place where another task may interleave: between releasing a lock and taking
//! it again, before a condition is checked a second time, and around an operation that another task
//! waits for. In other builds it does nothing.
//!
//! [`at`] marks a place whose window a random delay is too short to meet. One build has a long
//! delay at one of them: `make DELAYS=1 DELAY_AT=<name>`.

/// Sleeps for a random time in a test build. The caller must not hold a spin lock.
#[inline(always)]
pub(crate) fn point() {
    #[cfg(rdma_delays)]
    on::sleep();
}

/// Sleeps for two seconds in a test build that is made for the place `name`. The caller must not
/// hold a spin lock.
#[inline(always)]
pub(crate) fn at(name: &str) {
    #[cfg(rdma_delays)]
    on::sleep_at(name);
    #[cfg(not(rdma_delays))]
    let _ = name;
}

/// Logs the seed of the delays in a test build.
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

    /// The seed of the random delays.
    pub(super) const SEED: u64 = parse(env!("RDMA_DELAYS").as_bytes());

    /// The name of the place that has the long delay, if there is one.
    const PLACE: Option<&str> = option_env!("RDMA_DELAY_AT");

    /// The length of the long delay, longer than a device takes to be removed.
    const LONG: Delta = Delta::from_secs(2);

    /// The number of points that were passed so far.
    static PASSED: Atomic<u64> = Atomic::new(0);

    /// Parses a decimal number at compile time.
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

    /// Returns the `nth` pseudo-random number of the sequence (splitmix64).
    fn random(nth: u64) -> u64 {
        let mut z = SEED.wrapping_add(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Sleeps at half of the points.
    ///
    /// Most delays are about as long as a few steps of another task, some as long as a whole
    /// command.
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

    /// Sleeps for two seconds if the build is made for the place `name`.
    pub(super) fn sleep_at(name: &str) {
        if PLACE == Some(name) {
            fsleep(LONG);
        }
    }
}
