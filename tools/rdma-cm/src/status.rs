// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm status`.

use crate::{
    failure::Failure,
    family, json,
    row::{dump, names, Row, Value},
    swap::obstacle_to,
};
use clap::ValueEnum;
use cmproto::netlink::Command;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process,
};

/// A connection manager.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Manager {
    /// rust_rdma_cm.
    Rust,
    /// The kernel's ib_cm, rdma_cm and rdma_ucm.
    C,
}

impl Manager {
    /// Returns the name that the command line has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
        }
    }

    /// Returns its modules, in the order in which they are loaded.
    pub fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["rust_rdma_cm"],
            Self::C => &["ib_cm", "rdma_cm", "rdma_ucm"],
        }
    }
}

/// The modules of both connection managers, in the order in which they are unloaded.
pub const MODULES: [&str; 4] = ["rdma_ucm", "rdma_cm", "ib_cm", "rust_rdma_cm"];

/// Tells whether a module is loaded.
pub fn is_loaded(module: &str) -> bool {
    Path::new("/sys/module").join(module).is_dir()
}

/// Returns the connection manager that is loaded.
pub fn current() -> Option<Manager> {
    if is_loaded("rust_rdma_cm") {
        Some(Manager::Rust)
    } else if is_loaded("rdma_cm") || is_loaded("ib_cm") {
        Some(Manager::C)
    } else {
        None
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

/// Returns the groups of configfs, which keep either connection manager loaded.
fn groups() -> BTreeSet<String> {
    entries("/sys/kernel/config/rdma_cm")
        .filter(|path| path.is_dir())
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// All that keeps a connection manager loaded.
pub struct Users {
    modules: BTreeSet<String>,
    processes: Vec<Row>,
    groups: BTreeSet<String>,
}

impl Users {
    /// Finds them, as far as this user may see them.
    pub fn find() -> Self {
        Self {
            modules: modules(),
            processes: processes(),
            groups: groups(),
        }
    }

    /// Returns those that there are, as words, by their kind.
    fn by_kind(&self) -> Vec<(&'static str, String)> {
        let process =
            |row: &Row| format!("{} ({})", row.number("pid").unwrap_or(0), row.text("name"));
        [
            ("modules", self.modules.iter().cloned().collect()),
            ("processes", self.processes.iter().map(process).collect()),
            ("configfs", self.groups.iter().cloned().collect()),
        ]
        .into_iter()
        .map(|(kind, names): (_, Vec<String>)| (kind, names.join(" ")))
        .filter(|(_, names)| !names.is_empty())
        .collect()
    }

    /// Returns all of them in a line, if there are any.
    pub fn in_a_line(&self) -> Option<String> {
        let kinds = self.by_kind().into_iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, names)| format!("{kind}: {names}"))
            .collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }
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
pub fn installed(module: &str, field: &str) -> Option<String> {
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
pub fn demands_signatures() -> bool {
    let has = |file, what: &[&str]| {
        fs::read_to_string(file).is_ok_and(|text| what.iter().any(|what| text.contains(what)))
    };
    has("/sys/module/module/parameters/sig_enforce", &["Y"])
        || has(
            "/sys/kernel/security/lockdown",
            &["[integrity]", "[confidentiality]"],
        )
}

/// Returns the release of the kernel.
pub fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim_end().to_owned()
}

/// Returns the version of the module that is loaded, or the reason for which it is not.
fn reason(manager: Option<Manager>) -> (&'static str, String) {
    if manager == Some(Manager::Rust) {
        let version = fs::read_to_string("/sys/module/rust_rdma_cm/version");
        return (
            "version",
            version.unwrap_or_else(|_| "unknown".into()).trim().into(),
        );
    }
    let loadable = || "rust_rdma_cm is installed: \"rdma-cm use rust\" loads it".into();
    ("why", obstacle_to(Manager::Rust).unwrap_or_else(loadable))
}

fn print(counts: Option<Row>, as_json: bool) {
    let (manager, users) = (current(), Users::find());
    let (key, reason) = reason(manager);
    let manager = manager.map_or("none", Manager::name);
    if as_json {
        let rows = |found| Value::Rows(names(found));
        let mut row = Row(vec![
            ("manager", Value::Text(manager.into())),
            (key, Value::Text(reason)),
            ("modules", rows(users.modules)),
            ("processes", Value::Rows(users.processes)),
            ("configfs", rows(users.groups)),
        ]);
        row.0.extend(counts.unwrap_or_default().0);
        say!("{}", json::object(&row));
        return;
    }
    say!("{manager}");
    say!("{key}: {reason}");
    for (kind, names) in users.by_kind() {
        say!("used by {kind}: {names}");
    }
    if let Some(counts) = counts {
        let [connections, listeners] =
            ["connections", "listeners"].map(|name| counts.number(name).unwrap_or(0));
        say!("connections: {connections}, listeners: {listeners}");
    }
}
