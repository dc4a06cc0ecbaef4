// SPDX-License-Identifier: GPL-2.0

//! Events between the endpoint that has them and the reader who gets them.

use super::{call::Call, context::Context};
use crate::endpoint::{ConnEventParam, Ece, Event, EventParam};
use cmproto::ucma_abi::{self as abi, CmEvent, EventResp, FromZeros};
use kernel::{
    alloc::Flags,
    prelude::*,
    rbtree::{RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::Arc,
};

/// An event that nobody has read yet.
pub(super) struct Unread {
    /// Orders it among all events of its channel.
    turn: u64,
    /// What the user calls the context that the event is for.
    uid: u64,
    /// The number of that context; for a connection request, of the new one.
    id: u32,
    kind: CmEvent,
    /// 0, a negative errno, or the reason of a REJ.
    status: i32,
    ece: Ece,
    conn: Option<ConnSpace>,
    /// The context of a connection request. It goes if the event is never read.
    child: Option<Arc<Context>>,
}

impl Unread {
    /// An event for the context `id`, whose owner calls it `uid`, of this turn in its channel.
    ///
    /// `space` is used if the event has parameters; without it they are reported as zeros.
    pub(super) fn new(
        uid: u64,
        event: &Event,
        space: Option<ConnSpace>,
        id: u32,
        turn: u64,
    ) -> Self {
        let conn = match (&event.param, space) {
            (EventParam::Conn(param), Some(mut space)) => {
                space.clone_from(param);
                Some(space)
            }
            _ => None,
        };
        Unread {
            turn,
            uid,
            id,
            kind: event.kind,
            status: event.status,
            ece: event.ece,
            conn,
            child: None,
        }
    }

    /// Makes it the event that announces `child`.
    pub(super) fn with_child(self, child: Arc<Context>) -> Self {
        Unread {
            child: Some(child),
            ..self
        }
    }

    /// The context that it announces, if it is a connection request.
    pub(super) fn child(&self) -> Option<&Arc<Context>> {
        self.child.as_ref()
    }

    /// When the channel reads it.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// The same, to be changed in another channel.
    pub(super) fn turn_mut(&mut self) -> &mut u64 {
        &mut self.turn
    }

    /// Writes the event as user space reads it to `resp`, which must be all zeros.
    pub(super) fn encode(&self, resp: &mut EventResp) {
        resp.uid = self.uid;
        resp.id = self.id;
        resp.event = self.kind.number();
        resp.status = u32::from_ne_bytes(self.status.to_ne_bytes());
        resp.ece = abi::Ece {
            vendor_id: self.ece.vendor_id,
            attr_mod: self.ece.attr_mod,
        };
        if let Some(conn) = &self.conn {
            resp.set_conn(&to_user(conn));
        }
    }

    /// The same, as the one who ends it.
    pub(super) fn into_child(self) -> Option<Arc<Context>> {
        self.child
    }
}

/// The parameters of a connection as user space reads them. The Q_Key and `valid` stay 0.
fn to_user(conn: &ConnEventParam) -> abi::ConnParam {
    let mut param = abi::ConnParam::new_zeroed();
    for (to, from) in param.private_data.iter_mut().zip(conn.private_data) {
        *to = from;
    }
    param.private_data_len = conn.private_data_len;
    param.responder_resources = conn.responder_resources;
    param.initiator_depth = conn.initiator_depth;
    param.flow_control = conn.flow_control;
    param.retry_count = conn.retry_count;
    param.rnr_retry_count = conn.rnr_retry_count;
    param.srq = conn.srq;
    param.qp_num = conn.qp_num;
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
        |response| call.respond(request.response, response),
    )
}

/// The unread events of a context, in the order in which they happened.
pub(super) type Queue = RBTree<u64, Unread>;

/// An event in a [`Queue`], or on its way from there to its reader.
pub(super) type Node = RBTreeNode<u64, Unread>;

/// Memory for a [`Node`].
pub(super) type Room = RBTreeNodeReservation<u64, Unread>;

/// Memory for the parameters of an event.
pub(super) type ConnSpace = KBox<ConnEventParam>;

/// Memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that pays for it and while it is still
/// possible to fail. So no event waits for memory, and none is lost for want of it.
pub(super) struct Reserve {
    rooms: [Option<Room>; Self::ROOMS],
    conn: Option<ConnSpace>,
}

/// What a [`Reserve`] is to hold.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Number of events, at most [`Reserve::ROOMS`].
    events: usize,
    /// Whether one of them has parameters.
    conn: bool,
}

impl Need {
    /// The end of the device, which can come at any time.
    pub(super) const IDLE: Self = Need {
        events: 1,
        conn: false,
    };

    /// That, and the outcome of a resolution.
    pub(super) const RESOLVE: Self = Need {
        events: 2,
        conn: false,
    };

    /// That, and a connection: its outcome, its end and the end of timewait. The first may bring
    /// the parameters of a REP or a REJ.
    pub(super) const CONNECT: Self = Need {
        events: 4,
        conn: true,
    };

    /// The event of a connection request.
    pub(super) const REQUEST: Self = Need {
        events: 1,
        conn: true,
    };

    /// What one event needs.
    pub(super) fn of(event: &Event) -> Self {
        Need {
            events: 1,
            conn: matches!(event.param, EventParam::Conn(_)),
        }
    }

    /// Whether nothing is needed.
    pub(super) fn is_nothing(&self) -> bool {
        self.events == 0 && !self.conn
    }
}

impl Reserve {
    /// The most events for which there is memory.
    const ROOMS: usize = 4;

    /// A reserve that holds nothing.
    pub(super) const fn new() -> Self {
        Reserve {
            rooms: [const { None }; Self::ROOMS],
            conn: None,
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
        for room in reserve.rooms.iter_mut().take(need.events) {
            *room = Room::new(flags).ok();
        }
        if need.conn {
            reserve.conn = KBox::new(ConnEventParam::with_private_data(&[]), flags).ok();
        }
        reserve
    }

    /// What has to be added to satisfy `need`.
    pub(super) fn lacks(&self, need: Need) -> Need {
        let rooms = self.rooms.iter().flatten().count();
        Need {
            events: need.events.saturating_sub(rooms),
            conn: need.conn && self.conn.is_none(),
        }
    }

    /// Moves as much as fits from `other` to here.
    pub(super) fn fill_from(&mut self, other: &mut Self) {
        let places = self.rooms.iter_mut().filter(|room| room.is_none());
        let rooms = other.rooms.iter_mut().filter(|room| room.is_some());
        for (place, room) in places.zip(rooms) {
            *place = room.take();
        }
        if self.conn.is_none() {
            self.conn = other.conn.take();
        }
    }

    /// Takes memory for one event.
    pub(super) fn take(&mut self) -> Option<Room> {
        self.rooms.iter_mut().find_map(Option::take)
    }

    /// Takes memory for the parameters of one event.
    pub(super) fn take_conn(&mut self) -> Option<ConnSpace> {
        self.conn.take()
    }

    /// Returns memory for one event; gives it back if there is enough already.
    pub(super) fn put(&mut self, room: Room) -> Option<Room> {
        match self.rooms.iter_mut().find(|place| place.is_none()) {
            Some(place) => place.replace(room),
            None => Some(room),
        }
    }
}
