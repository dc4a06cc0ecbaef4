// SPDX-License-Identifier: GPL-2.0

//! A thread that does the steps which are for it.

use super::{kcov::Trace, memory::Pages, wire::Wire};
use crate::{
    layout::layout,
    layout::Kind,
    sequence::{encode, Act, FILES},
    value::{Memory, Surroundings, Value},
};
use cmproto::ucma_abi::{CmEvent, Command};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    sync::{
        atomic::{AtomicI32, AtomicU8, Ordering},
        mpsc::{Receiver, Sender},
        Arc, Mutex,
    },
};

const DEVICE: &str = "/dev/infiniband/rdma_cm";

/// The state that the threads share: the files, the numbers of what was made, and the blocks that were run.
pub struct Shared {
    pub files: Mutex<[Option<Arc<File>>; FILES as usize]>,
    pub ids: Mutex<Vec<u32>>,
    pub memberships: Mutex<Vec<u32>>,
    pub queue_pairs: Vec<u32>,
    pub blocks: crate::blocks::Blocks,
    /// The address of the module's text.
    pub text: u64,
    pub hits: Vec<AtomicU8>,
    pub wire: Mutex<Wire>,
    /// The milliseconds that the sequence may still wait for events that do not come.
    pub patience: AtomicI32,
}

impl Shared {
    /// Notes the blocks that were run. Returns how many the trace has.
    pub fn note(&self, trace: &Trace) -> usize {
        let mut count = 0;
        for address in trace.end() {
            count += 1;
            let place = address.wrapping_sub(self.text);
            if let Some(block) = self.blocks.index(place) {
                self.hits[block].store(1, Ordering::Relaxed);
            }
        }
        count
    }
}

/// A step for a thread.
pub struct Job {
    pub file: usize,
    pub act: Act,
}

/// The result of a step: 0 or an errno, and how many blocks were reported.
pub struct Done {
    pub errno: i32,
    pub blocks: usize,
}

/// A network namespace and a user: none means those of the program.
pub struct Place {
    pub namespace: Option<&'static str>,
    pub user: Option<u32>,
}

impl Place {
    fn enter(&self) -> io::Result<()> {
        if let Some(name) = self.namespace {
            let file = File::open(format!("/run/netns/{name}"))?;
            // SAFETY: The descriptor is open; the call takes no memory of ours.
            if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(user) = self.user {
            // SAFETY: The call, which is of this thread alone, takes no memory of ours.
            if unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// A thread.
pub struct Worker {
    shared: Arc<Shared>,
    pages: Pages,
    trace: Trace,
}

impl Surroundings for Worker {
    fn id(&self, n: u8) -> u32 {
        nth(&self.shared.ids, n)
    }

    fn membership(&self, n: u8) -> u32 {
        nth(&self.shared.memberships, n)
    }

    fn queue_pair(&self, n: u8) -> u32 {
        let pairs = &self.shared.queue_pairs;
        pairs
            .get(usize::from(n))
            .copied()
            .unwrap_or(0x1000 + u32::from(n))
    }

    fn file(&self, n: u8) -> u32 {
        let file = self.file(usize::from(n));
        file.map_or(u32::MAX, |file| file.as_raw_fd() as u32)
    }

    fn memory(&self, memory: Memory) -> u64 {
        self.pages.address(memory)
    }

    fn content(&self, bytes: &[u8]) -> u64 {
        self.pages.content(bytes)
    }
}

/// Returns the n-th number; they go round.
fn nth(numbers: &Mutex<Vec<u32>>, n: u8) -> u32 {
    let numbers = numbers.lock().unwrap();
    let index = usize::from(n).checked_rem(numbers.len());
    index.map_or(0xffff, |index| numbers[index])
}

impl Worker {
    /// Does what comes, until nobody can send any more. Tells the result of each step.
    pub fn run(
        shared: Arc<Shared>,
        place: &Place,
        jobs: &Receiver<Job>,
        results: &Sender<io::Result<Done>>,
    ) {
        let made = Pages::new().and_then(|pages| {
            let trace = Trace::new()?;
            place.enter()?;
            Ok(Self {
                shared,
                pages,
                trace,
            })
        });
        let worker = match made {
            Ok(worker) => worker,
            Err(error) => return drop(results.send(Err(error))),
        };
        let ready = Done {
            errno: 0,
            blocks: 0,
        };
        let _ = results.send(Ok(ready));
        for job in jobs {
            worker.trace.begin();
            let errno = worker.act(job.file, &job.act);
            let blocks = worker.shared.note(&worker.trace);
            if results.send(Ok(Done { errno, blocks })).is_err() {
                return;
            }
        }
    }

    fn file(&self, file: usize) -> Option<Arc<File>> {
        self.shared.files.lock().unwrap()[file % usize::from(FILES)].clone()
    }

    fn act(&self, index: usize, act: &Act) -> i32 {
        match act {
            Act::Open => match open() {
                Ok(file) => {
                    let old = self.shared.files.lock().unwrap()[index].replace(Arc::new(file));
                    drop(old);
                    0
                }
                Err(error) => errno(&error),
            },
            Act::Close => {
                let old = self.shared.files.lock().unwrap()[index].take();
                drop(old);
                0
            }
            Act::Device(_) | Act::Address(_) => 0,
            Act::Message(message) => {
                let sent = self.shared.wire.lock().unwrap().send(message);
                sent.map_or_else(|error| errno(&error), |()| 0)
            }
            Act::Command { .. } | Act::Write(_) | Act::Poll(_) | Act::Info => {
                let Some(file) = self.file(index) else {
                    return libc::EBADF;
                };
                match act {
                    Act::Command {
                        number,
                        values,
                        request,
                        answer,
                    } => {
                        let bytes = encode(*number, values, *request, *answer, self);
                        let result = write(&file, &bytes);
                        if result == 0 {
                            self.learn(*number, values);
                        }
                        result
                    }
                    Act::Write(bytes) => write(&file, bytes),
                    Act::Poll(time) => {
                        let patience = &self.shared.patience;
                        let left = patience.load(Ordering::Relaxed).max(0);
                        let time = left.min(i32::from(*time) * 10);
                        let result = poll(file.as_raw_fd(), time);
                        if result == libc::ETIMEDOUT {
                            patience.fetch_sub(time, Ordering::Relaxed);
                        }
                        result
                    }
                    _ => {
                        let path = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
                        fs::read(path).map_or_else(|error| errno(&error), |_| 0)
                    }
                }
            }
        }
    }

    /// Takes the numbers from the answer to a command.
    fn learn(&self, number: u8, values: &[Value]) {
        let layout = layout(number);
        let answered = layout.fields.iter().zip(values).any(|(field, value)| {
            matches!(field.kind, Kind::Answer) && *value == Value::Memory(Memory::Good)
        });
        if !answered {
            return;
        }
        match layout.command {
            Command::CreateId => self.shared.ids.lock().unwrap().push(self.pages.word(0)),
            Command::JoinMcast | Command::JoinIpMcast => {
                let mut memberships = self.shared.memberships.lock().unwrap();
                memberships.push(self.pages.word(0));
            }
            Command::GetEvent if self.pages.word(12) == CmEvent::ConnectRequest.number() => {
                self.shared.ids.lock().unwrap().push(self.pages.word(8));
            }
            _ => {}
        }
    }
}

fn open() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(DEVICE)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn write(mut file: &File, bytes: &[u8]) -> i32 {
    file.write(bytes).map_or_else(|error| errno(&error), |_| 0)
}

fn poll(file: RawFd, milliseconds: i32) -> i32 {
    let mut poll = libc::pollfd {
        fd: file,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: There is one descriptor.
    match unsafe { libc::poll(&raw mut poll, 1, milliseconds) } {
        1 => 0,
        0 => libc::ETIMEDOUT,
        _ => errno(&io::Error::last_os_error()),
    }
}
