// SPDX-License-Identifier: GPL-2.0

//! Another alternate path for an established connection: LAP and APR (IBTA 12.8).
//!
//! A LAP is answered at once: the alternate path is that of the caller, who gives it to the queue
//! pair when that asks for its attributes. Either end may send one. If both do at a time, the
//! passive end answers that of the active one, which takes that of the passive end only when its
//! own is answered. So both end with the same path, which is that of the passive end.
//!
//! All that is needed lies in the memory of the message that may be sent again, which a connection
//! does not have without need.

use super::{
    action::{Action, Actions, Counter, Event, Outgoing},
    alternate::{Alternate, Unusable},
    connection::Connection,
    receive::{duplicate, repeat, unexpected},
    retransmit::{Expiry, Retransmit},
    retransmit_buffer::{RetransmitMemory, Sent},
    state::State,
};
use crate::{
    errno::Errno,
    path::Path,
    qp::low24,
    time::{Duration, Instant, TimeCode},
    wire::{Apr, Attribute, Header, Lap, Message, Mra, ReqPath, INFO_LEN},
};

/// The status of an APR of this end (IBTA 12.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AprStatus {
    /// The path was loaded.
    Loaded = 0,
    /// The device cannot migrate.
    NotSupported = 2,
    /// The path is not used, for another reason than those that have a status.
    Rejected = 3,
    /// The path is the one that the connection uses.
    IsCurrent = 5,
    /// The queue pair is not that of the connection.
    WrongQpn = 6,
    /// The LID of the sender is not that of a port.
    WrongLid = 7,
    /// No port of the device has the GID at which the path ends here.
    UnknownGid = 8,
}

impl From<Unusable> for AprStatus {
    fn from(why: Unusable) -> Self {
        match why {
            Unusable::NotSupported => Self::NotSupported,
            Unusable::NoResources | Unusable::NoPartition => Self::Rejected,
            Unusable::UnknownGid => Self::UnknownGid,
            Unusable::WrongLid => Self::WrongLid,
        }
    }
}

impl Path {
    /// Checks a new alternate path of a connection along this path.
    ///
    /// # Errors
    ///
    /// [`AprStatus::IsCurrent`] if the packets of both go the same way.
    pub fn check_new_alternate(&self, alternate: &Self) -> Result<(), AprStatus> {
        let way = |path: &Self| {
            let ends = (path.slid, path.dlid, path.sgid, path.dgid, path.sl);
            let header = (path.flow_label, path.traffic_class);
            (ends, path.has_grh().then_some(header))
        };
        match way(self) == way(alternate) {
            true => Err(AprStatus::IsCurrent),
            false => Ok(()),
        }
    }
}

/// Parameters of a LAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LapParams {
    /// Packet life time of the path, a time code.
    pub packet_life_time: u8,
    /// Ack delay of the own channel adapter, a time code.
    pub ca_ack_delay: u8,
    /// Response timeout of the peer's communication manager, a time code.
    pub remote_cm_response_timeout: u8,
}

/// A LAP that waits for its APR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentLap {
    request: Retransmit,
    params: LapParams,
}

/// The LAPs of a connection.
///
/// Only the last one of the peer is known. A copy of an earlier one would be taken for a new one,
/// but none arrives: a network of InfiniBand keeps the order of the packets of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Laps {
    /// The LAP of this end that waits for its APR.
    waiting: Option<SentLap>,
    /// The number of LAPs of this end, each of which has a transaction id of its own.
    count: u32,
    /// The transaction id of the last LAP of the peer that was answered, and the status of the APR.
    answered: Option<(u64, AprStatus)>,
}

impl Laps {
    const NONE: Self = Self {
        waiting: None,
        count: 0,
        answered: None,
    };
}

/// The result of a received LAP.
#[derive(Debug)]
pub struct Received {
    /// The actions to carry out.
    pub actions: Actions,
    /// Set if the path in the LAP is the alternate path of the connection from now on.
    pub is_loaded: bool,
}

impl From<Actions> for Received {
    fn from(actions: Actions) -> Self {
        Self {
            actions,
            is_loaded: false,
        }
    }
}

impl<B: RetransmitMemory> Connection<B> {
    fn laps(&self) -> Option<&Laps> {
        match &self.buffer.as_deref()?.sent {
            Sent::Laps(laps) => Some(laps),
            _ => None,
        }
    }

    fn laps_mut(&mut self) -> Option<&mut Laps> {
        match &mut self.buffer.as_deref_mut()?.sent {
            Sent::Laps(laps) => Some(laps),
            _ => None,
        }
    }

    /// Takes memory for the LAPs of the connection, which is established, if there is none.
    fn prepare_laps(&mut self) -> Result<&mut Laps, Errno> {
        if self.laps().is_none() {
            let buffer = match &mut self.buffer {
                Some(buffer) => buffer,
                None => self.buffer.insert(B::new()?),
            };
            buffer.sent = Sent::Laps(Laps::NONE);
        }
        self.laps_mut().ok_or(Errno::ENOMEM)
    }

    /// Returns whether a LAP of this end waits for its APR.
    pub fn has_lap(&self) -> bool {
        let laps = self.laps().filter(|_| self.state == State::Established);
        laps.is_some_and(|laps| laps.waiting.is_some())
    }

    fn lap_tid(&self, laps: &Laps) -> u64 {
        self.own_tid.wrapping_add(laps.count.into())
    }

    /// Asks the peer by a LAP to use another alternate path, which the caller keeps.
    /// [`Action::EndLap`] tells the result.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection is not established, `EBUSY` if another LAP waits for its answer,
    /// and `ENOMEM` if there is no memory.
    pub fn load_alternate(&mut self, params: LapParams, now: Instant) -> Result<Actions, Errno> {
        if self.state != State::Established {
            return Err(Errno::EINVAL);
        }
        if self.has_lap() {
            return Err(Errno::EBUSY);
        }
        let request = self
            .classic_request(now)
            .with_policy(self.policy.unpacked(), self.local_comm_id);
        let laps = self.prepare_laps()?;
        laps.waiting = Some(SentLap { request, params });
        laps.count = laps.count.wrapping_add(1);
        let mut actions = Actions::none();
        actions.push(Action::Send(Outgoing::Lap));
        self.set_lap_timer(request.deadline(), &mut actions);
        Ok(actions)
    }

    /// Ends the exchange that a LAP of this end has begun.
    fn end_lap(&mut self, is_loaded: bool, actions: &mut Actions) {
        if let Some(laps) = self.laps_mut() {
            laps.waiting = None;
        }
        self.set_lap_timer(Instant::MAX, actions);
        actions.push(Action::EndLap { is_loaded });
    }

    /// Makes a path with this local ack timeout the alternate path.
    fn use_alternate(&mut self, timeout: TimeCode) {
        self.alternate = Alternate::Usable(timeout);
        self.is_path_changed = true;
    }

    /// Sends the LAP again, or gives it up.
    pub(super) fn lap_timeout(&mut self, now: Instant) -> Actions {
        let (schedule, policy) = (self.schedule.unpacked(), self.policy.unpacked());
        let mut actions = Actions::none();
        let Some(Laps {
            waiting: Some(lap), ..
        }) = self.laps_mut()
        else {
            return actions;
        };
        let expiry = lap.request.expire(schedule, policy, now);
        let next = lap.request.deadline();
        match expiry {
            Expiry::Early | Expiry::Later => self.set_lap_timer(next, &mut actions),
            Expiry::Resend => {
                actions.push(Action::Send(Outgoing::Lap));
                actions.push(Action::Count(Counter::Retry(Attribute::Lap)));
                self.set_lap_timer(next, &mut actions);
            }
            Expiry::GiveUp => self.end_lap(false, &mut actions),
        }
        actions
    }

    /// Waits for as long as the peer needs for its APR. The user is told nothing.
    pub(super) fn receive_mra_of_lap(&mut self, mra: &Mra<'_>, now: Instant) -> Actions {
        let wait = self.mra_wait(mra);
        let schedule = self.schedule.unpacked();
        let Some(Laps {
            waiting: Some(lap), ..
        }) = self.laps_mut()
        else {
            return unexpected(Attribute::Mra);
        };
        if !lap.request.extend(schedule, wait, now) {
            return duplicate(Attribute::Mra);
        }
        let next = lap.request.deadline();
        let mut actions = Actions::none();
        self.set_lap_timer(next, &mut actions);
        actions
    }

    pub(super) fn receive_apr(&mut self, hdr: &Header, apr: &Apr<'_>) -> Actions {
        let laps = self.laps().filter(|_| self.state == State::Established);
        let Some(laps) = laps.filter(|laps| laps.count > 0 && self.lap_tid(laps) == hdr.tid) else {
            return unexpected(Attribute::Apr);
        };
        let Some(lap) = &laps.waiting else {
            return duplicate(Attribute::Apr);
        };
        let mut actions = Actions::none();
        let is_loaded = apr.status == AprStatus::Loaded as u8;
        if is_loaded {
            // The ack delay of the peer is a part of the other path's timeout.
            let round_trip = lap.params.packet_life_time.saturating_add(1);
            self.use_alternate(TimeCode::new(round_trip).max(self.ack_timeout));
        }
        self.end_lap(is_loaded, &mut actions);
        actions
    }

    /// Returns whether `lap` is to be answered for the first time.
    ///
    /// If so, the caller checks its path before it calls [`receive_lap`](Self::receive_lap).
    pub fn wants_lap(&self, hdr: &Header, lap: &Lap<'_>) -> bool {
        self.state == State::Established
            && self.is_for(&Message::Lap(*lap))
            && low24(lap.remote_qpn_eecn) == self.local_qpn
            && !self.has_answered(hdr)
            && !self.must_wait()
    }

    fn has_answered(&self, lap: &Header) -> bool {
        let answered = self.laps().and_then(|laps| laps.answered);
        answered.is_some_and(|(tid, _)| tid == lap.tid)
    }

    /// Returns whether the peer has to ask again when the LAP of this end is answered.
    fn must_wait(&self) -> bool {
        self.is_active && self.has_lap()
    }

    /// Receives a LAP over InfiniBand. `path` is the result of the caller's checks of its path,
    /// which counts only if the LAP was [wanted](Self::wants_lap) just now.
    pub fn receive_lap(
        &mut self,
        hdr: &Header,
        lap: &Lap<'_>,
        path: Result<(), AprStatus>,
    ) -> Received {
        if !self.is_for(&Message::Lap(*lap)) {
            return Actions::count(Counter::Mismatch(Attribute::Lap)).into();
        }
        if self.state != State::Established || self.must_wait() {
            return unexpected(Attribute::Lap).into();
        }
        if self.has_answered(hdr) {
            return repeat(Attribute::Lap, Outgoing::Apr).into();
        }
        let status = match path {
            _ if low24(lap.remote_qpn_eecn) != self.local_qpn => AprStatus::WrongQpn,
            Ok(()) => AprStatus::Loaded,
            Err(status) => status,
        };
        let is_loaded = status == AprStatus::Loaded;
        let mut actions = Actions::none();
        let Ok(laps) = self.prepare_laps() else {
            // The peer asks again.
            return actions.into();
        };
        laps.answered = Some((hdr.tid, status));
        actions.push(Action::Send(Outgoing::Apr));
        if is_loaded {
            if laps.waiting.is_some() {
                // The peer may have loaded the path of this end before it asked for its own, and an
                // answer may be on its way: another LAP decides.
                laps.count = laps.count.wrapping_add(1);
                actions.push(Action::Send(Outgoing::Lap));
            }
            self.use_alternate(TimeCode::new(lap.alternate_local_ack_timeout.max(1)));
            self.deliver(Event::LapReceived, &mut actions);
        }
        Received { actions, is_loaded }
    }

    /// Returns the LAP that waits for its APR, for the path `alternate`, and its transaction id.
    pub(super) fn lap(&self, laps: &Laps, alternate: &Path) -> Option<(u64, Lap<'static>)> {
        let SentLap { params, .. } = laps.waiting.as_ref()?;
        let timeout = TimeCode::ack_timeout(params.ca_ack_delay, params.packet_life_time);
        let path: ReqPath = alternate.to_req();
        let lap = Lap {
            local_comm_id: self.local_comm_id,
            remote_comm_id: self.remote_comm_id(),
            remote_qpn_eecn: self.remote_qpn,
            remote_cm_response_timeout: params.remote_cm_response_timeout.min(31),
            alternate_local_lid: path.local_lid,
            alternate_remote_lid: path.remote_lid,
            alternate_local_gid: path.local_gid,
            alternate_remote_gid: path.remote_gid,
            alternate_flow_label: path.flow_label & 0x000f_ffff,
            alternate_traffic_class: path.traffic_class,
            alternate_hop_limit: path.hop_limit,
            alternate_packet_rate: path.packet_rate & 0x3f,
            alternate_sl: path.sl & 0xf,
            alternate_subnet_local: path.subnet_local,
            alternate_local_ack_timeout: timeout.get(),
            private_data: &[],
        };
        Some((self.lap_tid(laps), lap))
    }

    /// Returns the last APR of this end, and its transaction id.
    pub(super) fn apr(&self, laps: &Laps) -> Option<(u64, Apr<'static>)> {
        let (tid, status) = laps.answered?;
        let apr = Apr {
            local_comm_id: self.local_comm_id,
            remote_comm_id: self.remote_comm_id(),
            info_len: 0,
            status: status as u8,
            info: &[0; INFO_LEN],
            private_data: &[],
        };
        Some((tid, apr))
    }

    /// Returns the time that the peer asks for by an MRA, within the limits.
    pub(super) fn mra_wait(&self, mra: &Mra<'_>) -> Duration {
        let service = TimeCode::new(mra.service_timeout).to_duration();
        self.limits
            .after_mra(service + self.ack_timeout.to_duration())
    }
}
