// SPDX-License-Identifier: GPL-2.0

//! The state that a channel's lock protects: an entry for each context, with its unread events.
//!
//! Every context has a queue of its own, and the channel knows the sequence number of the oldest
//! event of each queue ([`cmproto::ucma::order`]). So readers see the events of all contexts in the
//! order in which they happened, and a context that is destroyed or moves takes its events along
//! without a search.

use super::{
    entry::{
        ChannelEntry, ContextId, ListenerEntry, Numbered, Oldest, OldestSeq, Place, PlaceRef,
        Recipient, RemovedEntry,
    },
    entry_map::EntryMap,
    event::{EventRespBox, Unread},
    membership::{MembershipEntry, RemovedMembership},
    queue::{EventMemory, EventNode, EventSubject, Requests, TakenMemory},
    reservation::{EventReservation, ExpectedEvents},
};
use crate::{endpoint::Event, kext::random};
use cmproto::{
    node::{Admission, Asker, Declined},
    ucma::order::{Arrival, Numbers},
    ucma_abi::EventStart,
};
use containers::Borrowed;
use core::{mem, ptr};
use kernel::{prelude::*, rbtree::RBTreeNode, sync::Arc};

/// The most contexts that a channel may have.
const MAX_CONTEXTS: usize = 1 << 17;

/// The most multicast groups that the contexts of a channel may join.
const MAX_GROUPS: u32 = 1 << 16;

/// The most unread events that programs may write into a channel.
const MAX_WRITTEN: u32 = 4096;

/// The entries of a channel's contexts.
///
/// # Invariants
///
/// - `oldest` has the place of each context whose queue is not empty, by the sequence number of the
///   first event in it, and no other one.
/// - `joined` and `written` are the sums of those of all entries.
pub(crate) struct ChannelContexts<C> {
    entries: EntryMap<C>,
    joined: u32,
    written: u32,
    oldest: Oldest<C>,
    sequence: Numbers,
}

/// An event that a reader has taken out of its queue, to copy it to the user.
///
/// The event counts as read from here on: a hostile user can make the copy hang in a page fault for
/// as long as it likes, and a command that destroys the context meanwhile must not wait for that.
/// If the copy fails afterwards, that command has reported one event too many.
#[must_use]
pub(crate) struct TakenEvent<C> {
    /// The context whose queue the event was in.
    pub(crate) owner: Arc<C>,
    /// The context that the event announces, if the event is a connection request.
    pub(crate) child: Option<Arc<C>>,
    /// The multicast group that the event is about, if it is about one.
    group: Option<u64>,
    /// Set if a program wrote the event.
    is_written: bool,
    /// The value of [`Unread::start`].
    pub(crate) start: EventStart,
    /// The value of [`Unread::resp`].
    pub(crate) resp: Option<EventRespBox>,
    pub(crate) node: TakenMemory<C>,
}

/// The entry of a context, with the parts of [`ChannelContexts`] that follow its events.
pub(crate) struct FoundEntry<'a, C> {
    pub(crate) entry: &'a mut ChannelEntry<C>,
    place: Borrowed<'a, PlaceRef<C>>,
    written: &'a mut u32,
    oldest: &'a mut Oldest<C>,
    sequence: &'a mut Numbers,
}

impl<C: Numbered> FoundEntry<'_, C> {
    /// Queues an event that has just happened. `unread` makes the event, given its sequence number.
    pub(crate) fn append(
        mut self,
        memory: EventMemory<C>,
        subject: EventSubject<C>,
        unread: impl FnOnce(u64) -> Unread,
    ) {
        let (seq, at) = (self.sequence.take(), self.entry.numbers.take());
        let unread = unread(seq);
        if unread.is_written() {
            self.count_written();
        }
        let FoundEntry {
            entry,
            place,
            oldest,
            ..
        } = self;
        if let Some(joined) = subject.group.and_then(|group| entry.groups.get_mut(&group)) {
            joined.add_unread(at);
        }
        // A parked request may come before others; all other events come last.
        let is_parked = subject.parked.is_some();
        if entry.queue.is_empty() {
            // INVARIANT: This is the first event. Its context is in no `oldest`, so that it is
            // entered.
            let _ = oldest.insert(OldestSeq(seq), place.clone());
        }
        entry.queue.fill(memory, at, unread, subject);
        if is_parked {
            entry.follow_first(&place, oldest);
        }
    }

    /// Admits and counts a connection request from `asker`, which is queued next. Returns the event
    /// of the request that gives way to it, too, if one does.
    pub(crate) fn admit(
        &mut self,
        asker: Option<Asker>,
    ) -> Result<(Admission, Option<EventNode<C>>), Declined> {
        let FoundEntry {
            entry,
            place,
            oldest,
            ..
        } = self;
        let (queue, listener) = (&mut entry.queue, &mut entry.listener);
        let backlog = &mut listener.as_mut().ok_or(Declined::NoRoom)?.backlog;
        let mut replaced = None;
        let admission = backlog.admit(asker, || {
            replaced = queue.replace(random::u64());
            replaced.is_some()
        });
        let admission = admission.inspect_err(|_| backlog.refuse())?;
        if replaced.is_some() {
            entry.follow_first(place, oldest);
        }
        Ok((admission, replaced))
    }

    /// Counts an event that a program wrote and that is about to be queued.
    fn count_written(&mut self) {
        self.entry.written = self.entry.written.saturating_add(1);
        *self.written = self.written.saturating_add(1);
    }
}

impl<C: Numbered> ChannelContexts<C> {
    /// Creates an empty set of entries.
    pub(crate) fn new() -> Self {
        ChannelContexts {
            entries: EntryMap::new(),
            joined: 0,
            written: 0,
            oldest: Oldest::new(),
            sequence: Numbers::new(),
        }
    }

    /// Returns whether the channel may have another context.
    pub(crate) fn has_room(&self) -> bool {
        self.count() < MAX_CONTEXTS
    }

    /// Returns whether a program may write another event.
    pub(crate) fn has_room_to_write(&self) -> bool {
        self.written < MAX_WRITTEN
    }

    /// Returns whether an event can be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.oldest.is_empty()
    }

    /// Returns the entry of `context`, or `None` if the context has gone.
    ///
    /// The contexts are compared because the number may belong to another one by now.
    pub(crate) fn get(&mut self, context: &C) -> Option<&mut ChannelEntry<C>> {
        Some(self.find(context)?.entry)
    }

    /// Returns the entry of `context` with what queuing an event for it changes.
    pub(crate) fn find(&mut self, context: &C) -> Option<FoundEntry<'_, C>> {
        let found = self.entries.get_mut(ContextId(context.id()));
        let (place, entry) = found.filter(|(place, _)| ptr::eq(&*place.context, context))?;
        Some(FoundEntry {
            entry,
            place,
            written: &mut self.written,
            oldest: &mut self.oldest,
            sequence: &mut self.sequence,
        })
    }

    /// Adds the context at `place`, with the user's value `uid`.
    pub(crate) fn add(&mut self, place: PlaceRef<C>, uid: u64) {
        if let Some(entry) = self.entries.insert(place) {
            entry.uid = uid;
        }
    }

    /// Removes a context, with its events.
    pub(crate) fn remove(&mut self, context: &C) -> Option<RemovedEntry<C>> {
        let place = (*self.find(context)?.place).clone();
        self.take_apart(place)
    }

    /// Returns the number of contexts that have an entry.
    pub(crate) fn count(&self) -> usize {
        self.entries.count()
    }

    /// Iterates over the places of all contexts, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Borrowed<'_, PlaceRef<C>>> {
        self.entries.iter()
    }

    /// Takes all entries out.
    pub(crate) fn clear(&mut self) -> Self {
        mem::replace(self, ChannelContexts::new())
    }

    /// Removes an arbitrary context, with its events.
    pub(crate) fn pop(&mut self) -> Option<RemovedEntry<C>> {
        let place = self.entries.any()?;
        self.take_apart(place)
    }

    /// Removes the context at `place`, with its events.
    fn take_apart(&mut self, place: PlaceRef<C>) -> Option<RemovedEntry<C>> {
        self.detach(&place)?;
        let removed = self.entries.at(&place)?.take_rest(place.clone());
        self.entries.remove(&place);
        Some(removed)
    }

    /// Calls `end` with the unread requests of each listener for which `is_meant` returns true,
    /// after they were removed. Does not update `oldest`: only for entries that nobody reads events
    /// from any more.
    pub(crate) fn take_requests(
        &mut self,
        is_meant: impl Fn(&C) -> bool,
        end: impl Fn(Requests<C>),
    ) {
        self.entries.for_each_mut(|context, entry| {
            let listens = |listener: &KBox<ListenerEntry>| listener.charge.is_some();
            if entry.listener.as_ref().is_some_and(listens) && is_meant(context) {
                end(Requests::of(entry.queue.take_requests()));
            }
        });
    }

    // Moving
    // ------------------------------------------------------------------------------------------

    /// Removes a place from `oldest`, and its memberships and events from the sums.
    fn detach(&mut self, place: &Place<C>) -> Option<()> {
        let entry = self.entries.at(place)?;
        self.joined = self.joined.saturating_sub(entry.joined);
        self.written = self.written.saturating_sub(entry.written);
        // The entries have another reference.
        drop(self.oldest.remove(place));
        Some(())
    }

    /// Moves a context to another channel, with its events, which become the last ones there,
    /// however many they are. Allocates and frees nothing. Returns whether the context was here.
    pub(crate) fn hand_over(&mut self, context: &C, to: &mut ChannelContexts<C>) -> bool {
        let found = self.find(context).map(|found| (*found.place).clone());
        let Some(place) = found else {
            return false;
        };
        if self.detach(&place).is_none() {
            return false;
        }
        self.entries.remove(&place);
        let Some(entry) = to.entries.insert(place.clone()) else {
            return false;
        };
        to.joined = to.joined.saturating_add(entry.joined);
        to.written = to.written.saturating_add(entry.written);
        entry.arrival = Arrival::now(&entry.numbers, &mut to.sequence);
        entry.follow_first(&place, &mut to.oldest);
        true
    }

    /// Returns the first unread connection request of `listener` whose key is not before `from`:
    /// its key, and the context that it announces.
    pub(crate) fn announced(&mut self, listener: &C, from: u64) -> Option<(u64, Arc<C>)> {
        self.get(listener)?.queue.request(from)
    }

    // Multicast groups
    // ------------------------------------------------------------------------------------------

    /// Returns whether another multicast group may be joined.
    pub(crate) fn has_room_for_group(&self) -> bool {
        self.joined < MAX_GROUPS
    }

    /// Adds a membership of `context`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the channel has too many memberships;
    /// - `ENOENT` if the context has gone.
    pub(crate) fn join(
        &mut self,
        context: &C,
        node: RBTreeNode<u64, MembershipEntry<C>>,
    ) -> Result {
        if !self.has_room_for_group() {
            return Err(ENOMEM);
        }
        let entry = self.get(context).ok_or(ENOENT)?;
        // Group numbers are unique, so that this replaces no other membership.
        entry.groups.insert(node);
        entry.joined = entry.joined.saturating_add(1);
        self.joined = self.joined.saturating_add(1);
        Ok(())
    }

    /// Removes a membership of `context`, with its unread events.
    pub(crate) fn leave(&mut self, context: &C, group: u64) -> Option<RemovedMembership<C>> {
        let FoundEntry {
            entry,
            place,
            oldest,
            ..
        } = self.find(context)?;
        let unread = entry.groups.get(&group)?.unread;
        let joined = entry.groups.remove_node(&group)?;
        entry.joined = entry.joined.saturating_sub(1);
        let events = unread.map(|at| entry.queue.withdraw(at?));
        entry.follow_first(&place, oldest);
        self.joined = self.joined.saturating_sub(1);
        Some(RemovedMembership::new(joined, events))
    }

    // Events
    // ------------------------------------------------------------------------------------------

    /// Puts an event that was taken out and could not be copied back into its queue, where it is
    /// the oldest one. Returns its node if the context has gone, or if the group of the event was
    /// left.
    pub(crate) fn put_back(&mut self, taken: TakenEvent<C>) -> Option<TakenMemory<C>> {
        let TakenEvent {
            owner,
            group,
            is_written,
            resp,
            node,
            ..
        } = taken;
        let Some(mut found) = self.find(&owner) else {
            return Some(node);
        };
        let entry = &mut *found.entry;
        entry.reported = entry.reported.wrapping_sub(1);
        let at = node.position();
        if let Some(group) = group {
            let Some(joined) = entry.groups.get_mut(&group) else {
                return Some(node);
            };
            joined.reported = joined.reported.wrapping_sub(1);
            joined.add_unread(at);
        }
        if is_written {
            found.count_written();
        }
        let FoundEntry {
            entry,
            place,
            oldest,
            ..
        } = found;
        entry.queue.put_back(node, resp);
        entry.follow_first(&place, oldest);
        None
    }

    /// Queues an event of `context`, or of its multicast group `group`, unless its owner wants no
    /// events.
    ///
    /// Memory comes from the reservation of the context or group. Without `extra`, a lack of memory
    /// is an error, which says how much is missing. With `extra`, the event is lost if neither has
    /// memory for it. Returns whether the event was queued.
    pub(crate) fn queue(
        &mut self,
        context: &C,
        group: Option<u64>,
        event: &Event<'_>,
        extra: Option<&mut EventReservation<C>>,
    ) -> Result<bool, ExpectedEvents> {
        let Some(found) = self.find(context) else {
            return Ok(false);
        };
        let id = found.place.id();
        let Some(recipient) = found.entry.recipient(id, group, event, extra)? else {
            return Ok(false);
        };
        let Recipient {
            uid,
            id,
            memory,
            param,
        } = recipient;
        let subject = EventSubject {
            uid,
            id,
            group,
            ..EventSubject::default()
        };
        found.append(memory, subject, |seq| {
            Unread::new(uid, event, param, id, seq)
        });
        Ok(true)
    }

    /// Removes the oldest event of all contexts from its queue and counts it as read.
    pub(crate) fn take(&mut self) -> Option<TakenEvent<C>> {
        let ChannelContexts {
            entries,
            written,
            oldest,
            ..
        } = self;
        let place = oldest.pop_first()?;
        let entry = entries.at(&place)?;
        let (uid, id) = (entry.uid, place.id().0);
        let (node, (start, resp, child, group, is_written)) =
            entry.queue.take_first(|unread, subject| {
                let (uid, id) = subject.map_or((uid, id), |subject| (subject.uid, subject.id));
                let child = subject.and_then(|subject| subject.child.clone());
                let group = subject.and_then(|subject| subject.group);
                let resp = unread.resp().take();
                (
                    unread.start(uid, id),
                    resp,
                    child,
                    group,
                    unread.is_written(),
                )
            })?;
        // INVARIANT: The place follows the first event.
        if let Some(first) = entry.first_seq() {
            let _ = oldest.insert(OldestSeq(first), place.clone());
        }
        entry.reported = entry.reported.wrapping_add(1);
        if is_written {
            entry.written = entry.written.saturating_sub(1);
            *written = written.saturating_sub(1);
        }
        if let Some(joined) = group.and_then(|group| entry.groups.get_mut(&group)) {
            joined.reported = joined.reported.wrapping_add(1);
            joined.remove_unread(node.position());
        }
        Some(TakenEvent {
            owner: place.context.clone(),
            child,
            group,
            is_written,
            start,
            resp,
            node,
        })
    }
}
