// SPDX-License-Identifier: GPL-2.0

//! Verbs of the IB CM for service id resolution (SIDR).

use super::{
    super::KernelId,
    message::state,
    verbs::{Route, Way},
};
use crate::{
    cm::{ids::CommId, port::transaction_id},
    endpoint::Sidr,
    kext::error::ResultExt,
};
use cmproto::{
    cm::State,
    cma,
    sidr::{ReplyParams, Resolution, ResolveParams},
};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*};

impl KernelId {
    /// Sends a SIDR_REQ; an event reports the answer. Fails like [`KernelId::send_req`].
    pub(crate) fn send_sidr_req(
        &self,
        route: &Route,
        params: &ResolveParams,
        data: &[u8],
    ) -> Result {
        let endpoint = &self.endpoint;
        let way = Way::new(route)?;
        let comm_id = CommId::new(&endpoint.core)?;
        let tid = transaction_id(&way.agent, comm_id.value());
        let mut sidr = KBox::new(
            Sidr {
                machine: Resolution::new(comm_id.value(), tid),
                comm_id: None,
                question: None,
                peer: way.peer,
                ah: Some(way.ah.clone()),
                pkey_index: way.pkey_index,
            },
            GFP_KERNEL,
        )?;

        let mut inner = endpoint.inner.lock();
        if inner.is_dead() || state(&inner) != State::Idle {
            return Err(EINVAL);
        }
        let params = ResolveParams {
            total: endpoint.tuning(&inner).limits().total,
            ..*params
        };
        let now = endpoint.core.now();
        let actions = sidr.machine.resolve(&params, data, now).kernel()?;
        self.settle(&mut inner, route, &way)?;
        sidr.machine.set_pace(endpoint.pace(&inner, &way.peer, now));
        comm_id.publish(endpoint);
        sidr.comm_id = Some(comm_id);
        if let Some(head) = self.cm_head() {
            head.show_service(params.service_id);
        }
        // Drop the old address handle without the lock, as that may sleep.
        let ah = inner.conn.as_mut().and_then(|before| before.ah.take());
        inner.conn = None;
        let before = (ah, inner.sidr.replace(sidr));
        endpoint.set_state(&mut inner, cma::State::Connect);
        endpoint.execute_sidr(&mut inner, actions, None);
        drop(inner);
        drop(before);
        Ok(())
    }

    /// Answers a SIDR_REQ with up to 72 bytes of information and 136 bytes of private data.
    ///
    /// Fails with `EINVAL` if the state does not allow it.
    pub(crate) fn send_sidr_rep(&self, params: &ReplyParams, info: &[u8], data: &[u8]) -> Result {
        let endpoint = &self.endpoint;
        let now = endpoint.core.now();
        let mut inner = endpoint.inner.lock();
        let sidr = inner.sidr.as_mut().ok_or(EINVAL)?;
        let actions = sidr.machine.reply(params, info, data, now).kernel()?;
        endpoint.execute_sidr(&mut inner, actions, None);
        Ok(())
    }
}
