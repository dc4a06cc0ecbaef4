// SPDX-License-Identifier: GPL-2.0

//! The command line of storms: `cmsim storm [option...]`.

use std::io::{self, Write};

use cmproto::cm::Tunable;

use super::{storm, Condition, Config, Policy, Report, Scenario};

/// The options, as printed for who asks.
pub const USAGE: &str = "\
usage: cmsim storm [option...]
  --scenario NAME   held, waves or server (held)
  --nodes N         number of nodes, or of clients (1,000 held, 10,000 others)
  --waves N         waves of each node (4)
  --wave N          connections that a node begins in a wave (50)
  --policy NAME     c, rust or both (both)
  --loss PERCENT    share of the messages that is lost; may be a list (0,0.1,1,5)
  --condition NAME  plain, restart, dead or all (plain)
  --seed SEED       of the losses and of the times at which nodes begin (1)
  --spread US       time within which the nodes begin (1,000)
  --delay US        time until an application accepts (50)
  --backlog N       backlog of each listener (1,024)
  --tick US         time between two ticks of a kernel, at which timers run out (4,000)
  --queue N         receive queue of QP1 (512)
  --tune NAME=N     early-retry (ms), parking, retries, response-timeout of policy rust";

/// The tunables that can be named, and their names.
const TUNABLES: [(&str, Tunable); 4] = [
    ("early-retry", Tunable::EarlyRetry),
    ("parking", Tunable::Parking),
    ("retries", Tunable::MaxRetries),
    ("response-timeout", Tunable::ResponseTimeout),
];

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.replace('_', "").parse::<u64>().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{text}: not a number from {least} to {most}"))
}

/// Returns the millionths that a share in percent stands for.
fn loss(text: &str) -> Result<u32, String> {
    let percent = text.parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    let percent = percent.ok_or_else(|| format!("{text}: not a share from 0 to 100 %"))?;
    Ok((percent * 10_000.0).round() as u32)
}

fn tune(text: &str) -> Result<(Tunable, u32), String> {
    let wrong = || format!("{text}: not a tunable and a value");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let found = TUNABLES.iter().find(|(known, _)| *known == name);
    let (_, tunable) = found.ok_or_else(wrong)?;
    let value = number(value, 0, u64::from(tunable.max()))?;
    Ok((*tunable, value as u32))
}

/// Returns the storms that the arguments ask for.
///
/// # Errors
///
/// A line that says what is wrong with them.
pub fn configs(args: impl IntoIterator<Item = String>) -> Result<Vec<Config>, String> {
    let mut args = args.into_iter();
    let mut scenario = Scenario::Held;
    let mut policies = Policy::ALL.to_vec();
    let mut conditions = vec![Condition::Plain];
    let mut losses = vec![0, 1_000, 10_000, 50_000];
    let mut settings: Vec<Box<dyn Fn(&mut Config)>> = Vec::new();
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or(format!("{option}: no value, or no such option"))?;
        let mut set = |setting| settings.push(setting);
        match option.as_str() {
            "--scenario" => {
                let named = Scenario::named(&value);
                scenario = named.ok_or(format!("{value}: no such scenario"))?;
            }
            "--policy" if value == "both" => policies = Policy::ALL.to_vec(),
            "--policy" => {
                let named = Policy::ALL.into_iter().find(|p| p.to_string() == value);
                policies = vec![named.ok_or(format!("{value}: no such policy"))?];
            }
            "--condition" if value == "all" => conditions = Condition::ALL.to_vec(),
            "--condition" => {
                let named = Condition::named(&value);
                conditions = vec![named.ok_or(format!("{value}: no such condition"))?];
            }
            "--loss" => losses = value.split(',').map(loss).collect::<Result<_, _>>()?,
            "--nodes" => {
                let n = number(&value, 2, 100_000)? as u32;
                set(Box::new(move |config| config.plan.nodes = n));
            }
            "--waves" => {
                let n = number(&value, 1, 10_000)? as u32;
                set(Box::new(move |config| config.plan.waves = n));
            }
            "--wave" => {
                let n = number(&value, 1, 10_000)? as u32;
                set(Box::new(move |config| config.plan.wave = n));
            }
            "--seed" => {
                let n = number(&value, 0, u64::MAX)?;
                set(Box::new(move |config| config.seed = n));
            }
            "--spread" => {
                let n = number(&value, 0, 60_000_000)? * 1_000;
                set(Box::new(move |config| config.spread = n));
            }
            "--delay" => {
                let n = number(&value, 0, 60_000_000)? * 1_000;
                set(Box::new(move |config| config.accept_delay = n));
            }
            "--tick" => {
                let n = number(&value, 0, 1_000_000)? * 1_000;
                set(Box::new(move |config| config.tick = n));
            }
            "--backlog" => {
                let n = number(&value, 1, 1_000_000)? as u32;
                set(Box::new(move |config| config.backlog = n));
            }
            "--queue" => {
                let n = number(&value, 1, 1_000_000)? as usize;
                set(Box::new(move |config| config.receive_queue = n));
            }
            "--tune" => {
                let tuned = tune(&value)?;
                set(Box::new(move |config| {
                    if config.policy == Policy::Ours {
                        config.tuned.push(tuned);
                    }
                }));
            }
            _ => return Err(format!("{option}: no such option; see cmsim storm --help")),
        }
    }
    let mut configs = Vec::new();
    for condition in conditions {
        for lost in &losses {
            for policy in &policies {
                let mut config = Config::new(scenario, *policy);
                (config.condition, config.wire.lost) = (condition, *lost);
                settings.iter().for_each(|set| set(&mut config));
                configs.push(config);
            }
        }
    }
    Ok(configs)
}

/// Plays the storms that the arguments ask for, and prints a table of comma-separated values.
///
/// # Errors
///
/// A line that says what is wrong.
pub fn run(args: impl IntoIterator<Item = String>) -> Result<(), String> {
    let configs = configs(args)?;
    let mut out = io::stdout().lock();
    let written = (|| {
        writeln!(out, "{}", Report::HEAD)?;
        for config in &configs {
            writeln!(out, "{}", storm(config).row(config))?;
            out.flush()?;
        }
        Ok(())
    })();
    written.map_err(|error: io::Error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Vec<Config>, String> {
        configs(line.split_whitespace().map(String::from))
    }

    #[test]
    fn all_that_is_asked_for_is_played() {
        assert_eq!(asked("").unwrap().len(), 8);
        assert_eq!(asked("--condition all --loss 1,2").unwrap().len(), 12);
        let one = asked("--policy c --loss 0.1 --nodes 7 --scenario waves --wave 3");
        let [one] = &one.unwrap()[..] else {
            panic!("more than one");
        };
        assert_eq!(
            (one.plan.nodes, one.plan.wave, one.wire.lost),
            (7, 3, 1_000)
        );
        assert_eq!(
            (one.policy, one.plan.scenario),
            (Policy::C, Scenario::Waves)
        );
        let tuned = asked("--tune early-retry=5 --loss 0").unwrap();
        let early: Vec<_> = tuned.iter().map(|one| one.tuning().early_retry()).collect();
        assert_eq!(early[0], None);
        assert_eq!(early[1].unwrap().as_micros(), 5_000);
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        for line in [
            "--nodes 0",
            "--nodes 1",
            "--nodes -5",
            "--nodes 1e9",
            "--nodes",
            "--loss 101",
            "--loss -1",
            "--loss nan",
            "--loss 1,,2",
            "--scenario hurricane",
            "--policy both-of-them",
            "--condition fine",
            "--waves 0",
            "--wave 0",
            "--backlog 0",
            "--queue 0",
            "--tune early-retry",
            "--tune early-retry=10001",
            "--tune mtu=3",
            "--seed x",
            "--what",
            "--what 5",
            "storm",
        ] {
            let error = asked(line).map(|configs| configs.len()).unwrap_err();
            assert_eq!(error.lines().count(), 1, "{line}: {error}");
        }
    }
}
