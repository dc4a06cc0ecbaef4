// SPDX-License-Identifier: GPL-2.0

//! One end of a conversation, as the test sees it.

use super::{
    inbox::{Data, Inbox},
    world::World,
};
use crate::{
    harness::wrong,
    rdma::{
        ib_cm_event::{Event, EventType, Rej, Rep, Req, SidrRep},
        ib_cm_id::{IbCmId, IbCmIdRef, Identity, Lent, State},
    },
};
use core::ops::Deref;
use kernel::{prelude::*, sync::Arc};

/// The identifier of an end.
enum IdHandle {
    /// No identifier, or none yet.
    Nothing,
    /// An identifier.
    Owned(IbCmId<Inbox>),
    /// An identifier that a callback is to end.
    Lent(Lent<Inbox>),
}

/// One end of a conversation. It ends when it is dropped.
pub(crate) struct Side {
    inbox: Arc<Inbox>,
    handle: IdHandle,
}

impl Deref for Side {
    type Target = Inbox;

    fn deref(&self) -> &Inbox {
        &self.inbox
    }
}

impl Side {
    /// An end whose identifier comes with a request.
    pub(crate) fn expecting(world: &Arc<World>, service: u64) -> Result<Self> {
        Ok(Self {
            inbox: Inbox::new(world, service, None)?,
            handle: IdHandle::Nothing,
        })
    }

    /// An end with an identifier.
    pub(crate) fn new(world: &Arc<World>, service: u64) -> Result<Self> {
        Self::create(Inbox::new(world, service, None)?)
    }

    /// An end with an identifier; its requests are for `child`.
    pub(crate) fn of(child: &Side) -> Result<Self> {
        let child = child.inbox.clone();
        Self::create(Inbox::new(
            &child.world,
            child.service,
            Some(child.clone()),
        )?)
    }

    fn create(inbox: Arc<Inbox>) -> Result<Self> {
        let id = IbCmId::new(&inbox.world.device, inbox.clone())?;
        inbox.set_id(id.identity());
        Ok(Self {
            inbox,
            handle: IdHandle::Owned(id),
        })
    }

    fn owned(&mut self) -> Option<&IbCmId<Inbox>> {
        if let Some(kept) = self.inbox.take_kept() {
            self.handle = IdHandle::Owned(kept);
        }
        match &self.handle {
            IdHandle::Owned(id) => Some(id),
            _ => None,
        }
    }

    /// The identifier; `ENOENT` if there is none.
    pub(crate) fn id(&mut self) -> Result<&IbCmIdRef> {
        self.owned().map(|id| &**id).ok_or(ENOENT)
    }

    pub(crate) fn has_context(&mut self) -> bool {
        self.owned().is_some_and(IbCmId::has_context)
    }

    pub(crate) fn identity(&mut self) -> Result<Identity> {
        self.id().map(IbCmIdRef::identity)
    }

    /// The state, which is none if there is no identifier.
    pub(crate) fn state(&mut self) -> Option<State> {
        self.id().ok().map(IbCmIdRef::state)
    }

    /// Calls a function with the identifier of this end.
    pub(crate) fn does<T>(
        &mut self,
        act: impl FnOnce(&Inbox, &IbCmIdRef) -> Result<T>,
    ) -> Result<T> {
        let inbox = self.inbox.clone();
        act(&inbox, self.id()?)
    }

    /// Checks that the next event is this one.
    #[track_caller]
    pub(crate) fn expect(&self, event: EventType) -> bool {
        let next = self.inbox.next();
        if next != Some(event) {
            wrong!("event {:?}, not {:?}", next, event);
            return false;
        }
        self.inbox.step();
        true
    }

    /// The request that this end was told of last.
    pub(crate) fn req(&self) -> Option<Req> {
        match self.last() {
            Some(Event::Req(req)) => Some(req),
            _ => None,
        }
    }

    pub(crate) fn rep(&self) -> Option<Rep> {
        match self.last() {
            Some(Event::Rep(rep)) => Some(rep),
            _ => None,
        }
    }

    pub(crate) fn rej(&self) -> Option<Rej> {
        match self.last() {
            Some(Event::Rej(rej)) => Some(rej),
            _ => None,
        }
    }

    pub(crate) fn sidr_rep(&self) -> Option<SidrRep> {
        match self.last() {
            Some(Event::SidrRep(rep)) => Some(rep),
            _ => None,
        }
    }

    /// Checks that the data that this end was told last begin like this.
    pub(crate) fn data_begin(&self, with: &[u8]) -> bool {
        let data: Data = self.data();
        data.starts_with(with)
    }

    /// Leaves the end of the identifier to a callback.
    pub(crate) fn lend(&mut self) {
        self.owned();
        match core::mem::replace(&mut self.handle, IdHandle::Nothing) {
            IdHandle::Owned(id) => self.handle = IdHandle::Lent(id.lend()),
            handle => {
                wrong!("there is nothing to lend");
                self.handle = handle;
            }
        }
    }

    /// Ends this end, if it has not ended.
    pub(crate) fn end(&mut self) {
        self.owned();
        let id = match core::mem::replace(&mut self.handle, IdHandle::Nothing) {
            IdHandle::Owned(id) => Some(id),
            IdHandle::Lent(lent) => lent.reclaim(),
            IdHandle::Nothing => None,
        };
        if let Some(id) = id {
            drop(id);
            self.inbox.set_gone();
        }
        // A callback that ended it may not have come to its own end.
        self.inbox.wait_outside();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.end();
    }
}
