// SPDX-License-Identifier: GPL-2.0

//! Commands that make, accept, refuse and end connections.

use super::call::{request, Call};
use crate::{
    endpoint::{ConnParam, Ece},
    kext::sysctl,
    ucma::{channel::Channel, context::Context, entries::ExpectedEvents},
};
use cmproto::{
    cm::QpState,
    errno::Errno,
    qp::low24,
    ucma::{account::Resource, backlog},
    ucma_abi as abi,
};
use kernel::prelude::*;

/// REJ reason code 28: rejected by the consumer (IBTA 12.6.7.2).
const CONSUMER_DEFINED: u8 = 28;
/// REJ reason code 35: the vendor option of ECE is not supported (IBTA annex A19).
const VENDOR_OPTION_NOT_SUPPORTED: u8 = 35;

/// Converts the user's parameters of a connection. A Q_Key is used for endpoints with native
/// (`AF_IB`) addresses only.
fn param<'a>(call: &'a Call<'_>, context: &Context, from: &'a abi::ConnParam) -> ConnParam<'a> {
    let has_qkey = from.qkey != 0 && context.endpoint().is_native();
    ConnParam {
        qp_num: low24(from.qp_num),
        qkey: if has_qkey { from.qkey } else { 0 },
        private_data: from
            .private_data
            .get(..usize::from(from.private_data_len))
            .unwrap_or(&[]),
        srq: from.srq,
        responder_resources: from.responder_resources,
        initiator_depth: from.initiator_depth,
        flow_control: from.flow_control,
        retry_count: from.retry_count,
        rnr_retry_count: from.rnr_retry_count,
        user: Some(call.channel().user.as_ref()),
    }
}

/// Returns the ECE at the end of a request that has `len` bytes with it. A shorter request, as of
/// an old librdmacm, has none.
fn ece(call: &Call<'_>, len: usize, from: &abi::Ece) -> Ece {
    if call.request_len() < len {
        return Ece::default();
    }
    Ece {
        vendor_id: from.vendor_id,
        attr_mod: from.attr_mod,
    }
}

request!(Connect: |request| {
    if request.conn_param.valid == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(())
});

/// `CONNECT`: sends a REQ or a SIDR_REQ.
///
/// Fails with `EPERM` for the number of another's queue pair.
pub(super) fn connect(call: &Call<'_>, context: &Context, request: &abi::Connect) -> Result {
    let param = param(call, context, &request.conn_param);
    let ece = ece(call, abi::Connect::LEN_WITH_ECE, &request.ece);
    call.channel()
        .reserve_events(context, ExpectedEvents::CONNECT)?;
    context.endpoint().connect(&param, ece)
}

request!(Listen);

/// `LISTEN`: listens for connection requests. The backlog limits the requests that are unread.
///
/// Unlike in C, an attempt that fails does not change the backlog of a context that listens
/// already.
///
/// Fails with `EMFILE` if the user has too many listeners.
pub(super) fn listen(call: &Call<'_>, context: &Context, request: &abi::Listen) -> Result {
    let charge = call.charge(context, Resource::Listeners)?;
    let limit = backlog::clamp(request.backlog, sysctl::max_backlog());
    Channel::propose_backlog(context, limit)?;
    context.endpoint().listen(limit)?;
    Channel::set_listener(context, limit, charge);
    Ok(())
}

request!(Accept);

/// `ACCEPT`: sends a REP or a SIDR_REP, or an RTU if the request has no parameters.
///
/// A context that accepts with parameters gets its uid, and with the uid its events, before any of
/// these events can happen.
///
/// Fails with `EPERM`, and changes nothing, for the number of another's queue pair.
pub(super) fn accept(call: &Call<'_>, context: &Context, request: &abi::Accept) -> Result {
    let ece = ece(call, abi::Accept::LEN_WITH_ECE, &request.ece);
    let endpoint = context.endpoint();
    if request.conn_param.valid == 0 {
        return endpoint.accept(None, ece, || ());
    }
    let param = param(call, context, &request.conn_param);
    call.channel()
        .reserve_events(context, ExpectedEvents::CONNECT)?;
    endpoint.accept(Some(&param), ece, || {
        Channel::set_uid(context, request.uid);
    })
}

/// Returns the REJ reason code for the one that the caller asks for, of which 0 is the default, or
/// `None` if callers may not use it.
fn reason(wanted: u8) -> Option<u8> {
    match wanted {
        0 => Some(CONSUMER_DEFINED),
        CONSUMER_DEFINED | VENDOR_OPTION_NOT_SUPPORTED => Some(wanted),
        _ => None,
    }
}

request!(Reject: |request| reason(request.reason).map(drop).ok_or(Errno::EINVAL));

/// `REJECT`: sends a REJ or a SIDR_REP.
pub(super) fn reject(_: &Call<'_>, context: &Context, request: &abi::Reject) -> Result {
    let reason = reason(request.reason).ok_or(EINVAL)?;
    let private_data = request
        .private_data
        .get(..usize::from(request.private_data_len))
        .ok_or(EINVAL)?;
    context.endpoint().reject(private_data, reason)
}

request!(Disconnect);

/// `DISCONNECT`: sends a DREQ or a DREP.
pub(super) fn disconnect(_: &Call<'_>, context: &Context, _: &abi::Disconnect) -> Result {
    context.endpoint().disconnect()
}

request!(InitQpAttr: |request| QpState::try_from(request.qp_state).map(drop));

/// `INIT_QP_ATTR`: returns the attributes to which a queue pair has to be set for the connection.
pub(super) fn init_qp_attr(
    call: &Call<'_>,
    context: &Context,
    request: &abi::InitQpAttr,
) -> Result {
    let attr = context
        .endpoint()
        .init_qp_attr_for_program(request.qp_state)?;
    call.respond(request.response, &attr)
}

request!(Notify);

/// `NOTIFY`: passes an event of the queue pair to the connection.
pub(super) fn notify(_: &Call<'_>, context: &Context, request: &abi::Notify) -> Result {
    context.endpoint().notify(request.event)
}
