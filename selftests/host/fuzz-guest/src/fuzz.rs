// SPDX-License-Identifier: GPL-2.0

//! The search: sequences that reach a new block are kept and changed further.

use crate::{
    mutate::Change,
    seeds::seeds,
    sequence::{Act, Sequence},
};
use libafl::{
    corpus::{Corpus, InMemoryOnDiskCorpus},
    events::SimpleEventManager,
    executors::{Executor, ExitKind, HasObservers},
    feedbacks::{CrashFeedback, MaxMapFeedback},
    inputs::Input,
    monitors::NopMonitor,
    mutators::StdScheduledMutator,
    observers::StdMapObserver,
    schedulers::RandScheduler,
    stages::StdMutationalStage,
    state::{HasCorpus, HasSolutions, StdState},
    Error, Evaluator, Fuzzer, StdFuzzer,
};
use libafl_bolts::{
    nonzero,
    rands::StdRand,
    tuples::{tuple_list, RefIndexable},
    AsSliceMut,
};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// The kernel that sequences are run in.
pub trait Kernel {
    /// Returns the number of blocks that it can report.
    fn blocks(&self) -> usize;

    /// Runs a sequence and sets the blocks that it reached. Returns what is wrong with the kernel then.
    fn run(&mut self, sequence: &Sequence, hits: &mut [u8]) -> Option<String>;

    /// Returns true if it can run another sequence.
    fn alive(&self) -> bool {
        true
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Figures {
    pub executions: u64,
    pub commands: u64,
    pub messages: u64,
    /// The sequences that were kept.
    pub kept: usize,
    pub reached: Vec<bool>,
    /// The complaints of the kernel, each with its sequence.
    pub findings: Vec<(String, Sequence)>,
}

impl Figures {
    pub fn blocks_reached(&self) -> usize {
        self.reached.iter().filter(|reached| **reached).count()
    }
}

/// The end of a search: whichever comes first.
pub struct Limit {
    pub time: Duration,
    pub executions: u64,
    /// True if the first finding ends it.
    pub first: bool,
}

type Observers = (StdMapObserver<'static, u8, false>, ());

struct Runner<'a, K> {
    kernel: &'a mut K,
    observers: Observers,
    figures: Figures,
}

impl<K> HasObservers for Runner<'_, K> {
    type Observers = Observers;

    fn observers(&self) -> RefIndexable<&Observers, Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Observers, Observers> {
        RefIndexable::from(&mut self.observers)
    }
}

impl<K: Kernel, EM, S, Z> Executor<EM, Sequence, S, Z> for Runner<'_, K> {
    fn run_target(
        &mut self,
        _fuzzer: &mut Z,
        _state: &mut S,
        _manager: &mut EM,
        input: &Sequence,
    ) -> Result<ExitKind, Error> {
        let figures = &mut self.figures;
        let hits = &mut *self.observers.0.as_slice_mut();
        figures.executions += 1;
        for step in &input.steps {
            match &step.act {
                Act::Command { .. } | Act::Write(_) => figures.commands += 1,
                Act::Message(message) => figures.messages += u64::from(message.copies),
                _ => {}
            }
        }
        let found = self.kernel.run(input, hits);
        for (reached, hit) in figures.reached.iter_mut().zip(hits) {
            *reached |= *hit != 0;
        }
        Ok(match found {
            Some(found) => {
                figures.findings.push((found, input.clone()));
                ExitKind::Crash
            }
            None => ExitKind::Ok,
        })
    }
}

/// Searches from the seeds and from the sequences in `dir/corpus`. A sequence that reaches a
/// block which none before it reached is written to `dir/queue`, and one that the kernel complains
/// about to `dir/findings`.
///
/// # Errors
///
/// An error if the folders cannot be written.
pub fn run<K: Kernel>(
    kernel: &mut K,
    dir: &Path,
    limit: &Limit,
    seed: u64,
    mut progress: impl FnMut(&Figures),
) -> Result<Figures, Error> {
    let start = Instant::now();
    let blocks = kernel.blocks();
    let observer = StdMapObserver::owned("blocks", vec![0; blocks]);
    let mut feedback = MaxMapFeedback::new(&observer);
    let mut objective = CrashFeedback::new();
    let corpus =
        |name| InMemoryOnDiskCorpus::with_meta_format_and_prefix(dir.join(name), None, None, false);
    let mut state = StdState::new(
        StdRand::with_seed(seed),
        corpus("queue")?,
        corpus("findings")?,
        &mut feedback,
        &mut objective,
    )?;
    let mut fuzzer = StdFuzzer::new(RandScheduler::new(), feedback, objective);
    let mut manager = SimpleEventManager::new(NopMonitor::new());
    let mut runner = Runner {
        kernel,
        observers: tuple_list!(observer),
        figures: Figures {
            reached: vec![false; blocks],
            ..Figures::default()
        },
    };

    let mut first = seeds();
    if let Ok(files) = fs::read_dir(dir.join("corpus")) {
        let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
        files.sort();
        // One that an older fuzzer wrote may not be readable.
        first.extend(files.iter().flat_map(Sequence::from_file));
    }
    let over = |runner: &Runner<'_, K>| {
        start.elapsed() >= limit.time
            || runner.figures.executions >= limit.executions
            || limit.first && !runner.figures.findings.is_empty()
            || !runner.kernel.alive()
    };
    for sequence in &first {
        if over(&runner) {
            break;
        }
        fuzzer.evaluate_input(&mut state, &mut runner, &mut manager, sequence)?;
        progress(&runner.figures);
    }
    if state.corpus().count() == 0 {
        // Nothing was reached: there is nothing to change.
        return Ok(runner.figures);
    }

    let changes = tuple_list!(
        Change::Insert,
        Change::Insert,
        Change::Remove,
        Change::Repeat,
        Change::Swap,
        Change::Alter,
        Change::Alter,
        Change::Alter,
        Change::Thread,
        Change::File,
        Change::Beside,
        Change::Splice,
    );
    let mutator = StdScheduledMutator::with_max_stack_pow(changes, 3);
    let stage = StdMutationalStage::with_max_iterations(mutator, nonzero!(8));
    let mut stages = tuple_list!(stage);
    while !over(&runner) {
        fuzzer.fuzz_one(&mut stages, &mut runner, &mut state, &mut manager)?;
        progress(&runner.figures);
    }
    let mut figures = runner.figures;
    figures.kept = state.corpus().count();
    debug_assert!(state.solutions().count() <= figures.findings.len());
    Ok(figures)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        sequence::encode,
        value::{Memory, Surroundings},
    };
    use cmproto::ucma_abi::Command;

    /// Surroundings in which all numbers are what is asked for.
    pub(crate) struct Nobody;

    impl Surroundings for Nobody {
        fn id(&self, n: u8) -> u32 {
            n.into()
        }

        fn membership(&self, n: u8) -> u32 {
            n.into()
        }

        fn queue_pair(&self, n: u8) -> u32 {
            n.into()
        }

        fn file(&self, n: u8) -> u32 {
            n.into()
        }

        fn memory(&self, memory: Memory) -> u64 {
            u64::from(memory == Memory::Good)
        }

        fn content(&self, _bytes: &[u8]) -> u64 {
            1
        }
    }

    /// A kernel with four states of an id and a bug: an id that listens with a backlog of 2, whose
    /// memberships are asked for, is destroyed while its answer cannot be written.
    struct Fake;

    impl Kernel for Fake {
        fn blocks(&self) -> usize {
            64
        }

        fn run(&mut self, sequence: &Sequence, hits: &mut [u8]) -> Option<String> {
            let mut state = 0;
            for step in &sequence.steps {
                let Act::Command {
                    number,
                    values,
                    request,
                    answer,
                } = &step.act
                else {
                    continue;
                };
                let bytes = encode(*number, values, *request, *answer, &Nobody);
                let request = &bytes[8..];
                let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
                let to = match (state, Command::ALL[usize::from(*number)]) {
                    (0, Command::CreateId) if word(16) & 0xffff == 0x106 => 1,
                    (1, Command::Bind) if request[8] == 2 && request[4] == 16 => 2,
                    (2, Command::Listen) if word(4) == 2 => 3,
                    (3, Command::JoinMcast) => 4,
                    (4, Command::DestroyId) if word(0) == 0 => return Some("BUG".into()),
                    (state, _) => state,
                };
                hits[usize::from(*number)] = 1;
                hits[32 + to] = 1;
                state = to;
            }
            None
        }
    }

    #[test]
    fn a_planted_bug_is_found_and_kept() {
        let dir = std::env::temp_dir().join(format!("cm-fuzz-guest-run-{}", std::process::id()));
        let limit = Limit {
            time: Duration::from_secs(60),
            executions: 400_000,
            first: true,
        };
        let figures = run(&mut Fake, &dir, &limit, 1, |_| {}).unwrap();
        let (found, sequence) = figures.findings.first().expect("no finding");
        assert_eq!(found, "BUG");
        assert!(Fake.run(sequence, &mut [0; 64]).is_some());
        let kept = dir.join("findings").join(sequence.generate_name(None));
        assert_eq!(Sequence::from_file(kept).unwrap(), *sequence);

        // The search goes on where it was.
        fs::rename(dir.join("queue"), dir.join("corpus")).unwrap();
        let limit = Limit {
            executions: seeds().len() as u64 + figures.executions.min(100),
            first: false,
            ..limit
        };
        let again = run(&mut Fake, &dir, &limit, 2, |_| {}).unwrap();
        assert!(again.blocks_reached() >= figures.blocks_reached() - 1);
        fs::remove_dir_all(dir).unwrap();
    }
    #[test]
    fn nothing_that_is_reached_is_no_endless_search() {
        struct Empty;
        impl Kernel for Empty {
            fn blocks(&self) -> usize {
                1
            }
            fn run(&mut self, _: &Sequence, _: &mut [u8]) -> Option<String> {
                None
            }
        }
        let dir = std::env::temp_dir().join(format!("cm-fuzz-guest-none-{}", std::process::id()));
        let limit = Limit {
            time: Duration::from_secs(60),
            executions: u64::MAX,
            first: false,
        };
        let figures = run(&mut Empty, &dir, &limit, 1, |_| {}).unwrap();
        assert_eq!(figures.blocks_reached(), 0);
        fs::remove_dir_all(dir).unwrap();
    }
}
