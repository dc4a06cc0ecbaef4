// SPDX-License-Identifier: GPL-2.0

//! The messages about an alternate path of a connection, which no function of the CM sends.

use super::world::World;
use crate::rdma::{
    mad::{self, Mad},
    path::{Link, Path},
};
use kernel::{prelude::*, sync::Arc};

/// The attributes of the messages.
const LAP: u8 = 0x19;
const APR: u8 = 0x1a;

/// Version 1 of the datagram, the class of communication management, its version, a message.
const HEADER: [u8; 4] = [1, 7, 2, 3];

/// The private data of a LAP.
pub(super) const DATA: &[u8] = b"lap\0";

/// A proposal of a path, and by whom: the numbers of the ends as they see them.
pub(super) struct Lap {
    pub(super) local_id: u32,
    pub(super) remote_id: u32,
    /// The queue pair of the receiver.
    pub(super) qpn: u32,
    /// The path from the sender.
    pub(super) path: Path,
    /// The number of the exchange.
    pub(super) number: u64,
}

/// Puts bytes into a message.
fn put(mad: &mut Mad, at: usize, bytes: &[u8]) {
    let places = mad.iter_mut().skip(at);
    places.zip(bytes).for_each(|(to, from)| *to = *from);
}

impl Lap {
    /// Begins a message between the two ends: the numbers are in network byte order already.
    fn begin(&self, attribute: u8, from: u32, to: u32) -> Mad {
        let mut mad = [0; mad::LEN];
        put(&mut mad, 0, &HEADER);
        put(&mut mad, 8, &self.number.to_be_bytes());
        put(&mut mad, 17, &[attribute]);
        put(&mut mad, 24, &from.to_ne_bytes());
        put(&mut mad, 28, &to.to_ne_bytes());
        mad
    }

    /// Returns the message.
    pub(super) fn to_mad(&self) -> Mad {
        let mut mad = self.begin(LAP, self.local_id, self.remote_id);
        let path = &self.path;
        let (slid, dlid) = match path.link {
            Link::Ib { slid, dlid } => (slid, dlid),
            _ => (0, 0),
        };
        // A queue pair number has 24 bits, with the response timeout behind it.
        put(&mut mad, 36, &(self.qpn << 8 | 18 << 3).to_be_bytes());
        put(&mut mad, 44, &slid.to_be_bytes());
        put(&mut mad, 46, &dlid.to_be_bytes());
        put(&mut mad, 48, &path.sgid.0);
        put(&mut mad, 64, &path.dgid.0);
        put(&mut mad, 83, &[path.traffic_class, path.hop_limit]);
        // It stays in the subnet. The time is that of the way there and back.
        let timeout = path.packet_life_time.saturating_add(1);
        put(&mut mad, 86, &[1 << 3, timeout << 3]);
        put(&mut mad, 88, DATA);
        mad
    }

    /// Returns an answer that agrees.
    pub(super) fn to_apr(&self) -> Mad {
        self.begin(APR, self.remote_id, self.local_id)
    }
}

/// Sends a message from the device to itself.
pub(super) fn send(world: &Arc<World>, mad: &Mad) -> Result {
    mad::send(&world.device, world.gid.port(), &world.path(), mad)
}
