// SPDX-License-Identifier: GPL-2.0

//! The order in which the events of a channel are read.
//!
//! Every event has two numbers. Its *position* is that in the queue of its context, and never
//! changes. Its *sequence number* is its position among the events of all contexts of the channel.
//! A context that moves to another channel takes its queue along. There, all its events share the
//! sequence number of its arrival, as if they had happened just then, in the order of their
//! positions: to move takes the same time whatever the number of events.

/// A source of ascending numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    next: u64,
}

impl Numbers {
    /// Creates a source that starts with 0.
    pub const fn new() -> Self {
        Numbers { next: 0 }
    }

    /// Returns the next number.
    pub fn take(&mut self) -> u64 {
        let number = self.next;
        // This does not wrap: that would take centuries.
        self.next = number.wrapping_add(1);
        number
    }
}

/// The moment when a context has come to its channel, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The position of the first event after the arrival.
    position: u64,
    /// The sequence number of the events before it.
    seq: u64,
}

impl Arrival {
    /// Returns the arrival of a context that was created in its channel.
    pub const fn new() -> Self {
        Arrival {
            position: 0,
            seq: 0,
        }
    }

    /// Returns the arrival of a context that moves now. `positions` is the source of the positions
    /// of its events, and `sequence` that of the sequence numbers of its new channel.
    pub fn now(positions: &Numbers, sequence: &mut Numbers) -> Self {
        Arrival {
            position: positions.next,
            seq: sequence.take(),
        }
    }

    /// Returns the sequence number in its channel of the event at `position`, which had the
    /// sequence number `seq` in the channel that it happened in.
    pub const fn seq(&self, position: u64, seq: u64) -> u64 {
        if position < self.position {
            self.seq
        } else {
            seq
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_order))]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_larger() {
        let mut numbers = Numbers::new();
        assert_eq!((numbers.take(), numbers.take(), numbers.take()), (0, 1, 2));
    }

    #[test]
    fn events_before_the_arrival_share_its_number() {
        let (positions, mut sequence) = (Numbers { next: 3 }, Numbers { next: 7 });
        let arrival = Arrival::now(&positions, &mut sequence);
        assert_eq!(sequence.take(), 8);
        assert_eq!((arrival.seq(0, 100), arrival.seq(2, 102)), (7, 7));
        assert_eq!((arrival.seq(3, 9), arrival.seq(4, 12)), (9, 12));
        assert_eq!(Arrival::new().seq(0, 100), 100);
    }
}

/// A model of channels, contexts and events like those of `rust/ucma`, with maps of the standard
/// library.
#[cfg(test)]
mod model {
    use super::{Arrival, Numbers};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const CHANNELS: usize = 3;
    const CONTEXTS: usize = 4;

    /// An event; `what` is its number among the events of its context. `renewed` is its place in
    /// the order of all events, by the simple rule: each event of a context that moves gets a new
    /// number.
    #[derive(Clone, Copy, Debug)]
    struct Unread {
        seq: u64,
        what: u32,
        renewed: u64,
    }

    #[derive(Clone, Debug, Default)]
    struct Context {
        channel: usize,
        queue: BTreeMap<u64, Unread>,
        positions: Numbers,
        arrival: Arrival,
        happened: u32,
        reported: u32,
    }

    #[derive(Clone, Debug, Default)]
    struct Channel {
        sequence: Numbers,
        /// The sequence number of the oldest event of each context that has events, and the
        /// context.
        oldest: BTreeMap<u64, usize>,
    }

    /// An event that a reader of a channel has taken, and copies.
    #[derive(Clone, Copy, Debug)]
    struct Taken {
        context: usize,
        position: u64,
        unread: Unread,
    }

    #[derive(Clone, Debug, Default)]
    struct World {
        channels: [Channel; CHANNELS],
        contexts: [Context; CONTEXTS],
        copying: Vec<Taken>,
        renewed: Numbers,
        delivered: [Vec<u32>; CONTEXTS],
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Happens { context: usize },
        Take { channel: usize },
        CopySucceeds,
        CopyFails,
        Migrate { context: usize, to: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..CONTEXTS).prop_map(|context| Step::Happens { context }),
            3 => (0..CHANNELS).prop_map(|channel| Step::Take { channel }),
            2 => Just(Step::CopySucceeds),
            1 => Just(Step::CopyFails),
            2 => (0..CONTEXTS, 0..CHANNELS).prop_map(|(context, to)| Step::Migrate { context, to }),
        ]
    }

    impl World {
        fn reindex(&mut self, context: usize) {
            let Context {
                channel,
                queue,
                arrival,
                ..
            } = &self.contexts[context];
            let oldest = &mut self.channels[*channel].oldest;
            oldest.retain(|_, of| *of != context);
            if let Some((position, first)) = queue.first_key_value() {
                assert_eq!(
                    oldest.insert(arrival.seq(*position, first.seq), context),
                    None,
                    "a sequence number is unique"
                );
            }
        }

        fn happens(&mut self, index: usize) {
            let context = &mut self.contexts[index];
            let seq = self.channels[context.channel].sequence.take();
            let what = context.happened;
            context.happened += 1;
            let position = context.positions.take();
            let renewed = self.renewed.take();
            let unread = Unread { seq, what, renewed };
            context.queue.insert(position, unread);
            self.reindex(index);
        }

        fn take(&mut self, channel: usize) {
            let Some((_, &context)) = self.channels[channel].oldest.first_key_value() else {
                return;
            };
            let first = |context: &Context| Some(context.queue.first_key_value()?.1.renewed);
            let here = self
                .contexts
                .iter()
                .filter(|other| other.channel == channel);
            let expected = here.filter_map(first).min();
            assert_eq!(first(&self.contexts[context]), expected);
            let (position, unread) = self.contexts[context].queue.pop_first().unwrap();
            self.contexts[context].reported += 1;
            self.reindex(context);
            self.copying.push(Taken {
                context,
                position,
                unread,
            });
        }

        fn put_back(&mut self, taken: Taken) {
            let context = &mut self.contexts[taken.context];
            context.reported -= 1;
            context.queue.insert(taken.position, taken.unread);
            self.reindex(taken.context);
        }

        fn migrate(&mut self, context: usize, to: usize) {
            let from = self.contexts[context].channel;
            if from == to {
                return;
            }
            self.channels[from].oldest.retain(|_, of| *of != context);
            let copying = self.copying.iter_mut();
            let copying = copying.filter(|taken| taken.context == context);
            let copying = copying.map(|taken| (taken.position, &mut taken.unread));
            let unread = self.contexts[context].queue.iter_mut();
            let unread = unread.map(|(position, unread)| (*position, unread));
            for (_, unread) in copying.chain(unread).collect::<BTreeMap<_, _>>() {
                unread.renewed = self.renewed.take();
            }
            let moving = &mut self.contexts[context];
            moving.channel = to;
            moving.arrival = Arrival::now(&moving.positions, &mut self.channels[to].sequence);
            self.reindex(context);
        }

        fn step(&mut self, step: Step) {
            match step {
                Step::Happens { context } => self.happens(context),
                Step::Take { channel } => self.take(channel),
                Step::CopySucceeds => {
                    if let Some(taken) = self.copying.pop() {
                        self.delivered[taken.context].push(taken.unread.what);
                    }
                }
                Step::CopyFails => {
                    if let Some(taken) = self.copying.pop() {
                        self.put_back(taken);
                    }
                }
                Step::Migrate { context, to } => self.migrate(context, to),
            }
        }

        fn check(&self) {
            for (index, context) in self.contexts.iter().enumerate() {
                let copying = self.copying.iter().filter(|taken| taken.context == index);
                let delivered = &self.delivered[index];
                assert_eq!(context.reported as usize, delivered.len() + copying.count());
                let sequence = context.queue.iter();
                let sequence: Vec<_> = sequence
                    .map(|(position, unread)| context.arrival.seq(*position, unread.seq))
                    .collect();
                assert!(sequence.is_sorted(), "{sequence:?}");
                for (number, channel) in self.channels.iter().enumerate() {
                    let entries = channel.oldest.values().filter(|of| **of == index).count();
                    let here = number == context.channel && !context.queue.is_empty();
                    assert_eq!(entries, usize::from(here));
                }
            }
        }
    }

    proptest! {
        /// Checks that exactly the reported events are delivered, and that nothing is lost and
        /// nothing comes twice, whichever contexts move and whichever copies fail. With one reader
        /// at a time, the events of a context are delivered in the order in which they happened.
        #[test]
        fn nothing_is_lost_or_repeated(steps in prop::collection::vec(step(), 0..200)) {
            let mut world = World::default();
            let mut one_reader = true;
            for step in steps {
                world.step(step);
                world.check();
                one_reader &= world.copying.len() <= 1;
            }
            while !world.copying.is_empty() {
                world.step(Step::CopyFails);
                world.check();
            }
            for channel in 0..CHANNELS {
                while !world.channels[channel].oldest.is_empty() {
                    world.take(channel);
                    world.step(Step::CopySucceeds);
                    world.check();
                }
            }
            for (context, delivered) in world.contexts.iter().zip(&mut world.delivered) {
                if !one_reader {
                    delivered.sort_unstable();
                }
                prop_assert!(delivered.iter().copied().eq(0..context.happened));
                prop_assert_eq!(context.reported, context.happened);
            }
        }
    }
}
