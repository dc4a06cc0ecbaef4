// SPDX-License-Identifier: GPL-2.0

//! Tests of the memory of a connection.

use super::*;
use crate::{
    cm::{RetransmitBuffer, RetransmitMemory},
    errno::Errno,
};
use core::ops::{Deref, DerefMut};

/// Memory that is never there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Nothing {}

impl Deref for Nothing {
    type Target = RetransmitBuffer;

    fn deref(&self) -> &RetransmitBuffer {
        match *self {}
    }
}

impl DerefMut for Nothing {
    fn deref_mut(&mut self) -> &mut RetransmitBuffer {
        match *self {}
    }
}

impl RetransmitMemory for Nothing {
    fn new() -> Result<Self, Errno> {
        Err(Errno::ENOMEM)
    }
}

#[test]
fn without_memory_nothing_changes() {
    let mut c = Connection::<Nothing>::new(OWN_ID, OWN_GUID, OWN_TID);
    let fresh = c.clone();
    assert_eq!(c.connect(&connect_params(), &[], at(0)), Err(Errno::ENOMEM));
    assert_eq!(c, fresh);

    let hdr = Header::new(Attribute::Req, PEER_TID);
    let mut c = Connection::<Nothing>::from_req(
        OWN_ID,
        OWN_GUID,
        OWN_TID,
        &hdr,
        &peer_req(),
        &Limits::DEFAULT,
    )
    .unwrap();
    let asked = c.clone();
    assert_eq!(c.accept(&accept_params(), &[], at(0)), Err(Errno::ENOMEM));
    let reason = Reason::CONSUMER_DEFINED;
    assert_eq!(c.reject(reason, &[], b"no", at(0)), Err(Errno::ENOMEM));
    assert_eq!(c, asked);
    // A message without private data needs no memory.
    assert!(c.reject(reason, &[], &[], at(0)).is_ok());
}

/// A connection has memory for a message until that is answered, and for private data that may have
/// to be sent again.
#[test]
fn an_answered_message_has_no_memory() {
    assert!(passive().buffer.is_none());
    assert!(Situation::ReqSent.connection().buffer.is_some());
    assert!(Situation::RepSent.connection().buffer.is_some());
    assert!(Situation::EstablishedPassive.connection().buffer.is_none());
    // The RTU of this one has private data.
    assert!(Situation::EstablishedActive.connection().buffer.is_some());
    let mut c = Situation::RepRcvd.connection();
    let _ = c.establish(&[], at(0)).unwrap();
    assert!(c.buffer.is_none());
    let mut c = Situation::RepSent.connection();
    let _ = c.notify_established(at(0)).unwrap();
    assert!(c.buffer.is_none());
}

/// Limits the memory of a connection, without that of its endpoint and of its buffer.
#[test]
fn a_connection_is_small() {
    assert_eq!(size_of::<Connection<&RetransmitBuffer>>().max(192), 192);
}
