// SPDX-License-Identifier: GPL-2.0

//! The script that a seed stands for: the setup, the users and the accidents of a simulation.

use cmproto::{time::Duration, wire::Transport};
use fastrand::Rng;

use crate::{
    network::{span, Network, Weather},
    script::{Act, Call, Dial, Moment, Plant, Script, Setup, Side, Step, Tag, Verb},
};

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// Thousandths of the corrupt messages whose checksum is right all the same, where messages
    /// are corrupted at all.
    pub undetected: u32,
    /// A bug to be found.
    pub plant: Option<Plant>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            undetected: 20,
            plant: None,
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// One of `choices`.
fn one<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

/// True `percent` times of a hundred.
fn often(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(0..100) < percent
}

fn weather(rng: &mut Rng, knobs: &Knobs) -> Weather {
    let still = Weather {
        delay: one(rng, &[Duration::from_millis(1), SECOND, MINUTE]),
        ..Weather::default()
    };
    match rng.u32(0..10) {
        // A fifth of all simulations have a perfect network: an error there has no excuse.
        0 | 1 => still,
        2 => Weather { lost: 10, ..still },
        3 => Weather { lost: 300, ..still },
        4 => Weather { late: 300, ..still },
        5 => Weather {
            twice: 300,
            ..still
        },
        6 | 7 => Weather {
            lost: 100,
            late: 200,
            twice: 200,
            ..still
        },
        8 => Weather {
            lost: 500,
            late: 100,
            twice: 100,
            ..still
        },
        _ => Weather {
            corrupt: 100,
            undetected: knobs.undetected,
            twice: 100,
            ..still
        },
    }
}

fn dial(rng: &mut Rng) -> Dial {
    if often(rng, 60) {
        return Dial::PLAIN;
    }
    Dial {
        datagram: often(rng, 40),
        transport: one(
            rng,
            &[Transport::Rc, Transport::Rc, Transport::Uc, Transport::Xrc],
        ),
        max_cm_retries: rng.u8(0..=15),
        response_timeout: rng.u8(8..=20),
        packet_life_time: rng.u8(8..=18),
    }
}

/// Adds the unusual actions of the two users of `tag`.
fn users(rng: &mut Rng, tag: Tag, steps: &mut Vec<Step>) {
    for side in [Side::Active, Side::Passive] {
        let mut act = |when, after, verb| {
            steps.push(Step::Act(Act {
                tag,
                side,
                when,
                after,
                verb,
            }));
        };
        if often(rng, 30) {
            let verbs = [
                Verb::Accept,
                Verb::Accept,
                Verb::Accept,
                Verb::Reject,
                Verb::Destroy,
                Verb::Nothing,
            ];
            act(Moment::Asked, span(rng, MINUTE), one(rng, &verbs));
        }
        if often(rng, 50) {
            let verbs = [Verb::Disconnect, Verb::Disconnect, Verb::Destroy];
            act(Moment::Connected, span(rng, MINUTE), one(rng, &verbs));
        }
        if often(rng, 30) {
            let verbs = [Verb::Disconnect, Verb::Destroy, Verb::Nothing];
            act(Moment::Ended, span(rng, MINUTE), one(rng, &verbs));
        }
        while often(rng, 10) {
            let verbs = [
                Verb::Accept,
                Verb::Reject,
                Verb::Disconnect,
                Verb::Destroy,
                Verb::Notify,
            ];
            act(Moment::Created, span(rng, MINUTE), one(rng, &verbs));
        }
    }
}

/// Makes every other network that keeps the order of messages one of InfiniBand, whose users propose
/// alternate paths.
fn alternates(setup: &mut Setup, weather: &Weather, steps: &mut Vec<Step>) {
    // Drawn apart, so that a seed stands for the same as without them.
    let mut rng = Rng::with_seed(!setup.seed);
    let is_in_order = (weather.late, weather.twice, weather.corrupt) == (0, 0, 0);
    setup.infiniband = is_in_order && rng.bool();
    if !setup.infiniband {
        return;
    }
    let calls = steps.iter().filter_map(|step| match step {
        Step::Connect(call) => Some(call.tag),
        _ => None,
    });
    for tag in calls.collect::<Vec<_>>() {
        for side in [Side::Active, Side::Passive] {
            while often(&mut rng, 50) {
                let verbs = [Verb::Propose, Verb::Propose, Verb::ProposeElsewhere];
                steps.push(Step::Act(Act {
                    tag,
                    side,
                    when: Moment::Connected,
                    after: span(&mut rng, MINUTE),
                    verb: one(&mut rng, &verbs),
                }));
            }
        }
    }
}

/// The script of a seed, and the network to play it in.
pub fn plan(seed: u64, knobs: &Knobs) -> (Script, Network) {
    let mut rng = Rng::with_seed(seed);
    let mut setup = Setup {
        seed,
        nodes: one(&mut rng, &[2, 2, 3]),
        qpns: one(&mut rng, &[4, 16, 1 << 20]),
        backlog: one(&mut rng, &[1, 4, 64]),
        linger: rng.bool(),
        reach: one(
            &mut rng,
            &[
                Duration::ZERO,
                Duration::ZERO,
                Duration::from_millis(1),
                SECOND.saturating_mul(3),
            ],
        ),
        plant: knobs.plant,
        // Drawn apart, so that a seed stands for the same as without them.
        parking: (seed as usize / 3) % 3,
        early: (seed % 8) as u8,
        keepalive: (seed / 8 % 8) as u8,
        infiniband: false,
    };
    let nodes = usize::from(setup.nodes);
    let mut weather = weather(&mut rng, knobs);
    let mut steps = Vec::new();
    let spread = one(&mut rng, &[Duration::from_millis(1), SECOND, MINUTE]);
    let any_time = |rng: &mut Rng| Duration::from_micros(rng.u64(0..spread.as_micros()));
    for tag in 0..rng.u16(1..=32) {
        let from = rng.usize(..nodes);
        steps.push(Step::Connect(Call {
            tag,
            at: any_time(&mut rng),
            from,
            to: (from + rng.usize(1..nodes)) % nodes,
            dial: dial(&mut rng),
        }));
        users(&mut rng, tag, &mut steps);
    }
    let perfect = weather
        == Weather {
            delay: weather.delay,
            ..Weather::default()
        };
    if !perfect && often(&mut rng, 25) {
        let at = any_time(&mut rng);
        steps.push(Step::Cut {
            at,
            until: at + span(&mut rng, MINUTE.saturating_mul(2)),
            between: [0, 1],
        });
    }
    while !perfect && often(&mut rng, 25) {
        steps.push(Step::Restart {
            at: any_time(&mut rng) + span(&mut rng, MINUTE),
            node: rng.usize(..nodes),
        });
    }
    weather.delay = weather.delay.min(MINUTE);
    alternates(&mut setup, &weather, &mut steps);
    (
        Script { setup, steps },
        Network::drawn(rng.u64(..), weather),
    )
}
