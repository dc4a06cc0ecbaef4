// SPDX-License-Identifier: GPL-2.0

//! Steps at random, and the ways in which a sequence is changed.

use crate::{
    layout::{layout, Field, Kind, LAYOUTS},
    message::{Base, CommId, Edit, Forged, SENDERS},
    sequence::{Act, Sequence, Step, FILES, MAX_STEPS, THREADS},
    value::{Memory, Value, ADDRESSES, PORTS},
};
use cmproto::wire::{Attribute, MAD_LEN};
use libafl::{
    corpus::Corpus,
    mutators::{MutationResult, Mutator},
    random_corpus_id,
    state::{HasCorpus, HasRand},
    Error,
};
use libafl_bolts::{rands::Rand, Named};
use std::{borrow::Cow, num::NonZero};

/// Numbers at the bounds of what fields can have.
const BOUNDS: [u64; 10] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

/// The source of all that is made at random.
pub struct Random<'a, R>(pub &'a mut R);

impl<R: Rand> Random<'_, R> {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        NonZero::new(n).map_or(0, |n| self.0.below(n))
    }

    fn small(&mut self, n: u8) -> u8 {
        self.below(usize::from(n)) as u8
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len())]
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.of(&[0, 1, 4, 8, 16, 72, 144, 300]);
        let first = self.0.next() as u8;
        (0..len).map(|n: u16| first.wrapping_add(n as u8)).collect()
    }

    /// Returns a value that is usual in the field.
    pub fn usual(&mut self, field: &Field) -> Value {
        match field.kind {
            Kind::Id => Value::Made(self.small(4)),
            Kind::Membership => Value::Made(self.small(2)),
            Kind::QueuePair => Value::QueuePair(self.small(6)),
            Kind::File => Value::File(self.small(FILES)),
            Kind::Answer => Value::Memory(Memory::Good),
            Kind::Content => Value::Content(vec![1, 0, 0, 0]),
            Kind::Address => Value::Address(self.small(ADDRESSES.len() as u8), self.of(&PORTS)),
            Kind::LengthOf(_) => Value::Fitting,
            Kind::Bytes => Value::Bytes(Vec::new()),
            Kind::Number(numbers) if self.one_in(3) => Value::Number(self.of(numbers)),
            Kind::Number(numbers) => Value::Number(numbers[0]),
        }
    }

    /// Returns any value that the field can have.
    pub fn any(&mut self, field: &Field) -> Value {
        match field.kind {
            _ if self.one_in(8) => Value::Number(self.of(&BOUNDS)),
            _ if self.one_in(16) => Value::Number(self.0.next()),
            Kind::Number(numbers) => Value::Number(self.of(numbers)),
            Kind::Answer => Value::Memory(self.of(&Memory::ALL)),
            Kind::Content if self.one_in(4) => Value::Memory(self.of(&Memory::ALL)),
            Kind::Content => Value::Content(self.bytes()),
            Kind::Bytes => Value::Bytes(self.bytes()),
            Kind::Id => Value::Made(self.small(8)),
            _ => self.usual(field),
        }
    }

    fn command(&mut self, number: u8) -> Act {
        let values = layout(number).fields.iter();
        Act::Command {
            number,
            values: values
                .map(|field| {
                    if self.one_in(6) {
                        self.any(field)
                    } else {
                        self.usual(field)
                    }
                })
                .collect(),
            request: None,
            answer: None,
        }
    }

    fn comm_id(&mut self) -> CommId {
        match self.below(16) {
            0..=5 => CommId::Target(self.small(4)),
            6..=9 => CommId::Other(self.small(4)),
            10..=14 => CommId::Own(self.small(4)),
            _ => CommId::Number(self.0.next() as u32),
        }
    }

    /// Returns bytes for a field of any length: a bound, or random ones.
    fn edit(&mut self) -> Edit {
        let number = if self.one_in(2) {
            self.of(&BOUNDS)
        } else {
            self.0.next()
        };
        let len = self.of(&[1, 1, 2, 3, 4, 8]);
        // Most fields lie before the private data.
        let end = self.of(&[32, 96, 164, MAD_LEN]);
        Edit {
            at: self.below(end) as u8,
            bytes: number.to_be_bytes()[8 - len..].to_vec(),
        }
    }

    fn base(&mut self) -> Base {
        if self.one_in(2) {
            return Base::Heard(self.small(6));
        }
        Base::New {
            attribute: self.small(Attribute::ALL.len() as u8),
            local: self.comm_id(),
            remote: self.comm_id(),
            port: self.of(&PORTS),
        }
    }

    fn message(&mut self) -> Forged {
        let edits = self.of(&[0, 0, 1, 1, 2, 4]);
        Forged {
            sender: self.small(SENDERS.len() as u8),
            ipv6: self.one_in(3),
            base: self.base(),
            edits: (0..edits).map(|_: u8| self.edit()).collect(),
            cut: 0,
            copies: self.of(&[1, 1, 1, 2, 9]),
        }
    }

    /// Changes a message a little.
    fn change_message(&mut self, message: &mut Forged) {
        match self.below(12) {
            0 => message.sender = self.small(SENDERS.len() as u8),
            1 => message.ipv6 = !message.ipv6,
            2 => message.base = self.base(),
            3 => message.copies = self.of(&[1, 2, 9, 64]),
            4 => message.cut = self.of(&[0, 1, 64, 232, 255]),
            5 => message.edits.clear(),
            6 | 7 => match &mut message.base {
                Base::Heard(n) => *n = self.small(12),
                Base::New { attribute, .. } if self.one_in(4) => {
                    *attribute = self.small(Attribute::ALL.len() as u8);
                }
                Base::New { local, .. } if self.one_in(3) => *local = self.comm_id(),
                Base::New { remote, .. } if self.one_in(2) => *remote = self.comm_id(),
                Base::New { port, .. } => *port = self.of(&PORTS),
            },
            _ => {
                message.edits.truncate(7);
                message.edits.push(self.edit());
            }
        }
    }

    fn act(&mut self) -> Act {
        match self.below(100) {
            0 => Act::Device(self.one_in(2)),
            1 => Act::Address(self.one_in(2)),
            2 | 3 => Act::Open,
            4 | 5 => Act::Close,
            6 => Act::Info,
            7 | 8 => Act::Write(self.bytes()),
            9..=15 => Act::Poll(self.small(10)),
            16..=45 => Act::Message(self.message()),
            _ => {
                let number = self.small(LAYOUTS.len() as u8);
                self.command(number)
            }
        }
    }

    /// Returns a step.
    pub fn step(&mut self) -> Step {
        Step {
            thread: self.small(THREADS),
            file: self.small(FILES),
            beside: self.one_in(8),
            act: self.act(),
        }
    }

    /// Changes an act a little; true if it did.
    fn change(&mut self, act: &mut Act) -> bool {
        match act {
            Act::Command {
                number,
                values,
                request,
                answer,
            } => {
                let layout = layout(*number);
                match self.below(10) {
                    0 => *request = self.length(layout.len),
                    1 => *answer = self.length(layout.answer),
                    _ => {
                        let index = self.below(layout.fields.len());
                        let (Some(field), Some(value)) =
                            (layout.fields.get(index), values.get_mut(index))
                        else {
                            return false;
                        };
                        *value = self.any(field);
                    }
                }
            }
            Act::Write(bytes) => *bytes = self.bytes(),
            Act::Poll(time) => *time = self.small(10),
            Act::Message(message) => self.change_message(message),
            Act::Device(there) | Act::Address(there) => *there = !*there,
            Act::Open | Act::Close | Act::Info => return false,
        }
        true
    }

    fn length(&mut self, right: usize) -> Option<u16> {
        let right = right as u16;
        let bound = self.of(&[0, right / 2, right.wrapping_sub(1), right + 1, u16::MAX]);
        (!self.one_in(4)).then_some(bound)
    }
}

/// A way to change a sequence.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    Insert,
    Remove,
    Repeat,
    Swap,
    Alter,
    Thread,
    File,
    Beside,
    /// Puts a part of another sequence behind a part of this one.
    Splice,
}

impl Named for Change {
    fn name(&self) -> &Cow<'static, str> {
        const NAMES: [Cow<'static, str>; 9] = [
            Cow::Borrowed("insert"),
            Cow::Borrowed("remove"),
            Cow::Borrowed("repeat"),
            Cow::Borrowed("swap"),
            Cow::Borrowed("alter"),
            Cow::Borrowed("thread"),
            Cow::Borrowed("file"),
            Cow::Borrowed("beside"),
            Cow::Borrowed("splice"),
        ];
        static STATIC: [Cow<'static, str>; 9] = NAMES;
        &STATIC[*self as usize]
    }
}

impl<S: HasRand + HasCorpus<Sequence>> Mutator<Sequence, S> for Change {
    fn mutate(&mut self, state: &mut S, input: &mut Sequence) -> Result<MutationResult, Error> {
        let steps = &mut input.steps;
        if let Self::Splice = self {
            let id = random_corpus_id!(state.corpus(), state.rand_mut());
            let other = state.corpus().cloned_input_for_id(id)?.steps;
            let mut random = Random(state.rand_mut());
            let at = random.below(steps.len() + 1);
            let from = random.below(other.len() + 1);
            steps.truncate(at);
            steps.extend(other.into_iter().skip(from));
            steps.truncate(MAX_STEPS);
            return Ok(MutationResult::Mutated);
        }
        let mut random = Random(state.rand_mut());
        let at = random.below(steps.len());
        if let Self::Insert = self {
            steps.insert(at, random.step());
            steps.truncate(MAX_STEPS);
            return Ok(MutationResult::Mutated);
        }
        let Some(step) = steps.get_mut(at) else {
            return Ok(MutationResult::Skipped);
        };
        match self {
            Self::Insert | Self::Splice => {}
            Self::Remove => {
                steps.remove(at);
            }
            Self::Repeat => {
                let step = step.clone();
                steps.insert(at, step);
                steps.truncate(MAX_STEPS);
            }
            Self::Swap => {
                let other = random.below(steps.len());
                steps.swap(at, other);
            }
            Self::Alter => {
                if !random.change(&mut step.act) {
                    return Ok(MutationResult::Skipped);
                }
            }
            Self::Thread => step.thread = random.small(THREADS),
            Self::File => step.file = random.small(FILES),
            Self::Beside => step.beside = !step.beside,
        }
        Ok(MutationResult::Mutated)
    }
}
