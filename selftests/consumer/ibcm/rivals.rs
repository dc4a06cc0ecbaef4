// SPDX-License-Identifier: GPL-2.0

//! Two who want one service at the same moment.

use super::{
    connection::Nobody,
    inbox::Inbox,
    side::Side,
    world::{next_service, World},
};
use crate::{
    harness::{
        check, is, is_good,
        task::{dawdle, spawn, Meeting},
    },
    rdma::{
        address_listener::{service_of, AddressListener},
        device::Device,
        ib_cm_event::EventType,
        ib_cm_id::SharedListener,
        refusal::RejectReason,
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The ports whose services are wanted.
const FIRST_PORT: u16 = 21_000;
const PORTS: u32 = 500;

/// The number of their meetings: a moment of some instructions has to be met.
const ROUNDS: u32 = 1_500;
/// A race that takes longer needs fewer rounds.
const FEW_ROUNDS: u32 = 400;

/// The port whose service a round is about.
fn port_of(round: u32) -> u16 {
    let number = round.checked_rem(PORTS).unwrap_or(0);
    FIRST_PORT.saturating_add(u16::try_from(number).unwrap_or(0))
}

/// Returns the delay of one of two in a round.
fn delay_of(round: u32) -> u32 {
    round.wrapping_mul(7) % 97
}

/// Has another task do `theirs` while this one does `ours`, in each round, and then `judge` with whether
/// the other one had what it wanted, and what this one had. Both are gone when the next round begins.
fn race<T: Send + 'static, U>(
    rounds: u32,
    theirs: impl Fn(u32) -> Result<T> + Send + 'static,
    ours: impl Fn(u32) -> Result<U>,
    judge: impl Fn(bool, Result<U>),
) {
    let meeting = Meeting::new();
    let has_it = Arc::new(Atomic::new(false), GFP_KERNEL);
    check!(meeting.is_ok() && has_it.is_ok());
    let (Ok(meeting), Ok(has_it)) = (meeting, has_it) else {
        return;
    };
    let (their_meeting, they_have_it) = (meeting.clone(), has_it.clone());
    let done = spawn(move || {
        for round in 0..rounds {
            their_meeting.meet();
            dawdle(delay_of(round));
            let got = theirs(round);
            they_have_it.store(got.is_ok(), Relaxed);
            their_meeting.meet();
            // It is judged.
            their_meeting.meet();
            drop(got);
        }
    });
    let Some(done) = done else {
        return;
    };
    for round in 0..rounds {
        meeting.meet();
        dawdle(delay_of(round.wrapping_mul(5)));
        let got = ours(round);
        meeting.meet();
        // Both go through all rounds, whatever is wrong.
        if is_good() {
            judge(has_it.load(Relaxed), got);
        }
        meeting.meet();
    }
    done.wait_for_completion();
}

/// Returns true if the service is free: somebody can have it, and is heard.
fn is_free(device: &Device, service: u64) -> bool {
    is!(SharedListener::insert::<Inbox>(device, service).err(), None)
}

/// One listens on a port, one on the service id that stands for it.
pub(super) fn two_kinds(world: &Arc<World>) {
    let device = &world.device;
    race(
        ROUNDS,
        |round| {
            let listener = AddressListener::bind(port_of(round))?;
            listener.listen()?;
            Ok(listener)
        },
        |round| SharedListener::insert::<Nobody>(device, service_of(port_of(round))),
        |address, message| {
            check!(address != message.is_ok());
        },
    );
    for round in 0..PORTS {
        if !is_free(device, service_of(port_of(round))) {
            return;
        }
    }
}

/// Somebody listens on a port; two who would share the service id that stands for it are refused.
pub(super) fn refused_together(world: &Arc<World>) {
    let device = &world.device;
    let service = service_of(port_of(0));
    let listener = AddressListener::bind(port_of(0));
    is!(listener.as_ref().map(AddressListener::listen), Ok(Ok(())));
    let their_device = device.clone();
    race(
        FEW_ROUNDS,
        move |_| SharedListener::insert::<Nobody>(&their_device, service),
        |_| SharedListener::insert::<Nobody>(device, service),
        |theirs, ours| {
            is!((theirs, ours.err()), (false, Some(EINVAL)));
        },
    );
    drop(listener);
    is_free(device, service);
}

/// Two share a listener, and one gives it back before the other one has it: the latter is told of
/// requests.
pub(super) fn one_goes(world: &Arc<World>) {
    let device = &world.device;
    let service = next_service();
    let their_device = device.clone();
    race(
        FEW_ROUNDS,
        // It is gone at once.
        move |_| SharedListener::insert::<Nobody>(&their_device, service).map(drop),
        |_| SharedListener::insert::<Nobody>(device, service),
        |theirs, ours| {
            check!(theirs && ours.is_ok());
            is!(
                who_refuses(world, service),
                Some(RejectReason::CONSUMER_DEFINED)
            );
        },
    );
    is!(
        who_refuses(world, service),
        Some(RejectReason::INVALID_SERVICE_ID)
    );
    is_free(device, service);
}

/// Returns the reason with which a request is refused.
fn who_refuses(world: &Arc<World>, service: u64) -> Option<RejectReason> {
    let mut a = Side::new(world, service).ok()?;
    let asked = is!(a.does(Inbox::send_req), Ok(())) && a.expect(EventType::REJ_RECEIVED);
    a.rej().filter(|_| asked).map(|rej| rej.reason)
}
