// SPDX-License-Identifier: GPL-2.0

//! Alternate paths.

use super::{
    connection::{attributes_of, end, rtr_mask, rts_mask},
    inbox::Inbox,
    lap::{self, Lap},
    pair::Pair,
    world::World,
};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        ib_cm_event::{Event, EventType},
        ib_cm_id::{IbCmIdRef, QpEvent, State},
        path::{Link, Path, MTU_1024},
        qp_attr::{Address, Alternate, PeerLink, QpMask, QpState, QpType, MIG_REARM},
        queue_pair::{CompletionQueue, ProtectionDomain, QpInit, QueuePair},
    },
};
use kernel::{prelude::*, sync::Arc};

/// Time codes of the alternate path: longer than the ack delay of any device that is tried.
const LIFE_TIME: u8 = 17;
const TIMEOUT: u8 = LIFE_TIME + 1;

/// The other way from the device to itself: between its second LIDs, or, if it has one only, with a
/// global header, in the same subnet.
fn other_way(world: &World) -> Path {
    let path = Path {
        packet_life_time: LIFE_TIME,
        ..world.path()
    };
    match (world.path_bits, path.link) {
        (1.., Link::Ib { slid, dlid }) => Path {
            link: Link::Ib {
                slid: slid | 1,
                dlid: dlid | 1,
            },
            ..path
        },
        _ => Path {
            hop_limit: 1,
            traffic_class: 16,
            ..path
        },
    }
}

/// Asks with an alternate path.
fn ask(pair: &mut Pair, alternate: Path) -> Result {
    pair.a.does(|end, id| {
        let mut req = end.request();
        req.alternate = Some(alternate);
        id.send_req(&req)
    })
}

/// Returns the address of the peer by the primary and by the alternate path.
fn addresses(pair: &mut Pair) -> [(Option<Address>, Alternate); 2] {
    [&mut pair.a, &mut pair.b].map(|side| {
        let attr = attributes_of(side, QpState::RTR).unwrap_or_default();
        (attr.address, attr.alternate)
    })
}

/// Returns the masks of an end that is to be ready to receive, and to send.
fn masks(pair: &mut Pair) -> [(QpMask, QpMask, u32); 2] {
    [&mut pair.a, &mut pair.b].map(|side| {
        let rtr = attributes_of(side, QpState::RTR).unwrap_or_default();
        let rts = attributes_of(side, QpState::RTS).unwrap_or_default();
        (rtr.mask, rts.mask, rts.path_mig_state)
    })
}

/// Returns the attributes that load an alternate path.
fn load_mask() -> QpMask {
    QpMask::ALT_PATH | QpMask::PATH_MIG_STATE
}

/// Checks that both ends load the alternate path with their queue pairs.
fn loaded(pair: &mut Pair, world: &World) {
    let mask = (
        rtr_mask() | QpMask::ALT_PATH,
        rts_mask() | QpMask::PATH_MIG_STATE,
        MIG_REARM,
    );
    is!(masks(pair), [mask; 2]);
    for (address, alternate) in addresses(pair) {
        is!(address.map(|address| address.global), Some(None));
        is!(alternate.port, world.gid.port());
        is!(alternate.pkey_index, 0);
        is!(alternate.timeout, TIMEOUT);
        along_the_other_way(alternate.address, world);
    }
}

/// Checks that the address is that of the alternate path.
fn along_the_other_way(address: Option<Address>, world: &World) {
    let way = other_way(world);
    let Link::Ib { slid, dlid } = way.link else {
        return;
    };
    let link = PeerLink::Lid {
        dlid: dlid.into(),
        path_bits: world.path_bits & slid.to_be_bytes()[1],
    };
    is!(address.map(|address| address.link), Some(link));
    let global = address.and_then(|address| address.global);
    is!(
        global.map(|global| (global.dgid, global.traffic_class)),
        (way.hop_limit > 0).then_some((way.dgid, way.traffic_class))
    );
}

/// Checks that a queue pair of each end gets the alternate path.
fn stored(pair: &mut Pair, world: &World) -> Result {
    let pd = ProtectionDomain::new(&world.device)?;
    let cq = CompletionQueue::new(&world.device, 16)?;
    let init = QpInit {
        qp_type: QpType::RC,
        max_send_wr: 1,
        max_recv_wr: 1,
        max_send_sge: 1,
        max_recv_sge: 1,
    };
    for side in [&mut pair.a, &mut pair.b] {
        let qp = QueuePair::new(&pd, &cq, &init)?;
        for state in [QpState::INIT, QpState::RTR, QpState::RTS] {
            side.does(|_, id| id.take_along(&qp, state))?;
        }
        let (alternate, state) = qp.alternate()?;
        is!((alternate.port, state), (world.gid.port(), MIG_REARM));
        along_the_other_way(alternate.address, world);
    }
    Ok(())
}

/// Connects with an alternate path that both ends can use.
fn connected(world: &Arc<World>) -> Option<Pair> {
    let mut pair = Pair::start(world)?;
    is!(ask(&mut pair, other_way(world)), Ok(()));
    if !pair.b.expect(EventType::REQ_RECEIVED) {
        return None;
    }
    let alternate = pair.b.req().and_then(|req| req.alternate);
    // The time of the peer has its ack delay in it.
    let path = Path {
        service_id: pair.service,
        ..other_way(world)
    };
    is!(alternate, Some(path));
    is!(pair.b.does(Inbox::send_rep), Ok(()));
    if !pair.a.expect(EventType::REP_RECEIVED) {
        return None;
    }
    is!(pair.a.rep().map(|rep| rep.failover_accepted), Some(0));
    is!(pair.a.does(Inbox::send_rtu), Ok(()));
    pair.b.expect(EventType::RTU_RECEIVED).then_some(pair)
}

/// A path that is not used: the alternate path of a request over RoCE, or over Omni-Path with long
/// LIDs. C sends it, over RoCE without LIDs, so that to the peer there is none.
fn nobodys(world: &Arc<World>) {
    let Some(mut pair) = Pair::start(world) else {
        return;
    };
    let sent = ask(&mut pair, other_way(world));
    if sent.is_err() {
        is!(sent, Err(EINVAL));
        return pair.a.is_in(State::IDLE);
    }
    if pair.b.expect(EventType::REQ_RECEIVED) {
        let has_lids = world.link.is_ib();
        is!(
            pair.b.req().map(|req| req.alternate.is_some()),
            Some(has_lids)
        );
    }
}

pub(super) fn used(world: &Arc<World>) {
    if !matches!(world.link, Link::Ib { .. }) {
        return nobodys(world);
    }
    refused(world);
    if let Some(mut pair) = connected(world) {
        loaded(&mut pair, world);
        is!(stored(&mut pair, world), Ok(()));
        end(&mut pair);
    }
}

/// Paths that a REQ has no fields for, or that begin nowhere, and the end may ask again.
fn refused(world: &Arc<World>) {
    let Some(mut pair) = Pair::start(world) else {
        return;
    };
    let way = other_way(world);
    for path in [
        Path {
            pkey: 0x8001,
            ..way
        },
        Path {
            mtu: (MTU_1024 as u8).saturating_sub(1),
            ..way
        },
        Path {
            sgid: world.path_to_nobody().dgid,
            ..way
        },
    ] {
        is!(ask(&mut pair, path), Err(EINVAL));
        pair.a.is_in(State::IDLE);
    }
}

/// A path that ends nowhere: C refuses the request, and else there is a connection without failover.
pub(super) fn elsewhere(world: &Arc<World>) {
    let Some(mut pair) = Pair::start(world) else {
        return;
    };
    let path = Path {
        dgid: world.path_to_nobody().dgid,
        ..other_way(world)
    };
    is!(ask(&mut pair, path), Ok(()));
    if !pair.b.expect(EventType::REQ_RECEIVED) {
        return;
    }
    is!(pair.b.req().map(|req| req.alternate), Some(None));
    is!(pair.b.does(Inbox::send_rep), Ok(()));
    if !pair.a.expect(EventType::REP_RECEIVED) {
        return;
    }
    is!(pair.a.rep().map(|rep| rep.failover_accepted), Some(2));
    is!(masks(&mut pair), [(rtr_mask(), rts_mask(), 0); 2]);
    is!(pair.a.does(Inbox::send_rtu), Ok(()));
    if pair.b.expect(EventType::RTU_RECEIVED) {
        end(&mut pair);
    }
}

/// The queue pairs use their alternate paths, and so do the messages.
pub(super) fn migrated(world: &Arc<World>) {
    let migrate = |_: &Inbox, id: &IbCmIdRef| id.notify(QpEvent::PATH_MIG);
    let Some(mut pair) = connected(world) else {
        return;
    };
    let before = addresses(&mut pair);
    is!(pair.a.does(migrate), Ok(()));
    is!(pair.b.does(migrate), Ok(()));
    is!(
        masks(&mut pair),
        [(rtr_mask() | QpMask::ALT_PATH, load_mask(), MIG_REARM); 2]
    );
    for ((address, alternate), (primary, _)) in addresses(&mut pair).into_iter().zip(before) {
        along_the_other_way(address, world);
        is!(alternate.address, primary);
    }
    end(&mut pair);
    is!(pair.a.does(migrate), Err(EINVAL));
    // One end alone: the other one still knows its peer.
    let Some(mut pair) = connected(world) else {
        return;
    };
    is!(pair.a.does(migrate), Ok(()));
    is!(
        attributes_of(&mut pair.a, QpState::RTS).map(|attr| attr.mask),
        Some(load_mask())
    );
    end(&mut pair);
    // Without one, nothing changes.
    let Some(mut pair) = Pair::until_established(world) else {
        return;
    };
    let before = addresses(&mut pair);
    is!(pair.a.does(migrate), Ok(()));
    is!(masks(&mut pair), [(rtr_mask(), rts_mask(), 0); 2]);
    is!(addresses(&mut pair), before);
    end(&mut pair);
}

/// Has `a` propose another way for an established connection. Returns the message and the way as
/// `b` sees it.
fn propose(pair: &mut Pair, world: &Arc<World>, way: Path) -> Result<Lap> {
    let lap = Lap {
        local_id: pair.a.id()?.local_id(),
        remote_id: pair.a.id()?.remote_id(),
        qpn: pair.b.qpn,
        path: way,
        number: 1,
    };
    lap::send(world, &lap.to_mad())?;
    Ok(lap)
}

/// Returns the path of an event.
fn told_of(event: Option<Event>) -> Option<Path> {
    match event {
        Some(Event::Lap(path)) => path,
        _ => None,
    }
}

/// An alternate path for a connection that has none. C does not answer.
pub(super) fn proposed(world: &Arc<World>) {
    let Some(mut pair) = Pair::until_established(world) else {
        return;
    };
    let way = other_way(world);
    let Ok(sent) = propose(&mut pair, world, way) else {
        return wrong!("the LAP is not sent");
    };
    if !pair.b.expect(EventType::LAP_RECEIVED) {
        return;
    }
    check!(pair.b.data_begin(lap::DATA));
    // It is the way from the device to itself, the other way round, too.
    is!(told_of(pair.b.last()), Some(way));
    is!(
        attributes_of(&mut pair.b, QpState::RTS).map(|attr| (attr.mask, attr.path_mig_state)),
        Some((load_mask(), MIG_REARM))
    );
    let alternate = attributes_of(&mut pair.b, QpState::RTS).map(|attr| attr.alternate);
    along_the_other_way(alternate.and_then(|alternate| alternate.address), world);
    // The end that is said to have asked has not, and hears nothing.
    is!(
        attributes_of(&mut pair.a, QpState::RTS).map(|attr| attr.mask),
        Some(rts_mask())
    );
    // Once more, and an answer that nobody waits for.
    is!(lap::send(world, &sent.to_mad()), Ok(()));
    is!(lap::send(world, &sent.to_apr()), Ok(()));
    end(&mut pair);
}

/// Alternate paths that no end has, of which C tells as of others: nothing changes.
pub(super) fn foreign(world: &Arc<World>) {
    let Some(mut pair) = Pair::until_established(world) else {
        return;
    };
    let way = other_way(world);
    let nobody = world.path_to_nobody();
    for path in [
        Path {
            link: nobody.link,
            ..way
        },
        Path {
            dgid: nobody.dgid,
            ..way
        },
        world.path(),
    ] {
        is!(propose(&mut pair, world, path).err(), None);
    }
    is!(
        attributes_of(&mut pair.b, QpState::RTS).map(|attr| attr.mask),
        Some(rts_mask())
    );
    end(&mut pair);
}
