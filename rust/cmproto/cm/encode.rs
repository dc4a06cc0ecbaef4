// SPDX-License-Identifier: GPL-2.0

//! Encoding of the messages of a connection, for the first time or again.

use super::{
    action::Outgoing,
    connection::Connection,
    params::{AcceptParams, ConnectParams},
    retransmit_buffer::{RetransmitMemory, Sent},
};
use crate::{
    bytes::fill,
    errno::Errno,
    path::Path,
    qp::{low24, QpType},
    wire::{
        self, Drep, Dreq, Header, MadData, Mra, Rej, Rep, Req, ReqPath, Rtu, Transport, INFO_LEN,
        MAD_LEN,
    },
};

impl<B: RetransmitMemory> Connection<B> {
    /// Writes the message of an [`Action::Send`](super::Action::Send) to `buf`, which must be all
    /// zeros.
    ///
    /// A message can be written until another one of the same kind takes its place. It has the same
    /// bytes each time (IBTA volume 1, 12.7.27).
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection was never asked to send this message. `buf` is all zeros then.
    pub fn encode(&self, message: Outgoing, buf: &mut [u8; MAD_LEN]) -> Result<(), Errno> {
        self.encode_along(message, None, buf)
    }

    /// Writes the message like [`encode`](Self::encode). A REQ names the path `alternate`, if there
    /// is one, and a LAP must have one.
    ///
    /// # Errors
    ///
    /// The function fails as [`encode`](Self::encode) does.
    pub fn encode_along(
        &self,
        message: Outgoing,
        alternate: Option<&Path>,
        buf: &mut [u8; MAD_LEN],
    ) -> Result<(), Errno> {
        let buffer = self.buffer.as_deref();
        // Called with a message that is known where it is compiled.
        let payload = |message| buffer.map_or((&[][..], &[][..]), |own| own.payload.of(message));
        let private_data = |message| payload(message).1;
        let remote_comm_id = self.remote_comm_id();
        match (message, buffer.map_or(&Sent::None, |own| &own.sent)) {
            (Outgoing::Req, Sent::Req(params)) => {
                let req = self.req(params, private_data(Outgoing::Req));
                write(self.own_tid, params.attr_mod, &req, buf)?;
                if let Some(path) = alternate {
                    let path = params.req_path(path.to_req(), path.packet_life_time);
                    Req::write_alternate(buf, path);
                }
                Ok(())
            }
            (Outgoing::Rep, Sent::Rep(params)) => {
                let rep = self.rep(params, private_data(Outgoing::Rep));
                write(self.tid, params.attr_mod, &rep, buf)
            }
            (Outgoing::Lap, Sent::Laps(laps)) => {
                let lap = alternate.and_then(|path| self.lap(laps, path));
                let (tid, lap) = lap.ok_or(Errno::EINVAL)?;
                write(tid, 0, &lap, buf)
            }
            (Outgoing::Apr, Sent::Laps(laps)) => {
                let (tid, apr) = self.apr(laps).ok_or(Errno::EINVAL)?;
                write(tid, 0, &apr, buf)
            }
            (Outgoing::Req | Outgoing::Rep | Outgoing::Lap | Outgoing::Apr, _) => {
                Err(Errno::EINVAL)
            }
            (Outgoing::Rtu, _) => {
                let rtu = Rtu {
                    local_comm_id: self.local_comm_id,
                    remote_comm_id,
                    private_data: private_data(Outgoing::Rtu),
                };
                write(self.tid, 0, &rtu, buf)
            }
            (Outgoing::Dreq, _) => {
                let dreq = Dreq {
                    local_comm_id: self.local_comm_id,
                    remote_comm_id,
                    remote_qpn_eecn: self.remote_qpn,
                    private_data: private_data(Outgoing::Dreq),
                };
                write(self.own_tid, 0, &dreq, buf)
            }
            (Outgoing::Challenge, _) => {
                let dreq = Dreq {
                    local_comm_id: self.local_comm_id,
                    remote_comm_id,
                    remote_qpn_eecn: low24(!self.remote_qpn),
                    private_data: private_data(Outgoing::Challenge),
                };
                write(self.own_tid, 0, &dreq, buf)
            }
            (Outgoing::Drep, _) => {
                let drep = Drep {
                    local_comm_id: self.local_comm_id,
                    remote_comm_id,
                    private_data: private_data(Outgoing::Drep),
                };
                write(self.tid, 0, &drep, buf)
            }
            (Outgoing::Mra(of), _) => {
                let mra = Mra {
                    local_comm_id: self.local_comm_id,
                    remote_comm_id,
                    message: of,
                    service_timeout: self.service_timeout.get(),
                    private_data: private_data(Outgoing::Mra(of)),
                };
                write(self.tid, 0, &mra, buf)
            }
            (Outgoing::Rej, _) => {
                let (ari, private_data) = payload(Outgoing::Rej);
                let rejection = self.rejection.as_ref().ok_or(Errno::EINVAL)?;
                // [`Connection::reject`] accepts no more information than fits into the field.
                let mut info = [0; INFO_LEN];
                fill(&mut info, ari);
                let rej = Rej {
                    local_comm_id: rejection.local_comm_id,
                    remote_comm_id,
                    message: rejection.message,
                    ari_len: u8::try_from(ari.len()).unwrap_or(0),
                    reason: rejection.reason.0,
                    ari: &info,
                    private_data,
                };
                write(self.tid, 0, &rej, buf)
            }
        }
    }

    fn req<'a>(&self, params: &ConnectParams, private_data: &'a [u8]) -> Req<'a> {
        let mut req = Req {
            local_comm_id: self.local_comm_id,
            vendor_id: params.vendor_id,
            service_id: params.service_id,
            local_ca_guid: self.local_ca_guid,
            local_qkey: params.local_qkey,
            local_qpn: params.local_qpn,
            responder_resources: params.responder_resources,
            local_eecn: 0,
            initiator_depth: params.initiator_depth,
            remote_eecn: 0,
            remote_cm_response_timeout: params.remote_cm_response_timeout,
            transport: params.transport,
            flow_control: params.flow_control,
            starting_psn: params.starting_psn,
            local_cm_response_timeout: params.local_cm_response_timeout,
            retry_count: params.retry_count,
            pkey: params.pkey,
            path_mtu: params.path_mtu,
            rdc_exists: false,
            rnr_retry_count: params.rnr_retry_count,
            max_cm_retries: params.max_cm_retries,
            srq: params.srq,
            primary: params.primary,
            alternate: ReqPath::default(),
            sap: false,
            private_data,
        };
        match params.transport {
            Transport::Xrc => {
                req.responder_resources = 0;
                req.retry_count = 0;
                req.rnr_retry_count = 0;
                req.srq = false;
            }
            Transport::Rc | Transport::Uc | Transport::Other(..) => {}
        }
        req
    }

    fn rep<'a>(&self, params: &AcceptParams, private_data: &'a [u8]) -> Rep<'a> {
        let mut rep = Rep {
            local_comm_id: self.local_comm_id,
            remote_comm_id: self.remote_comm_id(),
            local_qkey: params.qkey,
            local_qpn: params.local_qpn,
            local_eecn: 0,
            vendor_id: params.vendor_id,
            starting_psn: params.starting_psn,
            responder_resources: params.responder_resources,
            initiator_depth: params.initiator_depth,
            target_ack_delay: params.target_ack_delay,
            failover_accepted: params.failover_accepted,
            flow_control: params.flow_control,
            rnr_retry_count: params.rnr_retry_count,
            srq: params.srq,
            local_ca_guid: self.local_ca_guid,
            private_data,
        };
        if self.qp_type == QpType::XRC_TGT {
            rep.local_eecn = params.local_qpn;
            rep.local_qpn = 0;
            rep.initiator_depth = 0;
            rep.flow_control = false;
            rep.srq = true;
        }
        rep
    }
}

/// Writes a message, each kind with code of its own.
#[inline]
fn write(
    tid: u64,
    attr_mod: u32,
    message: &impl MadData,
    buf: &mut [u8; MAD_LEN],
) -> Result<(), Errno> {
    let header = Header {
        attr_mod,
        ..Header::new(message.attribute(), tid)
    };
    wire::encode(&header, message, buf).map_err(|_| Errno::EINVAL)
}
