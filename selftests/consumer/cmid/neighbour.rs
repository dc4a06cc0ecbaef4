// SPDX-License-Identifier: GPL-2.0

//! A neighbour that comes and goes.

use super::ground::{at, Ground};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        cm_id::{Held, PortSpace, QpType},
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
/// How many paths there are to be, and how often at most is asked.
const PATHS: u32 = 500;
const MOST: u32 = 20_000;
/// How many ask at a time.
const ASKERS: usize = 16;
/// Longer than an answer takes.
const PATIENCE_MS: u32 = 20_000;

/// How often there was a path to the neighbour, and how often none.
#[derive(Clone, Copy, Default)]
struct Count {
    paths: u32,
    none: u32,
}

/// Asks for a path to the neighbour.
#[pin_data]
struct Asker {
    #[pin]
    count: Mutex<Count>,
    #[pin]
    told: CondVar,
}

impl Handler for Asker {
    fn event(this: &Arc<Self>, id: &Held<'_, Self>, event: &Event) -> Verdict {
        if event.kind == EventType::ADDR_RESOLVED && is!(id.resolve_route(1000), Ok(())) {
            return Verdict::KEEP;
        }
        let mut count = this.count.lock();
        match id.path() {
            Some(path) if event.kind == EventType::ROUTE_RESOLVED => {
                is!(path.link, Link::Roce(MAC));
                count.paths = count.paths.wrapping_add(1);
            }
            _ => {
                is!(event.kind, EventType::ADDR_ERROR);
                count.none = count.none.wrapping_add(1);
            }
        }
        drop(count);
        this.told.notify_all();
        Verdict::KEEP
    }

    fn request(_this: &Arc<Self>, _request: &mut Request<'_, Self>, _event: &Event) -> Verdict {
        wrong!("a request, where nobody listens");
        Verdict::END
    }
}

impl Asker {
    /// Whether it is told as often as this.
    fn is_told(&self, times: u32) -> bool {
        let mut left = msecs_to_jiffies(PATIENCE_MS);
        let mut count = self.count.lock();
        while count.paths.wrapping_add(count.none) < times {
            left = match self.told.wait_interruptible_timeout(&mut count, left) {
                CondVarTimeoutResult::Woken { jiffies } => jiffies,
                _ => return false,
            };
        }
        true
    }
}

/// Each path leads to the address of the neighbour, whenever it is asked for.
pub(crate) fn comes_and_goes(g: &Arc<Ground>) -> Option<()> {
    let asker = Arc::pin_init(
        pin_init!(Asker {
            count <- new_mutex!(Count::default()),
            told <- new_condvar!(),
        }),
        GFP_KERNEL,
    )
    .ok()?;
    let churn = Churn::start(g.ip, g.neighbour(NUMBER), MAC);
    check!(churn.is_ok());
    let _churn = churn.ok()?;
    let mut asked: u32 = 0;
    while asked < MOST && asker.count.lock().paths < PATHS {
        let mut owners: [Option<Arc<Owner<Asker>>>; ASKERS] = [const { None }; ASKERS];
        for place in &mut owners {
            let owner = Owner::create(asker.clone(), PortSpace::TCP, QpType::RC).ok()?;
            let neighbour = at(g.neighbour(NUMBER), 1);
            is!(
                owner.with(|id| id.resolve_addr(None, neighbour, 1)),
                Some(Ok(()))
            );
            asked = asked.wrapping_add(1);
            *place = Some(owner);
        }
        let told = asker.is_told(asked);
        owners.iter().flatten().for_each(Owner::destroy);
        if !check!(told) {
            return None;
        }
    }
    let count = *asker.count.lock();
    pr_info!("{} paths, {} times none\n", count.paths, count.none);
    // It came and went.
    check!(count.paths >= PATHS);
    check!(count.none >= 1);
    Some(())
}
