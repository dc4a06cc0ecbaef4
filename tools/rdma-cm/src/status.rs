// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm status` and `rdma-cm use`.

use crate::{
    failure::Failure,
    family, json,
    row::{dump, Row, Value},
};
use clap::ValueEnum;
use cmproto::netlink::Command;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process,
};

/// A connection manager.
#[derive(Clone, Copy, ValueEnum)]
pub enum Manager {
    /// rust_rdma_cm.
    Rust,
    /// The kernel's ib_cm, rdma_cm and rdma_ucm.
    C,
}

impl Manager {
    fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
        }
    }
}

/// The modules of both connection managers.
const MODULES: [&str; 4] = ["rdma_ucm", "rdma_cm", "ib_cm", "rust_rdma_cm"];

/// The program that loads the other connection manager, where a package puts it.
const SWAP: &str = "/usr/libexec/rdma-cm/cm";

fn is_loaded(module: &str) -> bool {
    Path::new("/sys/module").join(module).is_dir()
}

/// Returns the name of the connection manager that is loaded.
fn current() -> &'static str {
    if is_loaded("rust_rdma_cm") {
        "rust"
    } else if is_loaded("rdma_cm") || is_loaded("ib_cm") {
        "c"
    } else {
        "none"
    }
}

fn entries(dir: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

/// Returns the last part of a path.
fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the modules that need one of the connection manager, but for its own.
fn modules() -> BTreeSet<String> {
    let holders = MODULES
        .iter()
        .flat_map(|module| entries(format!("/sys/module/{module}/holders")));
    holders
        .map(|path| name(&path))
        .filter(|name| !MODULES.contains(&name.as_str()))
        .collect()
}

/// Returns the processes that have the device open, as far as this user may see them.
fn processes() -> Vec<Row> {
    let numbers = entries("/proc").filter_map(|path| name(&path).parse::<u64>().ok());
    let mut numbers: Vec<u64> = numbers.filter(|pid| has_device(*pid)).collect();
    numbers.sort_unstable();
    let process = |pid| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let comm = Value::Text(comm.trim_end().to_owned());
        Row(vec![("pid", Value::Number(pid)), ("name", comm)])
    };
    numbers.into_iter().map(process).collect()
}

fn has_device(pid: u64) -> bool {
    let device = Path::new("/dev/infiniband/rdma_cm");
    entries(format!("/proc/{pid}/fd")).any(|fd| fs::read_link(fd).is_ok_and(|to| to == device))
}

/// Returns the numbers of connections and listeners that this user sees, by state.
fn counts() -> Result<Row, Failure> {
    let mut socket = family()?;
    let connections = dump(&mut socket, Command::ConnectionGet)?.len() as u64;
    let listeners = dump(&mut socket, Command::ListenerGet)?.len() as u64;
    Ok(Row(vec![
        ("connections", Value::Number(connections)),
        ("listeners", Value::Number(listeners)),
    ]))
}

/// Shows which connection manager is loaded, why, and who uses it.
pub fn show_manager(as_json: bool) -> Result<(), Failure> {
    print(None, as_json);
    Ok(())
}

/// Shows the same, and how many connections and listeners there are, if the kernel says that.
pub fn show(as_json: bool) -> Result<(), Failure> {
    match counts() {
        Ok(counts) => print(Some(counts), as_json),
        Err(Failure::NoFamily) => print(None, as_json),
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Returns the value of a field of modinfo, for a module that is installed for this kernel.
fn installed(module: &str, field: &str) -> Option<String> {
    let output = process::Command::new("/sbin/modinfo")
        .args(["-F", field, module])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    output.status.success().then_some(text)
}

/// Tells whether the kernel loads only modules that are signed.
fn demands_signatures() -> bool {
    let has = |file, what: &[&str]| {
        fs::read_to_string(file).is_ok_and(|text| what.iter().any(|what| text.contains(what)))
    };
    has("/sys/module/module/parameters/sig_enforce", &["Y"])
        || has(
            "/sys/kernel/security/lockdown",
            &["[integrity]", "[confidentiality]"],
        )
}

/// Returns the reason for which rust_rdma_cm is not loaded.
fn why_not_rust() -> String {
    match installed("rust_rdma_cm", "sig_id") {
        None => {
            let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            format!(
                "rust_rdma_cm is not installed for Linux {}",
                release.trim_end()
            )
        }
        Some(signature) if signature.is_empty() && demands_signatures() => {
            "rust_rdma_cm is not signed, and this kernel demands signatures".into()
        }
        Some(_) => "rust_rdma_cm is installed: \"rdma-cm use rust\" loads it".into(),
    }
}

/// Returns the version of the module that is loaded, or the reason for which it is not.
fn reason(manager: &str) -> (&'static str, String) {
    if manager == "rust" {
        let version = fs::read_to_string("/sys/module/rust_rdma_cm/version");
        return (
            "version",
            version.unwrap_or_else(|_| "unknown".into()).trim().into(),
        );
    }
    ("why", why_not_rust())
}

fn print(counts: Option<Row>, as_json: bool) {
    let (manager, modules, processes) = (current(), modules(), processes());
    let (key, reason) = reason(manager);
    if as_json {
        let module = |name: String| Row(vec![("name", Value::Text(name))]);
        let mut row = Row(vec![
            ("manager", Value::Text(manager.into())),
            (key, Value::Text(reason)),
            (
                "modules",
                Value::Rows(modules.into_iter().map(module).collect()),
            ),
            ("processes", Value::Rows(processes)),
        ]);
        row.0.extend(counts.unwrap_or_default().0);
        say!("{}", json::object(&row));
        return;
    }
    say!("{manager}");
    say!("{key}: {reason}");
    if !modules.is_empty() {
        let modules: Vec<String> = modules.into_iter().collect();
        say!("used by modules: {}", modules.join(" "));
    }
    if !processes.is_empty() {
        let process =
            |row: &Row| format!("{} ({})", row.number("pid").unwrap_or(0), row.text("name"));
        let processes: Vec<String> = processes.iter().map(process).collect();
        say!("used by processes: {}", processes.join(" "));
    }
    if let Some(counts) = counts {
        let [connections, listeners] =
            ["connections", "listeners"].map(|name| counts.number(name).unwrap_or(0));
        say!("connections: {connections}, listeners: {listeners}");
    }
}

/// Loads the other connection manager.
pub fn swap(which: Manager) -> Result<(), Failure> {
    let error = process::Command::new(SWAP).arg(which.name()).exec();
    Err(Failure::Program(SWAP, error))
}
