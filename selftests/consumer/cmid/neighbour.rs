// SPDX-License-Identifier: GPL-2.0

//! A neighbour that comes and goes.

use super::ground::{at, Ground};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        cm_id::{LockedId, PortSpace, QpType},
        event::{Event, EventType},
        gid::Mac,
        neighbour::Churn,
        owner::{Handler, Owner, Request, Verdict},
        path::Link,
    },
};
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{Arc, CondVar, CondVarTimeoutResult, Mutex},
    time::msecs_to_jiffies,
};

/// The neighbour, and where it is when it is there.
const NUMBER: u8 = 0x77;
const MAC: Mac = [2, 0, 0, 0, 0, NUMBER];
/// The number of queries.
const TIMES: u32 = 50;
/// Longer than an answer takes.
const PATIENCE_MS: u32 = 20_000;

/// Asks for a path to the neighbour.
#[pin_data]
struct Asker {
    /// The number of paths.
    #[pin]
    paths: Mutex<u32>,
    #[pin]
    told: CondVar,
}

impl Handler for Asker {
    fn event(this: &Arc<Self>, id: &LockedId<'_, Self>, event: &Event) -> Verdict {
        if event.kind == EventType::ADDR_RESOLVED && is!(id.resolve_route(1000), Ok(())) {
            return Verdict::KEEP;
        }
        is!(event.kind, EventType::ROUTE_RESOLVED);
        is!(id.path().map(|path| path.link), Some(Link::Roce(MAC)));
        let mut paths = this.paths.lock();
        *paths = paths.wrapping_add(1);
        drop(paths);
        this.told.notify_all();
        Verdict::KEEP
    }

    fn request(_this: &Arc<Self>, _request: &mut Request<'_, Self>, _event: &Event) -> Verdict {
        wrong!("a request, where nobody listens");
        Verdict::END
    }
}

impl Asker {
    /// Returns true once it has found so many paths.
    fn has_found(&self, number: u32) -> bool {
        let mut left = msecs_to_jiffies(PATIENCE_MS);
        let mut paths = self.paths.lock();
        while *paths < number {
            left = match self.told.wait_interruptible_timeout(&mut paths, left) {
                CondVarTimeoutResult::Woken { jiffies } => jiffies,
                _ => return false,
            };
        }
        true
    }
}

/// A path leads to the address of the neighbour, also if it is asked for while that is changed.
pub(crate) fn comes_and_goes(g: &Arc<Ground>) -> Option<()> {
    let asker = Arc::pin_init(
        pin_init!(Asker {
            paths <- new_mutex!(0),
            told <- new_condvar!(),
        }),
        GFP_KERNEL,
    )
    .ok()?;
    let churn = Churn::start(g.ip, g.neighbour(NUMBER), MAC);
    check!(churn.is_ok());
    let churn = churn.ok()?;
    for number in 1..=TIMES {
        let owner = Owner::create(asker.clone(), PortSpace::TCP, QpType::RC).ok()?;
        let neighbour = at(g.neighbour(NUMBER), 1);
        let asked = check!(churn.wait())
            && is!(
                owner.with(|id| id.resolve_addr(None, neighbour, 10_000)),
                Some(Ok(()))
            );
        let found = asked && check!(asker.has_found(number));
        owner.destroy();
        if !found {
            return None;
        }
    }
    Some(())
}
