// SPDX-License-Identifier: GPL-2.0

//! The network: a link of each host to a switch that has room for all.

use fastrand::Rng;

/// The quality of the network.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Time from one host to another, in nanoseconds.
    pub latency: u64,
    /// Bits per nanosecond of a link, in each direction.
    pub gigabits: u64,
    /// Messages lost, of a million.
    pub lost: u32,
}

impl Wire {
    /// Bytes of a message on the wire: the MAD, with the headers of RoCE v2 and the gap.
    const BYTES: u64 = 256 + 86;

    /// Returns whether the next message is lost.
    pub fn loses(&self, rng: &mut Rng) -> bool {
        rng.u32(0..1_000_000) < self.lost
    }

    /// Returns the time when a message arrives that is sent at `now`, in nanoseconds.
    pub fn pass(&self, now: u64, from: &mut Link, to: &mut Link) -> u64 {
        let took = Self::BYTES * 8 / self.gigabits.max(1);
        from.egress = from.egress.max(now) + took;
        to.ingress = to.ingress.max(from.egress + self.latency) + took;
        to.ingress
    }
}

/// The times when the two directions of a link are free, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    egress: u64,
    ingress: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_queue_at_both_ends() {
        let wire = Wire {
            latency: 2_000,
            gigabits: 1,
            lost: 0,
        };
        let took = 342 * 8;
        let [mut a, mut b, mut c] = [Link::default(); 3];
        assert_eq!(wire.pass(0, &mut a, &mut c), 2 * took + 2_000);
        assert_eq!(wire.pass(0, &mut a, &mut b), 3 * took + 2_000);
        assert_eq!(wire.pass(0, &mut b, &mut c), 3 * took + 2_000);
    }

    #[test]
    fn the_share_that_is_asked_for_is_lost() {
        let wire = |lost| Wire {
            latency: 0,
            gigabits: 1,
            lost,
        };
        let lost = |n| {
            let mut rng = Rng::with_seed(1);
            (0..100_000).filter(|_| wire(n).loses(&mut rng)).count()
        };
        assert_eq!([lost(0), lost(1_000_000)], [0, 100_000]);
        assert!((4_700..5_300).contains(&lost(50_000)));
    }
}
