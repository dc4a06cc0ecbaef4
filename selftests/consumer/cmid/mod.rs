// SPDX-License-Identifier: GPL-2.0

//! Tests of `<rdma/rdma_cm.h>`.

mod act;
mod address;
mod call_site;
mod connection;
mod datagram;
mod ending;
mod exchange;
mod ground;
mod iwarp;
mod lock;
mod member;
mod neighbour;
mod pair;
mod queue_pair;
mod rejection;
mod removal;
mod resident;
mod side;
mod states;

use crate::{
    harness::{check, Run},
    rdma::{device::Device, parameter},
};
use ending::Silence;
use ground::Ground;
use kernel::{prelude::*, sync::Arc};
use resident::Resident;

/// A test. None if it could not go on.
type Test = fn(&Arc<Ground>) -> Option<()>;

const TESTS: &[(&str, Test)] = &[
    ("an unused identifier", address::unused),
    ("texts", address::texts),
    ("addresses", address::addresses),
    ("options", address::options),
    ("resolution", address::resolution),
    ("listeners", address::listeners),
    ("a connection from outside", connection::connection),
    ("a connection in callbacks", connection::in_callbacks),
    ("parameters", rejection::parameters),
    ("rejections", rejection::rejections),
    ("extensions", connection::extensions),
    ("data before the RTU", connection::early_data),
    ("callbacks held back", lock::handler_lock),
    ("a request that waits", lock::request_in_wait),
    (
        "a request that is destroyed while it is told",
        lock::request_destroyed,
    ),
    ("queue pairs", queue_pair::queue_pairs),
    ("queue pairs in each state", queue_pair::queue_pair_states),
    ("callbacks that want no more", ending::returns),
    ("identifiers destroyed in each state", ending::destruction),
    ("datagrams", datagram::datagrams),
    ("groups", datagram::groups),
    ("destroyed in haste", ending::haste),
];

/// Tests that need a subnet administrator.
const IB_TESTS: &[(&str, Test)] = &[("services", address::services)];

/// Tests that need a peer with an Ethernet address.
const ROCE_TESTS: &[(&str, Test)] =
    &[("a neighbour that comes and goes", neighbour::comes_and_goes)];

/// Tests that need somebody who takes the device away.
const REMOVAL_TESTS: &[(&str, Test)] = &[("the device goes", removal::removal)];

/// Tests that need somebody who takes the device away while others hold the lock of all network
/// interfaces.
const LOCKED_REMOVAL_TESTS: &[(&str, Test)] = &[("a group's device goes", removal::of_a_group)];

/// Tests in which a callback destroys its own identifier.
const OWN_TESTS: &[(&str, Test)] = &[("destroyed in its own callback", ending::in_own_callback)];

/// Tests that need a port whose listeners share their addresses.
const SHARED_TESTS: &[(&str, Test)] = &[
    ("a request of a listener that goes", member::request),
    ("a question to a listener that goes", member::question),
];

/// Tests that need a device with iWARP.
const IWARP_TESTS: &[(&str, Test)] = &[
    ("a connection over iWARP", iwarp::connection),
    ("data at once over iWARP", iwarp::at_once),
    ("rejections over iWARP", iwarp::rejections),
    ("a wildcard listener over iWARP", iwarp::wildcard),
    ("identifiers destroyed over iWARP", iwarp::ends),
    ("destroyed in haste over iWARP", iwarp::haste),
];

/// Tests that need a device with iWARP whose driver does not return.
const STUCK_TESTS: &[(&str, Test)] = &[("an accept that does not return over iWARP", iwarp::stuck)];

fn run_all(run: &mut Run, ground: &Arc<Ground>, tests: &[(&str, Test)]) {
    for (name, test) in tests {
        run.test(name, || {
            check!(test(ground).is_some());
        });
    }
}

/// The module, loaded: the tests are over, or an identifier is there instead.
pub(crate) struct Cmid(
    #[expect(dead_code, reason = "it is there as long as the module")] Option<Resident>,
);

impl kernel::Module for Cmid {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        if let Some(port) = parameter::resident() {
            return Ok(Self(Some(Resident::new(port)?)));
        }
        let device = Device::find()?;
        let ground = Ground::new(&device)?;
        let mut run = Run::new();
        if parameter::lock() {
            run_all(&mut run, &ground, LOCKED_REMOVAL_TESTS);
        } else if parameter::removal() != 0 {
            run_all(&mut run, &ground, REMOVAL_TESTS);
        } else if parameter::own() {
            run_all(&mut run, &ground, OWN_TESTS);
        } else if parameter::shares() {
            run_all(&mut run, &ground, SHARED_TESTS);
        } else if parameter::stuck() {
            run_all(&mut run, &ground, STUCK_TESTS);
        } else if device.is_iwarp() {
            run_all(&mut run, &ground, IWARP_TESTS);
        } else {
            let mut silence = None;
            run.test("nobody is asked", || silence = Silence::begin(&ground));
            run_all(&mut run, &ground, TESTS);
            let more = if ground.link.is_ib() {
                IB_TESTS
            } else {
                ROCE_TESTS
            };
            run_all(&mut run, &ground, more);
            run.test("nobody answers", || {
                check!(silence.is_some());
                if let Some(silence) = silence {
                    silence.end();
                }
            });
        }
        ground.clear();
        run.outcome()?;
        Ok(Self(None))
    }
}
