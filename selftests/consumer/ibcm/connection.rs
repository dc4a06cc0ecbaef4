// SPDX-License-Identifier: GPL-2.0

//! Identifiers, listeners and connections.

use super::{
    inbox::Inbox,
    pair::Pair,
    side::Side,
    world::{next_service, World},
};
use crate::{
    harness::{check, is},
    rdma::{
        errno::Errno,
        ib_cm_event::{
            Event, EventType, SendStatus, ARI_LENGTH, DREP_DATA, DREQ_DATA, REJ_DATA, REP_DATA,
            REQ_DATA, RTU_DATA, SIDR_REQ_DATA,
        },
        ib_cm_id::{
            Handler, IbCmIdRef, NewId, QpEvent, SharedListener, State, Verdict, AGENT_MASK,
            ASSIGN_SERVICE_ID,
        },
        ib_cm_param::{PrivateData, RepParam, SidrReqParam},
        path::{Link, MTU_1024},
        qp_attr::{Global, QpAttr, QpMask, QpState, QpType},
        refusal::RejectReason,
    },
};
use kernel::{prelude::*, sync::Arc};

/// Data that nobody looks at.
static ZEROS: [u8; 256] = [0; 256];

/// So many zeros.
fn zeros(len: usize) -> PrivateData<'static> {
    PrivateData::Of(ZEROS.get(..len).unwrap_or(&ZEROS))
}

/// An end that is to ask for this service.
fn one(world: &Arc<World>, service: u64) -> Option<Side> {
    let side = Side::new(world, service);
    is!(side.as_ref().err(), None);
    side.ok()
}

pub(super) fn unused(world: &Arc<World>) {
    let Some(mut a) = one(world, 0) else {
        return;
    };
    check!(a.id().is_ok_and(|id| id.is_of(&world.device)));
    check!(a.has_context());
    is!(a.id().map(IbCmIdRef::remote_cm_qpn), Ok(1));
    a.is_in(State::IDLE);
    a.end();
    is!(a.told(), 0);
}

/// An end that sends no data.
pub(super) struct Nobody;

impl Handler for Nobody {
    fn request(_: &Arc<Self>, _: NewId<'_, Self>, _: &Event, _: &[u8]) {}

    fn event(_: &Arc<Self>, _: &IbCmIdRef, _: &Event, _: &[u8]) -> Verdict {
        Verdict::Destroy(1)
    }
}

pub(super) fn listeners(world: &Arc<World>) {
    if listener(world).is_some() {
        shared_listeners(world);
    }
}

fn listener(world: &Arc<World>) -> Option<()> {
    let device = &world.device;
    let mut pair = Pair::start(world)?;
    let service = pair.service;
    let mut other = one(world, service)?;
    is!(pair.l.id().map(IbCmIdRef::service_id), Ok(service));
    pair.l.is_in(State::LISTEN);
    is!(other.does(|_, id| id.listen(service)), Err(EBUSY));
    is!(
        other.does(|_, id| id.listen(ASSIGN_SERVICE_ID | 7)),
        Err(EINVAL)
    );
    is!(other.state(), Some(State::IDLE));
    is!(other.does(|_, id| id.listen(ASSIGN_SERVICE_ID)), Ok(()));
    check!(other
        .id()
        .is_ok_and(|id| id.service_id() & AGENT_MASK == ASSIGN_SERVICE_ID));
    other.end();
    let inserted = SharedListener::insert::<Inbox>(device, service);
    is!(inserted.err(), Some(EINVAL));
    let inserted = SharedListener::insert::<Inbox>(device, ASSIGN_SERVICE_ID | 7);
    is!(inserted.err(), Some(EINVAL));
    Some(())
}

fn shared_listeners(world: &Arc<World>) {
    let device = &world.device;
    let service = next_service();
    let first = SharedListener::insert::<Nobody>(device, service);
    let second = SharedListener::insert::<Nobody>(device, service);
    check!(first.is_ok());
    let (Ok(first), Ok(second)) = (first, second) else {
        return;
    };
    check!(first.identity() == second.identity());
    let inserted = SharedListener::insert::<Inbox>(device, service);
    is!(inserted.err(), Some(EINVAL));
    drop(second);
    // Refused by the one that is left.
    if let Some(mut a) = one(world, service) {
        if is!(a.does(Inbox::send_req), Ok(())) && a.expect(EventType::REJ_RECEIVED) {
            is!(
                a.rej().map(|rej| rej.reason),
                Some(RejectReason::CONSUMER_DEFINED)
            );
        }
    }
    drop(first);
    let Some(mut a) = one(world, service) else {
        return;
    };
    if is!(a.does(Inbox::send_req), Ok(())) && a.expect(EventType::REJ_RECEIVED) {
        is!(
            a.rej().map(|rej| rej.reason),
            Some(RejectReason::INVALID_SERVICE_ID)
        );
    }
    // An end that was refused may ask again.
    a.is_in(State::IDLE);
    if is!(a.does(Inbox::send_req), Ok(())) {
        a.expect(EventType::REJ_RECEIVED);
    }
}

/// Returns the attributes that an end reports for its queue pair.
#[track_caller]
pub(super) fn attributes_of(side: &mut Side, state: QpState) -> Option<QpAttr> {
    let attr = side.does(|_, id| id.init_qp_attr(state));
    is!(attr.as_ref().err(), None);
    attr.ok()
}

/// Returns the attributes that make a queue pair ready to receive.
pub(super) fn rtr_mask() -> QpMask {
    QpMask::STATE
        | QpMask::AV
        | QpMask::PATH_MTU
        | QpMask::DEST_QPN
        | QpMask::RQ_PSN
        | QpMask::MAX_DEST_RD_ATOMIC
        | QpMask::MIN_RNR_TIMER
}

/// Returns the attributes that make a queue pair ready to send.
pub(super) fn rts_mask() -> QpMask {
    QpMask::STATE
        | QpMask::SQ_PSN
        | QpMask::RETRY_CNT
        | QpMask::RNR_RETRY
        | QpMask::MAX_QP_RD_ATOMIC
        | QpMask::TIMEOUT
}

/// Checks the address beyond the link: there is one only if the way was found by a made GID.
fn global_over_ib(world: &World, is_passive: bool, global: Option<Global>) {
    let is_opa = matches!(world.link, Link::Opa { .. });
    let is_named = (is_opa && is_passive).then(|| world.named_gid());
    is!(global.map(|global| global.dgid), is_named);
}

fn attributes(side: &mut Side, peer: &Side, is_passive: bool, (reads, depth): (u8, u8)) {
    let world = &peer.world;
    if let Some(attr) = attributes_of(side, QpState::INIT) {
        is!(
            attr.mask,
            QpMask::STATE | QpMask::ACCESS_FLAGS | QpMask::PKEY_INDEX | QpMask::PORT
        );
        is!(attr.port, world.gid.port());
        check!(attr.remote_may_write);
        check!(attr.remote_may_read);
    }
    if let Some(attr) = attributes_of(side, QpState::RTR) {
        is!(attr.mask, rtr_mask());
        is!(attr.dest_qpn, peer.qpn);
        is!(attr.rq_psn, side.psn);
        is!(attr.path_mtu, MTU_1024);
        is!(attr.max_dest_rd_atomic, reads);
        let global = attr.address.and_then(|address| address.global);
        match world.link {
            link @ Link::Roce(_) => {
                is!(attr.address.map(|address| address.link), Some(link.peer()));
                is!(
                    global.map(|global| (u16::from(global.sgid_index), global.dgid)),
                    Some((world.gid.index(), world.gid.gid()))
                );
            }
            link => {
                is!(attr.address.map(|address| address.link), Some(link.peer()));
                global_over_ib(world, is_passive, global);
            }
        }
    }
    if let Some(attr) = attributes_of(side, QpState::RTS) {
        is!(attr.mask, rts_mask());
        is!(attr.sq_psn, peer.psn);
        is!(attr.retry_count, 6);
        is!(attr.max_rd_atomic, depth);
    }
    is!(
        side.does(|_, id| id.init_qp_attr(QpState::ERR)).err(),
        Some(EINVAL)
    );
}

pub(super) fn connection(world: &Arc<World>) {
    let Some(mut pair) = Pair::until_req(world) else {
        return;
    };
    request(&mut pair);
    if answer(&mut pair).is_some() {
        end(&mut pair);
    }
}

/// Checks the contents of the request.
fn request(pair: &mut Pair) {
    let Pair { l, a, b, service } = pair;
    let world = a.world.clone();
    a.is_in(State::REQ_SENT);
    b.is_in(State::REQ_RCVD);
    check!(b.id().is_ok_and(|id| id.is_of(&world.device)));
    is!(b.id().map(IbCmIdRef::service_id), Ok(*service));
    check!(b.req().is_some());
    let Some(req) = b.req() else {
        return;
    };
    check!(l.identity() == Ok(req.listener));
    check!(req.sgid == world.said_gid());
    is!(req.alternate, None);
    is!(u32::from(req.port), world.gid.port());
    is!(req.bth_pkey, 0xffff);
    is!(req.remote_qpn, a.qpn);
    check!(req.is_rc);
    is!(req.psn, a.psn);
    is!(req.responder_resources, 5);
    is!(req.initiator_depth, 3);
    is!(req.local_cm_response_timeout, 18);
    is!(req.remote_cm_response_timeout, 18);
    is!(req.retry_count, 6);
    is!(req.rnr_retry_count, 7);
    is!(req.srq, 0);
    check!(req.remote_ca_guid == world.device.node_guid());
    check!(b.data_begin(&[0xa1; REQ_DATA]));
    check!(req.path.is_some());
    if let Some(path) = req.path {
        is!(path.pkey, 0xffff);
        is!(u32::from(path.mtu), MTU_1024);
        is!(path.traffic_class, 8);
        is!(path.service_id, *service);
        check!(path.dgid == world.named_gid());
        is!(path.link, world.link);
    }
}

/// Checks the contents of the answer; and both ends are connected.
fn answer(pair: &mut Pair) -> Option<()> {
    let Pair { a, b, .. } = pair;
    // A consumer that says no number has 0, and may ask before.
    is!(
        attributes_of(b, QpState::RTR).map(|attr| attr.rq_psn),
        Some(0)
    );
    is!(b.does(Inbox::prepare_mra), Ok(()));
    b.is_in(State::MRA_REQ_SENT);
    is!(b.does(Inbox::send_rep), Ok(()));
    b.is_in(State::REP_SENT);
    if !a.expect(EventType::REP_RECEIVED) {
        return None;
    }
    check!(a.rep().is_some());
    if let Some(rep) = a.rep() {
        is!(rep.remote_qpn, b.qpn);
        is!(rep.psn, b.psn);
        is!(rep.responder_resources, 2);
        is!(rep.initiator_depth, 4);
        is!(rep.rnr_retry_count, 6);
        check!(rep.remote_ca_guid == a.world.device.node_guid());
    }
    check!(a.data_begin(&[0xa2; REP_DATA]));
    a.is_in(State::REP_RCVD);
    is!(
        a.id().map(IbCmIdRef::remote_id),
        b.id().map(IbCmIdRef::local_id)
    );
    is!(
        b.id().map(IbCmIdRef::remote_id),
        a.id().map(IbCmIdRef::local_id)
    );
    is!(a.does(Inbox::prepare_mra), Ok(()));
    a.is_in(State::MRA_REP_SENT);
    attributes(a, b, false, (2, 4));
    attributes(b, a, true, (4, 2));
    is!(a.does(Inbox::send_rtu), Ok(()));
    if !b.expect(EventType::RTU_RECEIVED) {
        return None;
    }
    check!(b.data_begin(b"rtu\0"));
    a.is_in(State::ESTABLISHED);
    b.is_in(State::ESTABLISHED);
    attributes(a, b, false, (2, 4));
    attributes(b, a, true, (4, 2));
    Some(())
}

pub(super) fn end(pair: &mut Pair) {
    let Pair { a, b, .. } = pair;
    is!(a.does(Inbox::send_dreq), Ok(()));
    a.is_in(State::DREQ_SENT);
    if !b.expect(EventType::DREQ_RECEIVED) {
        return;
    }
    check!(b.data_begin(b"dreq\0"));
    b.is_in(State::DREQ_RCVD);
    is!(b.does(Inbox::send_drep), Ok(()));
    if !a.expect(EventType::DREP_RECEIVED) {
        return;
    }
    check!(a.data_begin(b"drep\0"));
    a.expect(EventType::TIMEWAIT_EXIT);
    b.expect(EventType::TIMEWAIT_EXIT);
    is!(a.state(), Some(State::IDLE));
    is!(b.state(), Some(State::IDLE));
}

fn rep_at_once(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    is!(end.send_rep(id), Ok(()));
    Verdict::Keep
}

fn rtu_at_once(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    is!(end.send_rtu(id), Ok(()));
    Verdict::Keep
}

fn drep_and_destroy(end: &Inbox, id: &IbCmIdRef, _: &Event) -> Verdict {
    is!(end.send_drep(id), Ok(()));
    Verdict::Destroy(1)
}

/// All of it in callbacks; the passive end ends by what its callback returns.
pub(super) fn in_callbacks(world: &Arc<World>) {
    let Some(Pair {
        l: _l,
        mut a,
        mut b,
        ..
    }) = Pair::start(world)
    else {
        return;
    };
    b.on(EventType::REQ_RECEIVED, rep_at_once);
    a.on(EventType::REP_RECEIVED, rtu_at_once);
    is!(a.does(Inbox::send_req), Ok(()));
    if b.expect(EventType::REQ_RECEIVED)
        && a.expect(EventType::REP_RECEIVED)
        && b.expect(EventType::RTU_RECEIVED)
    {
        b.on(EventType::DREQ_RECEIVED, drep_and_destroy);
        b.lend();
        is!(a.does(Inbox::send_dreq), Ok(()));
        b.expect(EventType::DREQ_RECEIVED);
        a.expect(EventType::DREP_RECEIVED);
        a.expect(EventType::TIMEWAIT_EXIT);
    }
}

pub(super) fn notices(world: &Arc<World>) {
    let Some(mut pair) = Pair::until_rep(world) else {
        return;
    };
    let Pair { a, b, .. } = &mut pair;
    is!(b.does(Inbox::established), Ok(()));
    // At once, while the connection gets there, and then.
    for _ in 0..1000 {
        if !is!(b.does(Inbox::established), Errno::EISCONN.failure()) {
            break;
        }
    }
    if b.expect(EventType::USER_ESTABLISHED) {
        b.is_in(State::ESTABLISHED);
    }
    a.is_in(State::REP_RCVD);
    is!(
        b.does(|_, id| id.notify(QpEvent::PATH_MIG_ERR)),
        Err(EINVAL)
    );
}

/// Sends a REQ with more private data than the message has room for.
fn send_long_req(end: &Inbox, id: &IbCmIdRef) -> Result {
    let mut req = end.request();
    req.private_data = zeros(REQ_DATA + 1);
    id.send_req(&req)
}

pub(super) fn parameters(world: &Arc<World>) {
    let Some(mut pair) = Pair::start(world) else {
        return;
    };
    let Pair { a, b, .. } = &mut pair;
    is!(a.does(send_long_req), Err(EINVAL));
    let refused = a.does(|end, id| {
        let mut req = end.request();
        req.qp_type = QpType::UD;
        id.send_req(&req)
    });
    is!(refused, Err(EINVAL));
    let refused = a.does(|end, id| {
        let mut req = end.request();
        req.path = None;
        id.send_req(&req)
    });
    is!(refused, Err(EINVAL));
    a.is_in(State::IDLE);
    // The GID is found by the path, too; and a length without data means none.
    let sent = a.does(|end, id| {
        let mut req = end.request();
        req.sgid = None;
        req.private_data = PrivateData::Missing(255);
        id.send_req(&req)
    });
    is!(sent, Ok(()));
    if b.expect(EventType::REQ_RECEIVED) && parameters_of_answers(a, b) {
        is!(
            a.does(|_, id| id.send_dreq(zeros(DREQ_DATA + 1))),
            Err(EINVAL)
        );
        is!(a.does(|_, id| id.send_dreq(PrivateData::NONE)), Ok(()));
        if b.expect(EventType::DREQ_RECEIVED) {
            is!(
                b.does(|_, id| id.send_drep(zeros(DREP_DATA + 1))),
                Err(EINVAL)
            );
            b.is_in(State::DREQ_RCVD);
        }
    }
}

/// Checks that both ends are connected in the end.
fn parameters_of_answers(a: &mut Side, b: &mut Side) -> bool {
    check!(b.data_begin(&[0]));
    let refused = b.does(|end, id| {
        id.send_rep(&RepParam {
            qpn: end.qpn,
            psn: 0,
            private_data: zeros(REP_DATA + 1),
            responder_resources: 0,
            initiator_depth: 0,
            rnr_retry_count: 0,
        })
    });
    is!(refused, Err(EINVAL));
    let reason = RejectReason::CONSUMER_DEFINED;
    let none = PrivateData::NONE;
    is!(
        b.does(|_, id| id.send_rej(reason, zeros(ARI_LENGTH + 1), none)),
        Err(EINVAL)
    );
    is!(
        b.does(|_, id| id.send_rej(reason, none, zeros(REJ_DATA + 1))),
        Err(EINVAL)
    );
    b.is_in(State::REQ_RCVD);
    is!(b.does(Inbox::send_rep), Ok(()));
    if !a.expect(EventType::REP_RECEIVED) {
        return false;
    }
    is!(
        a.does(|_, id| id.send_rtu(zeros(RTU_DATA + 1))),
        Err(EINVAL)
    );
    a.is_in(State::REP_RCVD);
    is!(a.does(|_, id| id.send_rtu(zeros(RTU_DATA))), Ok(()));
    b.expect(EventType::RTU_RECEIVED);
    true
}

/// A refused end changes nothing: the next request may leave from another device.
pub(super) fn refused_then_elsewhere(world: &Arc<World>) {
    let other = world.other();
    is!(other.as_ref().err(), None);
    let (Ok(other), Some(mut pair)) = (other, Pair::start(world)) else {
        return;
    };
    let Pair { a, b, .. } = &mut pair;
    is!(a.does(send_long_req), Err(EINVAL));
    let refused = a.does(|end, id| {
        id.send_sidr_req(&SidrReqParam {
            private_data: zeros(SIDR_REQ_DATA + 1),
            ..end.question()
        })
    });
    is!(refused, Err(EINVAL));
    a.is_in(State::IDLE);
    let sent = a.does(|end, id| {
        let mut req = end.request();
        req.path = Some(other.path_to(world));
        req.sgid = Some(&other.gid);
        id.send_req(&req)
    });
    is!(sent, Ok(()));
    b.expect(EventType::REQ_RECEIVED);
}

/// Asks somebody who is not there, once.
fn ask_nobody(end: &Inbox, id: &IbCmIdRef) -> Result {
    let mut req = end.request();
    let mut path = end.world.path_to_nobody();
    path.packet_life_time = 8;
    req.path = Some(path);
    req.remote_cm_response_timeout = 14;
    req.max_cm_retries = 1;
    id.send_req(&req)
}

/// Nobody answers.
pub(super) fn silence(world: &Arc<World>) {
    let Some(mut a) = one(world, next_service()) else {
        return;
    };
    is!(a.does(ask_nobody), Ok(()));
    if a.expect(EventType::REQ_ERROR) {
        is!(
            a.last(),
            Some(Event::Error(
                EventType::REQ_ERROR,
                SendStatus::RESP_TIMEOUT_ERR
            ))
        );
    }
    a.is_in(State::IDLE);
    a.end();
    // Or not in time.
    let Some(mut a) = one(world, next_service()) else {
        return;
    };
    if is!(a.does(ask_nobody), Ok(())) {
        a.is_in(State::REQ_SENT);
        a.end();
        is!(a.told(), 0);
    }
}

/// Nobody answers, for longer than this waits; but for the setting of the port.
pub(super) fn bounded(world: &Arc<World>) {
    let Some(mut a) = one(world, next_service()) else {
        return;
    };
    let asked = a.does(|end, id| {
        let mut req = end.request();
        req.path = Some(end.world.path_to_nobody());
        // 4.3 s, 16 times.
        req.remote_cm_response_timeout = 20;
        req.max_cm_retries = 15;
        id.send_req(&req)
    });
    is!(asked, Ok(()));
    a.expect(EventType::REQ_ERROR);
    a.is_in(State::IDLE);
}

pub(super) fn texts() {
    is!(
        RejectReason::CONSUMER_DEFINED.message(),
        c"consumer defined"
    );
    is!(RejectReason(0).message(), c"unrecognized reason");
    is!(RejectReason(1 << 20).message(), c"unrecognized reason");
}
