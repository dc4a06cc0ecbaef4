// SPDX-License-Identifier: GPL-2.0

//! The threads, and how a sequence is run by them.

use super::{
    kcov::Trace,
    log::Log,
    operator::Operator,
    verbs::Verbs,
    wire::Wire,
    worker::{Done, Job, Place, Shared, Worker},
};
use crate::{
    blocks::Blocks,
    fuzz::Kernel,
    sequence::{Act, Sequence, FILES, THREADS},
};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        atomic::{AtomicI32, AtomicU8, Ordering},
        mpsc::{channel, Receiver, RecvTimeoutError, Sender},
        Arc, Mutex,
    },
    thread,
    time::{Duration, Instant},
};

/// The time that a step may take: no command waits for anybody.
const PATIENCE: Duration = Duration::from_secs(60);

/// The milliseconds that a sequence may wait for events that do not come. A replay has patience.
const WAIT: i32 = 300;
const WAIT_IN_REPLAY: i32 = 60_000;

/// The time between two removals of the device, which take the debug kernel half a minute.
const RESPITE: Duration = Duration::from_secs(180);

/// The threads: two here, one in another namespace, and one, of another user, where no device is.
const PLACES: [Place; THREADS as usize] = [
    Place {
        namespace: None,
        user: None,
    },
    Place {
        namespace: Some("peer"),
        user: None,
    },
    Place {
        namespace: None,
        user: None,
    },
    Place {
        namespace: Some("empty"),
        user: Some(1000),
    },
];

struct Thread {
    jobs: Sender<Job>,
    results: Receiver<io::Result<Done>>,
    /// The steps that it has not done.
    pending: usize,
}

/// The kernel of this guest.
pub struct Guest {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    operator: Operator,
    _verbs: [Verbs; 2],
    /// The trace of the tasks of the kernel.
    remote: Trace,
    log: Log,
    /// The sequence that runs is written there, for a kernel that does not survive it.
    running: File,
    written: usize,
    /// The time of the last removal of the device.
    removed: Instant,
    alive: bool,
    /// True if the result of each step is printed.
    pub loud: bool,
}

impl Guest {
    /// Starts the threads. `running` is a file for the sequence that runs.
    ///
    /// # Errors
    ///
    /// An error if the kernel has no KCOV, or if a thread cannot be where it is to be.
    pub fn new(blocks: Blocks, text: u64, running: &Path) -> io::Result<Self> {
        let (first, here) = Verbs::new(0)?;
        let (second, there) = Verbs::new(1)?;
        let shared = Arc::new(Shared {
            files: Mutex::default(),
            ids: Mutex::default(),
            memberships: Mutex::default(),
            queue_pairs: here.into_iter().chain(there).collect(),
            hits: (0..blocks.count()).map(|_| AtomicU8::new(0)).collect(),
            blocks,
            text,
            wire: Mutex::new(Wire::new()?),
            patience: AtomicI32::new(0),
        });
        let mut threads = Vec::new();
        for place in &PLACES {
            let (jobs, take) = channel();
            let (tell, results) = channel();
            let shared = shared.clone();
            thread::spawn(move || Worker::run(shared, place, &take, &tell));
            results.recv().map_err(io::Error::other)??;
            threads.push(Thread {
                jobs,
                results,
                pending: 0,
            });
        }
        Ok(Self {
            shared,
            threads,
            operator: Operator::new(),
            _verbs: [first, second],
            remote: Trace::remote()?,
            log: Log::new()?,
            running: File::create(running)?,
            written: 0,
            removed: Instant::now(),
            alive: true,
            loud: false,
        })
    }

    /// Writes the sequence before it is run; blanks take the place of the rest of a longer one.
    fn announce(&mut self, sequence: &Sequence) {
        let mut text = sequence.text();
        let len = text.len();
        while text.len() < self.written {
            text.push(' ');
        }
        self.written = len;
        let _ = self.running.write_all_at(text.as_bytes(), 0);
    }

    fn begin(&mut self, thread: usize, file: usize, act: Act) {
        let thread = &mut self.threads[thread];
        if thread.jobs.send(Job { file, act }).is_ok() {
            thread.pending += 1;
        }
    }

    /// Waits until all threads have done their steps. Returns what does not end.
    fn wait(&mut self) -> Option<String> {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            while thread.pending > 0 {
                match thread.results.recv_timeout(PATIENCE) {
                    Ok(result) => {
                        thread.pending -= 1;
                        if self.loud {
                            let text = result.map_or_else(
                                |error| error.to_string(),
                                |done| format!("{}, {} blocks", done.errno, done.blocks),
                            );
                            println!("# thread {number}: {text}");
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        return Some(format!("thread {number} hangs"));
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Some(format!("thread {number} has ended"));
                    }
                }
            }
        }
        None
    }

    /// Runs the steps. Returns what does not end.
    fn steps(&mut self, sequence: &Sequence) -> Option<String> {
        for thread in 0..self.threads.len() {
            self.begin(thread, thread, Act::Open);
        }
        if let Some(hung) = self.wait() {
            return Some(hung);
        }
        for step in &sequence.steps {
            let thread = usize::from(step.thread % THREADS);
            let file = usize::from(step.file % FILES);
            match step.act {
                Act::Device(false) if !self.loud && self.removed.elapsed() < RESPITE => {}
                Act::Device(false) => {
                    self.operator.set_device(false);
                    self.removed = Instant::now();
                }
                Act::Device(true) => self.operator.set_device(true),
                Act::Address(there) => self.operator.set_address(there),
                _ => self.begin(thread, file, step.act.clone()),
            }
            if self.loud {
                println!("# {step:?}");
            }
            if !step.beside {
                if let Some(hung) = self.wait() {
                    return Some(hung);
                }
            }
        }
        if let Some(hung) = self.wait() {
            return Some(hung);
        }
        for file in 0..usize::from(FILES) {
            self.begin(file % self.threads.len(), file, Act::Close);
        }
        self.wait()
    }
}

impl Kernel for Guest {
    fn blocks(&self) -> usize {
        self.shared.blocks.count()
    }

    fn run(&mut self, sequence: &Sequence, hits: &mut [u8]) -> Option<String> {
        self.announce(sequence);
        self.shared.ids.lock().unwrap().clear();
        self.shared.memberships.lock().unwrap().clear();
        self.shared.wire.lock().unwrap().forget();
        let wait = if self.loud { WAIT_IN_REPLAY } else { WAIT };
        self.shared.patience.store(wait, Ordering::Relaxed);
        let hung = self.steps(sequence);
        self.alive = hung.is_none();
        if self.alive {
            self.operator.restore();
        }
        let remote = self.shared.note(&self.remote);
        self.remote.begin();
        if self.loud {
            println!("# tasks of the kernel: {remote} blocks");
        }
        for (hit, block) in hits.iter_mut().zip(&self.shared.hits) {
            *hit = block.swap(0, Ordering::Relaxed);
        }
        hung.or_else(|| self.log.complaint())
    }

    fn alive(&self) -> bool {
        self.alive
    }
}
