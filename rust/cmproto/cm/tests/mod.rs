// SPDX-License-Identifier: GPL-2.0

//! Tests of the connection state machine.

#[cfg(test)]
mod alternate;
#[cfg(test)]
mod challenge;
mod content;
#[cfg(test)]
mod keepalive;
#[cfg(test)]
mod lap;
#[cfg(test)]
mod limits;
mod local;
mod lookup;
#[cfg(test)]
mod mra;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod properties;
mod qp_attr;
#[cfg(test)]
mod reasons;
mod received;
#[cfg(test)]
mod retransmit_buffer;
#[cfg(test)]
mod retry_policy;
#[cfg(test)]
mod schedule;
mod table;
#[cfg(test)]
mod times;

use super::*;
#[cfg(CONFIG_KUNIT)]
use crate::kunit::assert_eq;
use crate::{
    addr::Gid,
    qp::QpType,
    reject::Reason,
    time::{Duration, Instant},
    wire::{
        self, Apr, Attribute, Drep, Dreq, Header, Lap, Message, Mra, MraMessage, Rej, RejMessage,
        Rep, Req, ReqPath, Rtu, Transport, INFO_LEN, MAD_LEN,
    },
};

/// Ids of the connection under test.
pub(crate) const OWN_ID: u32 = 0x1111_1111;
pub(crate) const OWN_GUID: u64 = 0x0a0a_0a0a_0a0a_0a0a;
pub(crate) const OWN_TID: u64 = 0x0101_0101_1111_1111;
pub(crate) const OWN_QPN: u32 = 0x11;
const OWN_PSN: u32 = 0x11_1111;
/// Ids of its peer.
pub(crate) const PEER_ID: u32 = 0x2222_2222;
pub(crate) const PEER_GUID: u64 = 0x0b0b_0b0b_0b0b_0b0b;
pub(crate) const PEER_TID: u64 = 0x0202_0202_2222_2222;
pub(crate) const PEER_QPN: u32 = 0x22;
const PEER_PSN: u32 = 0x22_2222;

const SERVICE: u64 = 0x0106_1234;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1_000)
}

#[cfg(test)]
fn millis(instant: Instant) -> u64 {
    instant.as_micros() / 1_000
}

/// Returns the parameters of a connection over RoCE with an rxe device, as the kernel sets them.
pub(crate) fn connect_params() -> ConnectParams {
    ConnectParams {
        service_id: SERVICE,
        local_qpn: OWN_QPN,
        local_qkey: 0,
        srq: false,
        transport: Transport::Rc,
        starting_psn: OWN_PSN,
        responder_resources: 3,
        initiator_depth: 4,
        flow_control: true,
        retry_count: 6,
        rnr_retry_count: 5,
        pkey: 0xffff,
        path_mtu: 3,
        primary: ReqPath {
            local_lid: 0xffff,
            remote_lid: 0xffff,
            local_gid: Gid([1; 16]),
            remote_gid: Gid([2; 16]),
            flow_label: 0x12345,
            packet_rate: 2,
            traffic_class: 8,
            hop_limit: 64,
            sl: 1,
            subnet_local: false,
            local_ack_timeout: 0,
        },
        packet_life_time: 16,
        ca_ack_delay: 15,
        remote_cm_response_timeout: ConnectParams::RESPONSE_TIMEOUT,
        local_cm_response_timeout: ConnectParams::RESPONSE_TIMEOUT,
        max_cm_retries: ConnectParams::MAX_RETRIES,
        vendor_id: 0,
        attr_mod: 0,
    }
}

fn accept_params() -> AcceptParams {
    AcceptParams {
        local_qpn: OWN_QPN,
        starting_psn: OWN_PSN,
        responder_resources: 7,
        initiator_depth: 8,
        target_ack_delay: 15,
        flow_control: true,
        rnr_retry_count: 2,
        ..AcceptParams::default()
    }
}

/// Returns a REQ of the peer.
pub(crate) fn peer_req() -> Req<'static> {
    let path = ReqPath {
        local_gid: Gid([2; 16]),
        remote_gid: Gid([1; 16]),
        local_ack_timeout: 17,
        ..connect_params().primary
    };
    Req {
        local_comm_id: PEER_ID,
        vendor_id: 0,
        service_id: SERVICE,
        local_ca_guid: PEER_GUID,
        local_qkey: 0,
        local_qpn: PEER_QPN,
        responder_resources: 13,
        local_eecn: 0,
        initiator_depth: 14,
        remote_eecn: 0,
        remote_cm_response_timeout: 20,
        transport: Transport::Rc,
        flow_control: true,
        starting_psn: PEER_PSN,
        local_cm_response_timeout: 20,
        retry_count: 4,
        pkey: 0xffff,
        path_mtu: 4,
        rdc_exists: false,
        rnr_retry_count: 3,
        max_cm_retries: 15,
        srq: false,
        primary: path,
        alternate: ReqPath::default(),
        sap: false,
        private_data: &[],
    }
}

/// Returns a REP of the peer.
pub(crate) fn peer_rep() -> Rep<'static> {
    Rep {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        local_qkey: 0,
        local_qpn: PEER_QPN,
        local_eecn: 0x33,
        vendor_id: 0,
        starting_psn: PEER_PSN,
        responder_resources: 23,
        initiator_depth: 24,
        target_ack_delay: 15,
        failover_accepted: 0,
        flow_control: true,
        rnr_retry_count: 1,
        srq: false,
        local_ca_guid: PEER_GUID,
        private_data: &[],
    }
}

pub(crate) fn peer_rtu() -> Rtu<'static> {
    Rtu {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        private_data: &[],
    }
}

pub(crate) fn peer_dreq() -> Dreq<'static> {
    Dreq {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        remote_qpn_eecn: OWN_QPN,
        private_data: &[],
    }
}

pub(crate) fn peer_drep() -> Drep<'static> {
    Drep {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        private_data: &[],
    }
}

pub(crate) fn peer_mra(message: MraMessage, service_timeout: u8) -> Mra<'static> {
    Mra {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        message,
        service_timeout,
        private_data: &[],
    }
}

/// Returns a LAP of the peer.
pub(crate) fn peer_lap() -> Lap<'static> {
    Lap {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        remote_qpn_eecn: OWN_QPN,
        remote_cm_response_timeout: 20,
        alternate_local_lid: 0x42,
        alternate_remote_lid: 0x31,
        alternate_local_gid: Gid([4; 16]),
        alternate_remote_gid: Gid([3; 16]),
        alternate_flow_label: 0x12345,
        alternate_traffic_class: 9,
        alternate_hop_limit: 1,
        alternate_packet_rate: 3,
        alternate_sl: 2,
        alternate_subnet_local: true,
        alternate_local_ack_timeout: 19,
        private_data: &[],
    }
}

/// Returns the parameters of a LAP of this end.
pub(crate) fn lap_params() -> LapParams {
    LapParams {
        packet_life_time: 18,
        ca_ack_delay: 15,
        remote_cm_response_timeout: ConnectParams::RESPONSE_TIMEOUT,
    }
}

/// Returns an APR of the peer.
pub(crate) fn peer_apr(status: u8) -> Apr<'static> {
    Apr {
        local_comm_id: PEER_ID,
        remote_comm_id: OWN_ID,
        info_len: 0,
        status,
        info: &[0; INFO_LEN],
        private_data: &[],
    }
}

/// Returns a REJ of the peer, as it fits the state of the connection.
pub(crate) fn peer_rej(connection: &Connection, reason: Reason) -> Rej<'static> {
    const GUID: [u8; INFO_LEN] = {
        let mut ari = [0; INFO_LEN];
        let mut i = 0;
        while i < 8 {
            ari[i] = 0x0b;
            i += 1;
        }
        ari
    };
    let timeout = reason == Reason::TIMEOUT;
    Rej {
        local_comm_id: PEER_ID,
        remote_comm_id: if timeout { 0 } else { OWN_ID },
        message: if timeout || connection.remote_comm_id() != 0 {
            RejMessage::Other
        } else {
            RejMessage::Req
        },
        ari_len: if timeout { 8 } else { 0 },
        reason: reason.0,
        ari: if timeout { &GUID } else { &[0; INFO_LEN] },
        private_data: &[],
    }
}

/// Returns the header of a message of the peer, which has a transaction id of its own.
pub(crate) fn header(msg: &Message<'_>) -> Header {
    Header::new(msg.attribute(), PEER_TID)
}

fn receive(connection: &mut Connection, msg: Message<'_>, now: Instant) -> Actions {
    connection.receive(&header(&msg), &msg, now)
}

fn active() -> Connection {
    Connection::new(OWN_ID, OWN_GUID, OWN_TID)
}

fn passive_with(req: &Req<'_>, limits: &Limits) -> Connection {
    let hdr = Header::new(Attribute::Req, PEER_TID);
    Connection::from_req(OWN_ID, OWN_GUID, OWN_TID, &hdr, req, limits).unwrap()
}

pub(crate) fn passive() -> Connection {
    passive_with(&peer_req(), &Limits::DEFAULT)
}

/// Returns the message of an action, as on the wire.
fn encoded(connection: &Connection, message: Outgoing) -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    connection.encode(message, &mut mad).unwrap();
    let (hdr, _) = wire::decode(&mad).unwrap();
    assert_eq!(hdr.attr_id, message.attribute());
    mad
}

/// Returns whether a message is to be sent, if only to a peer that has confirmed a request.
fn is_sent(actions: &Actions, message: Outgoing) -> bool {
    actions.contains(Action::Send(message)) || actions.contains(Action::SendUnasked(message))
}

/// A situation of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    Fresh,
    ReqSent,
    MraReqRcvd,
    RepRcvd,
    MraRepSent,
    EstablishedActive,
    ReqRcvd,
    MraReqSent,
    RepSent,
    MraRepRcvd,
    EstablishedPassive,
    DreqSent,
    DreqRcvd,
    Timewait,
    /// Destroyed, and in time wait.
    Detached,
    Closed,
    /// States that a connection never has.
    Listen,
    SidrReqSent,
    SidrReqRcvd,
}

impl Situation {
    pub(crate) const ALL: [Self; 19] = [
        Self::Fresh,
        Self::ReqSent,
        Self::MraReqRcvd,
        Self::RepRcvd,
        Self::MraRepSent,
        Self::EstablishedActive,
        Self::ReqRcvd,
        Self::MraReqSent,
        Self::RepSent,
        Self::MraRepRcvd,
        Self::EstablishedPassive,
        Self::DreqSent,
        Self::DreqRcvd,
        Self::Timewait,
        Self::Detached,
        Self::Closed,
        Self::Listen,
        Self::SidrReqSent,
        Self::SidrReqRcvd,
    ];

    fn state(self) -> State {
        match self {
            Self::Fresh | Self::Closed => State::Idle,
            Self::ReqSent => State::ReqSent,
            Self::MraReqRcvd => State::MraReqRcvd,
            Self::RepRcvd => State::RepRcvd,
            Self::MraRepSent => State::MraRepSent,
            Self::EstablishedActive | Self::EstablishedPassive => State::Established,
            Self::ReqRcvd => State::ReqRcvd,
            Self::MraReqSent => State::MraReqSent,
            Self::RepSent => State::RepSent,
            Self::MraRepRcvd => State::MraRepRcvd,
            Self::DreqSent => State::DreqSent,
            Self::DreqRcvd => State::DreqRcvd,
            Self::Timewait | Self::Detached => State::Timewait,
            Self::Listen => State::Listen,
            Self::SidrReqSent => State::SidrReqSent,
            Self::SidrReqRcvd => State::SidrReqRcvd,
        }
    }

    /// Returns a connection that has come into the situation by the shortest way, all of it at time
    /// 0.
    pub(crate) fn connection(self) -> Connection {
        let now = at(0);
        let mut c;
        match self {
            Self::Fresh => c = active(),
            Self::ReqSent => {
                c = active();
                let _ = c.connect(&connect_params(), &[], now).unwrap();
            }
            Self::MraReqRcvd => {
                c = Self::ReqSent.connection();
                let _ = receive(&mut c, Message::Mra(peer_mra(MraMessage::Req, 24)), now);
            }
            Self::RepRcvd => {
                c = Self::ReqSent.connection();
                let _ = receive(&mut c, Message::Rep(peer_rep()), now);
            }
            Self::MraRepSent => {
                c = Self::RepRcvd.connection();
                c.prepare_mra(24).unwrap();
            }
            Self::EstablishedActive => {
                c = Self::RepRcvd.connection();
                let _ = c.establish(b"rtu", now).unwrap();
            }
            Self::ReqRcvd => c = passive(),
            Self::MraReqSent => {
                c = Self::ReqRcvd.connection();
                c.prepare_mra(24).unwrap();
            }
            Self::RepSent => {
                c = Self::ReqRcvd.connection();
                let _ = c.accept(&accept_params(), b"rep", now).unwrap();
            }
            Self::MraRepRcvd => {
                c = Self::RepSent.connection();
                let _ = receive(&mut c, Message::Mra(peer_mra(MraMessage::Rep, 24)), now);
            }
            Self::EstablishedPassive => {
                c = Self::RepSent.connection();
                let _ = receive(&mut c, Message::Rtu(peer_rtu()), now);
            }
            Self::DreqSent => {
                c = Self::EstablishedActive.connection();
                let _ = c.disconnect(b"dreq", now).unwrap();
            }
            Self::DreqRcvd => {
                c = Self::EstablishedPassive.connection();
                let _ = receive(&mut c, Message::Dreq(peer_dreq()), now);
            }
            Self::Timewait => {
                c = Self::DreqRcvd.connection();
                let _ = c.confirm_disconnect(b"drep", now).unwrap();
            }
            Self::Detached => {
                c = Self::EstablishedActive.connection();
                let _ = c.destroy(DestroyCause::User, now);
            }
            Self::Closed => {
                c = Self::Timewait.connection();
                let _ = c.timeout(c.deadline().unwrap());
            }
            Self::Listen | Self::SidrReqSent | Self::SidrReqRcvd => {
                c = active();
                c.state = self.state();
            }
        }
        assert_eq!(c.state(), self.state());
        c
    }
}
