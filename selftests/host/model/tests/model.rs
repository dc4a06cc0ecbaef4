// SPDX-License-Identifier: GPL-2.0

//! That the model says yes to the real thing, and no to nodes with a fault.

use cm_model::{
    bounds::{Bounds, Extent, Plant, SEARCHES},
    graph::walk,
    machine::Msgs,
    model::Search,
    world::{Rules, World},
};
use std::time::Duration;

fn search(name: &str, plant: Plant) -> Bounds {
    let bounds = SEARCHES.iter().find(|bounds| bounds.name == name);
    Bounds {
        plant,
        ..*bounds.unwrap()
    }
}

#[test]
fn all_properties_hold() {
    for name in ["two-crossing", "two-same-qp-passive", "one-restart"] {
        assert_eq!(Search::broken(search(name, Plant::None)), [""; 0], "{name}");
    }
}

#[test]
fn every_fair_run_ends() {
    let rules = Rules::new(search("two-crossing", Plant::None));
    let walk = walk(&rules, usize::MAX, Duration::MAX);
    assert!(walk.complete && walk.circling == 0 && walk.longest > 6);
    assert!(walk.states > 10_000);
}

#[test]
fn faults_are_found() {
    for (name, plant, property) in [
        (
            "one-restart",
            Plant::ForgetPeers,
            "S1 names belong to one connection",
        ),
        (
            "one-restart",
            Plant::KeepPeers,
            "S9 the tables hold live connections only",
        ),
        (
            "two-same-qp-passive",
            Plant::ForgetRefusals,
            "S2 no end is connected to one that saw a REJ",
        ),
        (
            "two-crossing",
            Plant::DeafToDreq,
            "S4 who is connected is told when the peer leaves",
        ),
    ] {
        let broken = Search::broken(search(name, plant));
        assert!(broken.contains(&property), "{plant:?}: {broken:?}");
    }
}

#[test]
fn names_are_different() {
    for (i, a) in SEARCHES.iter().enumerate() {
        assert!(SEARCHES[..i].iter().all(|b| a.name != b.name));
        assert!(a.slots.len() <= World::new().ends.len());
        assert!(matches!(a.extent, Extent::Quick | Extent::Long));
    }
    assert_eq!(World::new().net, Msgs::default());
}
