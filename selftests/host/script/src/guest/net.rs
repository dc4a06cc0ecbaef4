// SPDX-License-Identifier: GPL-2.0

//! The wire: one packet socket on the peer's interface, shared by all scenarios.

use super::frame::{self, Mac, Way};
use crate::world::{Micros, Names, Who};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    mem,
    net::IpAddr,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

/// The peer's network namespace and interface, and the other end of its cable.
const NAMESPACE: &str = "/run/netns/peer";
const PEER_INTERFACE: &[u8; 3] = b"v1\0";
const LOCAL_INTERFACE: &str = "v0";

/// The socket through which one receiver gets its datagrams, and its part on the wire.
type Receiver = (UnixDatagram, Who);

/// The length of the record that a receiver gets: when, to whom, and the datagram.
pub const RECORD_LEN: usize = 8 + 1 + crate::wire::MAD_LEN;

/// The socket, and who waits for what.
pub struct Net {
    socket: OwnedFd,
    local_mac: Mac,
    receivers: Mutex<HashMap<IpAddr, Arc<Receiver>>>,
    start: Instant,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Opens a packet socket on `v1`; this thread is in the namespace "peer" meanwhile.
pub fn open() -> io::Result<OwnedFd> {
    let home = File::open("/proc/thread-self/ns/net")?;
    let peer = File::open(NAMESPACE)?;
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: The descriptors are open; the calls take no memory of ours.
    let socket = unsafe {
        check(libc::setns(peer.as_raw_fd(), libc::CLONE_NEWNET))?;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let socket = check(libc::socket(
            libc::AF_PACKET,
            kind,
            libc::c_int::from(protocol),
        ));
        let index = libc::if_nametoindex(PEER_INTERFACE.as_ptr().cast());
        check(libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET))?;
        (OwnedFd::from_raw_fd(socket?), index)
    };
    let (socket, index) = socket;
    // SAFETY: All zeros is an address.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = i32::try_from(index).unwrap_or(0);
    let len = libc::socklen_t::try_from(mem::size_of_val(&address)).unwrap_or(0);
    // SAFETY: `address` is an address of that length.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// Returns the age of the last frame that was read, by the kernel's clock: that does not depend on
/// how busy this program is. The first call turns the time stamps on.
fn age(socket: &OwnedFd) -> Micros {
    const SIOCGSTAMPNS: libc::c_ulong = 0x8907;
    let mut stamp = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut now = stamp;
    // SAFETY: Both take a `timespec`.
    let result = unsafe {
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS as _, &raw mut stamp)
    };
    if result != 0 {
        return 0;
    }
    let micros = |time: libc::timespec| time.tv_sec * 1_000_000 + time.tv_nsec / 1_000;
    Micros::try_from(micros(now) - micros(stamp)).unwrap_or(0)
}

/// Waits until one of the descriptors can be read, at most `ms`.
pub fn poll(fds: [i32; 2], ms: i32) {
    let mut fds = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: `fds` is an array of two.
    unsafe { libc::poll(fds.as_mut_ptr(), 2, ms) };
}

/// The hardware address of a peer, made from its IP address.
pub fn mac(address: IpAddr) -> Mac {
    let [.., a, b, c, d] = crate::wire::gid(address);
    [0x02, 0x5c, a, b, c, d]
}

impl Net {
    /// Opens the wire and starts to receive.
    pub fn open() -> io::Result<Arc<Self>> {
        let socket = open().map_err(|error| io::Error::other(format!("v1: {error}")))?;
        let text = fs::read_to_string(format!("/sys/class/net/{LOCAL_INTERFACE}/address"))?;
        let mut local_mac = [0; 6];
        for (byte, text) in local_mac.iter_mut().zip(text.trim().split(':')) {
            *byte = u8::from_str_radix(text, 16).map_err(io::Error::other)?;
        }
        let net = Arc::new(Self {
            socket,
            local_mac,
            receivers: Mutex::new(HashMap::new()),
            start: Instant::now(),
        });
        age(&net.socket);
        let receiver = net.clone();
        thread::spawn(move || loop {
            receiver.receive();
        });
        Ok(net)
    }

    pub fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Hands one frame to whom it is for.
    fn receive(&self) {
        let mut frame = [0u8; 2048];
        // SAFETY: `frame` is memory of that length.
        let len = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                0,
            )
        };
        let at = self.now().saturating_sub(age(&self.socket));
        let frame = &frame[..usize::try_from(len).unwrap_or(0)];
        let (dst, mad) = match frame::parse(frame) {
            Ok(Some((_, dst, mad))) => (dst, mad),
            Ok(None) => return,
            Err(error) => return eprintln!("# a bad frame: {error}"),
        };
        let receiver = match self.receivers.lock() {
            Ok(receivers) => receivers.get(&dst).cloned(),
            Err(_) => None,
        };
        if let Some(receiver) = receiver {
            let who = u8::from(receiver.1 == Who::Stranger);
            let record = [&at.to_ne_bytes()[..], &[who], &mad.0].concat();
            let _ = receiver.0.send(&record);
        }
    }

    /// A receiver for what is sent to the peer and the stranger of a scenario.
    pub fn listen(&self, names: &Names) -> io::Result<UnixDatagram> {
        let (ours, theirs) = UnixDatagram::pair()?;
        theirs.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        if let Ok(mut receivers) = self.receivers.lock() {
            let stranger = Arc::new((theirs.try_clone()?, Who::Stranger));
            receivers.insert(names.peer, Arc::new((theirs, Who::Peer)));
            receivers.insert(names.stranger, stranger);
        }
        Ok(ours)
    }

    /// Sends a datagram to the system under test.
    pub fn send(&self, src: IpAddr, dst: IpAddr, mad: &[u8]) -> io::Result<()> {
        let way = Way {
            src_mac: mac(src),
            dst_mac: self.local_mac,
            src,
            dst,
        };
        let psn = u32::try_from(self.now() % 0x0100_0000).unwrap_or(0);
        let frame = frame::build(&way, psn, mad);
        // SAFETY: `frame` is memory of that length.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
            )
        };
        match sent {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Tells the kernel under test where the peers are: `ip -batch` with these lines.
fn batch(lines: &[String]) -> io::Result<()> {
    let mut ip = Command::new("ip")
        .args(["-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(stdin) = &mut ip.stdin {
        stdin.write_all(lines.join("\n").as_bytes())?;
    }
    match ip.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("ip -batch failed")),
    }
}

/// Neighbour entries for the peers, and the way to them; removed when dropped.
pub struct Neighbours(Vec<String>);

impl Neighbours {
    pub fn add(names: &[Names]) -> io::Result<Self> {
        let all = names.iter().flat_map(|names| [names.peer, names.stranger]);
        let neighbour = |address: IpAddr| {
            let mac = mac(address).map(|byte| format!("{byte:02x}")).join(":");
            format!("neigh replace {address} lladdr {mac} dev {LOCAL_INTERFACE} nud permanent")
        };
        let mut lines = vec![format!(
            "route replace {} dev {LOCAL_INTERFACE}",
            super::NET_V4
        )];
        lines.extend(all.clone().map(neighbour));
        let mut undo: Vec<String> = all
            .map(|address| format!("neigh del {address} dev {LOCAL_INTERFACE}"))
            .collect();
        undo.push(format!("route del {} dev {LOCAL_INTERFACE}", super::NET_V4));
        let added = Self(undo);
        batch(&lines)?;
        Ok(added)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        if let Err(error) = batch(&self.0) {
            eprintln!("# cannot remove neighbours: {error}");
        }
    }
}
