// SPDX-License-Identifier: GPL-2.0

//! Service id resolution (SIDR, IBTA 12.11): questions and answers of datagram services.
//!
//! What is cheap comes first: a SIDR_REQ is decoded and matched against the known questions and the
//! listeners before anything is allocated for it.

use super::{
    held::Held,
    questions::{self, Known},
    reach::{reach, Purpose, Sender, Waiting},
    receive::Arrived,
    target::{self, Asked, Heard},
};
use crate::{
    endpoint::{
        ConnEventParam, Endpoint, EndpointRef, Event, EventParam, Inner, KeptEvent, Sidr,
        UdEventParam,
    },
    ib::{
        counters::CounterGroup,
        debug::{self, Failure},
        dev_addr::DevAddr,
        trace::icm::{self, IcmId},
    },
    kext::error::ResultExt,
};
use cmproto::{
    cm::{Counter, DestroyCause, State},
    cma,
    dropped::Dropped,
    sidr::{self, Action, Actions, Outgoing, Resolution, Status},
    ucma_abi::CmEvent,
    wire::{self, Header, Message, SidrRep, SidrReq, MAD_LEN},
};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*};

/// `enum ib_qp_type` of unreliable datagrams.
const QPT_UD: u8 = 4;

/// A question of a peer as tracepoints name it: it has no number of this end.
fn asked(request_id: u32) -> IcmId<'static> {
    IcmId {
        head: None,
        local_id: 0,
        remote_id: request_id,
        state: State::SidrReqRcvd as u32,
    }
}

impl Endpoint {
    /// Carries out `actions` in their order. `rep` is the answer that caused them, if one did.
    pub(crate) fn execute_sidr(
        self: &EndpointRef,
        inner: &mut Inner,
        actions: Actions,
        rep: Option<&SidrRep<'_>>,
    ) {
        for action in actions {
            match action {
                Action::Send(outgoing) => self.transmit_sidr(inner, outgoing),
                Action::Timer => self.time_sidr(inner),
                Action::Untrack => {
                    let question = inner.sidr.as_mut().and_then(|sidr| sidr.question.take());
                    if let Some(question) = question {
                        self.core.questions.remove(question, self);
                    }
                }
                Action::Deliver(event) => self.report_sidr(inner, event, rep),
                // The number of the question goes with the endpoint.
                Action::Release => {}
                Action::Count(counter) => self.count(inner, counter),
            }
        }
        self.show_moved(inner);
    }

    /// Sends a message of the resolution, if its peer's address is known.
    fn transmit_sidr(&self, inner: &Inner, outgoing: Outgoing) {
        let Some(sidr) = &inner.sidr else {
            return;
        };
        let Some(ah) = &sidr.ah else {
            return;
        };
        self.post(inner, ah, sidr.pkey_index, outgoing.attribute(), |mad| {
            // Fails only for a message that the resolution has not got.
            sidr.machine.encode(outgoing, mad).kernel()?;
            if outgoing == Outgoing::Rep {
                icm::icm_send_sidr_rep(&IcmId {
                    head: Some(&self.head),
                    ..asked(sidr.machine.request_id())
                });
            }
            Ok(())
        });
    }

    /// Sets the timer to ask again, or hands an answer over to be remembered.
    fn time_sidr(self: &EndpointRef, inner: &mut Inner) {
        let Some(sidr) = &mut inner.sidr else {
            return;
        };
        if !sidr.machine.is_answered() {
            return self.set_timer(inner);
        }
        if let Some(question) = sidr.question.take() {
            self.core.questions.answer(question, self, &sidr.machine);
        }
    }

    /// Turns the outcome of a resolution into an event of the RDMA CM and delivers it.
    fn report_sidr(&self, inner: &mut Inner, event: sidr::Event, rep: Option<&SidrRep<'_>>) {
        if self.speaks_messages {
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
                inner.qkey.take(rep.qkey)
            }
            _ => Ok(()),
        };
        let Some(upcall) = cma::resolution_upcall(inner.state, event, qkey) else {
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
            debug::tell(&self.head, failure, upcall.status);
        }
        let event = Event {
            param,
            ..Event::new(upcall.event, upcall.status)
        };
        self.deliver(inner, &event);
        if upcall.event != CmEvent::Established {
            self.unwatch(inner);
        }
    }

    /// Handles a SIDR_REP that names this endpoint's question.
    pub(super) fn receive_sidr_rep(self: &EndpointRef, arrived: &Arrived<'_>, rep: &SidrRep<'_>) {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        let Some(sidr) = &mut inner.sidr else {
            return arrived.port.counts.dropped(Dropped::Unknown);
        };
        if sidr.peer != arrived.source() {
            return arrived.port.counts.dropped(Dropped::Stranger);
        }
        let waited = sidr.machine.waiting();
        let actions = sidr.machine.receive(&Message::SidrRep(*rep), now);
        self.note_answer(&inner, waited, now);
        self.execute_sidr(&mut inner, actions, Some(rep));
    }

    /// The SIDR_REQ of this endpoint arrived again.
    fn duplicate_question(self: &EndpointRef) {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        if let Some(sidr) = &mut inner.sidr {
            let actions = sidr.machine.duplicate_req(now);
            self.execute_sidr(&mut inner, actions, None);
        }
    }
}

/// A SIDR_REQ that waits until its sender can be answered.
struct Inquiry {
    held: Held,
    /// What the listener's consumer will hear.
    event: KeptEvent,
}

impl Waiting for Inquiry {
    const PURPOSE: Purpose = Purpose::Request;

    fn sender(&self) -> &Sender {
        &self.held.sender
    }

    fn held(&self) -> Option<&Held> {
        Some(&self.held)
    }

    fn reached(&self, link: Result<&DevAddr>) {
        let Some(ah) = self.held.address(link) else {
            return;
        };
        let Held {
            listener, child, ..
        } = &self.held;
        match &mut child.inner.lock().sidr {
            Some(sidr) => sidr.ah = Some(ah),
            // The device went away.
            None => return,
        }
        if let Err(error) = target::offer(listener, child, &self.event.get(), 0) {
            child.end(if error == ENOMEM {
                DestroyCause::NoMemory
            } else {
                DestroyCause::User
            });
        }
    }
}

/// What a SIDR_REQ is refused with; nothing for silence.
type Refusal = Option<Status>;

/// For whatever goes wrong once there is a listener for the service.
const REJECT: Refusal = Some(Status::REJECT);

impl Arrived<'_> {
    /// Handles a SIDR_REQ.
    pub(super) fn question(&self, req: &SidrReq<'_>) {
        let key = questions::Key {
            device: self.device.device.index(),
            origin: self.source(),
            request_id: req.request_id,
        };
        match self.port.core.questions.find(&key) {
            Known::Asked(endpoint) => return endpoint.duplicate_question(),
            Known::Answered(answer) if answer.is_same_req(self.header, req) => {
                return self.answer_again(answer)
            }
            Known::Answered(_) | Known::Nothing => {}
        }
        match self.take_question(key, req) {
            Ok(()) => {}
            Err(Some(status)) => {
                icm::icm_send_sidr_rep(&asked(req.request_id));
                self.refuse_question(req, status);
            }
            Err(None) => self.port.counts.dropped(Dropped::Unreachable),
        }
    }

    /// Gives an answer that was given before.
    fn answer_again(&self, mut answer: Resolution) {
        for action in answer.duplicate_req(self.port.core.now()) {
            match action {
                Action::Send(outgoing) => {
                    let mut mad = [0; MAD_LEN];
                    if answer.encode(outgoing, &mut mad).is_ok() {
                        self.repeat(outgoing.attribute(), mad);
                    }
                }
                Action::Count(Counter::Duplicate(attribute)) => {
                    let group = CounterGroup::RxDuplicates;
                    self.port.counts.add(group, attribute.id(), 1);
                }
                // The repetition is counted when it goes out; nothing else changes.
                Action::Count(_)
                | Action::Timer
                | Action::Untrack
                | Action::Deliver(_)
                | Action::Release => {}
            }
        }
    }

    /// Makes a connection request of a SIDR_REQ that is not known.
    fn take_question(&self, key: questions::Key, req: &SidrReq<'_>) -> Result<(), Refusal> {
        let core = &self.port.core;
        let sender = Sender::of(self.port, self.device, self.mad).map_err(|_| None)?;
        if !self.is_served(req.service_id) {
            return Err(Some(Status::UNSUPPORTED));
        }
        let asked = Asked {
            service_id: req.service_id,
            private_data: req.private_data,
            pkey: req.pkey,
            path: None,
        };
        let heard = self.heard(&asked, &sender).map_err(|_| REJECT)?;
        if !matches!(heard.endpoint().qp_type, 0 | QPT_UD)
            || target::takes_requests(heard.endpoint(), 0).is_err()
        {
            return Err(REJECT);
        }
        let space = questions::Space::new().map_err(|_| REJECT)?;
        let (child, event) = self
            .create_asked(&sender, req, &heard)
            .map_err(|_| REJECT)?;
        let Some(question) = core.questions.enter(space, key, &child) else {
            // The same SIDR_REQ is being handled at this moment.
            child.end(DestroyCause::NoMemory);
            return Ok(());
        };
        {
            let mut inner = child.inner.lock();
            let Some(sidr) = &mut inner.sidr else {
                // The device has gone since the endpoint was attached to it.
                drop(inner);
                core.questions.remove(question, &child);
                return Ok(());
            };
            sidr.question = Some(question);
        }
        let inquiry = Inquiry {
            held: self.hold(sender, heard.endpoint().clone(), child),
            event: KeptEvent::new(&event),
        };
        reach(core, inquiry);
        Ok(())
    }

    /// What comes with the event that offers a question.
    fn question_param<'a>(&self, heard: &Heard<'a>) -> Result<EventParam<'a>> {
        let (target, listener) = match heard {
            Heard::Address(target, listener) => (target, listener),
            Heard::Messages(_) => return self.message_param(),
        };
        let data = target.user_data(listener);
        Ok(match listener.endpoint.qp_type {
            QPT_UD => EventParam::Ud(UdEventParam::with_private_data(data)),
            // The form of an event goes by the type of the listener.
            _ => EventParam::Conn(ConnEventParam::with_private_data(data)),
        })
    }

    /// Creates the endpoint of a question, and the event that offers it.
    fn create_asked<'a>(
        &self,
        sender: &Sender,
        req: &SidrReq<'_>,
        heard: &Heard<'a>,
    ) -> Result<(EndpointRef, Event<'a>)> {
        let attachment = self.attachment(heard, sender)?;
        let param = self.question_param(heard)?;
        let child = Endpoint::create_child(heard.endpoint(), QPT_UD)?;
        let sidr = KBox::new(
            Sidr {
                machine: Resolution::from_req(self.header, req, Resolution::MEMORY),
                comm_id: None,
                question: None,
                peer: self.source(),
                ah: None,
                pkey_index: sender.pkey_index,
            },
            GFP_KERNEL,
        )?;
        target::seat(&child, heard, attachment, |inner| {
            inner.sidr = Some(sidr);
            Ok(())
        })?;
        let event = Event {
            param,
            ..Event::new(CmEvent::ConnectRequest, 0)
        };
        Ok((child, event))
    }
}
