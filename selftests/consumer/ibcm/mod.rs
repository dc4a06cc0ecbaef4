// SPDX-License-Identifier: GPL-2.0

//! Tests of `<rdma/ib_cm.h>`.

mod alternate;
mod connection;
mod ending;
mod inbox;
mod lap;
mod messages;
mod pair;
mod resident;
mod rivals;
mod side;
mod sidr;
mod states;
mod world;

use crate::{
    harness::Run,
    rdma::{path::Link, service},
};
use kernel::{prelude::*, sync::Arc};
use resident::Resident;
use world::World;

/// The module, loaded: the tests are over, or a listener is there instead.
pub(crate) struct Ibcm(
    #[expect(dead_code, reason = "it is there as long as the module")] Option<Resident>,
);

impl kernel::Module for Ibcm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        if let Some(service_id) = service::resident() {
            return Ok(Self(Some(Resident::new(service_id)?)));
        }
        let world = &World::new()?;
        let mut run = Run::new();
        if service::bounded() {
            run.test("a first request that the port bounds", || {
                connection::bounded(world);
            });
            run.outcome()?;
            return Ok(Self(None));
        }
        if service::migrates() {
            run.test("an alternate path to nowhere", || {
                alternate::elsewhere(world);
            });
            run.test("queue pairs that migrate", || alternate::migrated(world));
            run.test("alternate paths that are proposed, and are none", || {
                alternate::foreign(world);
            });
            run.outcome()?;
            return Ok(Self(None));
        }
        if service::proposes() {
            run.test("an alternate path", || alternate::used(world));
            run.test("an alternate path that is proposed", || {
                alternate::proposed(world);
            });
            run.outcome()?;
            return Ok(Self(None));
        }
        run.test("an unused identifier", || connection::unused(world));
        run.test("listeners", || connection::listeners(world));
        run.test("a connection from outside", || {
            connection::connection(world)
        });
        run.test("a connection in callbacks", || {
            connection::in_callbacks(world);
        });
        run.test("an alternate path", || alternate::used(world));
        run.test("rejections", || ending::rejections(world));
        run.test("data before the RTU", || connection::notices(world));
        run.test("identifiers destroyed in each state", || {
            ending::destruction(world);
        });
        run.test("parameters", || connection::parameters(world));
        run.test("refused, then sent from another device", || {
            connection::refused_then_elsewhere(world);
        });
        run.test("nobody answers", || connection::silence(world));
        run.test("questions", || sidr::questions(world));
        run.test("texts", connection::texts);
        run.test("destroyed in haste", || ending::haste(world));
        // Rivals for a service do not depend on the link, and take long.
        if !matches!(world.link, Link::Opa { .. }) {
            rivals(&mut run, world);
        }
        run.outcome()?;
        Ok(Self(None))
    }
}

/// Runs the tests of several owners of a service at once.
fn rivals(run: &mut Run, world: &Arc<World>) {
    run.test("one service, two kinds of listeners at once", || {
        rivals::two_kinds(world);
    });
    run.test(
        "one service, two owners at once who may not have it",
        || {
            rivals::refused_together(world);
        },
    );
    run.test("one service, two owners at once of whom one goes", || {
        rivals::one_goes(world);
    });
}
