// SPDX-License-Identifier: GPL-2.0

//! Events on their way from the endpoint to the program that reads them.

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

/// An event that was not read yet.
pub(super) struct Unread {
    /// The position of the event among all events of its channel.
    turn: u64,
    /// The user's value for the context or multicast group that the event is for.
    uid: u64,
    /// The number of that context or group; in a connection request, the number of the new context.
    id: u32,
    kind: CmEvent,
    /// 0, a negative errno, or the reason that the peer gave.
    status: i32,
    /// The event in the layout of the ABI, if it has parameters.
    whole: Option<Whole>,
}

impl Unread {
    /// Creates an event for the context or group `id`, with the user's value `uid` and the position
    /// `turn` among the events of its channel.
    ///
    /// `space` is used if the event has parameters. Without it, parameters are reported as zeros.
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

    /// Returns whether a program wrote the event (`WRITE_CM_EVENT`).
    pub(super) fn is_written(&self) -> bool {
        matches!(self.kind, CmEvent::User | CmEvent::Internal)
    }

    /// Returns the position of the event among all events of its channel.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// Returns the position of the event, to be changed when the event moves to another channel.
    pub(super) fn turn_mut(&mut self) -> &mut u64 {
        &mut self.turn
    }

    /// Returns the start of the event in the layout of the ABI.
    pub(super) fn start(&self) -> EventStart {
        EventStart {
            uid: self.uid,
            id: self.id,
            event: self.kind.number(),
            status: u32::from_ne_bytes(self.status.to_ne_bytes()),
            none: 0,
        }
    }

    /// Returns the event in the layout of the ABI, if it has parameters. A reader takes it, and
    /// puts it back if the event stays unread.
    pub(super) fn whole(&mut self) -> &mut Option<Whole> {
        &mut self.whole
    }
}

/// An event with parameters, in the layout of the ABI.
pub(super) type Whole = KBox<EventResp>;

/// Memory for the parameters of an event.
///
/// # Invariants
///
/// The memory is all zeros.
pub(super) struct ParamSpace(Whole);

impl ParamSpace {
    fn new(flags: Flags) -> Result<Self, AllocError> {
        // INVARIANT: The memory was allocated zeroed.
        zeroed::new(flags).map(Self)
    }

    /// Fills the memory with `event`, in the layout of the ABI.
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

/// Converts the parameters of a connection to the layout of the ABI. `param` is all zeros; its
/// Q_Key and `valid` stay 0.
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

/// Converts the parameters of a datagram service to the layout of the ABI.
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
/// The errors of [`Channel::read`](super::channel::Channel::read), or `EFAULT` if the event cannot
/// be written, which then stays unread.
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

/// `WRITE_CM_EVENT`: queues an event that the program made itself.
///
/// # Errors
///
/// - `EINVAL` if programs may not write events of this kind, or if the context has no uid;
/// - `EAGAIN` if too many such events are unread;
/// - `ENOMEM` if there is no memory.
pub(super) fn write(_: &Call<'_>, context: &Context, request: &abi::WriteCmEvent) -> Result {
    let memory = Reserve::allocate(Need::EVENT, GFP_KERNEL_ACCOUNT)?;
    let status = i32::from_ne_bytes(request.status.to_ne_bytes());
    let event = Event {
        param: EventParam::Arg(request.arg()),
        ..Event::new(request.kind().kernel()?, status)
    };
    Channel::write(context, &event, memory)
}

/// A reserve of memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that is charged for the memory and while
/// a failure can still be reported. So no event waits for memory, and no event is lost for lack of
/// it.
///
/// # Invariants
///
/// The first `count` of `rooms` are `Some`, the others are `None`.
pub(super) struct Reserve {
    rooms: [Option<Allocated>; Self::ROOMS],
    count: usize,
    param: Option<ParamSpace>,
}

/// The amount of memory that a [`Reserve`] has to hold.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Number of events, at most [`Reserve::ROOMS`].
    events: usize,
    /// Set if one of the events has parameters.
    param: bool,
}

impl Need {
    /// Memory for a device removal, which can come at any time, and the outcome of a resolution.
    pub(super) const RESOLVE: Self = Need {
        events: 2,
        param: false,
    };

    /// Memory for a route resolution: [`RESOLVE`](Self::RESOLVE), and a change of the peer's
    /// address, which can come from then on.
    pub(super) const ROUTE: Self = Need {
        events: 3,
        param: false,
    };

    /// Memory for a connection: a device removal, a change of the peer's address, and the outcome
    /// of the connection, its end and the end of its time wait. The outcome may come with the
    /// parameters of a REP or a REJ.
    pub(super) const CONNECT: Self = Need {
        events: 5,
        param: true,
    };

    /// Memory for one event with parameters: a connection request, an event of a multicast group,
    /// or an event that a program writes.
    pub(super) const EVENT: Self = Need {
        events: 1,
        param: true,
    };

    /// Returns the need of one event.
    pub(super) fn of(event: &Event<'_>) -> Self {
        Need {
            events: 1,
            param: event.param.is_some(),
        }
    }

    /// Returns the rest of the need if there is memory for `events` events already.
    pub(super) fn beyond(self, events: usize) -> Self {
        Need {
            events: self.events.saturating_sub(events),
            ..self
        }
    }

    /// Returns whether no memory is needed.
    pub(super) fn is_nothing(&self) -> bool {
        self.events == 0 && !self.param
    }
}

impl Reserve {
    /// The most events for which a reserve has memory.
    const ROOMS: usize = 5;

    /// Creates an empty reserve.
    pub(super) const fn new() -> Self {
        Reserve {
            rooms: [const { None }; Self::ROOMS],
            count: 0,
            param: None,
        }
    }

    /// Allocates a reserve that satisfies `need`, or fails with `ENOMEM`.
    pub(super) fn allocate(need: Need, flags: Flags) -> Result<Self> {
        let reserve = Self::allocate_some(need, flags);
        if reserve.lacks(need).is_nothing() {
            Ok(reserve)
        } else {
            Err(ENOMEM)
        }
    }

    /// Allocates a reserve with as much of `need` as there is memory for.
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

    /// Returns what has to be added to the reserve to satisfy `need`.
    pub(super) fn lacks(&self, need: Need) -> Need {
        Need {
            events: need.events.saturating_sub(self.count),
            param: need.param && self.param.is_none(),
        }
    }

    /// Moves as much memory as fits from `other` into this reserve.
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

    /// Takes the memory for one event out.
    pub(super) fn take(&mut self) -> Option<Allocated> {
        let last = self.count.checked_sub(1)?;
        let room = self.rooms.get_mut(last)?.take();
        // INVARIANT: The last `Some` was taken.
        self.count = last;
        room
    }

    /// Takes the memory for the parameters of one event out.
    pub(super) fn take_param(&mut self) -> Option<ParamSpace> {
        self.param.take()
    }

    /// Adds memory for one event. Returns it if the reserve is full.
    pub(super) fn put(&mut self, room: Allocated) -> Option<Allocated> {
        match self.rooms.get_mut(self.count) {
            Some(place) => {
                // INVARIANT: One more is `Some`, behind the others.
                self.count = self.count.saturating_add(1);
                place.replace(room)
            }
            None => Some(room),
        }
    }
}
