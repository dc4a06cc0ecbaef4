// SPDX-License-Identifier: GPL-2.0

//! Commands that read and write events.

use super::call::{request, Call};
use crate::{
    endpoint::{Event, EventParam},
    kext::{error::ResultExt, slab::Wait},
    ucma::{
        channel::Channel,
        context::Context,
        entries::{EventReservation, ExpectedEvents},
    },
};
use cmproto::{
    ucma::account::Resource,
    ucma_abi::{self as abi, EventResp},
};
use kernel::prelude::*;

/// `GET_EVENT`: reads the oldest event of the channel.
///
/// # Errors
///
/// The errors of [`Channel::read`], or `EFAULT` if the event cannot
/// be written, which then stays unread.
pub(super) fn get(call: &Call<'_>, request: &abi::GetEvent) -> Result {
    call.channel().read(
        || call.is_nonblocking(),
        |start, resp| match resp {
            Some(resp) => call.respond(request.response, resp),
            None => call.respond_padded::<EventResp>(request.response, start),
        },
    )
}

request!(WriteCmEvent: |request| request.kind().map(drop));

/// `WRITE_CM_EVENT`: queues an event that the program made itself.
///
/// # Errors
///
/// - `EINVAL` if programs may not write events of this kind, or if the context has no uid;
/// - `EAGAIN` if too many such events of the file or the user are unread;
/// - `ENOMEM` if there is no memory.
pub(super) fn write(call: &Call<'_>, context: &Context, request: &abi::WriteCmEvent) -> Result {
    let charge = call.charge(context, Resource::WrittenEvents)?;
    let params = &call.channel().ucma.slabs.params;
    let memory = EventReservation::allocate(ExpectedEvents::ONE, params, Wait::May)?;
    let status = i32::from_ne_bytes(request.status.to_ne_bytes());
    let event = Event {
        param: EventParam::Arg(request.arg()),
        ..Event::new(request.kind().kernel()?, status)
    };
    Channel::write(context, &event, memory, charge)
}
