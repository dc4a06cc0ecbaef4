// SPDX-License-Identifier: GPL-2.0

//! Service ID resolution (SIDR) for datagrams: both ends of it (IBTA 12.11).

use crate::{
    cm::{ids::CommId, port::transaction_id},
    endpoint::{ConnParam, Ece, Endpoint, EndpointRef, Inner, Sidr},
    ib::trace::{
        self,
        icm::{self, IcmId},
    },
    kext::error::ResultExt,
};
use cmproto::{
    cm,
    cma::State,
    sidr::{Actions, ReplyParams, Resolution, ResolveParams, Status},
    wire::SidrReq,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*};

impl Endpoint {
    /// Sends a SIDR_REQ. The answer is reported as an event. Fails as [`Endpoint::connect`] does.
    pub(super) fn ask(self: &EndpointRef, param: &ConnParam<'_>) -> Result {
        let way = self.way(&self.inner.lock())?;
        let ah = way.address()?;
        let comm_id = CommId::new(&self.core)?;
        let tid = transaction_id(&way.agent, comm_id.value());
        let mut sidr = KBox::new(
            Sidr {
                machine: Resolution::new(comm_id.value(), tid),
                comm_id: None,
                question: None,
                peer: way.peer,
                ah: Some(ah),
                pkey_index: way.pkey_index,
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        let mut inner = self.inner.lock();
        let data = Self::request_data::<{ SidrReq::PRIVATE_DATA_LEN }>(&inner, param)?;
        let tuning = self.tuning(&inner);
        let params = ResolveParams {
            timeout: tuning.response_timeout().to_duration(),
            max_cm_retries: tuning.max_retries(),
            total: tuning.limits().total,
            ..ResolveParams::new(way.service_id.0, way.path.pkey)
        };
        let now = self.core.now();
        sidr.machine.set_pace(self.pace(&inner, &way.peer, now));
        trace::cma::cm_send_sidr_req(&self.head, inner.tos());
        icm::icm_send_sidr_req(&IcmId {
            head: Some(&self.head),
            local_id: comm_id.value(),
            remote_id: 0,
            state: cm::State::Idle as u32,
        });
        let actions = sidr.machine.resolve(&params, data.bytes(), now).kernel()?;
        comm_id.publish(self);
        sidr.comm_id = Some(comm_id);
        inner.sidr = Some(sidr);
        inner.qp_num = param.qp_num;
        inner.srq = param.srq != 0;
        self.set_state(&mut inner, State::Connect);
        self.show(&inner);
        self.execute_sidr(&mut inner, actions, None);
        Ok(())
    }

    /// Answers a SIDR_REQ with the QP that serves it.
    ///
    /// Fails with `EINVAL` in the wrong state, for a Q_Key that is not the endpoint's, or for too
    /// much private data.
    pub(super) fn answer_question(
        self: &EndpointRef,
        inner: &mut Inner,
        param: Option<&ConnParam<'_>>,
        ece: Ece,
    ) -> Result {
        let before = inner.qkey;
        match param.map_or(0, |param| param.qkey) {
            0 => self.take_default_qkey(inner)?,
            named => inner.qkey.take(named).kernel()?,
        }
        let qkey = core::mem::replace(&mut inner.qkey, before);
        let qp_num = param.map_or(inner.qp_num, |param| param.qp_num);
        let params = ReplyParams {
            vendor_id: ece.vendor_id,
            attr_mod: ece.attr_mod,
            ..ReplyParams::success(qp_num, qkey.value())
        };
        let private_data = param.map_or(&[][..], |param| param.private_data);
        let actions = self.reply(inner, &params, private_data)?;
        inner.qkey = qkey;
        inner.qp_num = qp_num;
        inner.srq = param.map_or(inner.srq, |param| param.srq != 0);
        self.show(inner);
        self.execute_sidr(inner, actions, None);
        Ok(())
    }

    /// Refuses a SIDR_REQ.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    pub(super) fn refuse_question(
        self: &EndpointRef,
        inner: &mut Inner,
        private_data: &[u8],
    ) -> Result {
        let params = ReplyParams::failure(Status::REJECT);
        let actions = self.reply(inner, &params, private_data)?;
        self.execute_sidr(inner, actions, None);
        Ok(())
    }

    /// Gives the answer of a SIDR_REQ to the state machine. The caller executes the actions that
    /// are returned.
    ///
    /// Fails with `EINVAL` in the wrong state, or for too much private data.
    fn reply(
        &self,
        inner: &mut Inner,
        params: &ReplyParams,
        private_data: &[u8],
    ) -> Result<Actions> {
        let tos = inner.tos();
        let sidr = inner.sidr.as_mut().ok_or(EINVAL)?;
        trace::cma::cm_send_sidr_rep(&self.head, tos);
        sidr.machine
            .reply(params, &[], private_data, self.core.now())
            .kernel()
    }
}
