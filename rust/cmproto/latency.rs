// SPDX-License-Identifier: GPL-2.0

//! Latencies: how long the phases of connections take, as histograms.

use crate::time::Duration;

/// The number of buckets of a histogram.
///
/// The upper limits of the buckets are 64 us and twice as much from one to the next, up to 67 s;
/// the last bucket has no limit.
pub const BUCKETS: usize = 22;

/// The upper limit of the first bucket, as a power of two of microseconds.
const FIRST: u32 = 6;

/// Returns the bucket of a latency, below [`BUCKETS`].
pub fn bucket(took: Duration) -> usize {
    // The power of two that is not less.
    let power = u64::BITS.saturating_sub(took.as_micros().saturating_sub(1).leading_zeros());
    let bucket = power.saturating_sub(FIRST);
    usize::try_from(bucket).unwrap_or(BUCKETS).min(LAST)
}

/// The bucket without a limit.
const LAST: usize = BUCKETS - 1;

/// Returns the longest latency in a bucket, or `None` if it has no limit.
pub fn upper_limit(bucket: usize) -> Option<Duration> {
    let power = u32::try_from(bucket).ok()?.saturating_add(FIRST);
    match bucket < LAST {
        true => 1_u64.checked_shl(power).map(Duration::from_micros),
        false => None,
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_latency))]
mod tests {
    use super::*;

    fn of(us: u64) -> usize {
        bucket(Duration::from_micros(us))
    }

    #[test]
    fn a_bucket_goes_up_to_its_limit() {
        assert_eq!((of(0), of(1), of(64), of(65)), (0, 0, 0, 1));
        assert_eq!((of(128), of(129)), (1, 2));
        for bucket in 0..LAST {
            let limit = upper_limit(bucket).unwrap().as_micros();
            assert_eq!((of(limit), of(limit + 1)), (bucket, bucket + 1));
        }
    }

    #[test]
    fn the_last_bucket_has_no_limit() {
        assert_eq!(upper_limit(LAST), None);
        assert_eq!(upper_limit(usize::MAX), None);
        let longest = upper_limit(LAST - 1).unwrap();
        assert_eq!(longest, Duration::from_micros(67_108_864));
        assert_eq!((of(u64::MAX), of(67_108_865)), (LAST, LAST));
    }
}
