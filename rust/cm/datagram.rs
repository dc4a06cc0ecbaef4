// SPDX-License-Identifier: GPL-2.0

//! The verbs of service id resolution (SIDR, IBTA 12.11), as in `<rdma/ib_cm.h>`.

use super::route::Route;
use crate::{
    endpoint::{Endpoint, EndpointRef, Exchange, Inner, Sidr},
    ib::trace::icm::{self, IcmId},
    kext::{error::ResultExt, users::UserRef},
    table::comm_ids::CommId,
};
use cmproto::{
    cm,
    private_data::RequestData,
    sidr::{ReplyParams, Resolution, ResolveParams},
    wire::SidrReq,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::MutexGuard};

/// The private data of a SIDR_REQ.
type SidrReqData = RequestData<{ SidrReq::PRIVATE_DATA_LEN }>;

impl Endpoint {
    /// Sends a SIDR_REQ along the path that the endpoint has resolved. The answer is reported as an
    /// event.
    ///
    /// The lock, which is that of `inner`, is left while the route is prepared, which may sleep.
    /// The route of a program is charged to `user`. Then `make` makes the parameters and the
    /// private data, and checks the state. Returns with the lock.
    ///
    /// Fails like [`Route::resolved`], `make` and [`send_sidr_req`](Self::send_sidr_req).
    pub(crate) fn send_sidr_req_resolved<'a>(
        self: &'a EndpointRef,
        inner: MutexGuard<'_, Inner>,
        user: Option<&UserRef>,
        make: impl FnOnce(&Inner) -> Result<(ResolveParams, SidrReqData)>,
    ) -> Result<MutexGuard<'a, Inner>> {
        let route = Route::resolved(inner, user)?;
        let mut inner = self.inner.lock();
        let (params, data) = make(&inner)?;
        self.send_sidr_req(&mut inner, route, params, data.bytes(), |_| Ok(()))?;
        Ok(inner)
    }

    /// Sends a SIDR_REQ along `route`. The answer is reported as an event.
    ///
    /// The P_Key of `params` is set from the route. The caller has checked that the endpoint may
    /// ask. `attach` attaches it as for [`send_req`](Endpoint::send_req).
    ///
    /// Fails with `EINVAL` if there is too much private data, with `ENOMEM`, and like `attach`;
    /// nothing has changed then.
    pub(crate) fn send_sidr_req(
        self: &EndpointRef,
        inner: &mut Inner,
        route: Route,
        mut params: ResolveParams,
        private_data: &[u8],
        attach: impl FnOnce(&mut Inner) -> Result,
    ) -> Result {
        let comm_id = CommId::new(&self.globals.comm_ids);
        let id = comm_id.value();
        let tid = route.ah.agent().transaction_id(id);
        let now = self.globals.now();
        let policy = route.retry_policy(&self.globals.round_trips, inner, now);
        let mut sidr = KBox::new(
            Sidr {
                machine: Resolution::new(id, tid),
                comm_id: Some(comm_id),
                request: None,
                peer: route.peer,
                ah: Some(route.ah),
                pkey_index: route.pkey_index,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        params.pkey = route.path.pkey;
        sidr.machine.set_retry_policy(policy);
        icm::icm_send_sidr_req(&IcmId {
            id_priv: Some(&self.id_priv),
            local_id: id,
            remote_id: 0,
            state: cm::State::Idle as u32,
        });
        let actions = sidr.machine.resolve(&params, private_data, now).kernel()?;
        attach(inner)?;
        self.step_to_connect(inner)?;
        // The exchange before, which may have an id, too, is dropped first.
        inner.exchange = Exchange::Sidr(sidr);
        let sidr = inner.exchange.sidr_mut();
        if let Some(comm_id) = sidr.and_then(|sidr| sidr.comm_id.as_mut()) {
            comm_id.publish(self);
        }
        self.execute_sidr(inner, actions, None);
        Ok(())
    }

    /// Answers a SIDR_REQ with up to 72 bytes of information and 136 bytes of private data.
    ///
    /// Fails with `EINVAL` if there is no SIDR_REQ to answer, or if there is too much data; nothing
    /// has changed then.
    pub(crate) fn send_sidr_rep(
        self: &EndpointRef,
        inner: &mut Inner,
        params: &ReplyParams,
        info: &[u8],
        private_data: &[u8],
    ) -> Result {
        let sidr = inner.exchange.sidr_mut().ok_or(EINVAL)?;
        let actions = sidr
            .machine
            .reply(params, info, private_data, self.globals.now());
        self.execute_sidr(inner, actions.kernel()?, None);
        Ok(())
    }
}
