// SPDX-License-Identifier: GPL-2.0

//! Execution of the actions of a service id resolution (SIDR, IBTA 12.11), of either side.

use super::trace::sidr_icm_id;
use crate::{
    endpoint::{Endpoint, EndpointRef, Event, EventParam, IdKind, Inner, UdEventParam},
    ib::{
        debug::{self, Failure},
        trace::icm::{self, IcmId},
    },
    kext::error::ResultExt,
    table::sidr_requests::Responder,
};
use cmproto::{
    cm::Counter,
    cma,
    event::{self, Refusal},
    sidr::{self, Action, Actions, Outgoing},
    time::Instant,
    ucma_abi::CmEvent,
    wire::{self, Header, Message, SidrRep, MAD_LEN},
};

impl Responder for EndpointRef {}

impl Endpoint {
    /// Carries out `actions` in their order. `rep` is the SIDR_REP that caused them, if any.
    pub(super) fn execute_sidr(
        self: &EndpointRef,
        inner: &mut Inner,
        mut actions: Actions,
        rep: Option<&SidrRep<'_>>,
    ) {
        while let Some(action) = actions.next() {
            match action {
                Action::Send(outgoing) => self.transmit_sidr(inner, outgoing, actions.peek()),
                Action::Timer => self.time_sidr(inner),
                Action::ReleaseRequest => {
                    if let Some(sidr) = inner.exchange.sidr_mut() {
                        sidr.request = None;
                    }
                }
                Action::Deliver(event) => self.report_sidr(inner, event, rep),
                // The request id is released with the endpoint.
                Action::Release => {}
                Action::Count(counter) => self.count(inner, counter),
            }
        }
        self.report_state(inner);
    }

    /// Sends a message of the resolution, if there is an address handle for its peer. `next` is the
    /// action after this one, which shows whether the message is a repeated one.
    fn transmit_sidr(&self, inner: &Inner, outgoing: Outgoing, next: Option<&Action>) {
        let Some(sidr) = inner.exchange.sidr() else {
            return;
        };
        let Some(ah) = &sidr.ah else {
            return;
        };
        self.post(inner, ah, sidr.pkey_index, outgoing.attribute(), |mad| {
            // Encoding fails only for a message that the resolution does not have.
            sidr.machine.encode(outgoing, mad).kernel()?;
            if outgoing == Outgoing::Rep {
                icm::icm_send_sidr_rep(&IcmId {
                    id_priv: Some(&self.id_priv),
                    ..sidr_icm_id(sidr.machine.request_id())
                });
            }
            Ok(())
        });
        let is_repeated = matches!(next, Some(Action::Count(Counter::Repeat(_))));
        if let Some(status) = sidr.machine.refusal().filter(|_| !is_repeated) {
            let failure = event::Failure::sidr_refused(Refusal::Sent, status);
            self.tell_failure(inner, failure);
        }
    }

    /// Sets the timer of a SIDR_REQ, or moves an answered resolution to the table of SIDR requests.
    fn time_sidr(self: &EndpointRef, inner: &mut Inner) {
        let Some(sidr) = inner.exchange.sidr_mut() else {
            return;
        };
        if !sidr.machine.is_answered() {
            return self.set_timer(inner);
        }
        if let Some(request) = sidr.request.take() {
            request.answer(&sidr.machine);
        }
        self.settle_request();
    }

    /// Delivers the result of a resolution. For a consumer of the RDMA CM, the event is converted
    /// first.
    fn report_sidr(&self, inner: &mut Inner, event: sidr::Event, rep: Option<&SidrRep<'_>>) {
        if let Some(failure) = event::Failure::of_sidr(event) {
            self.tell_failure(inner, failure);
        }
        if self.kind == IdKind::IbCm {
            let mut mad = [0; MAD_LEN];
            let message = rep.map(|rep| Message::SidrRep(*rep));
            let known = message.is_some_and(|message| {
                let header = Header::new(message.attribute(), 0);
                wire::encode(&header, &message, &mut mad).is_ok()
            });
            return self.pass_on(inner, event.into(), known.then_some(&mad));
        }
        let qkey = match (event, rep) {
            (sidr::Event::RepReceived { status }, Some(rep)) if status.is_success() => {
                inner.qp.qkey.take(rep.qkey)
            }
            _ => Ok(()),
        };
        let Some(upcall) = cma::resolution_upcall(inner.state(), event, qkey) else {
            return;
        };
        let param = rep.map_or(EventParam::None, |rep| {
            let mut param = UdEventParam::with_private_data(rep.private_data);
            if upcall.event == CmEvent::Established {
                param.qp_num = rep.qpn;
                param.qkey = rep.qkey;
                if let Some(ah_attr) = inner.address_vector() {
                    param.ah_attr = ah_attr;
                }
            }
            EventParam::Ud(param)
        });
        let failure = match upcall.event {
            CmEvent::AddrError => Some(Failure::AddrQkey),
            CmEvent::Unreachable if rep.is_some() => Some(Failure::SidrRefused),
            _ => None,
        };
        if let Some(failure) = failure {
            debug::log(&self.id_priv, failure, upcall.status);
        }
        let event = Event {
            param,
            ..Event::new(upcall.event, upcall.status)
        };
        self.deliver(inner, &event);
        if upcall.event != CmEvent::Established {
            inner.watching = None;
        }
    }

    /// Handles a SIDR_REP for this endpoint. `message` is the same SIDR_REP.
    #[inline(never)] // Keeps the frame of the caller small.
    pub(super) fn receive_sidr_rep(
        self: &EndpointRef,
        inner: &mut Inner,
        message: &Message<'_>,
        rep: &SidrRep<'_>,
        now: Instant,
    ) {
        let Some(sidr) = inner.exchange.sidr_mut() else {
            return;
        };
        let waited = sidr.machine.waiting();
        let actions = sidr.machine.receive(message, now);
        self.note_answer(inner, waited, now);
        self.execute_sidr(inner, actions, Some(rep));
    }

    /// Handles a repeated SIDR_REQ of this endpoint.
    pub(super) fn duplicate_sidr_req(self: &EndpointRef) {
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        if let Some(sidr) = inner.exchange.sidr_mut() {
            let actions = sidr.machine.duplicate_req(now);
            self.execute_sidr(&mut inner, actions, None);
        }
    }
}
