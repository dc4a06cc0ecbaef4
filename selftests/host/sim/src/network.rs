// SPDX-License-Identifier: GPL-2.0

//! The treatment of each message by the network: drawn from a seed, or read from a script.

use std::collections::BTreeMap;

use cmproto::{time::Duration, wire::MAD_LEN};
use fastrand::Rng;

use crate::script::{Fate, Script, Step, Which};

/// The quality of a network: shares of all messages, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    pub lost: u32,
    pub late: u32,
    pub twice: u32,
    /// Bits are flipped. A checksum sees to it that the message is lost,
    pub corrupt: u32,
    /// but for this share of them.
    pub undetected: u32,
    /// Most that a message is late.
    pub delay: Duration,
}

/// Decides the fates of messages, and remembers them.
#[derive(Debug)]
pub enum Network {
    /// The fate of a message depends on nothing but the seed and which message it is.
    Drawn {
        seed: u64,
        weather: Weather,
        /// Everything unusual that happened.
        record: Vec<(Which, Fate)>,
    },
    /// The fates of a script.
    Scripted(BTreeMap<Which, Fate>),
}

/// Mixes a number into a sum.
fn mix(sum: u64, value: u64) -> u64 {
    let sum = (sum ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 32)
}

/// A span of any order of magnitude up to `most`.
pub fn span(rng: &mut Rng, most: Duration) -> Duration {
    let bits = rng.u32(0..=most.as_micros().max(1).ilog2());
    Duration::from_micros(rng.u64(0..=(2 << bits)).min(most.as_micros()))
}

impl Network {
    /// The network of a script.
    pub fn of(script: &Script) -> Self {
        let fates = script.steps.iter().filter_map(|step| match step {
            Step::Network(which, fate) => Some((*which, *fate)),
            _ => None,
        });
        Self::Scripted(fates.collect())
    }

    /// A network in bad weather.
    pub fn drawn(seed: u64, weather: Weather) -> Self {
        Self::Drawn {
            seed,
            weather,
            record: Vec::new(),
        }
    }

    /// Returns the fate of a message.
    pub fn fate(&mut self, which: Which) -> Fate {
        match self {
            Self::Scripted(fates) => fates.get(&which).copied().unwrap_or(Fate::PLAIN),
            Self::Drawn {
                seed,
                weather,
                record,
            } => {
                let fate = draw(*seed, weather, which);
                if fate != Fate::PLAIN {
                    record.push((which, fate));
                }
                fate
            }
        }
    }

    /// Everything unusual that happened, if it was drawn.
    pub fn record(self) -> Vec<(Which, Fate)> {
        match self {
            Self::Drawn { record, .. } => record,
            Self::Scripted(_) => Vec::new(),
        }
    }
}

fn draw(seed: u64, weather: &Weather, which: Which) -> Fate {
    let number = (which.from as u64) << 48 | u64::from(which.tag) << 32;
    let number = number | u64::from(which.kind.id()) << 16 | u64::from(which.nth);
    let mut rng = Rng::with_seed(mix(mix(seed, number), 0x5eed));
    let mut dice = rng.u32(0..1000);
    let mut falls = |share: u32| {
        let hit = dice < share;
        dice = dice.wrapping_sub(share);
        hit
    };
    if falls(weather.lost) {
        Fate::Lost
    } else if falls(weather.late) {
        Fate::Late(span(&mut rng, weather.delay))
    } else if falls(weather.twice) {
        let first = span(&mut rng, Duration::from_millis(1));
        Fate::Twice(first, span(&mut rng, weather.delay))
    } else if falls(weather.corrupt) {
        if rng.u32(0..1000) >= weather.undetected {
            return Fate::Lost;
        }
        let bits = (MAD_LEN * 8) as u16;
        // Half of the time among the fields, which take less than a quarter of a datagram.
        let last = if rng.bool() { bits } else { bits / 4 };
        Fate::Corrupt(std::array::from_fn(|_| rng.u16(0..last)))
    } else {
        Fate::PLAIN
    }
}
