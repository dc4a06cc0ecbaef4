// SPDX-License-Identifier: GPL-2.0

//! Files of captured frames: pcap and pcapng, as tcpdump and tshark write them.

use pcap_parser::{create_reader, pcapng::Block, Linktype, PcapBlockOwned, PcapError};
use std::{fs::File, io, path::Path};

/// Bytes that are read at a time; no frame is longer.
const CAPACITY: usize = 1 << 20;

/// A frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The place in the file, from 1.
    pub number: usize,
    /// When it was captured, in microseconds.
    pub time: u64,
    /// The link layer that it begins with.
    pub link: Linktype,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// An interface of a pcapng file: its link type, and how many units of time a second has.
struct Interface {
    link: Linktype,
    units: u64,
}

/// The state that is kept while a file is read.
#[derive(Default)]
struct Reader {
    interfaces: Vec<Interface>,
    /// Nanoseconds, not microseconds, in a pcap file.
    nano: bool,
    frames: Vec<Frame>,
}

impl Reader {
    fn push(&mut self, time: u64, link: Linktype, bytes: &[u8]) {
        self.frames.push(Frame {
            number: self.frames.len() + 1,
            time,
            link,
            bytes: bytes.to_vec(),
        });
    }

    fn block(&mut self, block: PcapBlockOwned<'_>) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.nano = header.is_nanosecond_precision();
                self.interfaces = vec![Interface {
                    link: header.network,
                    units: 1_000_000,
                }];
            }
            PcapBlockOwned::Legacy(packet) => {
                let link = self.interfaces.first().map(|i| i.link);
                let part = match self.nano {
                    true => packet.ts_usec / 1000,
                    false => packet.ts_usec,
                };
                let time = u64::from(packet.ts_sec) * 1_000_000 + u64::from(part);
                self.push(time, link.unwrap_or(Linktype::ETHERNET), packet.data);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                self.interfaces.push(Interface {
                    link: interface.linktype,
                    units: interface.ts_resolution().unwrap_or(1_000_000).max(1),
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let index = usize::try_from(packet.if_id).unwrap_or(usize::MAX);
                let Some(Interface { link, units }) = self.interfaces.get(index) else {
                    return;
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let time = u128::from(ticks) * 1_000_000 / u128::from(*units);
                let len = usize::try_from(packet.caplen).unwrap_or(0);
                let bytes = packet.data.get(..len).unwrap_or(packet.data);
                self.push(u64::try_from(time).unwrap_or(0), *link, bytes);
            }
            PcapBlockOwned::NG(_) => (),
        }
    }
}

/// The frames of a file. A file that is cut short ends there, as when the capturing program was
/// killed.
///
/// # Errors
///
/// The errors of reading it; `InvalidData` if it is no capture.
pub fn read(path: &Path) -> io::Result<Vec<Frame>> {
    let broken = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut pcap =
        create_reader(CAPACITY, File::open(path)?).map_err(|e| broken(format!("{e:?}")))?;
    let mut reader = Reader::default();
    loop {
        let is_whole = pcap.reader_exhausted();
        match pcap.next() {
            Ok((used, block)) => {
                reader.block(block);
                pcap.consume(used);
            }
            Err(PcapError::Eof | PcapError::UnexpectedEof) => return Ok(reader.frames),
            // The rest of a block may not be there.
            Err(PcapError::Incomplete(_)) if is_whole => return Ok(reader.frames),
            Err(PcapError::Incomplete(_)) => pcap.refill().map_err(|e| broken(format!("{e:?}")))?,
            Err(error) => return Err(broken(format!("{error:?}"))),
        }
    }
}
