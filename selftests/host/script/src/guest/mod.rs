// SPDX-License-Identifier: GPL-2.0

//! A kernel as a world: its character device is the user's end, raw frames are the peer's.
//!
//! The peers have addresses of their own on the peer's end of the cable; the RDMA device there takes
//! no part. Each scenario has its own addresses, port numbers and file, so that all run at a time.

pub mod frame;
pub mod net;
mod ucma;

use self::{
    net::{Neighbours, Net},
    ucma::Cm,
};
use crate::{
    report::{Outcome, Scenario},
    wire::Mad,
    world::{
        Called, ConnParam, Endpoint, Event, Input, Micros, Names, QpAttr, Sent, Service, Space,
        Under, User, Watch, Who, World,
    },
};
use cmproto::cm::{Tunable, Tuning};
use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::{fd::AsRawFd, unix::net::UnixDatagram},
    path::Path,
    sync::{mpsc, Arc, Mutex},
    thread,
};

/// The network of the peers of IPv4.
const NET_V4: &str = "10.1.0.0/16";
/// Scenarios at a time; fewer on a kernel with all its checks.
const AT_ONCE: usize = 24;
/// A message that was sent is assumed to have had its effect after this time.
const SETTLE: Micros = 50_000;

const ADDR_RESOLVED: u32 = 0;
const ROUTE_RESOLVED: u32 = 2;
const CONNECT_REQUEST: u32 = 4;

/// Returns the factor by which everything may be slower: more than once on a kernel with all its
/// checks.
fn slowness() -> u64 {
    match Path::new("/sys/kernel/debug/kmemleak").exists() {
        true => 5,
        false => 1,
    }
}

/// Names for the scenario with this number.
fn names(number: usize, is_ipv6: bool) -> Names {
    let number = u16::try_from(number).unwrap_or(0);
    let [high, low] = number.to_be_bytes();
    let address = |host: u8| match is_ipv6 {
        true => IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 9, number, host.into())),
        false => IpAddr::from(Ipv4Addr::new(
            10,
            1,
            number.to_be_bytes()[1],
            4 * high + host,
        )),
    };
    Names {
        local: match is_ipv6 {
            true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
            false => IpAddr::from([10, 0, 0, 1]),
        },
        peer: address(1),
        stranger: address(2),
        guid: 0x0200_00ff_fe09_0000 | u64::from(high) << 8 | u64::from(low),
        port: 20_000 + 8 * number,
    }
}

/// An endpoint of the user.
struct Object {
    id: u32,
    space: Space,
}

/// A world of one scenario.
struct Guest {
    under: Under,
    names: Names,
    net: Arc<Net>,
    wire: UnixDatagram,
    /// `None` after everything was closed.
    cm: Option<Cm>,
    objects: Vec<Object>,
    /// Events that came while a call waited for another.
    events: VecDeque<Event>,
    settled: Micros,
    tuning: Tuning,
}

impl Guest {
    fn new(under: Under, names: Names, net: Arc<Net>) -> io::Result<Self> {
        let wire = net.listen(&names)?;
        Ok(Self {
            under,
            names,
            net,
            wire,
            cm: Some(Cm::open()?),
            objects: Vec::new(),
            events: VecDeque::new(),
            settled: 0,
            tuning: Tuning::NONE,
        })
    }

    fn cm(&self) -> Called<&Cm> {
        self.cm.as_ref().ok_or(libc::EBADF)
    }

    /// Lets what was sent have its effect; gives the file, and an endpoint's id in it.
    fn endpoint(&self, endpoint: Endpoint) -> Called<(&Cm, u32)> {
        self.settle();
        let object = self.objects.get(endpoint.0).ok_or(libc::ENOENT)?;
        Ok((self.cm()?, object.id))
    }

    /// Ids of the user are the places in the table, and one more, so that none is 0.
    fn uid(index: usize) -> u64 {
        index as u64 + 1
    }

    fn create(&mut self, space: Space) -> Called<Endpoint> {
        self.settle();
        let index = self.objects.len();
        let id = self.cm()?.create(Self::uid(index), space)?;
        if self.under == Under::Rust {
            for tunable in Tunable::ALL {
                self.cm()?.tune(id, tunable, self.tuning.get(tunable))?;
            }
        }
        self.objects.push(Object { id, space });
        Ok(Endpoint(index))
    }

    /// Lets what was sent have its effect.
    fn settle(&self) {
        let now = self.net.now();
        if now < self.settled {
            thread::sleep(std::time::Duration::from_micros(self.settled - now));
        }
    }

    fn read_wire(&mut self) -> Option<Sent> {
        let mut record = [0; net::RECORD_LEN];
        if self.wire.recv(&mut record).ok()? != record.len() {
            return None;
        }
        let (at, rest) = record.split_first_chunk()?;
        let (who, mad) = rest.split_first()?;
        Some(Sent {
            at: u64::from_ne_bytes(*at),
            to: if *who == 0 { Who::Peer } else { Who::Stranger },
            mad: Mad(mad.try_into().ok()?),
        })
    }

    fn read_event(&mut self) -> Option<Event> {
        let raw = self.cm().ok()?.event().ok()??;
        let at = self.net.now();
        let endpoint = Endpoint(usize::try_from(raw.uid()).ok()?.checked_sub(1)?);
        let space = self.objects.get(endpoint.0)?.space;
        let child = (raw.kind() == CONNECT_REQUEST).then(|| {
            self.objects.push(Object {
                id: raw.id(),
                space,
            });
            Endpoint(self.objects.len() - 1)
        });
        let (private, numbers) = match space {
            Space::Tcp => (raw.private(), raw.numbers()),
            Space::Udp => (raw.datagram_private(), [0; 6]),
        };
        let [srq, responder, initiator, flow, retry, rnr] = numbers;
        let (vendor, attr_mod) = raw.ece();
        Some(Event {
            at,
            endpoint,
            child,
            kind: raw.kind(),
            status: raw.status(),
            param: ConnParam {
                private: private.to_vec(),
                responder,
                initiator,
                flow,
                retry,
                rnr,
                srq,
                qpn: raw.qpn(),
                vendor,
                attr_mod,
            },
        })
    }

    /// Waits for an event of an endpoint; others are kept.
    fn await_event(&mut self, endpoint: Endpoint, kind: u32) -> Called {
        let until = self.net.now() + 5_000_000 * slowness();
        while self.net.now() < until {
            match self.read_event() {
                Some(event) if event.endpoint == endpoint => {
                    return match event.kind == kind {
                        true => Ok(()),
                        false => Err(libc::EHOSTUNREACH),
                    };
                }
                Some(event) => self.events.push_back(event),
                None => net::poll([self.cm()?.fd(), -1], 100),
            }
        }
        Err(libc::ETIMEDOUT)
    }
}

impl User for Guest {
    fn listen(&mut self, service: Service, backlog: u32, afonly: bool) -> Called<Endpoint> {
        let endpoint = self.create(service.space)?;
        let (cm, id) = self.endpoint(endpoint)?;
        if afonly {
            cm.afonly(id)?;
        }
        cm.bind(id, service.address, service.port)?;
        cm.listen(id, backlog)?;
        Ok(endpoint)
    }

    fn connect(&mut self, service: Service, param: &ConnParam) -> Called<Endpoint> {
        let endpoint = self.create(service.space)?;
        let (cm, id) = self.endpoint(endpoint)?;
        cm.resolve_addr(id, service.address, service.port)?;
        self.await_event(endpoint, ADDR_RESOLVED)?;
        self.cm()?.resolve_route(id)?;
        self.await_event(endpoint, ROUTE_RESOLVED)?;
        self.cm()?.connect(id, param)?;
        Ok(endpoint)
    }

    fn accept(&mut self, endpoint: Endpoint, param: &ConnParam) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.accept(id, Self::uid(endpoint.0), Some(param))
    }

    fn establish(&mut self, endpoint: Endpoint) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.accept(id, 0, None)
    }

    fn reject(&mut self, endpoint: Endpoint, reason: u8, private: &[u8]) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.reject(id, reason, private)
    }

    fn disconnect(&mut self, endpoint: Endpoint) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.disconnect(id)
    }

    fn notify(&mut self, endpoint: Endpoint) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.notify(id)
    }

    /// There are no LIDs over RoCE.
    fn load(&mut self, _: Endpoint, _: u16) -> Called {
        Err(libc::EINVAL)
    }

    fn qp_attr(&mut self, endpoint: Endpoint, state: u32) -> Called<QpAttr> {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.qp_attr(id, state)
    }

    fn destroy(&mut self, endpoint: Endpoint) -> Called {
        let (cm, id) = self.endpoint(endpoint)?;
        cm.destroy(id)
    }

    fn close(&mut self) -> Called {
        self.settle();
        self.cm = None;
        Ok(())
    }
}

impl World for Guest {
    fn under(&self) -> Under {
        self.under
    }

    fn names(&self) -> Names {
        self.names
    }

    fn now(&self) -> Micros {
        self.net.now()
    }

    fn retry_timeout(&self) -> Micros {
        3_000_000 * slowness()
    }

    fn slack(&self) -> Micros {
        60_000 * slowness()
    }

    fn send(&mut self, from: Who, bytes: &[u8]) -> Result<(), String> {
        self.settle();
        let src = match from {
            Who::Peer => self.names.peer,
            Who::Stranger => self.names.stranger,
        };
        let sent = self.net.send(src, self.names.local, bytes);
        sent.map_err(|error| error.to_string())?;
        self.settled = self.net.now() + SETTLE * slowness();
        Ok(())
    }

    fn tune(&mut self, tuning: &Tuning) {
        self.tuning = *tuning;
    }

    fn use_infiniband(&mut self, _: bool) {}

    fn next(&mut self, watch: Watch, until: Micros) -> Option<Input> {
        loop {
            let input = match watch.wire.then(|| self.read_wire()).flatten() {
                Some(sent) => Some(Input::Mad(Box::new(sent))),
                None if watch.events => {
                    let event = self.events.pop_front().or_else(|| self.read_event());
                    event.map(|event| Input::Event(Box::new(event)))
                }
                None => None,
            };
            if input.is_some() {
                self.settled = 0;
                return input;
            }
            let left = until.checked_sub(self.net.now()).filter(|left| *left > 0)?;
            let wire = if watch.wire {
                self.wire.as_raw_fd()
            } else {
                -1
            };
            let events = match &self.cm {
                Some(cm) if watch.events => cm.fd(),
                _ => -1,
            };
            let ms = i32::try_from(left.div_ceil(1000)).unwrap_or(i32::MAX);
            net::poll([wire, events], ms);
        }
    }
}

/// Plays all scenarios, many at a time, and shows each one when it ends.
pub fn run(
    scenarios: Vec<Scenario>,
    show: &mut dyn FnMut(usize, &str, &Outcome),
) -> io::Result<()> {
    let under = match Path::new("/sys/module/rust_rdma_cm").exists() {
        true => Under::Rust,
        false => Under::C,
    };
    let is_ipv6 = |scenario: &Scenario| scenario.script.as_ref().is_ok_and(|script| script.is_ipv6);
    let all: Vec<_> = scenarios
        .iter()
        .enumerate()
        .map(|(number, scenario)| names(number, is_ipv6(scenario)))
        .collect();
    let _neighbours = Neighbours::add(&all)?;
    let net = Net::open()?;
    // The slow ones first, so that the others run meanwhile.
    let mut order: Vec<_> = scenarios.into_iter().enumerate().collect();
    let is_slow = |scenario: &Scenario| scenario.script.as_ref().is_ok_and(|script| script.is_slow);
    order.sort_by_key(|(_, scenario)| !is_slow(scenario));
    let count = order.len();
    let queue = Mutex::new(VecDeque::from(order));
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        let at_once = if slowness() > 1 { AT_ONCE / 4 } else { AT_ONCE };
        for _ in 0..at_once.min(count) {
            let (done, queue, net) = (done.clone(), &queue, &net);
            scope.spawn(move || loop {
                let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
                let Some((number, scenario)) = next else {
                    return;
                };
                let outcome = scenario.play(under, |script| {
                    Guest::new(under, names(number, script.is_ipv6), net.clone())
                });
                let _ = done.send((scenario.name, outcome));
            });
        }
        drop(done);
        for (number, (name, outcome)) in results.iter().enumerate() {
            show(number + 1, &name, &outcome);
        }
    });
    Ok(())
}
