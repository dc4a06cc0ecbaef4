// SPDX-License-Identifier: GPL-2.0

//! A listener on a service id that stays as long as the module, and refuses all requests.
//!
//! The suite that looks at it is outside: who cannot listen on the same service id, and what that
//! costs.

use crate::rdma::{
    device::Device,
    ib_cm_event::Event,
    ib_cm_id::{Handler, IbCmId, IbCmIdRef, NewId, Verdict},
};
use kernel::{prelude::*, sync::Arc};

/// Refuses requests.
struct Refusal;

impl Handler for Refusal {
    fn request(_this: &Arc<Self>, _new: NewId<'_, Self>, _event: &Event, _private_data: &[u8]) {}

    fn event(_this: &Arc<Self>, _id: &IbCmIdRef, _event: &Event, _private_data: &[u8]) -> Verdict {
        Verdict::Keep
    }
}

/// The listener; it ends when dropped.
pub(crate) struct Resident(
    #[expect(dead_code, reason = "it listens as long as it is there")] IbCmId<Refusal>,
);

impl Resident {
    /// Listens at the device that the parameters name.
    pub(crate) fn new(service_id: u64) -> Result<Self> {
        let refusal = Arc::new(Refusal, GFP_KERNEL)?;
        let id = IbCmId::new(&Device::find()?, refusal)?;
        id.listen(service_id)?;
        Ok(Self(id))
    }
}
