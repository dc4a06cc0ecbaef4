// SPDX-License-Identifier: GPL-2.0

//! The table of commands: the number of each command, its request, its handler and its least
//! lengths.

use super::{address, call::Call, connect, context, event, multicast, option, query};
use crate::{
    kext::{chardev::OpenFile, error::ResultExt, uaccess::UserBytes},
    ucma::channel::Channel,
};
use cmproto::{
    errno::Errno,
    ucma::frame::Frame,
    ucma_abi::{self as abi, Command, CommandHeader},
};
use core::{
    hint::black_box,
    mem::{size_of, MaybeUninit},
};
use kernel::{prelude::*, sync::ArcBorrow};

/// A row of the table of commands.
#[derive(Clone, Copy)]
struct Row {
    command: Option<Command>,
    /// The least length of the request, in bytes. Shorter ones get `EINVAL`.
    request: usize,
    /// The least size of the buffer for the response, in bytes. Smaller ones get `ENOSPC`, before
    /// the request is read.
    answer: usize,
    /// The handler; `None` for a command that is not implemented.
    run: Option<fn(&Call<'_>) -> Result>,
}

impl Row {
    const NONE: Self = Row {
        command: None,
        request: 0,
        answer: 0,
        run: None,
    };
}

/// Makes a row: the command; the [`Call`] method that looks its subject up, its request and its
/// handler; the least length of its request and of its response, in bytes, if there is one.
macro_rules! row {
    ($command:ident) => {
        Row {
            command: Some(Command::$command),
            ..Row::NONE
        }
    };
    (
        $command:ident, $on:ident, $request:ident => $run:path
        $(, request $in:expr)? $(, answer $out:expr)?
    ) => {
        Row {
            $(request: $in,)?
            $(answer: $out,)?
            run: Some(|call| call.$on::<abi::$request>($run)),
            ..row!($command)
        }
    };
}

/// The rows, by command number. Their count is a power of two, so that numbers can be masked.
#[rustfmt::skip]
const TABLE: [Row; 32] = [
    row!(CreateId, on_channel, CreateId => context::create, answer 4),
    row!(DestroyId, on_channel, DestroyId => context::destroy, answer 4),
    row!(BindIp, on_context, BindIp => address::bind_ip),
    row!(ResolveIp, on_context, ResolveIp => address::resolve_ip),
    row!(ResolveRoute, on_device, ResolveRoute => address::resolve_route),
    row!(QueryRoute, on_context, Query => query::route, answer abi::QueryRouteResp::MIN_LEN),
    row!(Connect, on_device, Connect => connect::connect, request abi::Connect::MIN_LEN),
    row!(Listen, on_context, Listen => connect::listen),
    row!(Accept, on_device, Accept => connect::accept, request abi::Accept::MIN_LEN),
    row!(Reject, on_device, Reject => connect::reject),
    row!(Disconnect, on_device, Disconnect => connect::disconnect),
    row!(InitQpAttr, on_device, InitQpAttr => connect::init_qp_attr, answer 144),
    row!(GetEvent, on_channel, GetEvent => event::get, answer abi::EventResp::MIN_LEN),
    row!(GetOption),
    row!(SetOption, on_context, SetOption => option::set),
    row!(Notify, on_device, Notify => connect::notify),
    row!(JoinIpMcast, on_channel, JoinIpMcast => multicast::join_ip),
    row!(LeaveMcast, on_channel, DestroyId => multicast::leave, answer 4),
    row!(MigrateId, on_channel, MigrateId => context::migrate),
    row!(Query, on_context, Query => query::query),
    row!(Bind, on_context, Bind => address::bind),
    row!(ResolveAddr, on_context, ResolveAddr => address::resolve_addr),
    row!(JoinMcast, on_channel, JoinMcast => multicast::join),
    row!(ResolveIbService, on_context, ResolveIbService => address::resolve_ib_service),
    row!(WriteCmEvent, on_context, WriteCmEvent => event::write),
    Row::NONE, Row::NONE, Row::NONE, Row::NONE, Row::NONE, Row::NONE, Row::NONE,
];

// Every command must be in the row of its number.
const _: () = {
    let mut rest: &[Row] = &TABLE;
    let mut number = 0u32;
    while let [row, tail @ ..] = rest {
        if let Some(command) = row.command {
            assert!(command as u32 == number);
        }
        number = number.wrapping_add(1);
        rest = tail;
    }
};

static COMMANDS: [Row; 32] = TABLE;

/// Executes the command that a write contains. Returns the length of the write.
///
/// # Errors
///
/// - `EINVAL` if the write is shorter than a header or than its header says, or if there is no such
///   command;
/// - `EFAULT` if the write cannot be read;
/// - `ENOSYS` if the command is not implemented;
/// - `ENOSPC` if the response would not fit into the caller's buffer;
/// - the errors of the command.
pub(crate) fn dispatch(
    channel: ArcBorrow<'_, Channel>,
    file: &OpenFile<'_, Channel>,
    user: UserBytes,
) -> Result<usize> {
    let len = user.len();
    if len < size_of::<CommandHeader>() {
        return Err(EINVAL);
    }
    let mut header = MaybeUninit::uninit();
    let header: &CommandHeader = user.read_prefix(size_of::<CommandHeader>(), &mut header)?;
    let frame = Frame::new(header, len).kernel()?;
    // A mispredicted number of a command must not lead out of the table (Spectre v1). The mask also
    // holds under speculation: because of `black_box()` the compiler cannot know that it is
    // redundant.
    let number = black_box(frame.command as usize) & 31;
    let row = COMMANDS
        .get(number)
        .filter(|row| row.command == Some(frame.command))
        .ok_or(EINVAL)?;
    let run = row.run.ok_or(Errno::ENOSYS).kernel()?;
    if frame.request_len < row.request {
        return Err(EINVAL);
    }
    if frame.response_len < row.answer {
        return Err(ENOSPC);
    }
    let request = user.after(size_of::<CommandHeader>());
    run(&Call::new(channel, file, frame, request))?;
    Ok(len)
}
