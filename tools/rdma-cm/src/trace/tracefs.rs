// SPDX-License-Identifier: GPL-2.0

//! Tracing by an instance of tracefs, which others do not notice.

use crate::{failure::Failure, signal};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

/// The directory of instances.
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// The beginning of the names of this tool's.
const PREFIX: &str = "rdma-cm-";
/// The events of ib_core that tell of messages.
const MESSAGES: [&str; 3] = [
    "ib_mad_ib_send_mad",
    "ib_mad_send_done_resend",
    "ib_mad_recv_done_handler",
];
/// The messages of connection managers, as a filter of the kernel.
const FILTER: &str = "mgmt_class == 7";

/// An instance, which is removed when this is dropped.
struct Instance {
    dir: PathBuf,
    /// Keeps it while it is in use.
    file: Option<File>,
}

impl Instance {
    fn new() -> Result<Self, Failure> {
        // A tool that was killed has left its instance. One that is in use cannot be removed.
        let left = fs::read_dir(INSTANCES).map_err(no_tracefs)?.flatten();
        for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            let _ = fs::remove_dir(entry.path());
        }
        let dir = Path::new(INSTANCES).join(format!("{PREFIX}{}", process::id()));
        fs::create_dir(&dir).map_err(no_tracefs)?;
        let mut instance = Instance { dir, file: None };
        instance.file = Some(File::open(instance.dir.join("trace_options")).map_err(no_tracefs)?);
        Ok(instance)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.dir.join(file), text).map_err(no_tracefs)
    }

    /// Returns the number of events for which there was no room.
    fn lost(&self) -> u64 {
        let Ok(processors) = fs::read_dir(self.dir.join("per_cpu")) else {
            return 0;
        };
        let stats = processors
            .flatten()
            .filter_map(|processor| fs::read_to_string(processor.path().join("stats")).ok());
        let lost = |stats: String| {
            let line = stats
                .lines()
                .find_map(|line| line.strip_prefix("overrun: ")?.parse::<u64>().ok());
            line.unwrap_or(0)
        };
        stats.map(lost).sum()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.file = None;
        let _ = fs::remove_dir(&self.dir);
    }
}

fn no_tracefs(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::NoTracefs,
        io::ErrorKind::PermissionDenied => Failure::NotRoot,
        _ => error.into(),
    }
}

/// Traces for a time, or until a signal comes, and returns the lines.
pub fn record(how_long: Option<Duration>) -> Result<String, Failure> {
    let signals = signal::Signals::block()?;
    let instance = Instance::new()?;
    // So that the events of several processors are in their order.
    instance.write("trace_clock", "mono")?;
    for system in ["ib_cma", "rdma_cma"] {
        if !instance.dir.join("events").join(system).is_dir() {
            return Err(Failure::NoManager);
        }
        instance.write(&format!("events/{system}/enable"), "1")?;
    }
    for event in MESSAGES {
        instance.write(&format!("events/ib_mad/{event}/filter"), FILTER)?;
        instance.write(&format!("events/ib_mad/{event}/enable"), "1")?;
    }
    if how_long.is_none() {
        eprintln!("rdma-cm: tracing, until it is interrupted");
    }
    signals.wait(how_long)?;
    instance.write("tracing_on", "0")?;
    let lost = instance.lost();
    if lost > 0 {
        eprintln!("rdma-cm: {lost} events were lost: the first ones are missing");
    }
    Ok(fs::read_to_string(instance.dir.join("trace"))?)
}
