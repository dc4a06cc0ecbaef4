// SPDX-License-Identifier: GPL-2.0

//! Tests of two connections on a network that loses and repeats messages.

use super::*;

const A: usize = 0;
const B: usize = 1;
/// Delay of a message in the network, in milliseconds.
const WAY: u64 = 1;

type Step = fn(&mut Connection, Instant) -> Actions;

#[derive(Default)]
struct Host {
    connection: Option<Connection>,
    has_remote_ids: bool,
    events: Vec<Event>,
    releases: usize,
}

/// The effect of the network on a message.
#[derive(Clone, Copy, Default)]
struct Fate {
    lost: bool,
    /// The message arrives again after this many milliseconds.
    again: Option<u64>,
}

struct Network {
    hosts: [Host; 2],
    now: Instant,
    wire: Vec<(Instant, usize, [u8; MAD_LEN])>,
    script: Vec<(Instant, usize, Step)>,
    fate: Box<dyn Fn(usize, usize) -> Fate>,
    /// Time that B takes to accept, in milliseconds. `None` if B does not accept.
    accept_after: Option<u64>,
    /// Set if A rejects the REP.
    rejects_rep: bool,
    /// Sender, time in milliseconds and kind of each message.
    log: Vec<(usize, u64, Attribute)>,
}

impl Network {
    /// Creates a network on which A connects to B at once, and B accepts after 50 ms.
    fn new() -> Self {
        let mut network = Self {
            hosts: [Host::default(), Host::default()],
            now: at(0),
            wire: Vec::new(),
            script: Vec::new(),
            fate: Box::new(|_, _| Fate::default()),
            accept_after: Some(50),
            rejects_rep: false,
            log: Vec::new(),
        };
        network.hosts[A].connection = Some(Connection::new(0xaaaa, 0xa0, 0xa1));
        network.at(0, A, |c, now| {
            let params = ConnectParams {
                local_qpn: 0xa,
                ..connect_params()
            };
            c.connect(&params, b"req", now).unwrap()
        });
        network
    }

    fn at(&mut self, ms: u64, host: usize, step: Step) {
        self.script.push((at(ms), host, step));
    }

    /// Loses the messages with the numbers in `lost`.
    fn lose(mut self, lost: &[usize]) -> Self {
        let lost = lost.to_vec();
        self.fate = Box::new(move |n, _| Fate {
            lost: lost.contains(&n),
            ..Fate::default()
        });
        self
    }

    fn repeat(mut self, repeated: usize, later: u64) -> Self {
        self.fate = Box::new(move |n, _| Fate {
            again: (n == repeated).then_some(later),
            ..Fate::default()
        });
        self
    }

    fn send(&mut self, from: usize, mad: [u8; MAD_LEN]) {
        let (hdr, _) = wire::decode(&mad).unwrap();
        let fate = (self.fate)(self.log.len(), from);
        self.log.push((from, millis(self.now), hdr.attr_id));
        let arrival = self.now + Duration::from_millis(WAY);
        if !fate.lost {
            self.wire.push((arrival, 1 - from, mad));
        }
        if let Some(later) = fate.again {
            self.wire
                .push((arrival + Duration::from_millis(later), 1 - from, mad));
        }
    }

    fn perform(&mut self, host: usize, actions: Actions) {
        for action in actions {
            let side = &mut self.hosts[host];
            let connection = side.connection.as_ref().unwrap();
            match action {
                Action::Send(message) | Action::SendUnasked(message) => {
                    let mad = encoded(connection, message);
                    self.send(host, mad);
                }
                Action::Deliver(event) => {
                    side.events.push(event);
                    let now = millis(self.now);
                    match event {
                        Event::RepReceived if self.rejects_rep => {
                            self.at(now, host, |c, now| {
                                c.reject(Reason(28), b"info", b"no", now).unwrap()
                            });
                        }
                        Event::RepReceived => {
                            self.at(now, host, |c, now| c.establish(b"rtu", now).unwrap());
                        }
                        Event::DreqReceived => self.at(now, host, |c, now| {
                            // The DREQ may have been confirmed already, by the DREP to a crossing
                            // DREQ.
                            c.confirm_disconnect(b"drep", now)
                                .unwrap_or(Actions::none())
                        }),
                        _ => {}
                    }
                }
                Action::ReleaseRemoteIds => {
                    assert!(side.has_remote_ids);
                    side.has_remote_ids = false;
                }
                Action::Release => {
                    assert!(!side.has_remote_ids && connection.is_closed());
                    side.releases += 1;
                }
                Action::Timer | Action::EndLap { .. } | Action::Count(_) => {}
            }
        }
    }

    fn arrive(&mut self, host: usize, mad: &[u8; MAD_LEN]) {
        let (hdr, msg) = wire::decode(mad).unwrap();
        let now = self.now;
        let side = &mut self.hosts[host];
        let actions = match (&mut side.connection, &msg) {
            (None, Message::Req(req)) => {
                let limits = Limits::DEFAULT;
                let c = Connection::from_req(0xbbbb, 0xb0, 0xb1, &hdr, req, &limits).unwrap();
                side.has_remote_ids = true;
                let c = side.connection.insert(c);
                c.prepare_mra(Connection::SERVICE_TIMEOUT).unwrap();
                if let Some(ms) = self.accept_after {
                    self.at(millis(now) + ms, host, |c, now| {
                        let params = AcceptParams {
                            local_qpn: 0xb,
                            ..accept_params()
                        };
                        c.accept(&params, b"rep", now).unwrap_or(Actions::none())
                    });
                }
                return;
            }
            (Some(c), Message::Req(_)) if side.has_remote_ids => c.duplicate_req(now),
            (Some(c), msg) if c.is_for(msg) => {
                if c.wants_rep() && matches!(msg, Message::Rep(_)) {
                    side.has_remote_ids = true;
                }
                c.receive(&hdr, msg, now)
            }
            (_, Message::Dreq(dreq)) => {
                let drep = Message::Drep(Drep {
                    local_comm_id: dreq.remote_comm_id,
                    remote_comm_id: dreq.local_comm_id,
                    private_data: &[],
                });
                let mut mad = [0; MAD_LEN];
                wire::encode(&Header::new(Attribute::Drep, hdr.tid), &drep, &mut mad).unwrap();
                self.send(host, mad);
                return;
            }
            _ => return,
        };
        self.perform(host, actions);
    }

    /// Runs until nothing can happen any more.
    fn run(mut self) -> Self {
        for _ in 0..1000 {
            let deadlines = [A, B].map(|host| {
                let connection = self.hosts[host].connection.as_ref();
                connection
                    .and_then(Connection::deadline)
                    .unwrap_or(Instant::MAX)
            });
            let script = self
                .script
                .iter()
                .map(|step| step.0)
                .min()
                .unwrap_or(Instant::MAX);
            let wire = self
                .wire
                .iter()
                .map(|mad| mad.0)
                .min()
                .unwrap_or(Instant::MAX);
            let next = script.min(wire).min(deadlines[A]).min(deadlines[B]);
            if next == Instant::MAX {
                return self;
            }
            self.now = self.now.max(next);
            if script == next {
                let index = self.script.iter().position(|step| step.0 == next).unwrap();
                let (_, host, step) = self.script.remove(index);
                let actions = step(self.hosts[host].connection.as_mut().unwrap(), self.now);
                self.perform(host, actions);
            } else if wire == next {
                let index = self.wire.iter().position(|mad| mad.0 == next).unwrap();
                let (_, host, mad) = self.wire.remove(index);
                self.arrive(host, &mad);
            } else {
                let host = if deadlines[A] == next { A } else { B };
                let actions = self.hosts[host]
                    .connection
                    .as_mut()
                    .unwrap()
                    .timeout(self.now);
                self.perform(host, actions);
            }
        }
        panic!("never comes to an end: {:?}", self.log);
    }

    fn messages(&self) -> Vec<(usize, Attribute)> {
        self.log
            .iter()
            .map(|&(from, _, attribute)| (from, attribute))
            .collect()
    }

    /// Asserts that both sides are over, each released once.
    fn assert_over(&self) {
        for host in &self.hosts {
            assert!(
                host.connection.as_ref().is_none_or(Connection::is_closed),
                "{:?}",
                self.log
            );
            assert_eq!(host.releases, usize::from(host.connection.is_some()));
            assert!(!host.has_remote_ids);
        }
    }

    /// Asserts that a connection was established and ended, whatever happened to its messages.
    fn assert_lived(&self) {
        self.assert_over();
        let count = |host: usize, of: &[Event]| {
            self.hosts[host]
                .events
                .iter()
                .filter(|event| of.contains(event))
                .count()
        };
        assert_eq!(count(A, &[Event::RepReceived]), 1, "{:?}", self.log);
        assert!(count(B, &[Event::RtuReceived]) <= 1);
        for host in [A, B] {
            assert_eq!(count(host, &[Event::DreqReceived, Event::DrepReceived]), 1);
            assert_eq!(count(host, &[Event::TimewaitExit]), 1);
            assert_eq!(
                count(host, &[Event::ReqError, Event::RepError, Event::DreqError]),
                0
            );
        }
    }
}

fn disconnect(c: &mut Connection, now: Instant) -> Actions {
    c.disconnect(b"dreq", now).unwrap_or(Actions::none())
}

fn destroy(c: &mut Connection, now: Instant) -> Actions {
    c.destroy(DestroyCause::User, now)
}

/// Returns a connection that A ends after 20 s.
fn ordinary() -> Network {
    let mut network = Network::new();
    network.at(20_000, A, disconnect);
    network
}

/// Returns a connection that A ends after 200 s, with a B that takes 10 s to accept.
fn slow() -> Network {
    let mut network = Network::new();
    network.accept_after = Some(10_000);
    network.at(200_000, A, disconnect);
    network
}

/// Returns a connection that both sides end at the same time.
fn crossing() -> Network {
    let mut network = ordinary();
    network.at(20_000, B, disconnect);
    network
}

/// Returns a connection that B ends.
fn ended_by_b() -> Network {
    let mut network = Network::new();
    network.at(20_000, B, disconnect);
    network
}

const SCENARIOS: [fn() -> Network; 4] = [ordinary, slow, crossing, ended_by_b];

#[test]
fn ordinary_life() {
    let network = ordinary().run();
    network.assert_lived();
    let expected = [
        (A, 0, Attribute::Req),
        (B, 51, Attribute::Rep),
        (A, 52, Attribute::Rtu),
        (A, 20_000, Attribute::Dreq),
        (B, 20_001, Attribute::Drep),
    ];
    assert_eq!(network.log, expected);
    let events = [Event::RepReceived, Event::DrepReceived, Event::TimewaitExit];
    assert_eq!(network.hosts[A].events, events);
    let events = [Event::RtuReceived, Event::DreqReceived, Event::TimewaitExit];
    assert_eq!(network.hosts[B].events, events);
    // The DREP is sent at 20002 ms, and the time wait is 512 ms.
    assert_eq!(millis(network.now), 20_514);
}

#[test]
fn a_slow_accept_is_covered_by_an_mra() {
    let network = slow().run();
    network.assert_lived();
    let expected = [
        (A, 0, Attribute::Req),
        (A, 4608, Attribute::Req),
        (B, 4609, Attribute::Mra),
        (B, 10_001, Attribute::Rep),
        (A, 10_002, Attribute::Rtu),
    ];
    assert_eq!(network.log[..5], expected);
    assert_eq!(
        network.hosts[A].events[..2],
        [Event::MraReceived, Event::RepReceived]
    );
}

#[test]
fn crossing_dreqs() {
    let network = crossing().run();
    network.assert_lived();
    for host in &network.hosts {
        assert_eq!(host.events[1..], [Event::DreqReceived, Event::TimewaitExit]);
    }
    let dreqs = network
        .log
        .iter()
        .filter(|sent| sent.2 == Attribute::Dreq)
        .count();
    assert_eq!(dreqs, 2);
}

#[test]
fn any_two_messages_lost() {
    for scenario in SCENARIOS {
        for first in 0..12 {
            for second in first..12 {
                scenario().lose(&[first, second]).run().assert_lived();
            }
        }
    }
}

#[test]
fn any_message_repeated() {
    for scenario in SCENARIOS {
        let plain = scenario().run();
        for repeated in 0..plain.log.len() {
            // The copy arrives at once, late, or after the time wait.
            for later in [0, 2, 300, 3_000] {
                let network = scenario().repeat(repeated, later).run();
                network.assert_lived();
                for host in [A, B] {
                    // A repeated REQ is answered with an MRA, which the user is told of.
                    let mut events = network.hosts[host].events.clone();
                    let mut expected = plain.hosts[host].events.clone();
                    events.retain(|event| *event != Event::MraReceived);
                    expected.retain(|event| *event != Event::MraReceived);
                    assert_eq!(events, expected);
                }
            }
        }
    }
}

#[test]
fn a_lost_rtu_is_asked_for_again() {
    let network = ordinary().lose(&[2]).run();
    network.assert_lived();
    let expected = [(B, Attribute::Rep), (A, Attribute::Rtu)];
    assert_eq!(network.messages()[3..5], expected);
    assert_eq!(network.hosts[B].events[0], Event::RtuReceived);
}

#[test]
fn dreq_before_rtu() {
    let mut network = Network::new().lose(&[2]);
    network.at(60, A, disconnect);
    let network = network.run();
    network.assert_lived();
    assert_eq!(
        network.hosts[B].events,
        [Event::DreqReceived, Event::TimewaitExit]
    );
}

#[test]
fn data_before_rtu() {
    let mut network = ordinary().lose(&[2]);
    network.at(1_000, B, |c, now| c.notify_established(now).unwrap());
    let network = network.run();
    network.assert_lived();
    assert_eq!(network.hosts[B].events[0], Event::UserEstablished);
    let reps = network
        .log
        .iter()
        .filter(|sent| sent.2 == Attribute::Rep)
        .count();
    assert_eq!(reps, 1);
}

#[test]
fn a_dead_peer() {
    // All messages of B are lost after the connection is established.
    let mut network = Network::new();
    network.fate = Box::new(|n, from| Fate {
        lost: n > 2 && from == B,
        ..Fate::default()
    });
    network.at(20_000, A, disconnect);
    let network = network.run();
    network.assert_over();
    let events = [Event::RepReceived, Event::DreqError, Event::TimewaitExit];
    assert_eq!(network.hosts[A].events, events);
    let dreqs = network
        .log
        .iter()
        .filter(|sent| sent.2 == Attribute::Dreq)
        .count();
    assert_eq!(dreqs, 16);
}

#[test]
fn nobody_there() {
    let mut network = Network::new();
    network.fate = Box::new(|_, _| Fate {
        lost: true,
        ..Fate::default()
    });
    let network = network.run();
    network.assert_over();
    assert_eq!(network.hosts[A].events, [Event::ReqError]);
    assert_eq!(network.log.len(), 16);
}

#[test]
fn a_peer_that_never_hears_the_rtu() {
    // A gives up without sending anything, and B gives up, too.
    let mut network = Network::new();
    network.fate = Box::new(|_, from| Fate {
        lost: from == B,
        ..Fate::default()
    });
    let network = network.run();
    network.assert_over();
    assert_eq!(network.hosts[A].events, [Event::ReqError]);
    assert_eq!(network.hosts[B].events, [Event::RepError]);
}

#[test]
fn either_side_destroyed_at_any_time() {
    for scenario in SCENARIOS {
        for host in [A, B] {
            for ms in [
                2, 51, 52, 53, 5_000, 10_001, 10_002, 10_003, 19_999, 20_000, 20_001, 20_002,
            ] {
                let mut network = scenario();
                network.at(ms, host, destroy);
                let mut network = network.run();
                let events = network.hosts[host].events.clone();
                network.assert_over();
                // A second destruction after the end does nothing.
                network.now = at(1_000_000);
                let mut c = network.hosts[host].connection.take().unwrap();
                assert!(destroy(&mut c, network.now).is_empty());
                assert!(!events.contains(&Event::ReqError));
            }
        }
    }
}

#[test]
fn a_req_withdrawn_reaches_the_peer() {
    let mut network = Network::new();
    network.at(20, A, destroy);
    let network = network.run();
    network.assert_over();
    assert_eq!(network.hosts[A].events, []);
    assert_eq!(
        network.hosts[B].events,
        [Event::RejReceived {
            reason: Reason::TIMEOUT
        }]
    );
}

#[test]
fn a_req_refused_reaches_the_peer() {
    let mut network = Network::new();
    network.at(20, B, |c, now| {
        c.reject(Reason(35), &[], b"no", now).unwrap()
    });
    let network = network.run();
    network.assert_over();
    assert_eq!(
        network.hosts[A].events,
        [Event::RejReceived { reason: Reason(35) }]
    );
}

#[test]
fn a_lost_rej_of_a_rep_is_sent_again() {
    for lost in [&[][..], &[2], &[2, 4]] {
        let mut network = Network::new().lose(lost);
        network.rejects_rep = true;
        let network = network.run();
        network.assert_over();
        assert_eq!(network.hosts[A].events, [Event::RepReceived]);
        assert_eq!(
            network.hosts[B].events,
            [Event::RejReceived { reason: Reason(28) }]
        );
        let refused = [(B, Attribute::Rep), (A, Attribute::Rej)].repeat(1 + lost.len());
        assert_eq!(network.messages()[1..], refused);
        let rejection = encoded(network.hosts[A].connection.as_ref().unwrap(), Outgoing::Rej);
        let (_, message) = wire::decode(&rejection).unwrap();
        assert!(matches!(
            message,
            Message::Rej(Rej { message: RejMessage::Rep, ari_len: 4, private_data, .. })
                if private_data.starts_with(b"no")
        ));
    }
}

/// Tests that a copy of a refused REP is refused, too. The network may repeat it.
#[test]
fn a_refused_rep_is_not_accepted_later() {
    for situation in [Situation::ReqSent, Situation::MraReqRcvd] {
        let mut c = situation.connection();
        assert!(!c.has_refused(&peer_rep()));
        c.refuse_rep(&peer_rep());
        assert!(c.has_refused(&peer_rep()) && c.wants_rep());
        let before = c.clone();
        let actions = receive(&mut c, Message::Rep(peer_rep()), at(1));
        assert!(actions
            .iter()
            .eq([Action::Count(Counter::Duplicate(Attribute::Rep))]));
        assert_eq!(c, before);
        // Refusing other REPs does not make the first one acceptable.
        for local_comm_id in PEER_ID + 2..PEER_ID + 20 {
            c.refuse_rep(&Rep {
                local_comm_id,
                ..peer_rep()
            });
        }
        assert!(c.has_refused(&peer_rep()));
        // A retry of the REQ has created another connection at the peer.
        let other = Rep {
            local_comm_id: PEER_ID ^ 1,
            ..peer_rep()
        };
        assert!(!c.has_refused(&other));
        let actions = receive(&mut c, Message::Rep(other), at(2));
        assert!(actions.contains(Action::Deliver(Event::RepReceived)));
    }
}
