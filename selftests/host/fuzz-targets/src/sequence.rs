// SPDX-License-Identifier: GPL-2.0

//! Sequences of calls, messages and waits.

use crate::bytes::Bytes;
use cmproto::{
    cm::{
        AcceptParams, Action, Actions, AprStatus, ConnectParams, Connection, DestroyCause,
        LapParams, Limits, Outgoing, QpState, RetryPolicy, State,
    },
    errno::Errno,
    path::Path,
    reject::Reason,
    sidr,
    time::{Duration, Instant},
    wire::{self, Attribute, Message, ReqPath, Transport, HEADER_LEN, MAD_LEN},
};

fn transport(byte: u8) -> Transport {
    match byte % 8 {
        0..=4 => Transport::Rc,
        5 => Transport::Uc,
        6 => Transport::Xrc,
        _ => Transport::Other(2, 0),
    }
}

/// A policy, of no time at all, too.
fn policy(byte: u8) -> RetryPolicy {
    let first = Duration::from_millis(u64::from(byte >> 2) * 7);
    match byte % 4 {
        0 => RetryPolicy::Classic,
        1 => RetryPolicy::After(first),
        2 => RetryPolicy::Overtaken(first),
        _ => RetryPolicy::Hold(first),
    }
}

/// Parameters: plain ones, with `byte` mixed in where it can matter.
fn connect_params(byte: u8) -> ConnectParams {
    ConnectParams {
        service_id: 0x0106_1234,
        local_qpn: 0x11,
        local_qkey: 0,
        srq: byte & 1 == 1,
        transport: transport(byte),
        starting_psn: u32::from(byte) << 20,
        responder_resources: byte,
        initiator_depth: byte,
        flow_control: true,
        retry_count: byte,
        rnr_retry_count: byte,
        pkey: 0xffff,
        path_mtu: byte,
        primary: ReqPath::default(),
        packet_life_time: byte >> 3,
        ca_ack_delay: byte >> 2,
        remote_cm_response_timeout: byte >> 3,
        local_cm_response_timeout: byte >> 3,
        max_cm_retries: byte >> 4,
        vendor_id: u32::MAX,
        attr_mod: byte.into(),
    }
}

fn accept_params(byte: u8) -> AcceptParams {
    AcceptParams {
        local_qpn: 0x22,
        starting_psn: u32::from(byte) << 20,
        responder_resources: byte,
        initiator_depth: byte,
        target_ack_delay: byte,
        rnr_retry_count: byte,
        vendor_id: u32::MAX,
        ..AcceptParams::default()
    }
}

fn lap_params(byte: u8) -> LapParams {
    LapParams {
        packet_life_time: byte,
        ca_ack_delay: byte,
        remote_cm_response_timeout: byte,
    }
}

/// The alternate path in a message.
fn alternate() -> Path {
    Path::default()
}

/// A connection, and what must hold of it at all times.
struct Watched {
    c: Connection,
    destroyed: bool,
    released: bool,
    /// The messages that it sent last.
    sent: Vec<[u8; MAD_LEN]>,
}

impl Watched {
    fn new(c: Connection) -> Self {
        Self {
            c,
            destroyed: false,
            released: false,
            sent: Vec::new(),
        }
    }

    fn verb(&mut self, verb: impl FnOnce(&mut Connection) -> Result<Actions, Errno>) {
        let before = self.c.clone();
        match verb(&mut self.c) {
            Ok(actions) => self.check(&before, actions),
            Err(_) => assert_eq!(self.c, before, "a verb that fails changes nothing"),
        }
    }

    fn input(&mut self, input: impl FnOnce(&mut Connection) -> Actions) {
        self.verb(|c| Ok(input(c)));
    }

    fn check(&mut self, before: &Connection, actions: Actions) {
        assert!(!before.is_closed() || self.c == *before || self.c.is_closed());
        if self.c.deadline() != before.deadline() {
            assert!(
                actions.contains(Action::Timer),
                "the timer changed in silence"
            );
        }
        for action in actions {
            // Over; but who missed the REJ of its REP gets it again.
            let late = matches!(action, Action::Count(_) | Action::Send(Outgoing::Rej));
            assert!(!self.released || late);
            match action {
                Action::Send(message) | Action::SendUnasked(message) => {
                    self.sent.push(self.encoded(message))
                }
                Action::Deliver(_) => assert!(!self.destroyed, "an event after destroy"),
                Action::Release => self.released = true,
                Action::Timer
                | Action::ReleaseRemoteIds
                | Action::EndLap { .. }
                | Action::Count(_) => {}
            }
        }
        assert_eq!(self.released, self.c.is_closed());
        assert!(!self.released || self.c.state() == State::Idle);
        assert!(!self.released || self.c.deadline().is_none());
        let target = [QpState::Init, QpState::Rtr, QpState::Rts];
        for state in target {
            let _ = self.c.qp_attr(state);
        }
    }

    fn encoded(&self, message: Outgoing) -> [u8; MAD_LEN] {
        let mut mad = [0; MAD_LEN];
        self.c
            .encode_along(message, Some(&alternate()), &mut mad)
            .expect("a message that is to be sent can be written");
        let mut again = [0; MAD_LEN];
        self.c
            .encode_along(message, Some(&alternate()), &mut again)
            .expect("twice");
        assert_eq!(mad, again);
        let (hdr, decoded) = wire::decode(&mad).expect("and read");
        assert_eq!(hdr.attr_id, message.attribute());
        assert_eq!(decoded.attribute(), hdr.attr_id);
        mad
    }

    /// A call of the user.
    fn call(&mut self, which: u8, bytes: &mut Bytes<'_>, now: Instant) {
        let byte = bytes.u8();
        // Sometimes more than fits.
        let data = [byte; 255];
        let data = match byte % 4 {
            0..=2 => &data[..usize::from(byte % 92)],
            _ => &data[..usize::from(byte)],
        };
        match which % 12 {
            0 => self.verb(|c| c.connect(&connect_params(byte), data, now)),
            1 => self.verb(|c| c.accept(&accept_params(byte), data, now)),
            2 => self.verb(|c| c.establish(data, now)),
            3 => {
                let ari = &data[..data.len() / 2];
                self.verb(|c| c.reject(Reason(byte.into()), ari, data, now));
            }
            4 => self.verb(|c| c.disconnect(data, now)),
            5 => self.verb(|c| c.confirm_disconnect(data, now)),
            6 => self.verb(|c| c.prepare_mra(byte).map(|()| Actions::default())),
            7 => self.verb(|c| c.notify_established(now)),
            8 => self.input(|c| c.stale_peer(now)),
            10 => self.c.set_retry_policy(policy(byte)),
            11 => self.verb(|c| c.load_alternate(lap_params(byte), now)),
            _ => {
                let cause = match byte & 1 {
                    0 => DestroyCause::User,
                    _ => DestroyCause::NoMemory,
                };
                self.destroy(cause, now);
            }
        }
    }

    fn destroy(&mut self, cause: DestroyCause, now: Instant) {
        let before = self.c.clone();
        let actions = self.c.destroy(cause, now);
        self.destroyed = true;
        self.check(&before, actions);
    }

    fn receive(&mut self, mad: &[u8; MAD_LEN], now: Instant) {
        let Ok((hdr, message)) = wire::decode(mad) else {
            return;
        };
        let before = self.c.clone();
        let mine = self.c.is_for(&message);
        self.input(|c| match &message {
            // Over InfiniBand, with a path that is used or not.
            Message::Lap(lap) if lap.alternate_sl & 1 != 0 => {
                let path = match lap.alternate_sl & 2 {
                    0 => Ok(()),
                    _ => Err(AprStatus::UnknownGid),
                };
                c.receive_lap(&hdr, lap, path).actions
            }
            message => c.receive(&hdr, message, now),
        });
        assert!(mine || self.c == before, "another one's message changed it");
    }

    fn timeout(&mut self, now: Instant) {
        let before = self.c.clone();
        let early = self.c.deadline().is_none_or(|deadline| now < deadline);
        self.input(|c| c.timeout(now));
        assert!(!early || self.c == before, "the timer went off early");
        let advances = self.c.deadline().is_none_or(|next| next > now);
        assert!(advances, "the timer would go off again at the same instant");
    }

    /// The connection must end when its user has gone, and nobody says anything any more.
    fn end(&mut self, now: Instant) {
        self.destroy(DestroyCause::User, now);
        if let Some(deadline) = self.c.deadline() {
            self.timeout(deadline);
        }
        assert!(self.c.is_closed());
    }
}

/// A plausible header and the attribute that `kind` stands for, then the data of a fuzzer.
fn forged(kind: u8, data: &[u8]) -> [u8; MAD_LEN] {
    let attribute = Attribute::ALL[usize::from(kind) % Attribute::ALL.len()];
    let mut mad = [0; MAD_LEN];
    mad[..4].copy_from_slice(&[
        wire::BASE_VERSION,
        wire::MGMT_CLASS,
        wire::CLASS_VERSION,
        wire::METHOD_SEND,
    ]);
    mad[8..16].copy_from_slice(&0x300u64.to_be_bytes());
    mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
    let n = data.len().min(MAD_LEN - HEADER_LEN);
    mad[HEADER_LEN..HEADER_LEN + n].copy_from_slice(&data[..n]);
    mad
}

/// Puts the communication ids of the connection into a message, so that it is looked at.
fn address(mad: &mut [u8; MAD_LEN], c: &Connection) {
    let [_, id_peer, id_own] = [0, HEADER_LEN, HEADER_LEN + 4];
    let peer = match c.remote_comm_id() {
        0 => 0x2222_2222,
        id => id,
    };
    mad[id_peer..id_peer + 4].copy_from_slice(&peer.to_be_bytes());
    mad[id_own..id_own + 4].copy_from_slice(&c.local_comm_id().to_be_bytes());
}

/// One connection and a peer that says anything.
pub fn connection(data: &[u8]) {
    let mut bytes = Bytes(data);
    let limits = Limits::DEFAULT;
    let mut now = Instant::ZERO;
    let first = bytes.u8();
    let start = if first & 1 == 0 {
        Connection::new(0x1111_1111, 0xa0, 0x101)
    } else {
        let mad = forged(0, bytes.some());
        let Ok((hdr, Message::Req(req))) = wire::decode(&mad) else {
            return;
        };
        match Connection::from_req(0x1111_1111, 0xa0, 0x101, &hdr, &req, &limits) {
            Ok(connection) => connection,
            Err(_) => return,
        }
    };
    let mut watched = Watched::new(start);
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        let op = bytes.u8();
        match op >> 4 {
            0..=5 => watched.call(op, &mut bytes, now),
            6..=11 => {
                let mut mad = forged(op & 0xf, bytes.some());
                if op & 0x10 == 0 {
                    address(&mut mad, &watched.c);
                }
                watched.receive(&mad, now);
                // It may come twice.
                if op & 0x20 == 0 {
                    watched.receive(&mad, now);
                }
            }
            12 => watched.input(|c| c.duplicate_req(now)),
            13 => {
                now += Duration::from_millis(bytes.u16().into());
                watched.timeout(now);
            }
            _ => {
                if let Some(deadline) = watched.c.deadline() {
                    now = deadline.max(now);
                }
                watched.timeout(now);
            }
        }
    }
    watched.end(now);
}

/// Two connections that talk to each other, with a network that does what the bytes say.
pub fn pair(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut now = Instant::ZERO;
    let mut a = Watched::new(Connection::new(0xaaaa, 0xa0, 0x101));
    let byte = bytes.u8();
    a.verb(|c| c.connect(&connect_params(byte), b"", now));
    let Some(req) = a.sent.first().copied() else {
        return;
    };
    let Ok((hdr, Message::Req(content))) = wire::decode(&req) else {
        panic!("the first message is the REQ");
    };
    let limits = Limits::DEFAULT;
    let b = Connection::from_req(0xbbbb, 0xb0, 0x201, &hdr, &content, &limits);
    let mut ends = [
        a,
        Watched::new(b.expect("what one side sends, the other takes")),
    ];
    for _ in 0..96 {
        if bytes.is_empty() {
            break;
        }
        let op = bytes.u8();
        let side = usize::from(op & 1);
        match op >> 4 {
            0..=4 => ends[side].call(op >> 1, &mut bytes, now),
            5..=12 => {
                // Any message that was ever sent arrives.
                let which = usize::from(bytes.u8());
                let sent = &ends[1 - side].sent;
                if let Some(mad) = sent
                    .len()
                    .checked_sub(1)
                    .map(|last| sent[last - which.min(last)])
                {
                    if mad[16..18] == Attribute::Req.id().to_be_bytes() {
                        ends[side].input(|c| c.duplicate_req(now));
                    } else {
                        ends[side].receive(&mad, now);
                    }
                }
            }
            13 => {
                now += Duration::from_millis(bytes.u16().into());
                for end in &mut ends {
                    end.timeout(now);
                }
            }
            _ => {
                if let Some(deadline) = ends[side].c.deadline() {
                    now = deadline.max(now);
                }
                ends[side].timeout(now);
            }
        }
        // Two connected ends agree about each other.
        let [a, b] = &ends;
        if a.c.state() == State::Established && b.c.state() == State::Established {
            assert_eq!(a.c.remote_comm_id(), b.c.local_comm_id());
            assert_eq!(b.c.remote_comm_id(), a.c.local_comm_id());
            assert_eq!(a.c.remote_qpn(), b.c.local_qpn());
            assert_eq!(b.c.remote_qpn(), a.c.local_qpn());
        }
    }
    for end in &mut ends {
        end.end(now);
    }
}

/// One side of a service id resolution and a peer that says anything.
pub fn resolution(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut now = Instant::ZERO;
    let first = bytes.u8();
    let mut r = if first & 1 == 0 {
        sidr::Resolution::new(0x1111_1111, 0x101)
    } else {
        let kind = Attribute::ALL.iter().position(|a| *a == Attribute::SidrReq);
        let kind = u8::try_from(kind.expect("it is among them")).expect("eleven");
        let mad = forged(kind, bytes.some());
        let Ok((hdr, Message::SidrReq(req))) = wire::decode(&mad) else {
            panic!("any bytes are a SIDR_REQ");
        };
        sidr::Resolution::from_req(&hdr, &req, sidr::Resolution::MEMORY)
    };
    let mut released = false;
    let mut destroyed = false;
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        let before = r.clone();
        let op = bytes.u8();
        let byte = bytes.u8();
        let data = [byte; 255];
        let data = &data[..usize::from(byte)];
        let result = match op % 8 {
            0 => {
                let mut params = sidr::ResolveParams::new(u64::from(byte), 0xffff);
                params.max_cm_retries = byte;
                r.resolve(&params, data, now)
            }
            1 => r.reply(&sidr::ReplyParams::success(byte.into(), 1), &[], data, now),
            2 => r.reply(
                &sidr::ReplyParams::failure(sidr::Status(byte)),
                &data[..data.len() / 3],
                &[],
                now,
            ),
            3 => {
                let mad = forged(op >> 3, bytes.some());
                let Ok((_, message)) = wire::decode(&mad) else {
                    continue;
                };
                Ok(r.receive(&message, now))
            }
            4 => Ok(r.duplicate_req(now)),
            5 => {
                now += Duration::from_millis(bytes.u16().into());
                Ok(r.timeout(now))
            }
            6 => {
                now = r.deadline().unwrap_or(now).max(now);
                Ok(r.timeout(now))
            }
            _ => {
                destroyed = true;
                Ok(r.destroy(DestroyCause::User, now))
            }
        };
        let Ok(actions) = result else {
            assert_eq!(r, before, "a call that fails changes nothing");
            continue;
        };
        for action in actions {
            match action {
                sidr::Action::Send(message) => {
                    let mut mad = [0; MAD_LEN];
                    r.encode(message, &mut mad).expect("it can be written");
                    wire::decode(&mad).expect("and read");
                }
                sidr::Action::Deliver(_) => assert!(!destroyed || op % 8 == 7),
                sidr::Action::Release => {
                    assert!(!released);
                    released = true;
                }
                _ => {}
            }
        }
        assert_eq!(released, r.is_closed());
        assert!(!released || r.deadline().is_none());
    }
}
