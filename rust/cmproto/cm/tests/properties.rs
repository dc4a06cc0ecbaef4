// SPDX-License-Identifier: GPL-2.0

//! Properties of a connection that hold for any inputs in any order.

use proptest::prelude::*;

use super::*;
use crate::errno::Errno;

/// One input of a connection.
#[derive(Clone, Debug)]
enum Step {
    Connect(Transport, u8, usize),
    Accept(usize),
    Establish(usize),
    Reject(u16, usize, usize),
    Disconnect(usize),
    Confirm(usize),
    PrepareMra(u8),
    Notify,
    Destroy(bool),
    /// A MAD with this attribute and contents, and with the right communication ids or not.
    Receive(Attribute, Vec<u8>, bool),
    /// A message that the peer could send.
    Plausible(Attribute, u16),
    DuplicateReq,
    StalePeer,
    /// The link goes down, for a user who waits so many milliseconds, or is up.
    Link(Option<u16>),
    /// A number of milliseconds that pass.
    Wait(u64),
    Deadline,
}

fn attribute() -> impl Strategy<Value = Attribute> {
    prop::sample::select(&Attribute::ALL[..])
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        4 => Just(Transport::Rc),
        1 => Just(Transport::Uc),
        1 => Just(Transport::Xrc),
        1 => Just(Transport::Other(2, 0)),
    ]
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..100usize, 1 => 140..300usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (transport(), any::<u8>(), len()).prop_map(|(t, c, l)| Step::Connect(t, c, l)),
        3 => len().prop_map(Step::Accept),
        3 => len().prop_map(Step::Establish),
        1 => (any::<u16>(), len(), len()).prop_map(|(r, a, l)| Step::Reject(r, a, l)),
        2 => len().prop_map(Step::Disconnect),
        2 => len().prop_map(Step::Confirm),
        2 => any::<u8>().prop_map(Step::PrepareMra),
        1 => Just(Step::Notify),
        1 => any::<bool>().prop_map(Step::Destroy),
        2 => (attribute(), prop::collection::vec(any::<u8>(), wire::DATA_LEN), any::<bool>())
            .prop_map(|(a, d, ids)| Step::Receive(a, d, ids)),
        10 => (attribute(), any::<u16>()).prop_map(|(a, v)| Step::Plausible(a, v)),
        1 => Just(Step::DuplicateReq),
        1 => Just(Step::StalePeer),
        1 => any::<Option<u16>>().prop_map(Step::Link),
        2 => (0..100_000u64).prop_map(Step::Wait),
        3 => Just(Step::Deadline),
    ]
}

/// Returns a message that the peer could send now. `variant` selects among several of a kind.
fn plausible(c: &Connection, attribute: Attribute, variant: u16) -> Message<'static> {
    let reason = [
        Reason::CONSUMER_DEFINED,
        Reason::STALE_CONN,
        Reason::TIMEOUT,
    ];
    match attribute {
        Attribute::Rep => Message::Rep(peer_rep()),
        Attribute::Rtu => Message::Rtu(peer_rtu()),
        Attribute::Dreq => Message::Dreq(Dreq {
            remote_qpn_eecn: c.local_qpn(),
            ..peer_dreq()
        }),
        Attribute::Drep => Message::Drep(peer_drep()),
        Attribute::Rej => Message::Rej(peer_rej(c, reason[usize::from(variant) % 3])),
        _ => {
            let [kind, code] = variant.to_be_bytes();
            Message::Mra(peer_mra(MraMessage::from_code(kind), code))
        }
    }
}

/// A connection with the properties that must hold at all times.
struct Watch {
    c: Connection,
    now: Instant,
    destroyed: bool,
    released: bool,
    has_remote_ids: bool,
    told: Vec<Event>,
}

impl Watch {
    fn new(c: Connection) -> Self {
        let has_remote_ids = c.state() == State::ReqRcvd;
        Self {
            c,
            now: at(0),
            destroyed: false,
            released: false,
            has_remote_ids,
            told: Vec::new(),
        }
    }

    fn verb(&mut self, verb: impl FnOnce(&mut Connection, Instant) -> Result<Actions, Errno>) {
        let before = self.c.clone();
        match verb(&mut self.c, self.now) {
            Ok(actions) => self.check(&before, actions),
            Err(_) => assert_eq!(self.c, before),
        }
    }

    fn input(&mut self, input: impl FnOnce(&mut Connection, Instant) -> Actions) {
        self.verb(|c, now| Ok(input(c, now)));
    }

    fn check(&mut self, before: &Connection, actions: Actions) {
        assert!(actions.len() <= Actions::CAPACITY);
        assert_eq!(actions.iter().count(), actions.len());
        // A change of the deadline is always reported to the caller.
        if self.c.deadline() != before.deadline() {
            assert!(actions.contains(Action::Timer));
        }
        self.has_remote_ids |= before.wants_rep() && self.c.state() == State::RepRcvd;
        for action in actions {
            // Nothing happens after the end, except that a repeated REP is answered with the REJ
            // again.
            let late = matches!(action, Action::Count(_) | Action::Send(Outgoing::Rej));
            assert!(!self.released || late);
            match action {
                Action::Send(message) | Action::SendUnasked(message) => {
                    let _ = encoded(&self.c, message);
                }
                Action::Deliver(event) => {
                    assert!(!self.destroyed);
                    assert!(!self.told.contains(&Event::LinkDown) || event == Event::TimewaitExit);
                    assert!(!self.told.contains(&event), "{event:?} again");
                    self.told.push(event);
                    assert!(self.told.len() <= Event::MOST, "{:?}", self.told);
                }
                Action::ReleaseRemoteIds => {
                    assert!(self.has_remote_ids);
                    self.has_remote_ids = false;
                }
                Action::Release => self.released = true,
                Action::Timer | Action::EndLap { .. } | Action::Count(_) => {}
            }
        }
        let state = self.c.state();
        assert_eq!(self.released, self.c.is_closed());
        assert!(!self.released || (state == State::Idle && !self.has_remote_ids));
        assert!(!self.has_remote_ids || !matches!(state, State::Idle | State::Timewait));
        assert!(!self.destroyed || matches!(state, State::Idle | State::Timewait));
        let timed = matches!(
            state,
            State::ReqSent
                | State::MraReqRcvd
                | State::RepSent
                | State::MraRepRcvd
                | State::DreqSent
                | State::Timewait
        ) || self.c.is_link_down();
        assert_eq!(self.c.deadline().is_some(), timed);
        // The queue pair has attributes if and only if the state has them.
        for target in [QpState::Init, QpState::Rtr, QpState::Rts] {
            if let Ok(attr) = self.c.qp_attr(target) {
                assert!(
                    attr.dest_qp_num < 1 << 24 && attr.rq_psn < 1 << 24 && attr.sq_psn < 1 << 24
                );
                assert!(attr.timeout < 32 && attr.retry_cnt < 8 && attr.rnr_retry < 8);
            }
        }
    }

    fn step(&mut self, step: Step) {
        let data = [0x5a; 300];
        match step {
            Step::Connect(transport, code, len) => self.verb(|c, now| {
                let params = ConnectParams {
                    transport,
                    packet_life_time: code,
                    remote_cm_response_timeout: code.wrapping_add(9),
                    max_cm_retries: code,
                    local_qpn: u32::MAX,
                    ..connect_params()
                };
                c.connect(&params, &data[..len], now)
            }),
            Step::Accept(len) => self.verb(|c, now| c.accept(&accept_params(), &data[..len], now)),
            Step::Establish(len) => self.verb(|c, now| c.establish(&data[..len], now)),
            Step::Reject(reason, ari, len) => {
                self.verb(|c, now| c.reject(Reason(reason), &data[..ari], &data[..len], now));
            }
            Step::Disconnect(len) => self.verb(|c, now| c.disconnect(&data[..len], now)),
            Step::Confirm(len) => self.verb(|c, now| c.confirm_disconnect(&data[..len], now)),
            Step::PrepareMra(code) if code % 2 == 0 => self.verb(|c, _| c.park(code)),
            Step::PrepareMra(code) => {
                self.verb(|c, _| c.prepare_mra(code).map(|()| Actions::none()));
            }
            Step::Notify => self.verb(|c, now| c.notify_established(now)),
            Step::Destroy(user) => {
                // The user is told nothing from this step on.
                self.destroyed = true;
                let cause = if user {
                    DestroyCause::User
                } else {
                    DestroyCause::NoMemory
                };
                self.input(|c, now| c.destroy(cause, now));
            }
            Step::Receive(attribute, data, ids) => {
                let mut mad = encoded(&Situation::RepSent.connection(), Outgoing::Rtu);
                mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
                mad[wire::HEADER_LEN..].copy_from_slice(&data);
                if ids {
                    mad[24..28].copy_from_slice(&PEER_ID.to_be_bytes());
                    mad[28..32].copy_from_slice(&OWN_ID.to_be_bytes());
                }
                self.input(|c, now| {
                    let (hdr, msg) = wire::decode(&mad).unwrap();
                    c.receive(&hdr, &msg, now)
                });
            }
            Step::Plausible(attribute, variant) => self.input(|c, now| {
                let msg = plausible(c, attribute, variant);
                receive(c, msg, now)
            }),
            Step::DuplicateReq => self.input(Connection::duplicate_req),
            Step::StalePeer => self.input(Connection::stale_peer),
            Step::Link(Some(ms)) => {
                self.input(|c, now| c.link_down(Duration::from_millis(ms.into()), now));
            }
            Step::Link(None) => self.input(|c, _| c.link_up()),
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms);
                let span = Duration::from_millis(ms / 7);
                self.c.set_retry_policy(match ms % 3 {
                    0 => RetryPolicy::Classic,
                    1 => RetryPolicy::After(span),
                    _ => RetryPolicy::Hold(span),
                });
                self.input(Connection::timeout);
            }
            Step::Deadline => {
                self.now = self.c.deadline().unwrap_or(self.now).max(self.now);
                self.input(Connection::timeout);
            }
        }
    }

    /// Asserts that a connection in any state ends without its peer.
    fn end(mut self) {
        self.step(Step::Destroy(true));
        self.step(Step::Deadline);
        assert!(self.released);
        let over = self.c.clone();
        self.step(Step::Destroy(true));
        self.step(Step::Deadline);
        assert_eq!(self.c, over);
    }
}

proptest! {
    #[test]
    fn of_the_active_side(steps in prop::collection::vec(step(), 0..60)) {
        let mut watch = Watch::new(active());
        watch.step(Step::Connect(Transport::Rc, 16, 0));
        steps.into_iter().for_each(|step| watch.step(step));
        watch.end();
    }

    #[test]
    fn of_any_new_connection(steps in prop::collection::vec(step(), 0..40)) {
        let mut watch = Watch::new(active());
        steps.into_iter().for_each(|step| watch.step(step));
        watch.end();
    }

    #[test]
    fn of_the_passive_side(
        data in prop::collection::vec(any::<u8>(), wire::DATA_LEN),
        plausible in any::<bool>(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut mad = encoded(&Situation::ReqSent.connection(), Outgoing::Req);
        mad[wire::HEADER_LEN..].copy_from_slice(&data);
        let (hdr, msg) = wire::decode(&mad).unwrap();
        let Message::Req(req) = msg else { panic!() };
        let req = if plausible { peer_req() } else { req };
        let limits = Limits::DEFAULT;
        if let Ok(c) = Connection::from_req(OWN_ID, OWN_GUID, OWN_TID, &hdr, &req, &limits) {
            let mut watch = Watch::new(c);
            steps.into_iter().for_each(|step| watch.step(step));
            watch.end();
        }
    }

    /// Checks that a copy of a message right after the message changes nothing.
    #[test]
    fn of_repeated_messages(
        situation in prop::sample::select(&Situation::ALL[..]),
        attribute in attribute(),
        variant in any::<u16>(),
    ) {
        let mut c = situation.connection();
        let msg = plausible(&c, attribute, variant);
        let _ = receive(&mut c, msg, at(5));
        let once = c.clone();
        let again = receive(&mut c, msg, at(6));
        prop_assert_eq!(&c, &once);
        for action in again {
            prop_assert!(matches!(action, Action::Send(_) | Action::Count(_)), "{:?}", action);
        }
    }
}
