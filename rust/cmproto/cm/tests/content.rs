// SPDX-License-Identifier: GPL-2.0

//! Tests of the contents of the messages that a connection sends.

use super::*;
use crate::errno::Errno;

/// Asserts the header and the contents of an encoded message.
macro_rules! assert_sent {
    ($c:expr, $out:expr, $tid:expr, $attr_mod:expr, $msg:expr) => {{
        let mad = encoded(&$c, $out);
        let (hdr, msg) = wire::decode(&mad).unwrap();
        assert_eq!((hdr.tid, hdr.attr_mod, hdr.status), ($tid, $attr_mod, 0));
        assert_eq!(msg, $msg);
    }};
}

/// Returns `data`, padded to a whole field of private data.
fn padded<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    field[..data.len()].copy_from_slice(data);
    field
}

fn expected_req(private_data: &[u8]) -> Req<'_> {
    let params = connect_params();
    Req {
        local_comm_id: OWN_ID,
        vendor_id: 0xabcdef,
        service_id: SERVICE,
        local_ca_guid: OWN_GUID,
        local_qkey: 0,
        local_qpn: OWN_QPN,
        responder_resources: 3,
        local_eecn: 0,
        initiator_depth: 4,
        remote_eecn: 0,
        remote_cm_response_timeout: 19,
        transport: Transport::Rc,
        flow_control: true,
        starting_psn: OWN_PSN,
        local_cm_response_timeout: 18,
        retry_count: 6,
        pkey: 0xffff,
        path_mtu: 3,
        rdc_exists: false,
        rnr_retry_count: 5,
        max_cm_retries: 15,
        srq: true,
        // The ack timeout for the life time and ack delay of an rxe device.
        primary: ReqPath {
            local_ack_timeout: 17,
            ..params.primary
        },
        alternate: ReqPath::default(),
        sap: false,
        private_data,
    }
}

fn ece_params(transport: Transport) -> ConnectParams {
    ConnectParams {
        transport,
        srq: true,
        remote_cm_response_timeout: 19,
        local_cm_response_timeout: 18,
        vendor_id: 0x12ab_cdef,
        attr_mod: 0x8765_4321,
        ..connect_params()
    }
}

#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_content)
)]
mod tests {
    use super::*;

    #[test]
    fn req() {
        for transport in [Transport::Rc, Transport::Uc] {
            let mut c = active();
            let _ = c.connect(&ece_params(transport), b"hello", at(0)).unwrap();
            let data = padded::<92>(b"hello");
            let req = Req {
                transport,
                ..expected_req(&data)
            };
            assert_sent!(c, Outgoing::Req, OWN_TID, 0x8765_4321, Message::Req(req));
        }
    }

    #[test]
    fn req_of_xrc_omits_what_the_target_has_no_use_for() {
        let mut c = active();
        let _ = c.connect(&ece_params(Transport::Xrc), &[], at(0)).unwrap();
        assert_eq!(c.qp_type(), QpType::XRC_INI);
        let req = Req {
            transport: Transport::Xrc,
            responder_resources: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: false,
            ..expected_req(&[0; 92])
        };
        assert_sent!(c, Outgoing::Req, OWN_TID, 0x8765_4321, Message::Req(req));
    }

    #[test]
    fn values_too_large_are_brought_into_their_fields() {
        let mut c = active();
        let params = ConnectParams {
            local_qpn: 0xff00_0011,
            starting_psn: 0xff11_1111,
            retry_count: 255,
            rnr_retry_count: 255,
            path_mtu: 0x13,
            packet_life_time: 255,
            remote_cm_response_timeout: 255,
            local_cm_response_timeout: 255,
            max_cm_retries: 255,
            vendor_id: 0xff12_3456,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        assert_eq!(c.local_qpn(), 0x11);
        let mad = encoded(&c, Outgoing::Req);
        let Ok((_, Message::Req(req))) = wire::decode(&mad) else {
            panic!()
        };
        assert_eq!(
            (req.local_qpn, req.starting_psn, req.vendor_id),
            (0x11, 0x11_1111, 0x12_3456)
        );
        assert_eq!(
            (req.retry_count, req.rnr_retry_count, req.max_cm_retries),
            (7, 7, 15)
        );
        assert_eq!(
            (
                req.remote_cm_response_timeout,
                req.local_cm_response_timeout
            ),
            (31, 31)
        );
        assert_eq!((req.path_mtu, req.primary.local_ack_timeout), (3, 31));
    }

    fn accepted(transport: Transport) -> Connection {
        let mut c = passive_with(
            &Req {
                transport,
                ..peer_req()
            },
            &Limits::DEFAULT,
        );
        let params = AcceptParams {
            local_qpn: 0xff00_0011,
            starting_psn: 0xff11_1111,
            vendor_id: 0xffab_cdef,
            attr_mod: 0x8765_4321,
            ..accept_params()
        };
        let _ = c.accept(&params, b"welcome", at(0)).unwrap();
        assert_eq!(c.local_qpn(), OWN_QPN);
        c
    }

    fn expected_rep(private_data: &[u8]) -> Rep<'_> {
        Rep {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            local_qkey: 0,
            local_qpn: OWN_QPN,
            local_eecn: 0,
            vendor_id: 0xabcdef,
            starting_psn: OWN_PSN,
            responder_resources: 7,
            initiator_depth: 8,
            target_ack_delay: 15,
            failover_accepted: 0,
            flow_control: true,
            rnr_retry_count: 2,
            srq: false,
            local_ca_guid: OWN_GUID,
            private_data,
        }
    }

    #[test]
    fn rep() {
        let data = padded::<196>(b"welcome");
        for transport in [Transport::Rc, Transport::Uc] {
            let c = accepted(transport);
            let rep = expected_rep(&data);
            assert_sent!(c, Outgoing::Rep, PEER_TID, 0x8765_4321, Message::Rep(rep));
        }
    }

    #[test]
    fn rep_of_xrc_has_its_queue_pair_elsewhere() {
        let c = accepted(Transport::Xrc);
        assert_eq!(c.qp_type(), QpType::XRC_TGT);
        let data = padded::<196>(b"welcome");
        let rep = Rep {
            local_qpn: 0,
            local_eecn: OWN_QPN,
            initiator_depth: 0,
            flow_control: false,
            srq: true,
            ..expected_rep(&data)
        };
        assert_sent!(c, Outgoing::Rep, PEER_TID, 0x8765_4321, Message::Rep(rep));
    }

    #[test]
    fn queue_pair_of_a_rep_of_xrc() {
        let mut c = active();
        let params = ConnectParams {
            transport: Transport::Xrc,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        assert_eq!(c.rep_qpn(&peer_rep()), 0x33);
        let _ = receive(&mut c, Message::Rep(peer_rep()), at(0));
        assert_eq!((c.remote_qpn(), c.remote_ca_guid()), (0x33, PEER_GUID));
    }

    #[test]
    fn rtu_again_has_its_private_data() {
        let mut c = Situation::EstablishedActive.connection();
        let data = padded::<224>(b"rtu");
        let rtu = Rtu {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            private_data: &data,
        };
        assert_sent!(c, Outgoing::Rtu, OWN_TID, 0, Message::Rtu(rtu));
        let first = encoded(&c, Outgoing::Rtu);
        let actions = receive(&mut c, Message::Rep(peer_rep()), at(9));
        assert!(actions.contains(Action::Send(Outgoing::Rtu)));
        assert_eq!(encoded(&c, Outgoing::Rtu), first);
    }

    #[test]
    fn dreq_has_a_transaction_of_its_own() {
        let mut c = Situation::EstablishedPassive.connection();
        let _ = c.disconnect(b"dreq", at(0)).unwrap();
        let data = padded::<220>(b"dreq");
        let dreq = Dreq {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            remote_qpn_eecn: PEER_QPN,
            private_data: &data,
        };
        assert_sent!(c, Outgoing::Dreq, OWN_TID, 0, Message::Dreq(dreq));
    }

    #[test]
    fn dreq_of_nobody_has_no_private_data() {
        for end in [
            |c: &mut Connection| c.stale_peer(at(0)),
            |c: &mut Connection| c.destroy(DestroyCause::User, at(0)),
        ] {
            let mut c = Situation::EstablishedActive.connection();
            let _ = end(&mut c);
            let dreq = Dreq {
                local_comm_id: OWN_ID,
                remote_comm_id: PEER_ID,
                remote_qpn_eecn: PEER_QPN,
                private_data: &[0; 220],
            };
            assert_sent!(c, Outgoing::Dreq, OWN_TID, 0, Message::Dreq(dreq));
        }
    }

    #[test]
    fn drep_is_in_the_transaction_of_the_dreq() {
        let mut c = Situation::EstablishedActive.connection();
        let dreq = Message::Dreq(peer_dreq());
        let _ = c.receive(&Header::new(Attribute::Dreq, 0x77), &dreq, at(0));
        let _ = c.confirm_disconnect(b"bye", at(0)).unwrap();
        let data = padded::<224>(b"bye");
        let drep = Drep {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            private_data: &data,
        };
        assert_sent!(c, Outgoing::Drep, 0x77, 0, Message::Drep(drep));
        let first = encoded(&c, Outgoing::Drep);
        let again = c.receive(&Header::new(Attribute::Dreq, 0x77), &dreq, at(1));
        assert!(again.contains(Action::Send(Outgoing::Drep)));
        assert_eq!(encoded(&c, Outgoing::Drep), first);
    }

    #[test]
    fn a_late_dreq_after_an_own_one_has_a_plain_drep() {
        let mut c = Situation::DreqSent.connection();
        let _ = receive(&mut c, Message::Drep(peer_drep()), at(0));
        let dreq = Message::Dreq(peer_dreq());
        let _ = c.receive(&Header::new(Attribute::Dreq, 0x77), &dreq, at(1));
        let drep = Drep {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            private_data: &[0; 224],
        };
        assert_sent!(c, Outgoing::Drep, 0x77, 0, Message::Drep(drep));
    }

    #[test]
    fn mra_asks_for_what_was_prepared() {
        for (c, of, tid) in [
            (Situation::ReqRcvd.connection(), MraMessage::Req, PEER_TID),
            (Situation::RepRcvd.connection(), MraMessage::Rep, OWN_TID),
        ] {
            for (code, sent) in [(Connection::SERVICE_TIMEOUT, 24), (255, 31)] {
                let mut c = c.clone();
                c.prepare_mra(code).unwrap();
                let mra = Mra {
                    local_comm_id: OWN_ID,
                    remote_comm_id: PEER_ID,
                    message: of,
                    service_timeout: sent,
                    private_data: &[0; 222],
                };
                assert_sent!(c, Outgoing::Mra(of), tid, 0, Message::Mra(mra));
            }
        }
    }

    #[test]
    fn rej_says_what_it_rejects() {
        use Situation::*;
        let table = [
            (ReqRcvd, RejMessage::Req, 0, PEER_ID, PEER_TID),
            (MraReqSent, RejMessage::Req, OWN_ID, PEER_ID, PEER_TID),
            (RepRcvd, RejMessage::Rep, OWN_ID, PEER_ID, OWN_TID),
            (MraRepSent, RejMessage::Rep, OWN_ID, PEER_ID, OWN_TID),
            (RepSent, RejMessage::Other, OWN_ID, PEER_ID, PEER_TID),
            (MraRepRcvd, RejMessage::Other, OWN_ID, PEER_ID, PEER_TID),
            (ReqSent, RejMessage::Other, OWN_ID, 0, OWN_TID),
            (MraReqRcvd, RejMessage::Other, OWN_ID, 0, OWN_TID),
        ];
        for (situation, message, local_comm_id, remote_comm_id, tid) in table {
            let mut c = situation.connection();
            let _ = c
                .reject(Reason(35), b"information", b"data", at(0))
                .unwrap();
            let (ari, data) = (padded::<72>(b"information"), padded::<148>(b"data"));
            let rej = Rej {
                local_comm_id,
                remote_comm_id,
                message,
                ari_len: 11,
                reason: 35,
                ari: &ari,
                private_data: &data,
            };
            assert_sent!(c, Outgoing::Rej, tid, 0, Message::Rej(rej));

            let mut c = situation.connection();
            let _ = c.destroy(DestroyCause::User, at(0));
            let guid = padded::<72>(&OWN_GUID.to_be_bytes());
            let before_rep = remote_comm_id == 0;
            let rej = Rej {
                ari_len: if before_rep { 8 } else { 0 },
                reason: if before_rep { 4 } else { 28 },
                ari: if before_rep { &guid } else { &[0; 72] },
                private_data: &[0; 148],
                ..rej
            };
            assert_sent!(c, Outgoing::Rej, tid, 0, Message::Rej(rej));
        }
    }

    #[test]
    fn rej_of_a_late_req_is_plain() {
        let mut c = Situation::RepSent.connection();
        let _ = c
            .reject(Reason(35), b"information", b"data", at(0))
            .unwrap();
        let _ = c.duplicate_req(at(0));
        let rej = Rej {
            local_comm_id: OWN_ID,
            remote_comm_id: PEER_ID,
            message: RejMessage::Other,
            ari_len: 0,
            reason: 10,
            ari: &[0; 72],
            private_data: &[0; 148],
        };
        assert_sent!(c, Outgoing::Rej, PEER_TID, 0, Message::Rej(rej));

        // The private data of the DREP is kept, because the DREP may have to be sent again.
        let mut c = Situation::Timewait.connection();
        let first = encoded(&c, Outgoing::Drep);
        let _ = c.duplicate_req(at(0));
        assert_sent!(c, Outgoing::Rej, PEER_TID, 0, Message::Rej(rej));
        assert_eq!(encoded(&c, Outgoing::Drep), first);
    }

    #[test]
    fn retries_are_the_same_to_the_bit() {
        for (situation, message) in [
            (Situation::ReqSent, Outgoing::Req),
            (Situation::MraReqRcvd, Outgoing::Req),
            (Situation::RepSent, Outgoing::Rep),
            (Situation::MraRepRcvd, Outgoing::Rep),
            (Situation::DreqSent, Outgoing::Dreq),
        ] {
            let mut c = situation.connection();
            let first = encoded(&c, message);
            for _ in 0..15 {
                let actions = c.timeout(c.deadline().unwrap());
                assert!(is_sent(&actions, message));
                assert_eq!(encoded(&c, message), first);
            }
        }
    }

    #[test]
    fn what_was_never_sent_cannot_be_sent() {
        let mut mad = [0; MAD_LEN];
        for (situation, message) in [
            (Situation::Fresh, Outgoing::Req),
            (Situation::Fresh, Outgoing::Rep),
            (Situation::ReqRcvd, Outgoing::Req),
            (Situation::ReqSent, Outgoing::Rep),
            (Situation::EstablishedActive, Outgoing::Rej),
        ] {
            assert_eq!(
                situation.connection().encode(message, &mut mad),
                Err(Errno::EINVAL)
            );
            assert_eq!(mad, [0; MAD_LEN]);
        }
    }

    #[test]
    fn private_data_and_information_have_limits() {
        type Verb = fn(&mut Connection, &[u8]) -> Result<Actions, Errno>;
        let table: [(Situation, usize, Verb); 7] = [
            (Situation::Fresh, 92, |c, d| {
                c.connect(&connect_params(), d, at(0))
            }),
            (Situation::ReqRcvd, 196, |c, d| {
                c.accept(&accept_params(), d, at(0))
            }),
            (Situation::RepRcvd, 224, |c, d| c.establish(d, at(0))),
            (Situation::EstablishedActive, 220, |c, d| {
                c.disconnect(d, at(0))
            }),
            (Situation::DreqRcvd, 224, |c, d| {
                c.confirm_disconnect(d, at(0))
            }),
            (Situation::ReqRcvd, 148, |c, d| {
                c.reject(Reason(28), &[7; 72], d, at(0))
            }),
            (Situation::ReqRcvd, 72, |c, d| {
                c.reject(Reason(28), d, &[7; 148], at(0))
            }),
        ];
        let data = [0x5a; 300];
        for (situation, max, verb) in table {
            for len in [max + 1, 225, 255, 256, 300] {
                let mut c = situation.connection();
                assert_eq!(verb(&mut c, &data[..len]), Err(Errno::EINVAL));
                assert_eq!(c, situation.connection());
            }
            let mut c = situation.connection();
            let Some(Action::Send(message)) = verb(&mut c, &data[..max]).unwrap().next() else {
                panic!()
            };
            let mad = encoded(&c, message);
            let (_, msg) = wire::decode(&mad).unwrap();
            let (ari, private_data) = match msg {
                Message::Rej(rej) => (rej.information(), rej.private_data),
                msg => (&[][..], msg.private_data()),
            };
            assert!([ari, private_data]
                .iter()
                .any(|field| **field == data[..max]));
        }
    }

    #[test]
    fn other_transports_are_refused() {
        let transport = Transport::Other(2, 0);
        let mut c = active();
        let params = ConnectParams {
            transport,
            ..connect_params()
        };
        assert_eq!(c.connect(&params, &[], at(0)), Err(Errno::EINVAL));
        assert_eq!(c, active());
        let hdr = Header::new(Attribute::Req, PEER_TID);
        let req = Req {
            transport,
            ..peer_req()
        };
        let refused =
            <Connection>::from_req(OWN_ID, OWN_GUID, OWN_TID, &hdr, &req, &Limits::DEFAULT);
        assert_eq!(refused, Err(Reason::CONSUMER_DEFINED));
    }

    #[test]
    fn what_a_req_tells() {
        let c = passive();
        assert_eq!((c.local_comm_id(), c.remote_comm_id()), (OWN_ID, PEER_ID));
        assert_eq!(
            (c.remote_ca_guid(), c.remote_qpn(), c.local_qpn()),
            (PEER_GUID, PEER_QPN, 0)
        );
        assert_eq!(
            (c.service_id(), c.pkey(), c.qp_type()),
            (SERVICE, 0xffff, QpType::RC)
        );
        assert_eq!(c.deadline(), None);
        assert!(!c.wants_rep() && !c.is_closed());
    }
}
