// SPDX-License-Identifier: GPL-2.0

//! Datagram endpoints of a node, which resolve a service id instead of connecting.
//!
//! As in the module, the request id is a communication id, and SIDR requests are known by their
//! origin and request id for as long as their answer is remembered. What becomes of one
//! `cmproto::node` decides.

use cmproto::{
    addr::{Gid, SockAddr},
    cm::{DestroyCause, RetryPolicy, EARLY_SENDS},
    errno::Errno,
    node::{self, Declined, Entry, KnownSidr, Passive, PassiveSidr, RequestEnd, SidrRequest},
    origin::Origin,
    private_data::{IpHeader, IP_HEADER_LEN},
    sidr::{Action, Actions, Event, Outgoing, ReplyParams, Resolution, ResolveParams, Status},
    time::{Instant, TimeCode},
    ucma_abi::CmEvent,
    wire::{Header, Message, SidrReq, MAD_LEN},
};

use crate::{
    arrive::Arrived,
    node::{Effect, Node, Service},
    rules::{Rule, Violation},
    script::{Dial, Side, Tag, Verb},
    tables::EpId,
};

/// The Q_Key of all services.
const QKEY: u32 = 0x0123_4567;

/// One side of a resolution, and what is kept beside it.
#[derive(Debug)]
pub struct Datagram {
    pub(crate) machine: Resolution,
    pub(crate) peer: Origin,
    pub tag: Tag,
    pub side: Side,
    pub has_user: bool,
    /// In the table of SIDR requests.
    tracked: bool,
    /// The queue pair that the answer names.
    pub qpn: u32,
    /// Events of the user, at most one.
    told: u8,
    /// Messages that were sent, and that may be sent.
    sent: u32,
    most: u32,
    /// When an asking user must have been told.
    due: Option<Instant>,
}

impl Datagram {
    fn broken(&self, rule: Rule, what: &str) -> Result<(), Violation> {
        let what = format!("#{} {:?} datagram: {what}", self.tag, self.side);
        Err(Violation { rule, what })
    }

    /// S3: a question has an answer, or is given up, in time.
    fn on_time(&self, now: Instant) -> Result<(), Violation> {
        match self.due {
            Some(due) if now > due && self.told == 0 => self.broken(Rule::S3, "asks for too long"),
            _ => Ok(()),
        }
    }

    /// S8: what was destroyed at `now` asks nobody, and remembers for a bounded time.
    fn destroyed(&self, now: Instant) -> Result<(), Violation> {
        let ends = self
            .machine
            .deadline()
            .is_some_and(|end| end <= now + Resolution::MEMORY);
        if self.machine.is_closed() || (self.machine.is_answered() && ends) {
            return Ok(());
        }
        self.broken(Rule::S8, "destroyed, and not over")
    }
}

/// The queue pair that serves the calls of `tag`.
pub fn service_qpn(tag: Tag) -> u32 {
    0x1_0000 + u32::from(tag)
}

impl Node {
    /// A user asks the node at `to`.
    pub(crate) fn resolve(&mut self, tag: Tag, to: Gid, dial: &Dial, now: Instant) -> EpId {
        let ep = self.take_ep();
        let request_id = self.ids.reserve();
        let timeout = TimeCode::new(dial.response_timeout).to_duration();
        let sends = u32::from(dial.max_cm_retries) + 1;
        let params = ResolveParams {
            timeout,
            max_cm_retries: dial.max_cm_retries,
            ..ResolveParams::new(Self::service_id(), 0xffff)
        };
        let mut data = [0; IP_HEADER_LEN];
        let addr = |gid: Gid| SockAddr::v4(gid.to_v4().unwrap_or_default(), 0);
        let _ = IpHeader {
            src: addr(self.gid),
            dst: addr(to),
        }
        .encode(&mut data);
        let mut machine = Resolution::new(request_id, u64::from(request_id));
        machine.set_retry_policy(self.retry_policy());
        let early = match self.retry_policy() {
            RetryPolicy::Classic => 0,
            RetryPolicy::After(_) | RetryPolicy::Overtaken(_) | RetryPolicy::Hold(_) => {
                u32::from(EARLY_SENDS)
            }
        };
        let actions = machine.resolve(&params, &data, now).unwrap_or_default();
        let datagram = Datagram {
            machine,
            peer: Origin::of_gid(to),
            tag,
            side: Side::Active,
            has_user: true,
            tracked: false,
            qpn: 0,
            told: 0,
            sent: 0,
            most: sends + early,
            due: Some(now + timeout.saturating_mul(u64::from(sends))),
        };
        self.datagrams.insert(ep, datagram);
        self.ids.publish(request_id, ep);
        self.carry_out(ep, actions, now);
        ep
    }

    /// Handles a question.
    pub(crate) fn receive_sidr_req(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Header,
        req: &SidrReq<'_>,
    ) {
        let mut incoming = IncomingSidr {
            node: self,
            arrived,
            header,
            req,
        };
        match node::sidr_request(&mut incoming, header, req) {
            SidrRequest::Duplicate(ep) => self.repeated_question(ep, arrived.now),
            // Its endpoint remembers it here, with what is judged.
            SidrRequest::Answered(_) => {
                if let Some(ep) = self.sidr_requests.get(&(arrived.origin, req.request_id)) {
                    self.repeated_question(*ep, arrived.now);
                }
            }
            SidrRequest::New(ep, Service) => self.effects.push(Effect::Reach { ep }),
            SidrRequest::Refused(response) => self.respond(arrived, header, &response),
            SidrRequest::Nothing => {}
        }
    }

    /// S6: a question that comes again changes nothing.
    fn repeated_question(&mut self, ep: EpId, now: Instant) {
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return;
        };
        let before = datagram.machine.clone();
        datagram.most += 1;
        let actions = datagram.machine.duplicate_req(now);
        let judgement = match datagram.machine == before {
            true => Ok(()),
            false => datagram.broken(Rule::S6, "changed by a repeated question"),
        };
        self.judge(judgement);
        self.carry_out(ep, actions, now);
    }

    /// The answer to the question of `ep` has come.
    pub(crate) fn answered(&mut self, arrived: &Arrived<'_>, ep: EpId, message: &Message<'_>) {
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return;
        };
        if let (0, Message::SidrRep(rep)) = (datagram.told, message) {
            datagram.qpn = rep.qpn;
        }
        let actions = datagram.machine.receive(message, arrived.now);
        self.carry_out(ep, actions, arrived.now);
    }

    /// The user of a datagram endpoint does something.
    pub(crate) fn act_on_datagram(
        &mut self,
        ep: EpId,
        verb: Verb,
        now: Instant,
    ) -> Result<(), Errno> {
        let params = match verb {
            Verb::Destroy => {
                self.end_datagram(ep, DestroyCause::User, now);
                return Ok(());
            }
            Verb::Accept => None,
            Verb::Reject => Some(ReplyParams::failure(Status::REJECT)),
            Verb::Disconnect | Verb::Notify | Verb::Nothing => return Ok(()),
        };
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return Ok(());
        };
        let params = params.unwrap_or(ReplyParams::success(service_qpn(datagram.tag), QKEY));
        let before = datagram.machine.clone();
        match datagram.machine.reply(&params, &[], b"answer", now) {
            Ok(actions) => {
                self.carry_out(ep, actions, now);
                Ok(())
            }
            Err(errno) => {
                let judgement = match datagram.machine == before {
                    true => Ok(()),
                    false => datagram.broken(Rule::Api, "a verb failed, and changed it"),
                };
                self.judge(judgement);
                Err(errno)
            }
        }
    }

    /// The peer's link address is known: the user is asked, if there is room for one more question.
    pub(crate) fn offer_datagram(&mut self, ep: EpId, now: Instant) {
        if let Err(declined) = self.backlog(self.waiting_sidr_requests(), 0) {
            return self.end_datagram(ep, RequestEnd::sidr_req(declined).cause, now);
        }
        if let Some(datagram) = self.datagrams.get_mut(&ep) {
            datagram.has_user = true;
            let event = CmEvent::ConnectRequest;
            self.effects.push(Effect::Tell {
                ep,
                event,
                status: 0,
            });
        }
    }

    /// Questions that wait for their user.
    fn waiting_sidr_requests(&self) -> usize {
        let is_waiting = |d: &&Datagram| {
            d.has_user && d.side == Side::Passive && d.machine.deadline().is_none() && d.tracked
        };
        self.datagrams.values().filter(is_waiting).count()
    }

    /// The timer of a datagram endpoint has run out.
    pub(crate) fn datagram_timeout(&mut self, ep: EpId, deadline: Instant, now: Instant) {
        let policy = self.retry_policy_at(now);
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return;
        };
        if datagram.machine.deadline() == Some(deadline) {
            datagram.machine.set_retry_policy(policy);
            let actions = datagram.machine.timeout(now);
            self.carry_out(ep, actions, now);
        }
    }

    fn end_datagram(&mut self, ep: EpId, cause: DestroyCause, now: Instant) {
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return;
        };
        datagram.has_user = false;
        let actions = datagram.machine.destroy(cause, now);
        let judgement = datagram.destroyed(now);
        self.judge(judgement);
        self.carry_out(ep, actions, now);
    }

    /// Carries out what a resolution asks for.
    fn carry_out(&mut self, ep: EpId, actions: Actions, now: Instant) {
        for action in actions {
            match action {
                Action::Send(outgoing) => self.send_datagram(ep, outgoing),
                Action::Timer => {
                    let datagram = self.datagrams.get(&ep);
                    if let Some(deadline) = datagram.and_then(|d| d.machine.deadline()) {
                        self.effects.push(Effect::Timer { ep, deadline });
                    }
                }
                Action::ReleaseRequest => {
                    if let Some(datagram) = self.datagrams.get_mut(&ep) {
                        datagram.tracked = false;
                        let key = (datagram.peer, datagram.machine.request_id());
                        if self.sidr_requests.get(&key) == Some(&ep) {
                            self.sidr_requests.remove(&key);
                        }
                    }
                }
                Action::Deliver(event) => self.tell_datagram(ep, event),
                Action::Release | Action::Count(_) => {}
            }
        }
        let Some(datagram) = self.datagrams.get(&ep) else {
            return;
        };
        let judgement = datagram.on_time(now);
        if datagram.machine.is_closed() && !datagram.has_user {
            if datagram.side == Side::Active {
                self.ids.free(datagram.machine.request_id());
            }
            self.datagrams.remove(&ep);
        }
        self.judge(judgement);
    }

    /// S7: as many SIDR requests as retries allow, and one answer per request.
    fn send_datagram(&mut self, ep: EpId, outgoing: Outgoing) {
        let Some(datagram) = self.datagrams.get_mut(&ep) else {
            return;
        };
        datagram.sent += 1;
        let mut mad = [0; MAD_LEN];
        let judgement = match datagram.machine.encode(outgoing, &mut mad) {
            Ok(()) if datagram.sent > datagram.most => {
                datagram.broken(Rule::S7, "too many messages")
            }
            Ok(()) => Ok(()),
            Err(_) => datagram.broken(Rule::Api, "a message cannot be written"),
        };
        self.effects.push(Effect::Send {
            tag: datagram.tag,
            kind: outgoing.attribute(),
            to: datagram.peer,
            mad: Box::new(mad),
        });
        self.judge(judgement);
    }

    /// S3: a user who asks is told once.
    fn tell_datagram(&mut self, ep: EpId, event: Event) {
        let Some(datagram) = self.datagrams.get_mut(&ep).filter(|d| d.has_user) else {
            return;
        };
        datagram.told += 1;
        let judgement = match datagram.told {
            1 => Ok(()),
            _ => datagram.broken(Rule::S3, "told twice"),
        };
        let (event, status) = match event {
            Event::RepReceived { status } if status.is_success() => (CmEvent::Established, 0),
            Event::RepReceived { status } => (CmEvent::Unreachable, i32::from(status.0)),
            Event::ReqError => (CmEvent::Unreachable, -Errno::ETIMEDOUT.code()),
        };
        self.effects.push(Effect::Tell { ep, event, status });
        self.judge(judgement);
    }

    /// S3, S9: nobody asks for too long, and the tables hold what they must.
    pub fn judge_datagrams(&self, now: Instant) -> Result<(), Violation> {
        let mut tracked = 0;
        for datagram in self.datagrams.values() {
            datagram.on_time(now)?;
            tracked += usize::from(datagram.tracked);
        }
        if tracked == self.sidr_requests.len() && self.waiting_sidr_requests() <= self.setup.backlog
        {
            return Ok(());
        }
        let what = format!(
            "node {}: {tracked} SIDR requests that nobody finds",
            self.index
        );
        Err(Violation {
            rule: Rule::S9,
            what,
        })
    }
}

/// A SIDR_REQ that has come in.
struct IncomingSidr<'a> {
    node: &'a mut Node,
    arrived: &'a Arrived<'a>,
    header: &'a Header,
    req: &'a SidrReq<'a>,
}

impl Passive for IncomingSidr<'_> {
    type Endpoint = EpId;
    type Listener = Service;

    fn find_reply_path(&mut self) -> bool {
        true
    }

    fn is_served(&self, service_id: u64) -> bool {
        service_id == Node::service_id()
    }

    fn listener(&mut self) -> Option<Service> {
        self.node.listener(self.req.private_data)
    }

    fn check_backlog(&mut self, _: &Service) -> Result<(), Declined> {
        let waiting = self.node.waiting_sidr_requests();
        self.node.backlog(waiting, 0).map(|_| ())
    }

    fn create(&mut self, _: &Service) -> Result<EpId, Declined> {
        let ep = self.node.take_ep();
        let datagram = Datagram {
            machine: Resolution::from_req(self.header, self.req, Resolution::MEMORY),
            peer: self.arrived.origin,
            tag: self.arrived.tag,
            side: Side::Passive,
            has_user: false,
            tracked: true,
            qpn: 0,
            told: 0,
            sent: 0,
            most: 1,
            due: None,
        };
        self.node.datagrams.insert(ep, datagram);
        Ok(ep)
    }

    fn discard(&mut self, ep: EpId) {
        let now = self.arrived.now;
        self.node.end_datagram(ep, DestroyCause::NoMemory, now);
    }
}

impl PassiveSidr for IncomingSidr<'_> {
    fn known(&self) -> KnownSidr<EpId> {
        let key = (self.arrived.origin, self.req.request_id);
        let Some(ep) = self.node.sidr_requests.get(&key) else {
            return KnownSidr::Nothing;
        };
        match self.node.datagrams.get(ep) {
            Some(datagram) if datagram.machine.is_answered() => {
                KnownSidr::Answered(datagram.machine.clone())
            }
            Some(_) => KnownSidr::Pending(*ep),
            None => KnownSidr::Nothing,
        }
    }

    fn takes_datagrams(&self, _: &Service) -> bool {
        true
    }

    fn enter(&mut self, ep: &EpId) -> Entry {
        let key = (self.arrived.origin, self.req.request_id);
        let before = self.node.sidr_requests.insert(key, *ep);
        // The answer to another question is forgotten.
        let before = before.and_then(|ep| self.node.datagrams.get_mut(&ep));
        if let Some(before) = before {
            before.tracked = false;
        }
        Entry::New
    }
}
