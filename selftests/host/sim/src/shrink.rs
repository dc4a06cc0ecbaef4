// SPDX-License-Identifier: GPL-2.0

//! Makes a script that breaks a rule as short and as plain as it can be.

use cmproto::time::Duration;

use crate::{
    play,
    rules::Rule,
    script::{Act, Call, Dial, Fate, Script, Setup, Step},
};

/// The number of scripts that may be played to find a shorter one.
const TRIES: usize = 20_000;

/// A search for a shorter script.
struct Search {
    best: Script,
    rule: Rule,
    tries: usize,
}

impl Search {
    /// Takes `script` for the better one if it breaks the same rule.
    fn try_it(&mut self, script: Script) -> bool {
        if script == self.best || self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let broken = play(&script, false).violation;
        let same = broken.is_some_and(|violation| violation.rule == self.rule);
        if same {
            self.best = script;
        }
        same
    }

    /// Leaves out steps: first many at once, then one by one.
    fn leave_out(&mut self) -> bool {
        let mut better = false;
        let mut chunk = self.best.steps.len().div_ceil(2);
        while chunk > 0 {
            let mut start = 0;
            while start < self.best.steps.len() {
                let mut script = self.best.clone();
                let end = (start + chunk).min(script.steps.len());
                script.steps.drain(start..end);
                if self.try_it(script) {
                    better = true;
                } else {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
        better
    }

    /// Makes the setup, and each step, plainer.
    fn make_plain(&mut self) -> bool {
        let mut better = false;
        for change in [
            |setup: &mut Setup| setup.nodes = 2,
            |setup: &mut Setup| setup.qpns = Setup::PLAIN.qpns,
            |setup: &mut Setup| setup.backlog = Setup::PLAIN.backlog,
            |setup: &mut Setup| setup.parking = 0,
            |setup: &mut Setup| setup.early = 0,
            |setup: &mut Setup| setup.keepalive = 0,
            |setup: &mut Setup| setup.infiniband = false,
            |setup: &mut Setup| setup.linger = false,
            |setup: &mut Setup| setup.reach = Duration::ZERO,
        ] {
            let mut script = self.best.clone();
            change(&mut script.setup);
            let fits = script.steps.iter().all(|step| match step {
                Step::Connect(call) => call.from.max(call.to) < usize::from(script.setup.nodes),
                Step::Restart { node, .. } => *node < usize::from(script.setup.nodes),
                _ => true,
            });
            better |= fits && self.try_it(script);
        }
        for index in 0..self.best.steps.len() {
            let Some(step) = self.best.steps.get(index).copied() else {
                break;
            };
            for plainer in plainer(&step) {
                let mut script = self.best.clone();
                if let Some(place) = script.steps.get_mut(index) {
                    *place = plainer;
                }
                if self.try_it(script) {
                    better = true;
                    break;
                }
            }
        }
        better
    }
}

/// Plainer spans than `span`, the plainest first.
fn shorter(span: Duration) -> Vec<Duration> {
    let us = span.as_micros();
    let mut spans = vec![Duration::ZERO];
    // Round numbers read better.
    for unit in [10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10] {
        spans.push(Duration::from_micros(us / unit * unit));
    }
    spans.push(span.divided_by(2));
    spans.retain(|shorter| *shorter < span);
    spans.dedup();
    spans
}

/// Plainer steps than `step`, the plainest first.
fn plainer(step: &Step) -> Vec<Step> {
    let mut steps = Vec::new();
    match *step {
        Step::Connect(call) => {
            let mut dials = Vec::new();
            if call.dial != Dial::PLAIN {
                let (datagram, transport) = (call.dial.datagram, Dial::PLAIN.transport);
                dials.push(Dial::PLAIN);
                dials.push(Dial {
                    datagram,
                    ..Dial::PLAIN
                });
                dials.push(Dial {
                    transport,
                    ..call.dial
                });
            }
            let dials = dials.into_iter().map(|dial| Call { dial, ..call });
            let earlier = shorter(call.at).into_iter();
            let earlier = earlier.map(|at| Call { at, ..call });
            steps.extend(dials.chain(earlier).map(Step::Connect));
        }
        Step::Act(act) => {
            let sooner = shorter(act.after).into_iter();
            steps.extend(sooner.map(|after| Step::Act(Act { after, ..act })));
        }
        Step::Network(which, fate) => {
            let fates: Vec<Fate> = match fate {
                Fate::Lost => Vec::new(),
                Fate::Late(by) => shorter(by).into_iter().map(Fate::Late).collect(),
                Fate::Twice(first, second) => {
                    let firsts = shorter(first).into_iter();
                    let seconds = shorter(second).into_iter();
                    let seconds = seconds.map(|second| Fate::Twice(first, second));
                    let all = firsts.map(|first| Fate::Twice(first, second));
                    all.chain(seconds).collect()
                }
                // Two equal bits flip back.
                Fate::Corrupt(bits) => bits.map(|bit| Fate::Corrupt([bit; 3])).into(),
            };
            let fates = fates.into_iter().filter(|plainer| *plainer != fate);
            steps.extend(fates.map(|fate| Step::Network(which, fate)));
        }
        Step::Cut { at, until, between } => {
            let cut = |at, until| Step::Cut { at, until, between };
            steps.extend(shorter(at).into_iter().map(|at| cut(at, until)));
            steps.extend(shorter(until).into_iter().map(|until| cut(at, until)));
        }
        Step::Restart { at, node } => {
            steps.extend(shorter(at).into_iter().map(|at| Step::Restart { at, node }));
        }
    }
    steps
}

/// The shortest script found that breaks the same rule as `script`.
pub fn shrink(script: &Script, rule: Rule) -> Script {
    let mut search = Search {
        best: script.clone(),
        rule,
        tries: TRIES,
    };
    while search.leave_out() | search.make_plain() {}
    search.best
}
