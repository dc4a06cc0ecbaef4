// SPDX-License-Identifier: GPL-2.0

//! A socket of generic netlink.

use crate::{failure::Failure, signal::Signals};
use std::{
    io, iter, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;
const CTRL_CMD_DELFAMILY: u8 = 2;
/// The group that is told of families that come and go, which has the number of its family.
const CTRL_NOTIFY: u32 = GENL_ID_CTRL as u32;
/// Length of the headers of netlink and of generic netlink.
const HEADERS: usize = 20;

/// The attributes of a message, in their order.
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Returns the attributes that another one holds.
    pub fn of(bytes: &'a [u8]) -> Self {
        Attributes(bytes)
    }
}

/// Returns the next multiple of four.
fn aligned(len: usize) -> usize {
    (len + 3) & !3
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(u16_at(self.0, 0)?);
        // The two upper bits are flags.
        let number = u16_at(self.0, 2)? & 0x3fff;
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(aligned(len)..).unwrap_or(&[]);
        Some((number, value))
    }
}

/// A message to be sent.
struct Request(Vec<u8>);

impl Request {
    fn new(family: u16, flags: u16, command: u8, seq: u32) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(family.to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(seq.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([command, 1, 0, 0]);
        Request(bytes)
    }

    fn put(&mut self, number: u16, value: &[u8]) {
        self.0.extend(((value.len() + 4) as u16).to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = (self.0.len() as u32).to_ne_bytes();
        self.0[..4].copy_from_slice(&len);
        self.0
    }
}

/// Something that a [listener](Socket::listen) hears.
pub enum Heard<'a> {
    /// A message: its command and its attributes.
    Message(u8, Attributes<'a>),
    /// Messages were lost, because they were not read in time.
    Overrun,
}

/// A socket, and the family that it is used for.
pub struct Socket {
    fd: OwnedFd,
    family: u16,
    /// The numbers of the family's multicast groups, by name.
    groups: Vec<(String, u32)>,
    seq: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket for the family called `name`.
    pub fn open(name: &str) -> Result<Self, Failure> {
        // SAFETY: Just a system call.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_GENERIC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error().into());
        }
        let mut socket = Socket {
            // SAFETY: The descriptor is new.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            family: GENL_ID_CTRL,
            groups: Vec::new(),
            seq: 0,
            buffer: vec![0; 1 << 16],
        };
        let name: Vec<u8> = name.bytes().chain([0]).collect();
        let name = [(CTRL_ATTR_FAMILY_NAME, &name[..])];
        let (mut family, mut groups) = (None, Vec::new());
        let found = socket.call(NLM_F_ACK, CTRL_CMD_GETFAMILY, &name, |attributes| {
            for (number, value) in attributes {
                match number {
                    CTRL_ATTR_FAMILY_ID => family = u16_at(value, 0),
                    CTRL_ATTR_MCAST_GROUPS => {
                        groups = Attributes(value).filter_map(group).collect()
                    }
                    _ => {}
                }
            }
        });
        match found {
            Err(Failure::Kernel(libc::ENOENT)) => return Err(Failure::NoFamily),
            other => other?,
        }
        socket.family = family.ok_or(Failure::NoFamily)?;
        socket.groups = groups;
        Ok(socket)
    }

    /// Calls `visit` for each message of a dump.
    ///
    /// Fails with [`Failure::TooOld`] if the family does not have the command.
    pub fn dump(&mut self, command: u8, visit: impl FnMut(Attributes<'_>)) -> Result<(), Failure> {
        match self.call(NLM_F_DUMP, command, &[], visit) {
            Err(Failure::Kernel(libc::EOPNOTSUPP)) => Err(Failure::TooOld),
            other => other,
        }
    }

    /// Gives a command, and waits until it is carried out.
    pub fn act(&mut self, command: u8, attributes: &[(u16, &[u8])]) -> Result<(), Failure> {
        self.call(NLM_F_ACK, command, attributes, |_| {})
    }

    /// Joins a multicast group.
    fn join(&self, group: u32) -> Result<(), Failure> {
        // SAFETY: The value is as long as said.
        let joined = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_ADD_MEMBERSHIP,
                (&raw const group).cast(),
                size_of_val(&group) as libc::socklen_t,
            )
        };
        match joined {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    /// Calls `hear` for each message of a group of the family, until SIGINT or SIGTERM comes.
    ///
    /// Fails with [`Failure::NoFamily`] when the family goes.
    pub fn listen(&mut self, group: &str, mut hear: impl FnMut(Heard<'_>)) -> Result<(), Failure> {
        let found = self.groups.iter().find(|(name, _)| name == group);
        self.join(found.ok_or(Failure::NoFamily)?.1)?;
        self.join(CTRL_NOTIFY)?;
        let signals = Signals::block()?;
        let mut buffer = mem::take(&mut self.buffer);
        loop {
            if signals.come_before(self.fd.as_raw_fd())? {
                return Ok(());
            }
            // SAFETY: The buffer is as long as said.
            let len = unsafe {
                libc::recv(
                    self.fd.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            let Ok(len) = usize::try_from(len) else {
                match io::Error::last_os_error() {
                    error if error.raw_os_error() == Some(libc::ENOBUFS) => hear(Heard::Overrun),
                    error if error.kind() == io::ErrorKind::WouldBlock => {}
                    error => return Err(error.into()),
                }
                continue;
            };
            for (kind, message) in messages(&buffer[..len]) {
                let (Some(command), Some(attributes)) = (message.get(16), message.get(HEADERS..))
                else {
                    return Err(Failure::Garbled);
                };
                let mut attributes = Attributes(attributes);
                if kind == self.family {
                    hear(Heard::Message(*command, attributes));
                } else if (kind, *command) == (GENL_ID_CTRL, CTRL_CMD_DELFAMILY) {
                    let id = attributes.find(|(number, _)| *number == CTRL_ATTR_FAMILY_ID);
                    if id.and_then(|(_, value)| u16_at(value, 0)) == Some(self.family) {
                        return Err(Failure::NoFamily);
                    }
                }
            }
        }
    }

    fn call(
        &mut self,
        flags: u16,
        command: u8,
        attributes: &[(u16, &[u8])],
        mut visit: impl FnMut(Attributes<'_>),
    ) -> Result<(), Failure> {
        self.seq += 1;
        let mut request = Request::new(self.family, flags, command, self.seq);
        for (number, value) in attributes {
            request.put(*number, value);
        }
        let request = request.finish();
        // SAFETY: The buffer is as long as said.
        let sent = unsafe {
            libc::send(
                self.fd.as_raw_fd(),
                request.as_ptr().cast(),
                request.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error().into());
        }
        while !self.receive(&mut visit)? {}
        Ok(())
    }

    /// Receives messages. Returns whether the last one is among them.
    fn receive(&mut self, visit: &mut impl FnMut(Attributes<'_>)) -> Result<bool, Failure> {
        let Self { fd, buffer, .. } = self;
        // SAFETY: The buffer is as long as said.
        let len =
            unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        let mut rest = &buffer[..len];
        while let (Some(len), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
            let message = rest.get(..len as usize).ok_or(Failure::Garbled)?;
            match kind {
                NLMSG_DONE | NLMSG_ERROR => {
                    return match u32_at(message, 16).unwrap_or(0) as i32 {
                        0 => Ok(true),
                        error => Err(Failure::Kernel(-error)),
                    };
                }
                _ => {
                    let attributes = message.get(HEADERS..).ok_or(Failure::Garbled)?;
                    visit(Attributes(attributes));
                }
            }
            rest = rest.get(aligned(len as usize)..).unwrap_or(&[]);
        }
        Ok(false)
    }
}

/// Returns the name and the number of a multicast group.
fn group((_, attributes): (u16, &[u8])) -> Option<(String, u32)> {
    let (mut name, mut id) = (None, None);
    for (number, value) in Attributes(attributes) {
        match number {
            CTRL_ATTR_MCAST_GRP_NAME => name = Some(text(value)),
            CTRL_ATTR_MCAST_GRP_ID => id = u32_at(value, 0),
            _ => {}
        }
    }
    name.zip(id)
}

/// Returns the kinds of the messages in a buffer, and the messages with their headers.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    iter::from_fn(move || {
        let (len, kind) = (u32_at(rest, 0)? as usize, u16_at(rest, 4)?);
        let message = rest.get(..len).filter(|_| len >= 16)?;
        rest = rest.get(aligned(len)..).unwrap_or(&[]);
        Some((kind, message))
    })
}

/// Returns a text without the NUL at its end.
pub fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a number of 4 or 8 bytes.
pub fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => u32_at(bytes, 0).map(u64::from),
        _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_kernel_does_not_have_is_of_a_newer_tool() {
        let mut socket = Socket::open("nlctrl").unwrap();
        let mut families = 0;
        socket.dump(CTRL_CMD_GETFAMILY, |_| families += 1).unwrap();
        assert_ne!(families, 0);
        let failure = socket.dump(250, |_| panic!("an answer")).unwrap_err();
        assert_eq!(failure.status(), 3);
        assert!(failure.to_string().contains("older than this tool"));
    }

    #[test]
    fn attributes_of_a_request() {
        let mut request = Request::new(16, NLM_F_ACK, 3, 7);
        request.put(2, b"rdma-cm\0");
        request.put(5, &[1]);
        request.put(6, &9_u32.to_ne_bytes());
        let bytes = request.finish();
        assert_eq!(u32_at(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(bytes.len() % 4, 0);
        let found: Vec<_> = Attributes(&bytes[HEADERS..]).collect();
        let nine = 9_u32.to_ne_bytes();
        assert_eq!(found, [(2, &b"rdma-cm\0"[..]), (5, &[1]), (6, &nine)]);
    }

    #[test]
    fn messages_of_a_buffer() {
        let first = Request::new(20, 0, 8, 0).finish();
        let mut second = Request::new(16, 0, 2, 0);
        second.put(1, &[5]);
        let bytes = [first.clone(), second.finish()].concat();
        let found: Vec<_> = messages(&bytes).collect();
        assert_eq!(found, [(20, &first[..]), (16, &bytes[first.len()..])]);
        for garbled in [&bytes[..15], &bytes[..19], &[0; 20][..]] {
            assert_eq!(messages(garbled).count(), 0);
        }
    }

    #[test]
    fn groups_have_a_name_and_a_number() {
        let mut request = Request(Vec::new());
        request.put(CTRL_ATTR_MCAST_GRP_ID, &7_u32.to_ne_bytes());
        assert_eq!(group((1, &request.0)), None);
        request.put(CTRL_ATTR_MCAST_GRP_NAME, b"events\0");
        assert_eq!(group((1, &request.0)), Some(("events".into(), 7)));
    }

    #[test]
    fn garbled_attributes_are_none() {
        for bytes in [
            &[][..],
            &[4],
            &[3, 0, 1, 0],
            &[9, 0, 1, 0, 1, 2, 3, 4],
            &[0; 8],
        ] {
            assert_eq!(Attributes(bytes).count(), 0);
        }
    }

    #[test]
    fn numbers_have_four_or_eight_bytes() {
        assert_eq!(number(&7_u32.to_ne_bytes()), Some(7));
        assert_eq!(number(&u64::MAX.to_ne_bytes()), Some(u64::MAX));
        assert_eq!(number(&[1, 2]), None);
    }
}
