// SPDX-License-Identifier: GPL-2.0

//! Tests of the attributes of the queue pair, on both sides.

use super::*;
use crate::{
    errno::Errno,
    ucma_abi::{FromZeros, UverbsQpAttr},
};

const INIT: u32 = 0x39;
const RTR: u32 = 0x10_1181;
const RTR_RC: u32 = RTR | 0x2_8000;
const RTS: u32 = 0x1_0001;
const RTS_RC: u32 = RTS | 0x2e00;
const RTS_TIMEOUT: u32 = RTS | 0x200;
const ALT_PATH: u32 = 0x4000;
const PATH_MIG_STATE: u32 = 0x4_0000;

#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_qp_attr)
)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_has_the_bits_of_the_kernel() {
        let all = [
            qp_attr_mask::STATE,
            qp_attr_mask::ACCESS_FLAGS,
            qp_attr_mask::PKEY_INDEX,
            qp_attr_mask::PORT,
            qp_attr_mask::QKEY,
            qp_attr_mask::AV,
            qp_attr_mask::PATH_MTU,
            qp_attr_mask::TIMEOUT,
            qp_attr_mask::RETRY_CNT,
            qp_attr_mask::RNR_RETRY,
            qp_attr_mask::RQ_PSN,
            qp_attr_mask::MAX_QP_RD_ATOMIC,
            qp_attr_mask::ALT_PATH,
            qp_attr_mask::MIN_RNR_TIMER,
            qp_attr_mask::SQ_PSN,
            qp_attr_mask::MAX_DEST_RD_ATOMIC,
            qp_attr_mask::PATH_MIG_STATE,
            qp_attr_mask::DEST_QPN,
        ];
        let bits = [
            0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20,
        ];
        for (mask, bit) in all.into_iter().zip(bits) {
            assert_eq!(mask, 1 << bit);
        }
    }

    #[test]
    fn states_have_the_numbers_of_the_kernel() {
        for number in 0..7 {
            assert_eq!(QpState::try_from(number).unwrap() as u32, number);
        }
        assert_eq!(QpState::try_from(7), Err(Errno::EINVAL));
    }

    #[test]
    fn only_in_their_states() {
        use Situation::*;
        for situation in Situation::ALL {
            let c = situation.connection();
            let early = matches!(situation, ReqSent | MraReqRcvd);
            let connecting = matches!(
                situation,
                RepRcvd
                    | MraRepSent
                    | EstablishedActive
                    | ReqRcvd
                    | MraReqSent
                    | RepSent
                    | MraRepRcvd
                    | EstablishedPassive
            );
            assert_eq!(
                (situation, c.qp_attr(QpState::Init).is_ok()),
                (situation, early || connecting)
            );
            for target in [QpState::Rtr, QpState::Rts] {
                assert_eq!(
                    (situation, c.qp_attr(target).is_ok()),
                    (situation, connecting)
                );
            }
            for target in [QpState::Reset, QpState::Sqd, QpState::Sqe, QpState::Err] {
                assert_eq!(c.qp_attr(target), Err(Errno::EINVAL));
            }
        }
    }

    #[test]
    fn active_side() {
        let c = Situation::RepRcvd.connection();
        // The REP has responder resources 23 and initiator depth 24, as seen from the peer.
        let init = UverbsQpAttr {
            qp_state: 1,
            qp_attr_mask: INIT,
            qp_access_flags: 0xe,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(c.qp_attr(QpState::Init), Ok(init));
        let rtr = UverbsQpAttr {
            qp_state: 2,
            qp_attr_mask: RTR_RC,
            path_mtu: 3,
            dest_qp_num: PEER_QPN,
            rq_psn: OWN_PSN,
            max_dest_rd_atomic: 24,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(c.qp_attr(QpState::Rtr), Ok(rtr));
        let rts = UverbsQpAttr {
            qp_state: 3,
            qp_attr_mask: RTS_RC,
            sq_psn: PEER_PSN,
            retry_cnt: 6,
            rnr_retry: 1,
            max_rd_atomic: 23,
            timeout: 17,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(c.qp_attr(QpState::Rts), Ok(rts));
    }

    #[test]
    fn passive_side() {
        // The REQ has responder resources 13 and initiator depth 14, as seen from the peer.
        let c = Situation::MraReqSent.connection();
        let rtr = UverbsQpAttr {
            qp_state: 2,
            qp_attr_mask: RTR_RC,
            path_mtu: 4,
            dest_qp_num: PEER_QPN,
            rq_psn: 0,
            max_dest_rd_atomic: 14,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(c.qp_attr(QpState::Rtr), Ok(rtr));
        let rts = UverbsQpAttr {
            qp_state: 3,
            qp_attr_mask: RTS_RC,
            sq_psn: PEER_PSN,
            retry_cnt: 4,
            rnr_retry: 3,
            max_rd_atomic: 13,
            timeout: 17,
            ..FromZeros::new_zeroed()
        };
        assert_eq!(c.qp_attr(QpState::Rts), Ok(rts));
        // The REP has responder resources 7 and initiator depth 8, as seen from this side.
        for situation in [
            Situation::RepSent,
            Situation::MraRepRcvd,
            Situation::EstablishedPassive,
        ] {
            let c = situation.connection();
            let rtr = UverbsQpAttr {
                rq_psn: OWN_PSN,
                max_dest_rd_atomic: 7,
                ..rtr
            };
            assert_eq!(c.qp_attr(QpState::Rtr), Ok(rtr));
            assert_eq!(
                c.qp_attr(QpState::Rts),
                Ok(UverbsQpAttr {
                    max_rd_atomic: 8,
                    ..rts
                })
            );
        }
    }

    #[test]
    fn reads_need_responder_resources() {
        let mut c = active();
        let params = ConnectParams {
            responder_resources: 0,
            ..connect_params()
        };
        let _ = c.connect(&params, &[], at(0)).unwrap();
        assert_eq!(
            c.qp_attr(QpState::Init).unwrap().qp_access_flags,
            access::REMOTE_WRITE
        );
    }

    fn masks(c: &Connection) -> (u32, u32) {
        let mask = |target| c.qp_attr(target).unwrap().qp_attr_mask;
        (mask(QpState::Rtr), mask(QpState::Rts))
    }

    #[test]
    fn masks_of_other_transports() {
        let active = |transport| {
            let mut c = active();
            let _ = c
                .connect(
                    &ConnectParams {
                        transport,
                        ..connect_params()
                    },
                    &[],
                    at(0),
                )
                .unwrap();
            let _ = receive(&mut c, Message::Rep(peer_rep()), at(0));
            masks(&c)
        };
        let passive = |transport| {
            masks(&passive_with(
                &Req {
                    transport,
                    ..peer_req()
                },
                &Limits::DEFAULT,
            ))
        };
        assert_eq!(active(Transport::Rc), (RTR_RC, RTS_RC));
        assert_eq!(passive(Transport::Rc), (RTR_RC, RTS_RC));
        assert_eq!(active(Transport::Uc), (RTR, RTS));
        assert_eq!(passive(Transport::Uc), (RTR, RTS));
        assert_eq!(active(Transport::Xrc), (RTR, RTS_RC));
        assert_eq!(passive(Transport::Xrc), (RTR_RC, RTS_TIMEOUT));
    }

    #[test]
    fn alternate_path() {
        let mut req = peer_req();
        req.alternate = ReqPath {
            local_lid: 5,
            local_ack_timeout: 19,
            ..req.primary
        };
        let c = passive_with(&req, &Limits::DEFAULT);
        assert_eq!(masks(&c), (RTR_RC | ALT_PATH, RTS_RC | PATH_MIG_STATE));
        assert_eq!(c.qp_attr(QpState::Rtr).unwrap().alt_timeout, 19);
        assert_eq!(c.qp_attr(QpState::Rts).unwrap().path_mig_state, 1);
    }

    #[test]
    fn declined_alternate_path() {
        let with_alternate = || {
            let mut req = peer_req();
            req.alternate = ReqPath {
                local_lid: 5,
                local_ack_timeout: 19,
                ..req.primary
            };
            req
        };
        for (req, why, failover) in [
            (with_alternate(), Unusable::NotSupported, 1),
            (with_alternate(), Unusable::UnknownGid, 2),
            (peer_req(), Unusable::NotSupported, 0),
        ] {
            let mut c = passive_with(&req, &Limits::DEFAULT);
            c.decline_alternate(why);
            assert_eq!(masks(&c), (RTR_RC, RTS_RC));
            assert_eq!(c.qp_attr(QpState::Rtr).unwrap().alt_timeout, 0);
            let _ = c.accept(&accept_params(), &[], at(0)).unwrap();
            let mad = encoded(&c, Outgoing::Rep);
            let accepted = match wire::decode(&mad) {
                Ok((_, Message::Rep(rep))) => Some(rep.failover_accepted),
                _ => None,
            };
            assert_eq!(accepted, Some(failover));
        }
    }
}
