// SPDX-License-Identifier: GPL-2.0

//! Short storms: everything connects, soon, and nothing is left.

use cmsim::storm::{storm, Condition, Config, Policy, Report, Scenario};

fn config(scenario: Scenario, policy: Policy, nodes: u32, percent: u32) -> Config {
    let mut config = Config::new(scenario, policy);
    config.plan.nodes = nodes;
    (config.plan.waves, config.plan.wave) = (2, 10);
    config.wire.lost = percent * 10_000;
    config
}

/// Plays a storm in which all is to be connected, and checks that nothing is left of it.
fn all_connected(config: &Config) -> Report {
    let report = storm(config);
    assert_eq!(report.took.len() as u64, config.plan.connections());
    assert_eq!((report.failed, report.unfinished), (0, 0));
    assert_eq!(report.left, 0);
    report
}

#[test]
fn a_seed_stands_for_one_storm() {
    let config = config(Scenario::Held, Policy::Ours, 20, 5);
    assert_eq!(storm(&config), storm(&config));
    let other = Config {
        seed: 2,
        ..config.clone()
    };
    assert_ne!(storm(&config), storm(&other));
}

#[test]
fn all_connect_to_all_whatever_is_lost() {
    for scenario in [Scenario::Held, Scenario::Waves] {
        for percent in [0, 1, 5] {
            let [c, ours] =
                Policy::ALL.map(|policy| all_connected(&config(scenario, policy, 60, percent)));
            // No more is sent than what is lost, and the answers to it.
            let least = 5.0;
            for report in [&c, &ours] {
                let messages = report.messages_per_connection();
                assert!(
                    (least..least * (1.0 + 3.0 * f64::from(percent) / 100.0 + 0.001))
                        .contains(&messages)
                );
            }
            if percent > 0 {
                // A loss takes C more than 4 s, and this module the time of an early retry.
                assert!(c.whole() > 4.0 && ours.whole() < c.whole() / 10.0);
            }
        }
    }
}

/// A timer runs out at a tick of its host: a loss costs up to one more.
#[test]
fn a_loss_costs_a_wave_a_tick_more() {
    let mut waves = config(Scenario::Waves, Policy::Ours, 400, 1);
    waves.plan.waves = 1;
    let mut p99 = |tick| {
        waves.tick = tick;
        all_connected(&waves).node(99)
    };
    let [fine, coarse] = [0, 100_000_000].map(&mut p99);
    assert!(fine > 0.02 && fine < 0.1, "{fine}");
    assert!(coarse > fine + 0.02, "{coarse} {fine}");
}

/// The server takes some 30 us for a connection, and its queue has room for 512 messages.
#[test]
fn a_server_is_not_overrun_by_its_clients() {
    let [c, ours] =
        Policy::ALL.map(|policy| all_connected(&config(Scenario::Server, policy, 1_000, 0)));
    assert!(c.overflowed > 0 && ours.overflowed > 0);
    assert!(c.whole() > 4.0, "{}", c.whole());
    assert!(ours.whole() < 0.2, "{}", ours.whole());
    let lossy = all_connected(&config(Scenario::Server, Policy::Ours, 1_000, 1));
    assert!(lossy.whole() < 0.2, "{}", lossy.whole());
}

#[test]
fn requests_beyond_the_backlog_are_not_lost() {
    let [c, ours] = Policy::ALL.map(|policy| {
        let mut config = config(Scenario::Server, policy, 400, 0);
        (config.backlog, config.accept_delay) = (8, 2_000_000);
        config
    });
    assert!(storm(&c).whole() > 4.0);
    let ours = all_connected(&ours);
    assert!(ours.whole() < 0.1, "{}", ours.whole());
}

#[test]
fn who_restarts_is_connected_again() {
    for scenario in [Scenario::Held, Scenario::Server] {
        let mut config = config(scenario, Policy::Ours, 60, 1);
        config.condition = Condition::Restart;
        let report = storm(&config);
        assert!(report.took.len() as u64 > config.plan.connections());
        assert_eq!((report.failed, report.unfinished, report.left), (0, 0, 0));
        assert!(report.whole() > 1.0 && report.whole() < 10.0);
    }
}

#[test]
fn the_dead_cost_the_living_nothing() {
    let mut config = config(Scenario::Held, Policy::Ours, 60, 0);
    let plain = storm(&config);
    config.condition = Condition::Dead;
    let report = storm(&config);
    // 54 of 60 live, and have the same connections as before.
    assert_eq!(report.took.len(), 54 * 53 / 2);
    assert!((1..=54 * 6).contains(&report.unreachable));
    assert_eq!((report.failed, report.left), (0, 0));
    let (with, without) = (report.connect(100), plain.connect(100));
    assert!(with < 2.0 * without, "{with} {without}");
    // They are given up after all retries.
    assert!((70.0..80.0).contains(&report.whole()));
}

#[test]
fn memory_grows_with_the_connections() {
    let peak = |nodes| storm(&config(Scenario::Held, Policy::Ours, nodes, 0)).peak;
    let (small, large) = (peak(20), peak(40));
    assert!((19 * 2_500..=19 * 2_700).contains(&small), "{small}");
    assert!((39 * 2_500..=39 * 2_700).contains(&large), "{large}");
}
