// SPDX-License-Identifier: GPL-2.0

//! Service id resolution: both sides.

use super::{event, receive::Listener, Arrived, Node, Object};
use crate::{
    wire::{self, Mad},
    world::{Answer, ConnParam, Endpoint, Event, Sent},
};
use cmproto::{
    cm::DestroyCause,
    cma,
    errno::Errno,
    node::{self, Declined, Entry, KnownSidr, Passive, PassiveSidr, SidrRequest},
    origin::Origin,
    private_data::IP_HEADER_LEN,
    service_id::{PortSpace, ServiceId},
    sidr::{self, Action, Actions, Outgoing, ReplyParams, Resolution, ResolveParams, Status},
    ucma_abi::CmEvent,
    wire::{SidrRep, SidrReq},
};
use std::net::IpAddr;

/// The resolution of an endpoint.
pub(super) struct Sidr {
    pub(super) machine: Resolution,
    pub(super) peer: Origin,
    key: Option<SidrKey>,
}

/// The key of a SIDR request: its origin and its request id.
pub(super) type SidrKey = (Origin, u32);

/// The state of a SIDR request.
#[derive(Clone)]
pub(super) enum SidrEntry {
    Pending(usize),
    Answered(Resolution),
}

impl Node {
    pub(super) fn sidr(&mut self, index: usize) -> Option<&mut Sidr> {
        self.objects.get_mut(index)?.sidr.as_mut()
    }

    pub(super) fn execute_sidr(
        &mut self,
        index: usize,
        actions: Actions,
        rep: Option<&SidrRep<'_>>,
    ) {
        for action in actions {
            match action {
                Action::Send(outgoing) => {
                    if let Some(sidr) = self.sidr(index) {
                        let (machine, peer) = (sidr.machine.clone(), sidr.peer);
                        self.transmit_sidr(&machine, peer, outgoing);
                    }
                }
                Action::Timer => {
                    let Some(sidr) = self.sidr(index) else {
                        continue;
                    };
                    let answer = sidr.machine.clone();
                    if let (true, Some(key)) = (answer.is_answered(), sidr.key.take()) {
                        self.sidr_requests.insert(key, SidrEntry::Answered(answer));
                    }
                }
                Action::ReleaseRequest => {
                    let key = self.sidr(index).and_then(|sidr| sidr.key.take());
                    if let Some(key) = key {
                        self.sidr_requests.remove(&key);
                    }
                }
                Action::Deliver(event) => self.report_sidr(index, event, rep),
                Action::Release | Action::Count(_) => {}
            }
        }
    }

    fn transmit_sidr(&mut self, machine: &Resolution, peer: Origin, outgoing: Outgoing) {
        let at = self.now.as_micros();
        let mut mad = Mad([0; wire::MAD_LEN]);
        let encoded = machine.encode(outgoing, &mut mad.0);
        encoded.expect("the machine can write what it sends");
        let to = self.who(peer);
        self.wire.push_back(Sent { at, to, mad });
    }

    fn report_sidr(&mut self, index: usize, reported: sidr::Event, rep: Option<&SidrRep<'_>>) {
        let at = self.now.as_micros();
        let Some(object) = self.objects.get_mut(index) else {
            return;
        };
        let qkey = match (reported, rep) {
            (sidr::Event::RepReceived { status }, Some(rep)) if status.is_success() => {
                object.qkey.take(rep.qkey)
            }
            _ => Ok(()),
        };
        let Some(upcall) = cma::resolution_upcall(object.state, reported, qkey) else {
            return;
        };
        let mut event = event(upcall.event as u32, at, index, upcall.status);
        if let Some(rep) = rep {
            event.private = rep.private_data.to_vec();
            if upcall.event == CmEvent::Established {
                event.qpn = rep.qpn;
            }
        }
        self.events.push_back(event);
    }

    // The user
    // ------------------------------------------------------------------------------------------

    pub(super) fn ask(
        &mut self,
        to: IpAddr,
        port: u16,
        param: &ConnParam,
    ) -> Result<Answer, Errno> {
        let request_id = self.comm_id();
        let (src, dst) = self.ends(to, port);
        let data = Self::request_data(src, dst, param)?;
        let service = ServiceId::of_address(PortSpace::Udp, &dst);
        let params = ResolveParams {
            timeout: self.tuning.response_timeout().to_duration(),
            max_cm_retries: self.tuning.max_retries(),
            total: self.tuning.limits().total,
            ..ResolveParams::new(service.0, 0xffff)
        };
        let tid = 0x1000_0000_0000 | u64::from(request_id);
        let mut machine = Resolution::new(request_id, tid);
        machine.set_retry_policy(self.retry_policy());
        let actions = machine.resolve(&params, &data, self.now)?;
        let index = self.object(Object {
            sidr: Some(Sidr {
                machine,
                peer: Origin::of_gid(dst.to_gid()),
                key: None,
            }),
            ..Object::new(cma::State::Connect, true)
        });
        self.by_id.insert(request_id, index);
        self.execute_sidr(index, actions, None);
        Ok(Answer::Endpoint(Endpoint(index)))
    }

    pub(super) fn answer_question(
        &mut self,
        index: usize,
        param: Option<&ConnParam>,
    ) -> Result<(), Errno> {
        let now = self.now;
        let object = self.objects.get_mut(index).ok_or(Errno::ENOENT)?;
        let mut qkey = object.qkey;
        qkey.take_default(PortSpace::Udp)?;
        let params = ReplyParams {
            vendor_id: param.map_or(0, |param| param.vendor),
            attr_mod: param.map_or(0, |param| param.attr_mod),
            ..ReplyParams::success(param.map_or(0, |param| param.qpn), qkey.value())
        };
        let private = param.map_or(&[][..], |param| &param.private);
        let sidr = object.sidr.as_mut().ok_or(Errno::EINVAL)?;
        let actions = sidr.machine.reply(&params, &[], private, now)?;
        object.qkey = qkey;
        object.has_uid = true;
        self.execute_sidr(index, actions, None);
        Ok(())
    }

    pub(super) fn refuse_question(&mut self, index: usize, private: &[u8]) -> Result<(), Errno> {
        let now = self.now;
        let params = ReplyParams::failure(Status::REJECT);
        let sidr = self.sidr(index).ok_or(Errno::EINVAL)?;
        let actions = sidr.machine.reply(&params, &[], private, now)?;
        self.execute_sidr(index, actions, None);
        Ok(())
    }

    // Messages
    // ------------------------------------------------------------------------------------------

    pub(super) fn receive_sidr_req(&mut self, arrived: &Arrived<'_>, req: &SidrReq<'_>) {
        let now = self.now;
        let mut incoming = IncomingSidr {
            node: self,
            arrived,
            req,
        };
        match node::sidr_request(&mut incoming, arrived.header, req) {
            SidrRequest::Duplicate(index) => {
                if let Some(sidr) = self.sidr(index) {
                    let actions = sidr.machine.duplicate_req(now);
                    self.execute_sidr(index, actions, None);
                }
            }
            SidrRequest::Answered(mut answer) => {
                for action in answer.duplicate_req(now) {
                    if let Action::Send(outgoing) = action {
                        self.transmit_sidr(&answer, arrived.from, outgoing);
                    }
                }
            }
            SidrRequest::New(child, (listener, _)) => self.offer_question(listener, child, req),
            SidrRequest::Refused(response) => self.respond(arrived, &response),
            SidrRequest::Nothing => {}
        }
    }

    fn offer_question(&mut self, listener: usize, child: usize, req: &SidrReq<'_>) {
        if self.admit(listener, child).is_some() {
            let at = self.now.as_micros();
            self.events.push_back(Event {
                child: Some(Endpoint(child)),
                private: req
                    .private_data
                    .get(IP_HEADER_LEN..)
                    .unwrap_or(&[])
                    .to_vec(),
                ..event(CmEvent::ConnectRequest as u32, at, listener, 0)
            });
        }
    }
}

/// A SIDR_REQ that has come in.
struct IncomingSidr<'a> {
    node: &'a mut Node,
    arrived: &'a Arrived<'a>,
    req: &'a SidrReq<'a>,
}

impl IncomingSidr<'_> {
    fn key(&self) -> SidrKey {
        (self.arrived.from, self.req.request_id)
    }
}

impl Passive for IncomingSidr<'_> {
    type Endpoint = usize;
    type Listener = Listener;

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, service_id: u64) -> bool {
        self.node.is_served(service_id)
    }

    fn listener(&mut self) -> Option<Listener> {
        let req = self.req;
        self.node.find_listener(req.service_id, req.private_data)
    }

    fn check_backlog(&mut self, (listener, _): &Listener) -> Result<(), Declined> {
        self.node.check_backlog(*listener, 0)
    }

    fn create(&mut self, _: &Listener) -> Result<usize, Declined> {
        let machine = Resolution::from_req(self.arrived.header, self.req, Resolution::MEMORY);
        let sidr = Sidr {
            machine,
            peer: self.arrived.from,
            key: None,
        };
        Ok(self.node.object(Object {
            sidr: Some(sidr),
            ..Object::new(cma::State::Connect, false)
        }))
    }

    fn discard(&mut self, child: usize) {
        self.node.destroy(child, DestroyCause::NoMemory);
    }
}

impl PassiveSidr for IncomingSidr<'_> {
    fn known(&self) -> KnownSidr<usize> {
        match self.node.sidr_requests.get(&self.key()) {
            Some(SidrEntry::Pending(index)) => KnownSidr::Pending(*index),
            Some(SidrEntry::Answered(answer)) if answer.deadline() > Some(self.node.now) => {
                KnownSidr::Answered(answer.clone())
            }
            // It was forgotten.
            Some(SidrEntry::Answered(_)) | None => KnownSidr::Nothing,
        }
    }

    fn takes_datagrams(&self, (_, space): &Listener) -> bool {
        *space == PortSpace::Udp
    }

    fn enter(&mut self, child: &usize) -> Entry {
        let key = self.key();
        if let Some(sidr) = self.node.sidr(*child) {
            sidr.key = Some(key);
        }
        self.node
            .sidr_requests
            .insert(key, SidrEntry::Pending(*child));
        Entry::New
    }
}
