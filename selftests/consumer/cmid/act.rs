// SPDX-License-Identifier: GPL-2.0

//! The actions of a side: with its identifier, from outside or in a callback.

use super::{
    call_site::CallSite,
    ground::at,
    side::{Id, LockedId, Side},
};
use crate::{
    harness::wrong,
    rdma::{
        event::{Ece, EventType},
        owner::Verdict,
        qp_attr::QpState,
        queue_pair::QpInit,
        refusal::RejectReason,
    },
};
use kernel::{prelude::*, sync::Arc};

pub(crate) fn bind(side: &Side, id: &Id) -> Result {
    id.bind_addr(at(side.ground.ip, 0))
}

pub(crate) fn resolve(side: &Side, id: &Id) -> Result {
    id.resolve_addr(None, at(side.ground.ip, side.ground.port()), 2000)
}

pub(crate) fn resolve_route(_side: &Side, id: &Id) -> Result {
    id.resolve_route(2000)
}

pub(crate) fn connect(side: &Side, id: &Id) -> Result {
    id.connect(&side.param())
}

pub(crate) fn connect_locked(side: &Side, id: &LockedId<'_>) -> Result {
    id.connect_locked(&side.param())
}

pub(crate) fn connect_ece(side: &Side, id: &Id) -> Result {
    let ece = Ece {
        vendor_id: 0x123456,
        attr_mod: 0x9abcdef0,
    };
    id.connect_ece(&side.param(), ece)
}

pub(crate) fn accept(side: &Side, id: &LockedId<'_>) -> Result {
    id.accept(Some(&side.param()))
}

pub(crate) fn accept_ece(side: &Side, id: &LockedId<'_>) -> Result {
    let ece = Ece {
        vendor_id: 0x654321,
        attr_mod: 0xfedcba9,
    };
    id.accept_ece(&side.param(), ece)
}

pub(crate) fn accept_nothing(_side: &Side, id: &LockedId<'_>) -> Result {
    id.accept(None)
}

pub(crate) fn reject(_side: &Side, id: &Id) -> Result {
    id.reject(Some(b"no\0"), RejectReason::CONSUMER_DEFINED)
}

pub(crate) fn disconnect(_side: &Side, id: &Id) -> Result {
    id.disconnect()
}

pub(crate) fn create_qp(side: &Side, id: &Id) -> Result {
    let init = QpInit {
        qp_type: id.qp_type(),
        max_send_wr: 4,
        max_recv_wr: 4,
        max_send_sge: 1,
        max_recv_sge: 1,
    };
    id.create_qp(side.ground.pd()?, side.ground.cq()?, &init)
}

pub(crate) fn listen(_side: &Side, id: &Id) -> Result {
    id.listen(4)
}

/// Checks that the queue pair is in this state.
pub(crate) fn qp_is(id: &Id, state: QpState, site: CallSite) -> bool {
    let found = id.with_qp(|qp| qp.state());
    let is_right = found == Some(Ok(state));
    if !is_right {
        wrong!("{site:?}: the state of the queue pair is {found:?}, not {state:?}");
    }
    is_right
}

/// A callback that refuses the event.
pub(crate) fn refuse(_side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    Verdict(-1)
}

/// From outside.
impl Side {
    pub(crate) fn bind(&self) -> Result {
        self.call(|id| bind(self, id))
    }

    pub(crate) fn resolve(&self) -> Result {
        self.call(|id| resolve(self, id))
    }

    pub(crate) fn resolve_route(&self) -> Result {
        self.call(|id| resolve_route(self, id))
    }

    pub(crate) fn connect(&self) -> Result {
        self.call(|id| connect(self, id))
    }

    pub(crate) fn connect_ece(&self) -> Result {
        self.call(|id| connect_ece(self, id))
    }

    pub(crate) fn accept(&self) -> Result {
        self.call_locked(|id| accept(self, id))
    }

    /// The answer to an answer.
    pub(crate) fn confirm(&self) -> Result {
        self.call_locked(|id| accept_nothing(self, id))
    }

    pub(crate) fn reject(&self) -> Result {
        self.call(|id| reject(self, id))
    }

    pub(crate) fn disconnect(&self) -> Result {
        self.call(|id| disconnect(self, id))
    }

    pub(crate) fn create_qp(&self) -> Result {
        self.call(|id| create_qp(self, id))
    }

    pub(crate) fn listen(&self) -> Result {
        self.call(|id| listen(self, id))
    }
}
