// SPDX-License-Identifier: GPL-2.0

//! An identifier that stays as long as the module: a listener that refuses all requests, or one that
//! has asked for the way to an address.
//!
//! The suite that looks at it is outside: at which device it is shown, who is refused by it and who
//! by nobody, which ports it takes from others.

use super::ground::at;
use crate::rdma::{
    cm_id::{LockedId, NodeType, PortSpace, QpType},
    event::Event,
    owner::{Handler, Owner, Request, Verdict},
    parameter,
};
use kernel::{prelude::*, sync::Arc};

/// Keeps the identifier, and refuses requests.
struct Refusal;

impl Handler for Refusal {
    fn event(_this: &Arc<Self>, _id: &LockedId<'_, Self>, _event: &Event) -> Verdict {
        Verdict::KEEP
    }

    fn request(_this: &Arc<Self>, _request: &mut Request<'_, Self>, _event: &Event) -> Verdict {
        Verdict::END
    }
}

/// The identifier; it ends when dropped.
pub(crate) struct Resident(Arc<Owner<Refusal>>);

impl Resident {
    /// Listens at the address that the parameters name, or asks for the way to it; confined to the kind
    /// of device that they name.
    pub(crate) fn new(port: u16) -> Result<Self> {
        let refusal = Arc::new(Refusal, GFP_KERNEL)?;
        let resident = Self(Owner::create(refusal, PortSpace::TCP, QpType::RC)?);
        let ip = parameter::ipv4()?;
        let node_type = NodeType(parameter::node_type());
        let done = resident.0.with(|id| {
            id.restrict_node_type(node_type)?;
            if parameter::resolves() {
                return id.resolve_addr(None, at(ip, port), 2000);
            }
            id.bind_addr(at(ip, port))?;
            id.listen(4)
        });
        done.unwrap_or(Err(ENOENT))?;
        Ok(resident)
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.0.destroy();
    }
}
