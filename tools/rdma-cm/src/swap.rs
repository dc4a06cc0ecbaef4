// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm use`: loads the other connection manager.

use crate::{
    failure::Failure,
    status::{current, demands_signatures, installed, is_loaded, release, Manager, Users, MODULES},
};
use std::{fs, os::unix::fs::MetadataExt, process::Command};

/// Runs a program of kmod. A failure is the first line that it says.
fn kmod(program: &'static str, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| Failure::Program(program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or("no reason is given");
    Err(Failure::Refused(line.to_owned()))
}

/// Unloads whichever connection manager is loaded.
fn unload() -> Result<(), Failure> {
    MODULES
        .iter()
        .filter(|module| is_loaded(module))
        .try_for_each(|module| kmod("/sbin/rmmod", &[module]))
}

/// Loads a connection manager, past the lines that the package has for modprobe.
fn load(manager: Manager) -> Result<(), Failure> {
    manager
        .modules()
        .iter()
        .try_for_each(|module| kmod("/sbin/modprobe", &["--ignore-install", module]))
}

/// Returns the obstacle to loading a module, by its fields in modinfo: the kernel that it is for, and
/// its signature. It has none if it is not installed.
fn obstacle(
    module: &str,
    found: Option<(String, String)>,
    release: &str,
    signed_only: bool,
) -> Option<String> {
    let Some((vermagic, signature)) = found else {
        return Some(format!("{module} is not installed for Linux {release}"));
    };
    let built_for = vermagic.split_whitespace().next().unwrap_or("unknown");
    if built_for != release {
        return Some(format!(
            "{module} is built for Linux {built_for}, and this is {release}"
        ));
    }
    (signed_only && signature.is_empty())
        .then(|| format!("{module} is not signed, and this kernel demands signatures"))
}

/// Returns the obstacle to loading a connection manager.
pub fn obstacle_to(manager: Manager) -> Option<String> {
    let (release, signed_only) = (release(), demands_signatures());
    manager.modules().iter().find_map(|module| {
        let field = |field| installed(module, field);
        let found = field("vermagic").zip(field("sig_id"));
        obstacle(module, found, &release, signed_only)
    })
}

/// Loads a connection manager in the place of the other one. If that cannot be, the other one stays,
/// or is loaded again.
pub fn swap(to: Manager) -> Result<(), Failure> {
    let before = current();
    if before == Some(to) {
        return Ok(());
    }
    // The directory of a process belongs to its user.
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Err(Failure::NotRoot);
    }
    let in_the_way = Users::find().in_a_line();
    let in_the_way = in_the_way.map(|users| format!("in use by {users}"));
    if let Some(why) = in_the_way.or_else(|| obstacle_to(to)) {
        return Err(Failure::Refused(format!("{why}: nothing has changed")));
    }
    let Err(why) = unload().and_then(|()| load(to)) else {
        return Ok(());
    };
    let back = unload().and_then(|()| before.map_or(Ok(()), load));
    let name = to.name();
    Err(Failure::Refused(match (back, before) {
        (Ok(()), Some(before)) => {
            format!(
                "{name} cannot be loaded: {} is loaded, as before: {why}",
                before.name()
            )
        }
        (Ok(()), None) => format!("{name} cannot be loaded: {why}"),
        (Err(back), _) => format!("no connection manager can be loaded: {why}; {back}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_found_before_anything_is_unloaded() {
        let told = |vermagic: &str, signature: &str, signed_only| {
            let found = Some((vermagic.to_owned(), signature.to_owned()));
            obstacle("m", found, "7.3.4", signed_only)
        };
        assert_eq!(told("7.3.4 SMP mod_unload", "", false), None);
        assert_eq!(told("7.3.4 SMP mod_unload", "PKCS#7", true), None);
        assert!(told("7.3.4 SMP mod_unload", "", true)
            .unwrap()
            .contains("not signed"));
        assert!(told("7.3.40 SMP mod_unload", "", false)
            .unwrap()
            .contains("built for Linux 7.3.40"));
        assert!(obstacle("m", None, "7.3.4", false)
            .unwrap()
            .contains("not installed"));
    }
}
