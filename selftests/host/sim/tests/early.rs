// SPDX-License-Identifier: GPL-2.0

//! Nodes that send requests early against nodes that do as the C modules: in the same weather nothing
//! is lost by it, much time is won, and the price is bounded.

use cmproto::{cm::EARLY_SENDS, time::Duration};
use cmsim::{
    play_in_weather,
    script::{Call, Dial, Script, Setup, Step},
    Counts, Weather,
};

/// Calls in a simulation.
const CALLS: u16 = 20;

fn script(seed: u64, early: u8, dial: Dial) -> Script {
    let setup = Setup {
        seed,
        early,
        ..Setup::PLAIN
    };
    let call = |tag: u16| {
        Step::Connect(Call {
            tag,
            at: Duration::from_millis(u64::from(tag) * 3),
            from: usize::from(tag % 2),
            to: usize::from(1 - tag % 2),
            dial: Dial {
                datagram: tag % 5 == 4,
                ..dial
            },
        })
    };
    Script {
        setup,
        steps: (0..CALLS).map(call).collect(),
    }
}

/// Loss up to 20 %, duplication up to 10 %, reordering of up to 25 % of all messages.
fn weather(seed: u64) -> Weather {
    let share = |n: u64, most: u64| (seed.wrapping_mul(2 * n + 3) % (most + 1)) as u32;
    Weather {
        lost: share(1, 200),
        twice: share(2, 100),
        late: share(3, 250),
        delay: Duration::from_millis(1 << (seed % 11)),
        ..Weather::default()
    }
}

/// Returns the sum of all simulations, in which the nodes in the bits of `early` send early.
fn sum(early: u8, dial: Dial, weather: impl Fn(u64) -> Weather) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..300 {
        let outcome = play_in_weather(&script(seed, early, dial), seed, weather(seed));
        assert_eq!(outcome.violation, None, "seed {seed}, early {early:#b}");
        counts.add(&outcome.counts);
    }
    counts
}

#[test]
fn no_connection_is_lost_that_classic_nodes_keep() {
    let all = 300 * u64::from(CALLS);
    let classic = sum(0, Dial::PLAIN, weather);
    // The passive end of a connection is told, and who asked for a datagram service.
    let kept = |counts: Counts| (counts.established, counts.resolved, counts.unreachable);
    assert_eq!(kept(classic), (all / 5 * 4, all / 5, 0));
    for early in [0b01, 0b10, 0b11] {
        assert_eq!(kept(sum(early, Dial::PLAIN, weather)), kept(classic));
    }
    // With so few retries classic nodes do lose some.
    for max_cm_retries in [0, 1, 2] {
        let dial = Dial {
            max_cm_retries,
            ..Dial::PLAIN
        };
        let classic = sum(0, dial, weather);
        assert!(classic.unreachable > 0);
        for early in [0b01, 0b10, 0b11] {
            let early_sends = sum(early, dial, weather);
            assert!(early_sends.established > classic.established);
            assert!(early_sends.unreachable < classic.unreachable);
        }
    }
}

#[test]
fn what_it_costs() {
    let nothing_lost = |_| Weather::default();
    let lossy = |_| Weather {
        lost: 200,
        ..Weather::default()
    };
    // A peer that answers at once gets nothing twice.
    let classic = sum(0, Dial::PLAIN, nothing_lost);
    assert_eq!(sum(0b11, Dial::PLAIN, nothing_lost), classic);
    // With a fifth of all messages lost, the additional messages are repetitions of lost messages,
    // and of messages whose answer was lost. There are at most as many as the bound for each of two
    // requests.
    let classic = sum(0, Dial::PLAIN, lossy);
    let early_sends = sum(0b01, Dial::PLAIN, lossy);
    let more = early_sends.messages.saturating_sub(classic.messages);
    let requests = 3 * early_sends.connections;
    assert!(more < requests, "{more} more for {requests} requests");
    assert!(more < requests * u64::from(EARLY_SENDS));
}
