// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers for the functions of librdmacm that the example calls.
//!
//! The declarations are written by hand, after `<rdma/rdma_cma.h>`: no crate with bindings is in
//! Debian. A program that has one (`rdma-mummy-sys`) needs nothing of this file.

use std::{
    ffi::{c_char, c_int, c_void, CStr},
    io,
    net::SocketAddrV4,
    ptr::{self, NonNull},
};

const RDMA_PS_TCP: c_int = 0x0106;
const AF_INET: u16 = 2;

/// The beginning of `struct rdma_cm_event`, which librdmacm allocates.
#[repr(C)]
struct RawEvent {
    id: *mut c_void,
    listen_id: *mut c_void,
    event: c_int,
    status: c_int,
}

/// `struct sockaddr_in`.
#[repr(C)]
struct RawAddress {
    family: u16,
    port: [u8; 2],
    addr: [u8; 4],
    zero: [u8; 8],
}

/// `struct rdma_conn_param`.
#[repr(C)]
struct RawParam {
    private_data: *const c_void,
    private_data_len: u8,
    responder_resources: u8,
    initiator_depth: u8,
    flow_control: u8,
    retry_count: u8,
    rnr_retry_count: u8,
    srq: u8,
    qp_num: u32,
}

#[link(name = "rdmacm")]
extern "C" {
    fn rdma_create_event_channel() -> *mut c_void;
    fn rdma_destroy_event_channel(channel: *mut c_void);
    fn rdma_create_id(
        channel: *mut c_void,
        id: *mut *mut c_void,
        context: *mut c_void,
        ps: c_int,
    ) -> c_int;
    fn rdma_destroy_id(id: *mut c_void) -> c_int;
    fn rdma_set_option(
        id: *mut c_void,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        len: usize,
    ) -> c_int;
    fn rdma_resolve_addr(
        id: *mut c_void,
        src: *mut RawAddress,
        dst: *mut RawAddress,
        timeout_ms: c_int,
    ) -> c_int;
    fn rdma_resolve_route(id: *mut c_void, timeout_ms: c_int) -> c_int;
    fn rdma_connect(id: *mut c_void, param: *mut RawParam) -> c_int;
    fn rdma_get_cm_event(channel: *mut c_void, event: *mut *mut RawEvent) -> c_int;
    fn rdma_ack_cm_event(event: *mut RawEvent) -> c_int;
    fn rdma_event_str(event: c_int) -> *const c_char;
}

/// Returns the error of a function that has set `errno`, unless it has succeeded.
fn checked(returned: c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An event: its name and its status.
pub struct Event {
    pub name: String,
    pub status: i32,
}

/// An event channel.
pub struct Channel(NonNull<c_void>);

impl Channel {
    /// Creates a channel.
    pub fn new() -> io::Result<Self> {
        // SAFETY: The function has no preconditions.
        let channel = NonNull::new(unsafe { rdma_create_event_channel() });
        channel.map(Self).ok_or_else(io::Error::last_os_error)
    }

    /// Creates an identifier for connections, whose events come here.
    pub fn id(&self) -> io::Result<Id<'_>> {
        let mut raw = ptr::null_mut();
        // SAFETY: The channel is valid, and `raw` has room for the result.
        checked(unsafe {
            rdma_create_id(self.0.as_ptr(), &mut raw, ptr::null_mut(), RDMA_PS_TCP)
        })?;
        Ok(Id { raw, channel: self })
    }

    /// Waits for the next event, and acknowledges it.
    pub fn next_event(&self) -> io::Result<Event> {
        let mut event: *mut RawEvent = ptr::null_mut();
        // SAFETY: The channel is valid, and `event` has room for the result.
        checked(unsafe { rdma_get_cm_event(self.0.as_ptr(), &mut event) })?;
        // SAFETY: The event is valid until it is acknowledged, and nobody uses it after that. The
        // name is a constant string.
        unsafe {
            let name = CStr::from_ptr(rdma_event_str((*event).event));
            let (name, status) = (name.to_string_lossy().into_owned(), (*event).status);
            checked(rdma_ack_cm_event(event))?;
            Ok(Event { name, status })
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: The channel is valid, and has no identifiers any more, which borrow it.
        unsafe { rdma_destroy_event_channel(self.0.as_ptr()) };
    }
}

/// An identifier.
pub struct Id<'a> {
    raw: *mut c_void,
    channel: &'a Channel,
}

impl Id<'_> {
    /// Sets an option whose value is an `unsigned int`.
    pub fn set_option(&self, level: i32, name: i32, mut value: u32) -> io::Result<()> {
        let (at, len) = ((&raw mut value).cast(), size_of_val(&value));
        // SAFETY: The identifier is valid, and the value is as long as said.
        checked(unsafe { rdma_set_option(self.raw, level, name, at, len) })
    }

    /// Resolves the address of the peer. Returns the event that says how that has ended.
    pub fn resolve_addr(&self, peer: SocketAddrV4, timeout_ms: i32) -> io::Result<Event> {
        let mut dst = RawAddress {
            family: AF_INET,
            port: peer.port().to_be_bytes(),
            addr: peer.ip().octets(),
            zero: [0; 8],
        };
        // SAFETY: The identifier and the address are valid.
        checked(unsafe { rdma_resolve_addr(self.raw, ptr::null_mut(), &mut dst, timeout_ms) })?;
        self.channel.next_event()
    }

    /// Resolves the route to the peer. Returns the event that says how that has ended.
    pub fn resolve_route(&self, timeout_ms: i32) -> io::Result<Event> {
        // SAFETY: The identifier is valid.
        checked(unsafe { rdma_resolve_route(self.raw, timeout_ms) })?;
        self.channel.next_event()
    }

    /// Connects a queue pair of this number, which the program does not use for anything else.
    /// Returns the event that says how that has ended.
    pub fn connect(&self, qp_num: u32) -> io::Result<Event> {
        let mut param = RawParam {
            private_data: ptr::null(),
            private_data_len: 0,
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: 0,
            qp_num,
        };
        // SAFETY: The identifier and the parameters are valid.
        checked(unsafe { rdma_connect(self.raw, &mut param) })?;
        self.channel.next_event()
    }
}

impl Drop for Id<'_> {
    fn drop(&mut self) {
        // SAFETY: The identifier is valid, and all of its events are acknowledged.
        unsafe { rdma_destroy_id(self.raw) };
    }
}
