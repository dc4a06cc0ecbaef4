// SPDX-License-Identifier: GPL-2.0

//! The input of the fuzzer: what several threads do, one step after the other or at once.

use crate::{
    layout::{layout, Field, Kind},
    message::Forged,
    value::{sockaddr, Surroundings, Value},
};
use libafl::{corpus::CorpusId, inputs::Input, Error};
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// The number of threads, and that of files.
pub const THREADS: u8 = 4;
pub const FILES: u8 = 4;

/// The most steps of a sequence.
pub const MAX_STEPS: usize = 48;

/// An act of a thread.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Opens the file again; one that is there is closed.
    Open,
    Close,
    /// Writes a command.
    Command {
        number: u8,
        values: Vec<Value>,
        /// The length of the request in the header, if it is not the right one.
        request: Option<u16>,
        /// The size of the buffer for the answer in the header, if it is not the right one.
        answer: Option<u16>,
    },
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Waits for an event, for so many tens of milliseconds at most; a sequence has a limit, too.
    Poll(u8),
    /// Reads `/proc/self/fdinfo` of the file.
    Info,
    /// Sends a message on the wire.
    Message(Forged),
    /// Lets the device `fz0` come, or go.
    Device(bool),
    /// Lets the address of `fz0` come, or go.
    Address(bool),
}

/// A step: a thread does something with a file.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub thread: u8,
    pub file: u8,
    /// True if the next step begins before this one has ended.
    pub beside: bool,
    pub act: Act,
}

/// The steps.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence {
    pub steps: Vec<Step>,
}

impl Sequence {
    /// Returns the text of a sequence: JSON, in one line.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the sequence of a text.
    ///
    /// # Errors
    ///
    /// An error if the text is not that of a sequence.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::serialize(error.to_string()))
    }
}

impl Input for Sequence {
    fn to_file<P: AsRef<Path>>(&self, path: P) -> Result<(), Error> {
        Ok(fs::write(path, self.text() + "\n")?)
    }

    fn from_file<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn generate_name(&self, _id: Option<CorpusId>) -> String {
        // FNV-1a, which gives the same name with each compiler.
        let hash = self
            .text()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }
}

/// Returns the length of the address or the content of a field.
fn length(field: &Field, value: Option<&Value>) -> u64 {
    let len = match value {
        Some(Value::Address(index, port)) => sockaddr(*index, *port).len(),
        Some(Value::Content(bytes)) => bytes.len(),
        _ => field.len,
    };
    len as u64
}

/// Returns the bytes to write for a command.
pub fn encode(
    number: u8,
    values: &[Value],
    request: Option<u16>,
    answer: Option<u16>,
    surroundings: &impl Surroundings,
) -> Vec<u8> {
    let layout = layout(number);
    let mut bytes = vec![0; layout.len];
    for (field, value) in layout.fields.iter().zip(values) {
        let number = match value {
            Value::Number(number) => *number,
            Value::Made(n) if matches!(field.kind, Kind::Membership) => {
                u64::from(surroundings.membership(*n))
            }
            Value::Made(n) => u64::from(surroundings.id(*n)),
            Value::QueuePair(n) => u64::from(surroundings.queue_pair(*n)),
            Value::File(n) => u64::from(surroundings.file(*n)),
            Value::Memory(memory) => surroundings.memory(*memory),
            Value::Content(content) => surroundings.content(content),
            Value::Fitting => match field.kind {
                Kind::LengthOf(index) => length(&layout.fields[index], values.get(index)),
                _ => 0,
            },
            Value::Address(index, port) => {
                put(&mut bytes, field, &sockaddr(*index, *port));
                continue;
            }
            Value::Bytes(content) => {
                put(&mut bytes, field, content);
                continue;
            }
        };
        put(&mut bytes, field, &number.to_ne_bytes());
    }
    let len = request.unwrap_or(layout.len as u16);
    let answer = answer.unwrap_or(layout.answer as u16);
    let mut write = u32::from(number).to_ne_bytes().to_vec();
    write.extend(len.to_ne_bytes());
    write.extend(answer.to_ne_bytes());
    write.extend(bytes);
    write
}

fn put(bytes: &mut [u8], field: &Field, content: &[u8]) {
    let place = &mut bytes[field.at..field.at + field.len];
    place
        .iter_mut()
        .zip(content)
        .for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fuzz::tests::Nobody, mutate::Random, seeds::seeds};
    use cmproto::ucma_abi::{read_padded, Bind, Command, Connect, CreateId};
    use libafl_bolts::rands::StdRand;

    #[test]
    fn the_text_of_a_sequence_is_read_back() {
        let mut rand = StdRand::with_seed(1);
        let mut random = Random(&mut rand);
        let dir = std::env::temp_dir().join(format!("cm-fuzz-guest-{}", std::process::id()));
        let mut sequences = seeds();
        sequences.push(Sequence {
            steps: (0..2000).map(|_| random.step()).collect(),
        });
        for sequence in sequences {
            assert_eq!(Sequence::parse(&sequence.text()).unwrap(), sequence);
            sequence.to_file(&dir).unwrap();
            assert_eq!(Sequence::from_file(&dir).unwrap(), sequence);
        }
        fs::remove_file(dir).unwrap();
        assert!(Sequence::parse("{}").is_err());
    }

    #[test]
    fn requests_have_the_values_of_their_fields() {
        let values = [
            Value::Number(7),
            Value::Number(0x1234),
            Value::Number(0x106),
            Value::Number(2),
        ];
        let bytes = encode(0, &values, None, None, &Nobody);
        assert_eq!(bytes[..8], [0, 0, 0, 0, 24, 0, 4, 0]);
        let request: CreateId = read_padded(&bytes[8..]);
        assert_eq!((request.uid, request.response), (7, 0x1234));
        assert_eq!((request.ps, request.qp_type), (0x106, 2));

        let values = [
            Value::Made(3),
            Value::Fitting,
            Value::Number(0),
            Value::Address(0, 7000),
        ];
        let bytes = encode(Command::Bind as u8, &values, None, None, &Nobody);
        let request: Bind = read_padded(&bytes[8..]);
        assert_eq!((request.id, request.addr_size), (3, 16));
        assert_eq!(request.addr[..8], [2, 0, 0x1b, 0x58, 10, 0, 0, 1]);

        let values = [
            Value::QueuePair(1),
            Value::Number(0),
            Value::Bytes(vec![9; 999]),
        ];
        let bytes = encode(Command::Connect as u8, &values, Some(280), None, &Nobody);
        assert_eq!(bytes[4..6], 280u16.to_ne_bytes());
        let request: Connect = read_padded(&bytes[8..]);
        assert_eq!(request.conn_param.private_data, [9; 256]);
        assert_eq!(request.conn_param.private_data_len, 0);
    }
}
