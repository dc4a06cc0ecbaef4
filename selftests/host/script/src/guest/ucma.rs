// SPDX-License-Identifier: GPL-2.0

//! The user: `/dev/infiniband/rdma_cm` by plain `write()` (`include/uapi/rdma/rdma_user_cm.h`).

use crate::world::{Called as Result, ConnParam, QpAttr, Space};
use cmproto::{cm::Tunable, qp::QpType, ucma_abi::LEVEL_TUNING};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    net::IpAddr,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
};

const DEVICE: &str = "/dev/infiniband/rdma_cm";
const PS_TCP: u16 = 0x0106;
const PS_UDP: u16 = 0x0111;

const CREATE_ID: u32 = 0;
const DESTROY_ID: u32 = 1;
const RESOLVE_ROUTE: u32 = 4;
const CONNECT: u32 = 6;
const LISTEN: u32 = 7;
const ACCEPT: u32 = 8;
const REJECT: u32 = 9;
const DISCONNECT: u32 = 10;
const INIT_QP_ATTR: u32 = 11;
const GET_EVENT: u32 = 12;
const SET_OPTION: u32 = 14;
const NOTIFY: u32 = 15;
const BIND: u32 = 20;
const RESOLVE_ADDR: u32 = 21;

/// `IB_EVENT_COMM_EST`.
const COMM_EST: u32 = 4;
const EVENT_LEN: usize = 336;
const QP_ATTR_LEN: usize = 144;

/// A request, written field by field in host order.
struct Request(Vec<u8>);

impl Request {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8], len: usize) -> Self {
        let end = self.0.len() + len;
        self.0.extend(bytes);
        self.0.resize(end, 0);
        self
    }

    fn param(self, param: &ConnParam) -> Self {
        let len = u8::try_from(param.private.len()).unwrap_or(u8::MAX);
        self.u32(param.qpn)
            .u32(0)
            .bytes(&param.private, 256)
            .bytes(&[len, param.srq, param.responder, param.initiator], 4)
            .bytes(&[param.flow, param.retry, param.rnr, 1], 4)
    }
}

/// A socket address as the kernel has it, and its length.
fn sockaddr(address: IpAddr, port: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    match address {
        IpAddr::V4(v4) => {
            bytes.extend(2u16.to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend(v4.octets());
            bytes.resize(16, 0);
        }
        IpAddr::V6(v6) => {
            bytes.extend(10u16.to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(v6.octets());
            bytes.resize(28, 0);
        }
    }
    bytes
}

/// `struct rdma_ucm_event_resp`, with `struct rdma_ucm_conn_param` in it.
pub struct RawEvent(Box<[u8; EVENT_LEN]>);

impl RawEvent {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap_or([0; 4]))
    }

    pub fn uid(&self) -> u64 {
        u64::from_ne_bytes(self.0[..8].try_into().unwrap_or([0; 8]))
    }

    pub fn id(&self) -> u32 {
        self.u32(8)
    }

    pub fn kind(&self) -> u32 {
        self.u32(12)
    }

    pub fn status(&self) -> i32 {
        i32::from_ne_bytes(self.u32(16).to_ne_bytes())
    }

    pub fn qpn(&self) -> u32 {
        self.u32(20)
    }

    pub fn private(&self) -> &[u8] {
        &self.0[28..28 + usize::from(self.0[284])]
    }

    /// Returns the private data of an event of a datagram service, which has `struct
    /// rdma_ucm_ud_param`.
    pub fn datagram_private(&self) -> &[u8] {
        &self.0[60..60 + usize::from(self.0[316])]
    }

    /// srq, responder resources, initiator depth, flow control, retry, rnr.
    pub fn numbers(&self) -> [u8; 6] {
        self.0[285..291].try_into().unwrap_or([0; 6])
    }

    pub fn ece(&self) -> (u32, u32) {
        (self.u32(328), self.u32(332))
    }
}

/// An open file.
pub struct Cm(File);

impl Cm {
    pub fn open() -> io::Result<Self> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .map(Self)
    }

    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    fn command(&self, command: u32, request: Request, out: usize) -> Result {
        let len = u16::try_from(request.0.len()).map_err(|_| libc::EINVAL)?;
        let out = u16::try_from(out).map_err(|_| libc::EINVAL)?;
        let header = Request::new().u32(command).u16(len).u16(out);
        let bytes = [header.0, request.0].concat();
        match (&self.0).write(&bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(libc::EPROTO),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// A command whose answer the kernel writes to the address in the request.
    fn ask<const N: usize>(
        &self,
        command: u32,
        request: impl FnOnce(u64) -> Request,
    ) -> Result<Box<[u8; N]>> {
        let mut answer = Box::new([0; N]);
        let address = answer.as_mut_ptr().expose_provenance();
        self.command(command, request(address as u64), N)?;
        Ok(answer)
    }

    pub fn create(&self, uid: u64, space: Space) -> Result<u32> {
        let (space, qp_type) = match space {
            Space::Tcp => (PS_TCP, QpType::RC.0),
            Space::Udp => (PS_UDP, QpType::UD.0),
        };
        let request = |response| {
            let request = Request::new().u64(uid).u64(response).u16(space);
            request.u8(qp_type).bytes(&[], 5)
        };
        Ok(u32::from_ne_bytes(*self.ask::<4>(CREATE_ID, request)?))
    }

    pub fn destroy(&self, id: u32) -> Result {
        self.ask::<4>(DESTROY_ID, |response| {
            Request::new().u64(response).u32(id).u32(0)
        })?;
        Ok(())
    }

    pub fn afonly(&self, id: u32) -> Result {
        let value = Box::new(1i32.to_ne_bytes());
        let address = value.as_ptr().expose_provenance() as u64;
        let request = Request::new().u64(address).u32(id).u32(0).u32(2).u32(4);
        self.command(SET_OPTION, request, 0)
    }

    pub fn tune(&self, id: u32, tunable: Tunable, value: u32) -> Result {
        let value = Box::new(value.to_ne_bytes());
        let address = value.as_ptr().expose_provenance() as u64;
        let request = Request::new().u64(address).u32(id).u32(LEVEL_TUNING);
        self.command(SET_OPTION, request.u32(tunable as u32).u32(4), 0)
    }

    pub fn bind(&self, id: u32, address: IpAddr, port: u16) -> Result {
        let address = sockaddr(address, port);
        let len = u16::try_from(address.len()).unwrap_or(0);
        let request = Request::new().u32(id).u16(len).u16(0);
        self.command(BIND, request.bytes(&address, 128), 0)
    }

    pub fn resolve_addr(&self, id: u32, address: IpAddr, port: u16) -> Result {
        let address = sockaddr(address, port);
        let len = u16::try_from(address.len()).unwrap_or(0);
        let request = Request::new().u32(id).u32(2000).u16(0).u16(len).u32(0);
        let request = request.bytes(&[], 128).bytes(&address, 128);
        self.command(RESOLVE_ADDR, request, 0)
    }

    pub fn resolve_route(&self, id: u32) -> Result {
        self.command(RESOLVE_ROUTE, Request::new().u32(id).u32(2000), 0)
    }

    pub fn listen(&self, id: u32, backlog: u32) -> Result {
        self.command(LISTEN, Request::new().u32(id).u32(backlog), 0)
    }

    pub fn connect(&self, id: u32, param: &ConnParam) -> Result {
        let request = Request::new().param(param).u32(id).u32(0);
        self.command(CONNECT, request.u32(param.vendor).u32(param.attr_mod), 0)
    }

    /// Without parameters it answers a REP.
    pub fn accept(&self, id: u32, uid: u64, param: Option<&ConnParam>) -> Result {
        let request = Request::new().u64(uid);
        let request = match param {
            Some(param) => request.param(param),
            None => request.bytes(&[], 272),
        };
        let (vendor, attr_mod) = param.map_or((0, 0), |param| (param.vendor, param.attr_mod));
        let request = request.u32(id).u32(0).u32(vendor).u32(attr_mod);
        self.command(ACCEPT, request, 0)
    }

    pub fn reject(&self, id: u32, reason: u8, private: &[u8]) -> Result {
        let len = u8::try_from(private.len()).unwrap_or(u8::MAX);
        let request = Request::new().u32(id).bytes(&[len, reason], 4);
        self.command(REJECT, request.bytes(private, 256), 0)
    }

    pub fn disconnect(&self, id: u32) -> Result {
        self.command(DISCONNECT, Request::new().u32(id), 0)
    }

    pub fn notify(&self, id: u32) -> Result {
        self.command(NOTIFY, Request::new().u32(id).u32(COMM_EST), 0)
    }

    pub fn qp_attr(&self, id: u32, state: u32) -> Result<QpAttr> {
        let request = |response| Request::new().u64(response).u32(id).u32(state);
        let answer = self.ask::<QP_ATTR_LEN>(INIT_QP_ATTR, request)?;
        let u32_at =
            |at: usize| u32::from_ne_bytes(answer[at..at + 4].try_into().unwrap_or([0; 4]));
        Ok(QpAttr {
            mask: u32_at(0),
            mtu: answer[12],
            rq_psn: u32_at(24),
            sq_psn: u32_at(28),
            dest_qpn: u32_at(32),
            access: u32_at(36),
            max_rd: answer[130],
            max_dest_rd: answer[131],
            timeout: answer[134],
            retry: answer[135],
            rnr: answer[136],
            alt_timeout: answer[138],
        })
    }

    /// The next event, if there is one.
    pub fn event(&self) -> Result<Option<RawEvent>> {
        match self.ask::<EVENT_LEN>(GET_EVENT, |response| Request::new().u64(response)) {
            Ok(event) => Ok(Some(RawEvent(event))),
            Err(libc::EAGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}
