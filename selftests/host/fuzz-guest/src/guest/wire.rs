// SPDX-License-Identifier: GPL-2.0

//! The wire: a packet socket at the other device's end of the cable.

use crate::message::{Forged, Heard, SENDERS};
use cm_script::guest::{
    frame::{self, Mac, Way},
    net,
};
use std::{
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    process::Command,
};

/// The interface of the target.
const INTERFACE: &str = "v0";
/// The most messages that are remembered.
const MEMORY: usize = 64;
/// The time in milliseconds that an answer may take.
const PATIENCE: i32 = 20;

/// The wire, and the messages that were heard on it.
pub struct Wire {
    socket: OwnedFd,
    target: Mac,
    psn: u32,
    heard: Vec<Heard>,
}

impl Wire {
    /// Opens the socket, and tells the target where the fuzzer is.
    pub fn new() -> io::Result<Self> {
        let mut target = [0; 6];
        let text = fs::read_to_string(format!("/sys/class/net/{INTERFACE}/address"))?;
        for (byte, text) in target.iter_mut().zip(text.trim().split(':')) {
            *byte = u8::from_str_radix(text, 16).map_err(io::Error::other)?;
        }
        for address in SENDERS[1] {
            let mac = net::mac(address)
                .map(|byte| format!("{byte:02x}"))
                .join(":");
            let words =
                format!("neigh replace {address} lladdr {mac} dev {INTERFACE} nud permanent");
            let done = Command::new("ip").args(words.split(' ')).status()?;
            if !done.success() {
                return Err(io::Error::other(words));
            }
        }
        Ok(Self {
            socket: net::open()?,
            target,
            psn: 0,
            heard: Vec::new(),
        })
    }

    /// Forgets what was heard.
    pub fn forget(&mut self) {
        self.listen();
        self.heard.clear();
    }

    /// Remembers all messages that have come.
    fn listen(&mut self) {
        let mut frame = [0u8; 2048];
        loop {
            // SAFETY: `frame` is memory of that length.
            let len = unsafe {
                let to = frame.as_mut_ptr().cast();
                libc::recv(self.socket.as_raw_fd(), to, frame.len(), libc::MSG_DONTWAIT)
            };
            let Ok(len) = usize::try_from(len) else {
                break;
            };
            if let Ok(Some((from, _, mad))) = frame::parse(&frame[..len]) {
                self.heard.push(Heard { from, mad: mad.0 });
            }
        }
        let old = self.heard.len().saturating_sub(MEMORY);
        self.heard.drain(..old);
    }

    /// Sends a message, and waits a little for what it causes.
    pub fn send(&mut self, message: &Forged) -> io::Result<()> {
        self.listen();
        let mad = message.compose(&self.heard);
        let (src, dst) = message.way();
        let way = Way {
            src_mac: net::mac(src),
            dst_mac: self.target,
            src,
            dst,
        };
        for _ in 0..message.copies {
            self.psn += 1;
            let frame = frame::build(&way, self.psn, &mad);
            // SAFETY: `frame` is memory of that length.
            let sent = unsafe {
                let from = frame.as_ptr().cast();
                libc::send(self.socket.as_raw_fd(), from, frame.len(), 0)
            };
            if sent < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let socket = self.socket.as_raw_fd();
        net::poll([socket, -1], PATIENCE);
        Ok(())
    }
}
