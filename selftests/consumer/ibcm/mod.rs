// SPDX-License-Identifier: GPL-2.0

//! Tests of `<rdma/ib_cm.h>`.

mod connection;
mod ending;
mod inbox;
mod messages;
mod pair;
mod side;
mod sidr;
mod states;
mod world;

use crate::harness::Run;
use kernel::prelude::*;
use world::World;

/// The module, loaded: nothing is left to do.
pub(crate) struct Ibcm;

impl kernel::Module for Ibcm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let world = &World::new()?;
        let mut run = Run::new();
        run.test("an unused identifier", || connection::unused(world));
        run.test("listeners", || connection::listeners(world));
        run.test("a connection from outside", || {
            connection::connection(world)
        });
        run.test("a connection in callbacks", || {
            connection::in_callbacks(world);
        });
        run.test("rejections", || ending::rejections(world));
        run.test("data before the RTU", || connection::notices(world));
        run.test("identifiers destroyed in each state", || {
            ending::destruction(world);
        });
        run.test("parameters", || connection::parameters(world));
        run.test("nobody answers", || connection::silence(world));
        run.test("questions", || sidr::questions(world));
        run.test("texts", connection::texts);
        run.test("destroyed in haste", || ending::haste(world));
        run.outcome()?;
        Ok(Self)
    }
}
