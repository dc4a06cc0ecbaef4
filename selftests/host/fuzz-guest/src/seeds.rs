// SPDX-License-Identifier: GPL-2.0

//! The sequences that the search begins with: what programs do.

use crate::{
    layout::{layout, Kind},
    message::{Base, CommId, Edit, Forged},
    mutate::Random,
    sequence::{Act, Sequence, Step},
    value::{Memory, Value},
};
use cmproto::{
    ucma_abi::Command::{self, *},
    wire::Attribute,
};
use libafl_bolts::rands::StdRand;

/// Indexes of [`ADDRESSES`](crate::value::ADDRESSES).
const HOME: u8 = 0;
const PEER: u8 = 1;
const PEER6: u8 = 3;
const EXTRA: u8 = 4;
const ANY: u8 = 5;
const NOBODY: u8 = 9;
const GROUP: u8 = 12;
const NONE: u8 = 22;
const FUZZER: u8 = 24;
const FUZZER6: u8 = 25;

/// Indexes of [`SENDERS`](crate::message::SENDERS).
const OTHER: u8 = 0;
const OWN: u8 = 1;

const KERNEL_PORT: u16 = 4420;

/// A sequence that is being written.
#[derive(Default)]
struct Script(Vec<Step>);

impl Script {
    fn act(mut self, thread: u8, act: Act) -> Self {
        self.0.push(Step {
            thread,
            file: thread,
            beside: false,
            act,
        });
        self
    }

    /// A command whose fields have their usual values but for these, which are given by their index.
    fn call(self, thread: u8, command: Command, fields: &[(usize, Value)]) -> Self {
        let number = command as u8;
        let mut values: Vec<_> = layout(number)
            .fields
            .iter()
            .map(|field| match field.kind {
                Kind::Number(numbers) => Value::Number(numbers[0]),
                Kind::Id | Kind::Membership => Value::Made(0),
                Kind::QueuePair => Value::QueuePair(0),
                Kind::File => Value::File(1),
                Kind::Answer => Value::Memory(Memory::Good),
                Kind::Content => Value::Content(vec![1, 0, 0, 0]),
                Kind::Address => Value::Address(HOME, 0),
                Kind::LengthOf(_) => Value::Fitting,
                Kind::Bytes => Value::Bytes(Vec::new()),
            })
            .collect();
        for (index, value) in fields {
            values[*index] = value.clone();
        }
        let act = Act::Command {
            number,
            values,
            request: None,
            answer: None,
        };
        self.act(thread, act)
    }

    fn id(
        self,
        thread: u8,
        command: Command,
        at: usize,
        id: u8,
        fields: &[(usize, Value)],
    ) -> Self {
        let mut fields = fields.to_vec();
        fields.push((at, Value::Made(id)));
        self.call(thread, command, &fields)
    }

    fn create(self, thread: u8, space: u64) -> Self {
        let kind = if space == 0x111 { 4 } else { 2 };
        let fields = [(2, Value::Number(space)), (3, Value::Number(kind))];
        self.call(thread, CreateId, &fields)
    }

    fn bind(self, thread: u8, id: u8, address: u8, port: u16) -> Self {
        self.id(thread, Bind, 0, id, &[(3, Value::Address(address, port))])
    }

    fn resolve(self, thread: u8, id: u8, address: u8, port: u16) -> Self {
        let to = [
            (5, Value::Address(NONE, 0)),
            (6, Value::Address(address, port)),
        ];
        self.id(thread, ResolveAddr, 0, id, &to).event(thread)
    }

    fn event(self, thread: u8) -> Self {
        self.act(thread, Act::Poll(100)).call(thread, GetEvent, &[])
    }

    fn option(self, thread: u8, id: u8, level: u64, name: u64, value: &[u8]) -> Self {
        let fields = [
            (0, Value::Content(value.to_vec())),
            (2, Value::Number(level)),
            (3, Value::Number(name)),
        ];
        self.id(thread, SetOption, 1, id, &fields)
    }

    fn send(self, sender: u8, base: Base, edits: &[Edit]) -> Self {
        let message = Forged {
            sender,
            ipv6: false,
            base,
            edits: edits.to_vec(),
            cut: 0,
            copies: 1,
        };
        self.act(0, Act::Message(message))
    }

    /// A message of the sender's newest conversation with the target.
    fn tell(self, sender: u8, attribute: Attribute, port: u16) -> Self {
        let local = if sender == OWN {
            CommId::Own(0)
        } else {
            CommId::Other(0)
        };
        let base = Base::New {
            attribute: (attribute as u16 - Attribute::Req as u16) as u8,
            local,
            remote: CommId::Target(0),
            port,
        };
        self.send(sender, base, &[])
    }

    /// The fuzzer asks id 0, which listens, for a connection, and id 1 is the request.
    fn asked(self) -> Self {
        self.create(0, 0x106)
            .bind(0, 0, HOME, 7000)
            .id(0, Listen, 0, 0, &[])
            .tell(OWN, Attribute::Req, 7000)
            .event(0)
    }

    /// The fuzzer has a connection with id 1.
    fn served(self) -> Self {
        self.asked()
            .id(0, Accept, 10, 1, &[])
            .tell(OWN, Attribute::Rtu, 0)
            .event(0)
    }

    /// Id 0 asks the fuzzer for a connection.
    fn asks(self, address: u8) -> Self {
        self.create(0, 0x106)
            .resolve(0, 0, address, 7000)
            .id(0, ResolveRoute, 0, 0, &[])
            .event(0)
            .id(0, Connect, 11, 0, &[])
    }

    /// A client in the other namespace has a connection with id 2, of id 0 here.
    fn serves(self) -> Self {
        self.create(0, 0x106)
            .bind(0, 0, HOME, 7000)
            .id(0, Listen, 0, 0, &[])
            .create(1, 0x106)
            .resolve(1, 1, HOME, 7000)
            .id(1, ResolveRoute, 0, 1, &[])
            .event(1)
            .id(1, Connect, 11, 1, &[(0, Value::QueuePair(2))])
            .event(0)
            .id(0, Accept, 10, 2, &[])
            .event(1)
            .id(1, Accept, 10, 1, &[(9, Value::Number(0))])
            .event(0)
    }

    /// Id 0 listens in the other namespace, id 1 asks, and id 2 is the request.
    fn request(self, space: u64, address: u8) -> Self {
        self.create(1, space)
            .bind(1, 0, address, 7000)
            .id(1, Listen, 0, 0, &[])
            .create(0, space)
            .resolve(0, 1, address, 7000)
            .id(0, ResolveRoute, 0, 1, &[])
            .event(0)
            .id(0, Connect, 11, 1, &[])
            .event(1)
    }

    /// A connection of ids 1 and 2.
    fn connection(self, address: u8) -> Self {
        self.request(0x106, address)
            .id(1, Accept, 10, 2, &[(1, Value::QueuePair(2))])
            .event(0)
            .id(0, Accept, 10, 1, &[(9, Value::Number(0))])
            .event(1)
    }

    fn end(self) -> Sequence {
        Sequence { steps: self.0 }
    }
}

/// Returns the sequences with messages on the wire.
fn wire() -> Vec<Sequence> {
    use Attribute::*;
    let new = Script::default;
    // To a target of NVMe over fabrics, whose private data begins behind the addresses.
    let queue = Edit {
        at: 200,
        bytes: vec![0, 0, 0, 0, 32, 0, 31, 0],
    };
    let asks_kernel = Base::New {
        attribute: 0,
        local: CommId::Own(0),
        remote: CommId::Number(0),
        port: KERNEL_PORT,
    };
    let mut all = vec![
        new()
            .served()
            .tell(OWN, Lap, 0)
            .tell(OWN, Dreq, 0)
            .event(0)
            .id(0, Disconnect, 0, 1, &[])
            .tell(OWN, Dreq, 0)
            .end(),
        new()
            .served()
            .id(0, Disconnect, 0, 1, &[])
            .tell(OWN, Drep, 0)
            .event(0)
            .end(),
        new()
            .asked()
            .tell(OWN, Req, 7000)
            .id(0, Accept, 10, 1, &[])
            .tell(OWN, Mra, 0)
            .tell(OWN, Rej, 0)
            .event(0)
            .end(),
        new()
            .asks(FUZZER)
            .tell(OWN, Mra, 0)
            .tell(OWN, Rep, 0)
            .event(0)
            .id(0, Accept, 10, 0, &[(9, Value::Number(0))])
            .tell(OWN, Rep, 0)
            .tell(OWN, Dreq, 0)
            .event(0)
            .end(),
        new().asks(FUZZER).tell(OWN, Rej, 0).event(0).end(),
        new().asks(FUZZER6).event(0).event(0).end(),
        new()
            .create(0, 0x111)
            .bind(0, 0, HOME, 7001)
            .id(0, Listen, 0, 0, &[])
            .tell(OWN, SidrReq, 7001)
            .event(0)
            .id(0, Accept, 10, 1, &[(1, Value::QueuePair(1))])
            .tell(OWN, SidrReq, 7001)
            .end(),
        new()
            .create(0, 0x111)
            .resolve(0, 0, FUZZER, 7001)
            .id(0, ResolveRoute, 0, 0, &[])
            .event(0)
            .id(0, Connect, 11, 0, &[(0, Value::QueuePair(1))])
            .tell(OWN, SidrRep, 0)
            .event(0)
            .end(),
        new()
            .send(OWN, asks_kernel, &[queue])
            .act(0, Act::Poll(20))
            .tell(OWN, Rtu, 0)
            .tell(OWN, Dreq, 0)
            .end(),
    ];
    // In the name of the other end of a connection
    for attribute in Attribute::ALL {
        let forged = new().serves().tell(OTHER, attribute, 7000);
        all.push(forged.send(OTHER, Base::Heard(3), &[]).event(0).end());
    }
    all
}

/// Returns the sequences.
pub fn seeds() -> Vec<Sequence> {
    let new = Script::default;
    let connected = || new().connection(PEER);
    let tuning = u64::from(cmproto::ucma_abi::LEVEL_TUNING);
    let mut seeds = vec![
        connected()
            .id(0, InitQpAttr, 1, 1, &[(2, Value::Number(2))])
            .id(0, InitQpAttr, 1, 1, &[(2, Value::Number(3))])
            .id(0, Query, 1, 1, &[])
            .id(0, Query, 1, 1, &[(2, Value::Number(1))])
            .id(0, Query, 1, 1, &[(2, Value::Number(2))])
            .id(0, QueryRoute, 1, 1, &[])
            .id(0, Disconnect, 0, 1, &[])
            .event(1)
            .id(1, Disconnect, 0, 2, &[])
            .event(0)
            .event(0)
            .id(0, DestroyId, 1, 1, &[])
            .id(1, DestroyId, 1, 2, &[])
            .end(),
        new()
            .connection(PEER6)
            .id(1, Notify, 0, 2, &[])
            .id(1, DestroyId, 1, 2, &[])
            .event(0)
            .end(),
        new()
            .request(0x106, PEER)
            .id(1, Reject, 0, 2, &[])
            .event(0)
            .end(),
        new()
            .request(0x106, PEER)
            .id(1, DestroyId, 1, 0, &[])
            .event(0)
            .end(),
        new()
            .request(0x111, PEER)
            .id(1, Accept, 10, 2, &[(1, Value::QueuePair(3))])
            .event(0)
            .end(),
        new()
            .request(0x111, PEER6)
            .id(1, Reject, 0, 2, &[])
            .event(0)
            .end(),
        // Multicast groups
        new()
            .create(0, 0x111)
            .bind(0, 0, HOME, 0)
            .call(0, JoinMcast, &[(5, Value::Address(GROUP, 0))])
            .event(0)
            .call(0, JoinIpMcast, &[(2, Value::Address(GROUP, 0))])
            .event(0)
            .call(0, LeaveMcast, &[(1, Value::Made(0))])
            .call(0, LeaveMcast, &[(1, Value::Made(1))])
            .end(),
        // An id that moves, with its events
        connected()
            .id(0, MigrateId, 1, 1, &[(2, Value::File(2))])
            .id(2, Query, 1, 1, &[])
            .id(2, Disconnect, 0, 1, &[])
            .event(2)
            .id(1, MigrateId, 1, 0, &[(2, Value::File(3))])
            .end(),
        // Events that programs write
        new()
            .create(0, 0x106)
            .id(0, WriteCmEvent, 0, 0, &[])
            .id(0, WriteCmEvent, 0, 0, &[(1, Value::Number(19))])
            .event(0)
            .event(0)
            .act(0, Act::Info)
            .end(),
        // Nobody answers
        new()
            .create(0, 0x106)
            .resolve(0, 0, NOBODY, 7000)
            .id(0, DestroyId, 1, 0, &[])
            .create(0, 0x106)
            .resolve(0, 1, PEER, 7003)
            .id(0, ResolveRoute, 0, 1, &[])
            .id(0, Connect, 11, 1, &[])
            .event(0)
            .end(),
        // The device goes while ids use it
        new()
            .create(0, 0x106)
            .bind(0, 0, EXTRA, 7000)
            .id(0, Listen, 0, 0, &[])
            .create(2, 0x106)
            .bind(2, 1, ANY, 7001)
            .id(2, Listen, 0, 1, &[])
            .act(0, Act::Device(false))
            .event(0)
            .act(0, Act::Device(true))
            .end(),
        new()
            .create(0, 0x111)
            .bind(0, 0, EXTRA, 7000)
            .call(0, JoinMcast, &[(5, Value::Address(GROUP, 0))])
            .act(0, Act::Address(false))
            .event(0)
            .act(0, Act::Address(true))
            .end(),
        // The old commands, and a port that two share
        new()
            .create(0, 0x106)
            .id(0, BindIp, 1, 0, &[(0, Value::Address(HOME, 7002))])
            .create(2, 0x106)
            .option(2, 1, 0, 1, &[1, 0, 0, 0])
            .id(2, BindIp, 1, 1, &[(0, Value::Address(HOME, 7002))])
            .create(0, 0x106)
            .id(0, ResolveIp, 2, 2, &[(1, Value::Address(PEER, 7000))])
            .event(0)
            .end(),
        // InfiniBand addresses
        new()
            .create(0, 0x13f)
            .bind(0, 0, 21, 0)
            .id(0, Listen, 0, 0, &[])
            .create(0, 0x13f)
            .resolve(0, 1, 20, 7000)
            .id(0, ResolveRoute, 0, 1, &[])
            .id(0, ResolveIbService, 0, 1, &[])
            .end(),
        // At once
        {
            let mut sequence = connected()
                .id(0, Disconnect, 0, 1, &[])
                .id(1, Disconnect, 0, 2, &[])
                .id(2, DestroyId, 1, 1, &[])
                .id(3, Query, 1, 2, &[])
                .end();
            let from = sequence.steps.len() - 4;
            for step in &mut sequence.steps[from..] {
                step.beside = true;
                step.file = step.file.min(1);
            }
            sequence
        },
    ];
    seeds.extend(wire());
    // Options
    let mut options = new().create(0, 0x106);
    for name in 0..4 {
        let value: &[u8] = if name % 3 == 0 { &[20] } else { &[1, 0, 0, 0] };
        options = options.option(0, 0, 0, name, value);
    }
    for name in 0..6 {
        options = options.option(0, 0, tuning, name, &[10, 0, 0, 0]);
    }
    let mut path = vec![0; 72];
    path[0] = 0x2b;
    options = options.resolve(0, 0, PEER, 7000);
    seeds.push(options.option(0, 0, 1, 1, &path).event(0).end());
    // Each command once, to an id that is new.
    let mut random = StdRand::with_seed(0);
    let mut random = Random(&mut random);
    let mut all = new().create(0, 0x106);
    for command in Command::ALL {
        all = all.call(0, command, &[]);
    }
    all = all.act(0, Act::Write(vec![0; 4]));
    seeds.push(all.end());
    seeds.push(Sequence {
        steps: (0..16).map(|_| random.step()).collect(),
    });
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use libafl::inputs::Input;
    use std::fs;

    #[test]
    fn the_corpus_can_be_read_and_has_no_seed() {
        let dir = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).unwrap();
        let seeds = seeds();
        let mut wrong = Vec::new();
        for file in dir {
            let path = file.unwrap().path();
            let sequence = Sequence::from_file(&path).unwrap();
            if seeds.contains(&sequence)
                || path.file_name().unwrap() != &*sequence.generate_name(None)
            {
                wrong.push(path);
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
