// SPDX-License-Identifier: GPL-2.0

//! The observed part of a connection.

use crate::{exchange::Seen, packet::Address};
use cm_script::wire::MAD_LEN;
use cmproto::{
    cm::EARLY_SENDS,
    wire::{Req, Transport},
};
use std::{
    collections::HashMap,
    ops::{Index, IndexMut},
};

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end that sent the REQ.
    Active,
    /// The end that got the REQ.
    Passive,
}

impl End {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Active => Self::Passive,
            Self::Passive => Self::Active,
        }
    }
}

/// A pair of values, one for each end.
#[derive(Clone, Debug, Default)]
pub struct Each<T>(pub [T; 2]);

impl<T> Index<End> for Each<T> {
    type Output = T;

    fn index(&self, end: End) -> &T {
        &self.0[end as usize]
    }
}

impl<T> IndexMut<End> for Each<T> {
    fn index_mut(&mut self, end: End) -> &mut T {
        &mut self.0[end as usize]
    }
}

/// A message and its repetitions.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The first of them.
    pub mad: [u8; MAD_LEN],
    /// The transaction id.
    pub tid: u64,
    /// When each was captured, in microseconds; never empty.
    pub times: Vec<u64>,
    /// The sequence number of the packet with each.
    psns: Vec<u32>,
    /// Packets that the network delivered more than once.
    pub copies: usize,
    /// The number of early sends, before the first interval was over.
    pub early: usize,
    /// The last time that one was not sent early, in microseconds.
    pub classic: u64,
    /// The value of `classic` before, if the one after it came so near to its time that it may
    /// have been an early one instead.
    doubted: Option<u64>,
    /// The time of the last MRA after which early sends go on, in microseconds.
    pub resumed: Option<u64>,
}

impl Sent {
    /// Captured for the first time.
    pub fn new(seen: &Seen<'_>) -> Self {
        Self {
            mad: *seen.mad,
            tid: seen.header.tid,
            times: vec![seen.time],
            psns: vec![seen.psn],
            copies: 0,
            early: 0,
            classic: seen.time,
            doubted: None,
            resumed: None,
        }
    }

    /// Sent again. False if it is the network that has made a copy of a packet.
    pub fn again(&mut self, seen: &Seen<'_>) -> bool {
        if self.psns.contains(&seen.psn) {
            self.copies += 1;
            return false;
        }
        self.times.push(seen.time);
        self.psns.push(seen.psn);
        true
    }

    /// Returns the number of sends in the classic schedule.
    pub fn sends(&self) -> usize {
        self.times.len() - self.early
    }

    /// Judges the last repetition, where `wait` is the least time between two sends but for those
    /// that come early; times in microseconds. Returns whether it came in time.
    pub fn classify(&mut self, wait: u64, slack: u64) -> bool {
        let now = self.last();
        let since = now.saturating_sub(self.classic);
        if since + slack >= wait {
            self.doubted = (since < wait).then_some(self.classic);
            self.classic = now;
            return true;
        }
        self.early += 1;
        // An early one may come shortly before the one that does not.
        let began = self.doubted.unwrap_or(self.classic);
        let mut is_in_time = true;
        if self.doubted.is_some() {
            let since = now.saturating_sub(began);
            is_in_time = since <= wait + slack;
            self.classic = now;
            // There may be more than one.
            self.doubted = self.doubted.filter(|_| since < wait);
        }
        let is_first_interval = began == self.times[0] && is_in_time;
        let is_resumed = self.resumed.is_some_and(|mra| mra >= began);
        (is_first_interval || is_resumed) && self.early <= usize::from(EARLY_SENDS)
    }

    /// Returns the number of copies that reached the network's end.
    pub fn arrived(&self) -> usize {
        self.times.len() + self.copies
    }

    /// The last time that it was captured, in microseconds.
    pub fn last(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }
}

/// An MRA.
#[derive(Clone, Copy, Debug)]
pub struct Mra {
    /// When it was captured, in microseconds.
    pub time: u64,
    /// The time that it asks to wait for, as a time code.
    pub timeout: u8,
}

/// The ids of an end.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The address.
    pub addr: Address,
    /// The communication id, when it was seen.
    pub comm: Option<u32>,
    /// The queue pair, 0 if it is not known.
    pub qpn: u32,
    /// The GUID of its channel adapter, 0 if it is not known.
    pub guid: u64,
}

/// The times and numbers in a REQ.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Most repetitions of a message.
    pub retries: usize,
    /// The time that the passive end may take, as a time code.
    pub passive_timeout: u8,
    /// The time that the active end may take, as a time code.
    pub active_timeout: u8,
    /// The time wait, as a time code.
    pub ack_timeout: u8,
    /// Queue pairs of extended reliable connection are named otherwise.
    pub xrc: bool,
}

impl Terms {
    fn of(req: &Req<'_>) -> Self {
        Self {
            retries: usize::from(req.max_cm_retries),
            passive_timeout: req.remote_cm_response_timeout,
            active_timeout: req.local_cm_response_timeout,
            ack_timeout: req.primary.local_ack_timeout,
            xrc: req.transport == Transport::Xrc,
        }
    }
}

/// The observed part of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The ids of each end.
    pub names: Each<Name>,
    /// The agreed parameters.
    pub terms: Terms,
    /// The REQ.
    pub req: Sent,
    /// MRAs that answer the REQ.
    pub mra_req: Vec<Mra>,
    /// MRAs that answer the REP.
    pub mra_rep: Vec<Mra>,
    /// The REP.
    pub rep: Option<Sent>,
    /// The RTU.
    pub rtu: Option<Sent>,
    /// The first REJ of each end.
    pub rej: Each<Option<Sent>>,
    /// The DREQ of each end.
    pub dreq: Each<Option<Sent>>,
    /// The question of each end whether the other still has the connection: a DREQ with another
    /// QPN.
    pub question: Each<Option<Sent>>,
    /// The DREP of each end.
    pub drep: Each<Option<Sent>>,
    /// The last LAP of each end.
    pub lap: Each<Option<Sent>>,
    /// The last APR of each end.
    pub apr: Each<Option<Sent>>,
    /// When a REQ took the QPN of this connection for another one.
    pub stale_claim: Option<u64>,
    /// This connection's REQ took the QPN of another one that was alive.
    pub is_stale: bool,
    /// When something was last heard of the connection, in microseconds.
    pub last: u64,
    /// Data went to the queue pair of an end.
    pub data: Each<bool>,
}

impl Connection {
    /// Returns the connection that a REQ begins.
    pub fn new(req: &Req<'_>, sent: Sent, src: Address, dst: Address) -> Self {
        let active = Name {
            addr: src,
            comm: Some(req.local_comm_id),
            qpn: req.local_qpn,
            guid: req.local_ca_guid,
        };
        let passive = Name {
            addr: dst,
            comm: None,
            qpn: 0,
            guid: 0,
        };
        Self {
            names: Each([active, passive]),
            terms: Terms::of(req),
            last: sent.last(),
            req: sent,
            mra_req: Vec::new(),
            mra_rep: Vec::new(),
            rep: None,
            rtu: None,
            rej: Each::default(),
            dreq: Each::default(),
            question: Each::default(),
            drep: Each::default(),
            lap: Each::default(),
            apr: Each::default(),
            stale_claim: None,
            is_stale: false,
            data: Each::default(),
        }
    }

    /// When the first REJ or DREP was seen that ended it, in microseconds.
    pub fn closed(&self) -> Option<u64> {
        let ends = self.rej.0.iter().chain(&self.drep.0).flatten();
        ends.filter_map(|sent| sent.times.first().copied()).min()
    }

    /// Both ends think that they are connected, and neither said otherwise.
    pub fn is_alive(&self) -> bool {
        self.rep.is_some() && self.closed().is_none() && self.dreq.0.iter().all(Option::is_none)
    }
}

/// The connections of a capture, by communication id.
#[derive(Debug, Default)]
pub struct Table {
    all: Vec<Connection>,
    /// By address and communication id of an end; the last one is the newest.
    ids: HashMap<(Address, u32), Vec<(usize, End)>>,
    /// By address and queue pair of an end.
    qpns: HashMap<(Address, u32), Vec<(usize, End)>>,
}

impl Table {
    /// All of them, in the order of their REQs.
    pub fn all(&self) -> &[Connection] {
        &self.all
    }

    /// A connection.
    pub fn get(&mut self, at: usize) -> &mut Connection {
        &mut self.all[at]
    }

    /// Adds one; returns its place.
    pub fn add(&mut self, connection: Connection) -> usize {
        let at = self.all.len();
        let Name {
            addr, comm, qpn, ..
        } = connection.names[End::Active];
        self.all.push(connection);
        self.ids
            .entry((addr, comm.unwrap_or(0)))
            .or_default()
            .push((at, End::Active));
        self.qpns
            .entry((addr, qpn))
            .or_default()
            .push((at, End::Active));
        at
    }

    /// The communication id of the passive end is known from now on.
    pub fn learn(&mut self, at: usize, comm: u32) {
        let passive = &mut self.all[at].names[End::Passive];
        if passive.comm.is_none() {
            passive.comm = Some(comm);
            let key = (passive.addr, comm);
            self.ids.entry(key).or_default().push((at, End::Passive));
        }
    }

    /// The queue pair of the passive end is known from now on.
    pub fn learn_qpn(&mut self, at: usize, qpn: u32) {
        let passive = &mut self.all[at].names[End::Passive];
        passive.qpn = qpn;
        let key = (passive.addr, qpn);
        self.qpns.entry(key).or_default().push((at, End::Passive));
    }

    /// The connections in which an address has this communication id, the newest first.
    pub fn with_id(&self, addr: Address, comm: u32) -> Vec<(usize, End)> {
        let of = self.ids.get(&(addr, comm));
        of.into_iter().flatten().rev().copied().collect()
    }

    /// The connections in which an address has this queue pair, the newest first.
    pub fn with_qpn(&self, addr: Address, qpn: u32) -> Vec<(usize, End)> {
        let of = self.qpns.get(&(addr, qpn));
        of.into_iter().flatten().rev().copied().collect()
    }

    /// Returns true if there is a connection with these ids, whatever its addresses are; 0 and an
    /// id that was not seen yet stand for any, but not both of them.
    pub fn knows(&self, local: u32, remote: u32) -> bool {
        let has = |name: &Name, id: u32| id == 0 || name.comm.is_none_or(|comm| comm == id);
        self.all.iter().any(|connection| {
            let Each([active, passive]) = &connection.names;
            has(active, remote) && remote != 0 && has(passive, local)
                || has(active, local) && local != 0 && has(passive, remote)
        })
    }
}
