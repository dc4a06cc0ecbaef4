// SPDX-License-Identifier: GPL-2.0

//! The order in which the events of a channel are read.
//!
//! Every event has two numbers. Its *position* is that in the queue of its context, and never
//! changes. Its *sequence number* is its position among the events of all contexts of the channel.
//! A context that moves to another channel takes its queue along; there, its events get new
//! sequence numbers, as if they had happened just now, in the same order.

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

    /// Replaces all of `numbers` by new ones, in the same order. Returns the first new number.
    pub fn renew<'a>(&mut self, numbers: impl IntoIterator<Item = &'a mut u64>) -> Option<u64> {
        let mut first = None;
        for number in numbers {
            *number = self.take();
            first = first.or(Some(*number));
        }
        first
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
    fn renewed_numbers_keep_their_order() {
        let mut numbers = Numbers { next: 7 };
        let mut sequence = [100, 200, 201];
        assert_eq!(numbers.renew(&mut sequence), Some(7));
        assert_eq!((sequence, numbers.take()), ([7, 8, 9], 10));
    }

    #[test]
    fn nothing_to_renew() {
        let mut numbers = Numbers { next: 7 };
        assert_eq!(numbers.renew(&mut []), None);
        assert_eq!(numbers.take(), 7);
    }
}

/// A model of channels, contexts and events like those of `rust/ucma`, with maps of the standard
/// library.
#[cfg(test)]
mod model {
    use super::Numbers;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const CHANNELS: usize = 3;
    const CONTEXTS: usize = 4;

    /// An event; `what` is its number among the events of its context.
    #[derive(Clone, Copy, Debug)]
    struct Unread {
        seq: u64,
        what: u32,
    }

    #[derive(Clone, Debug, Default)]
    struct Context {
        channel: usize,
        queue: BTreeMap<u64, Unread>,
        positions: Numbers,
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
        channel: usize,
        context: usize,
        position: u64,
        unread: Unread,
    }

    #[derive(Clone, Debug, Default)]
    struct World {
        channels: [Channel; CHANNELS],
        contexts: [Context; CONTEXTS],
        copying: Vec<Taken>,
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
            let Context { channel, queue, .. } = &self.contexts[context];
            let oldest = &mut self.channels[*channel].oldest;
            oldest.retain(|_, of| *of != context);
            if let Some((_, first)) = queue.first_key_value() {
                assert_eq!(
                    oldest.insert(first.seq, context),
                    None,
                    "a sequence number is unique"
                );
            }
        }

        fn renew(&mut self, context: usize) {
            let Context { channel, queue, .. } = &mut self.contexts[context];
            let sequence = queue.values_mut().map(|unread| &mut unread.seq);
            self.channels[*channel].sequence.renew(sequence);
        }

        fn happens(&mut self, index: usize) {
            let context = &mut self.contexts[index];
            let seq = self.channels[context.channel].sequence.take();
            let what = context.happened;
            context.happened += 1;
            let position = context.positions.take();
            context.queue.insert(position, Unread { seq, what });
            self.reindex(index);
        }

        fn take(&mut self, channel: usize) {
            let Some((_, &context)) = self.channels[channel].oldest.first_key_value() else {
                return;
            };
            let (position, unread) = self.contexts[context].queue.pop_first().unwrap();
            self.contexts[context].reported += 1;
            self.reindex(context);
            self.copying.push(Taken {
                channel,
                context,
                position,
                unread,
            });
        }

        fn put_back(&mut self, taken: Taken) {
            let context = &mut self.contexts[taken.context];
            context.reported -= 1;
            context.queue.insert(taken.position, taken.unread);
            if context.channel != taken.channel {
                self.renew(taken.context);
            }
            self.reindex(taken.context);
        }

        fn migrate(&mut self, context: usize, to: usize) {
            let from = self.contexts[context].channel;
            if from == to {
                return;
            }
            self.channels[from].oldest.retain(|_, of| *of != context);
            self.contexts[context].channel = to;
            self.renew(context);
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
                let sequence: Vec<_> = context.queue.values().map(|unread| unread.seq).collect();
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
