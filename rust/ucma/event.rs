// SPDX-License-Identifier: GPL-2.0

//! Events between the endpoint that has them and the reader who gets them.

use super::{
    call::{Call, Request},
    channel::Channel,
    context::Context,
    queue::Allocated,
};
use crate::{
    endpoint::{ConnEventParam, Event, EventParam, UdEventParam},
    kext::{error::ResultExt, zeroed},
};
use cmproto::{
    bytes::fill,
    errno::Errno,
    ucma_abi::{self as abi, CmEvent, EventResp, EventStart, FromZeros},
};
use kernel::{
    alloc::{flags::GFP_KERNEL_ACCOUNT, AllocError, Flags},
    prelude::*,
};

/// An event that nobody has read yet.
pub(super) struct Unread {
    /// Orders it among all events of its channel.
    turn: u64,
    /// What the user calls the context or the group that the event is for.
    uid: u64,
    /// The number of that context or group; for a connection request, of the new context.
    id: u32,
    kind: CmEvent,
    /// 0, a negative errno, or what the peer gave as a reason.
    status: i32,
    /// As user space reads it, if it has parameters.
    whole: Option<Whole>,
}

impl Unread {
    /// An event for the context `id`, whose owner calls it `uid`, of this turn in its channel.
    ///
    /// `space` is used if the event has parameters; without it they are reported as zeros.
    pub(super) fn new(
        uid: u64,
        event: &Event<'_>,
        space: Option<ParamSpace>,
        id: u32,
        turn: u64,
    ) -> Self {
        let mut unread = Unread {
            turn,
            uid,
            id,
            kind: event.kind,
            status: event.status,
            whole: None,
        };
        unread.whole = space
            .filter(|_| event.param.is_some())
            .map(|space| space.fill(&unread.start(), event));
        unread
    }

    /// Whether a program wrote the event.
    pub(super) fn is_written(&self) -> bool {
        matches!(self.kind, CmEvent::User | CmEvent::Internal)
    }

    /// When the channel reads it.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// The same, to be changed in another channel.
    pub(super) fn turn_mut(&mut self) -> &mut u64 {
        &mut self.turn
    }

    /// The start of the event as user space reads it.
    pub(super) fn start(&self) -> EventStart {
        EventStart {
            uid: self.uid,
            id: self.id,
            event: self.kind.number(),
            status: u32::from_ne_bytes(self.status.to_ne_bytes()),
            none: 0,
        }
    }

    /// All of the event as user space reads it, if more than zeros follow the start. It is the reader's, who
    /// returns it if the event stays unread.
    pub(super) fn whole(&mut self) -> &mut Option<Whole> {
        &mut self.whole
    }
}

/// An event with parameters, as user space reads it.
pub(super) type Whole = KBox<EventResp>;

/// Memory for the parameters of an event.
///
/// # Invariants
///
/// It is all zeros.
pub(super) struct ParamSpace(Whole);

impl ParamSpace {
    fn new(flags: Flags) -> Result<Self, AllocError> {
        // INVARIANT: It is all zeros.
        zeroed::new(flags).map(Self)
    }

    /// Makes it what user space reads of an event.
    fn fill(self, start: &EventStart, event: &Event<'_>) -> Whole {
        let mut resp = self.0;
        resp.uid = start.uid;
        resp.id = start.id;
        resp.event = start.event;
        resp.status = start.status;
        resp.ece = abi::Ece {
            vendor_id: event.ece.vendor_id,
            attr_mod: event.ece.attr_mod,
        };
        match &event.param {
            EventParam::Conn(conn) => {
                if let Some(param) = resp.conn_mut() {
                    conn_to_user(conn, param);
                }
            }
            EventParam::Ud(ud) => resp.set_ud(&ud_to_user(ud)),
            EventParam::Arg(arg) => resp.set_arg(*arg),
            EventParam::None | EventParam::Message(_) => {}
        }
        resp
    }
}

/// The parameters of a connection as user space reads them, into `param`, which is all zeros. The Q_Key and
/// `valid` stay 0.
fn conn_to_user(conn: &ConnEventParam<'_>, param: &mut abi::ConnParam) {
    fill(&mut param.private_data, conn.private_data.bytes());
    param.private_data_len = conn.private_data.len();
    param.responder_resources = conn.responder_resources;
    param.initiator_depth = conn.initiator_depth;
    param.flow_control = conn.flow_control;
    param.retry_count = conn.retry_count;
    param.rnr_retry_count = conn.rnr_retry_count;
    param.srq = conn.srq;
    param.qp_num = conn.qp_num;
}

/// The parameters of a datagram service as user space reads them.
fn ud_to_user(ud: &UdEventParam<'_>) -> abi::UdParam {
    let mut param = abi::UdParam::new_zeroed();
    fill(&mut param.private_data, ud.private_data.bytes());
    param.private_data_len = ud.private_data.len();
    param.qp_num = ud.qp_num;
    param.qkey = ud.qkey;
    param.ah_attr = ud.ah_attr;
    param
}

/// `GET_EVENT`: reads the oldest event of the channel.
///
/// # Errors
///
/// As [`Channel::read`](super::channel::Channel::read); `EFAULT` if the event cannot be written,
/// which then stays.
pub(super) fn get(call: &Call<'_>, request: &abi::GetEvent) -> Result {
    call.channel().read(
        || call.is_nonblocking(),
        |start, whole| match whole {
            Some(whole) => call.respond(request.response, whole),
            None => call.respond_padded::<EventResp>(request.response, start),
        },
    )
}

impl Request for abi::WriteCmEvent {
    fn id(&self) -> u32 {
        self.id
    }

    fn check(&self) -> Result<(), Errno> {
        self.kind().map(drop)
    }
}

/// `WRITE_CM_EVENT`: queues an event of the caller's own.
///
/// # Errors
///
/// - `EINVAL` for an event that is not for programs to write, or if the context has no uid;
/// - `EAGAIN` if too many such events are unread;
/// - `ENOMEM`.
pub(super) fn write(_: &Call<'_>, context: &Context, request: &abi::WriteCmEvent) -> Result {
    let memory = Reserve::allocate(Need::EVENT, GFP_KERNEL_ACCOUNT)?;
    let status = i32::from_ne_bytes(request.status.to_ne_bytes());
    let event = Event {
        param: EventParam::Arg(request.arg()),
        ..Event::new(request.kind().kernel()?, status)
    };
    Channel::write(context, &event, memory)
}

/// Memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that pays for it and while it is still
/// possible to fail. So no event waits for memory, and none is lost for want of it.
///
/// # Invariants
///
/// The first `count` of `rooms` are there, and no others.
pub(super) struct Reserve {
    rooms: [Option<Allocated>; Self::ROOMS],
    count: usize,
    param: Option<ParamSpace>,
}

/// What a [`Reserve`] is to hold.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Number of events, at most [`Reserve::ROOMS`].
    events: usize,
    /// Whether one of them has parameters.
    param: bool,
}

impl Need {
    /// The end of the device, which can come at any time, and the outcome of a resolution.
    pub(super) const RESOLVE: Self = Need {
        events: 2,
        param: false,
    };

    /// That of a route, from which on the peer may move.
    pub(super) const ROUTE: Self = Need {
        events: 3,
        param: false,
    };

    /// That, and a connection: its outcome, its end and the end of timewait. The first may bring
    /// the parameters of a REP or a REJ.
    pub(super) const CONNECT: Self = Need {
        events: 5,
        param: true,
    };

    /// One event with parameters: of a connection request, of a multicast group, or a program's own.
    pub(super) const EVENT: Self = Need {
        events: 1,
        param: true,
    };

    /// What one event needs.
    pub(super) fn of(event: &Event<'_>) -> Self {
        Need {
            events: 1,
            param: event.param.is_some(),
        }
    }

    /// What is needed besides memory for `events` events.
    pub(super) fn beyond(self, events: usize) -> Self {
        Need {
            events: self.events.saturating_sub(events),
            ..self
        }
    }

    /// Whether nothing is needed.
    pub(super) fn is_nothing(&self) -> bool {
        self.events == 0 && !self.param
    }
}

impl Reserve {
    /// The most events for which there is memory.
    const ROOMS: usize = 5;

    /// A reserve that holds nothing.
    pub(super) const fn new() -> Self {
        Reserve {
            rooms: [const { None }; Self::ROOMS],
            count: 0,
            param: None,
        }
    }

    /// Allocates a reserve that holds what is needed, or fails with `ENOMEM`.
    pub(super) fn allocate(need: Need, flags: Flags) -> Result<Self> {
        let reserve = Self::allocate_some(need, flags);
        if reserve.lacks(need).is_nothing() {
            Ok(reserve)
        } else {
            Err(ENOMEM)
        }
    }

    /// Allocates a reserve that holds as much of what is needed as there is memory for.
    pub(super) fn allocate_some(need: Need, flags: Flags) -> Self {
        let mut reserve = Self::new();
        for _ in 0..need.events {
            let Ok(room) = Allocated::new(flags) else {
                break;
            };
            let _ = reserve.put(room);
        }
        if need.param {
            reserve.param = ParamSpace::new(flags).ok();
        }
        reserve
    }

    /// What has to be added to satisfy `need`.
    pub(super) fn lacks(&self, need: Need) -> Need {
        Need {
            events: need.events.saturating_sub(self.count),
            param: need.param && self.param.is_none(),
        }
    }

    /// Moves as much as fits from `other` to here.
    pub(super) fn fill_from(&mut self, other: &mut Self) {
        while self.count < Self::ROOMS {
            let Some(room) = other.take() else {
                break;
            };
            let _ = self.put(room);
        }
        if self.param.is_none() {
            self.param = other.param.take();
        }
    }

    /// Takes memory for one event.
    pub(super) fn take(&mut self) -> Option<Allocated> {
        let last = self.count.checked_sub(1)?;
        let room = self.rooms.get_mut(last)?.take();
        // INVARIANT: The last one was taken.
        self.count = last;
        room
    }

    /// Takes memory for the parameters of one event.
    pub(super) fn take_param(&mut self) -> Option<ParamSpace> {
        self.param.take()
    }

    /// Returns memory for one event; gives it back if there is enough already.
    pub(super) fn put(&mut self, room: Allocated) -> Option<Allocated> {
        match self.rooms.get_mut(self.count) {
            Some(place) => {
                // INVARIANT: One more is there, behind the others.
                self.count = self.count.saturating_add(1);
                place.replace(room)
            }
            None => Some(room),
        }
    }
}
