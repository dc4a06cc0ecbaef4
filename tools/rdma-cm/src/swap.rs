// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm use`: loads the other connection manager.

use crate::{
    failure::Failure,
    json,
    row::{names, Row, Value},
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

/// The modules of a host.
trait Modules {
    fn is_loaded(&self, module: &str) -> bool;

    /// Loads a module. Does nothing if it is loaded.
    fn insert(&mut self, module: &str) -> Result<(), Failure>;

    fn remove(&mut self, module: &str) -> Result<(), Failure>;
}

/// The modules of the running kernel.
struct Kernel;

impl Modules for Kernel {
    fn is_loaded(&self, module: &str) -> bool {
        is_loaded(module)
    }

    /// Loads a module, past the lines that the package has for modprobe.
    fn insert(&mut self, module: &str) -> Result<(), Failure> {
        kmod("/sbin/modprobe", &["--ignore-install", module])
    }

    fn remove(&mut self, module: &str) -> Result<(), Failure> {
        kmod("/sbin/rmmod", &[module])
    }
}

/// Unloads whichever connection manager is loaded, and returns its modules.
fn unload(host: &mut impl Modules) -> Result<Vec<&'static str>, Failure> {
    let mut unloaded = MODULES.to_vec();
    unloaded.retain(|module| host.is_loaded(module));
    unloaded.iter().try_for_each(|module| host.remove(module))?;
    Ok(unloaded)
}

fn load(host: &mut impl Modules, manager: Manager) -> Result<(), Failure> {
    let mut modules = manager.modules().iter();
    modules.try_for_each(|module| host.insert(module))
}

/// Loads `to` in the place of `before`, and returns the modules that were unloaded. If that fails, `before`
/// is loaded as it was.
fn replace(
    host: &mut impl Modules,
    before: Option<Manager>,
    to: Manager,
) -> Result<Vec<&'static str>, Failure> {
    let swapped = unload(host).and_then(|unloaded| load(host, to).map(|()| unloaded));
    let why = match swapped {
        Ok(unloaded) => return Ok(unloaded),
        Err(why) => why,
    };
    // Somebody may have begun to use one of its modules meanwhile, and those before it have gone.
    let is_left = |manager: &Manager| {
        manager
            .modules()
            .iter()
            .any(|module| host.is_loaded(module))
    };
    let back = match (before, before.as_ref().is_some_and(is_left)) {
        (Some(before), true) => load(host, before),
        _ => unload(host).and_then(|_| before.map_or(Ok(()), |before| load(host, before))),
    };
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

/// Returns a row with the modules that were unloaded and loaded, for JSON.
fn done(before: Option<Manager>, to: Manager, unloaded: &[&str]) -> Row {
    let loaded = match before == Some(to) {
        true => &[],
        false => to.modules(),
    };
    Row(vec![
        ("manager", Value::Text(to.name().into())),
        (
            "before",
            Value::Text(before.map_or("none", Manager::name).into()),
        ),
        ("unloaded", Value::Rows(names(unloaded.iter().copied()))),
        ("loaded", Value::Rows(names(loaded.iter().copied()))),
    ])
}

/// Loads a connection manager in the place of the other one. If that cannot be, the other one stays,
/// or is loaded again. Says what was done only as JSON.
pub fn swap(to: Manager, as_json: bool) -> Result<(), Failure> {
    let before = current();
    let unloaded = match before == Some(to) {
        true => Vec::new(),
        false => try_to_replace(before, to)?,
    };
    if as_json {
        say!("{}", json::object(&done(before, to, &unloaded)));
    }
    Ok(())
}

/// Loads `to` in the place of `before`, and returns the modules that were unloaded. Changes nothing if
/// something is known to be in the way.
fn try_to_replace(before: Option<Manager>, to: Manager) -> Result<Vec<&'static str>, Failure> {
    // The directory of a process belongs to its user.
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Err(Failure::NotRoot);
    }
    let in_the_way = Users::find().in_a_line();
    let in_the_way = in_the_way.map(|users| format!("in use by {users}"));
    if let Some(why) = in_the_way.or_else(|| obstacle_to(to)) {
        return Err(Failure::Refused(format!("{why}: nothing has changed")));
    }
    replace(&mut Kernel, before, to)
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

    /// A host, some of whose modules are used by somebody or do not fit.
    #[derive(Default)]
    struct Fake {
        loaded: Vec<String>,
        used: &'static [&'static str],
        unfit: &'static [&'static str],
    }

    impl Fake {
        fn with(manager: Manager) -> Self {
            let mut host = Fake::default();
            load(&mut host, manager).unwrap();
            host
        }

        fn has_only(&self, manager: Manager) -> bool {
            let mut wanted = manager.modules().iter();
            self.loaded.len() == wanted.len() && wanted.all(|module| self.is_loaded(module))
        }
    }

    impl Modules for Fake {
        fn is_loaded(&self, module: &str) -> bool {
            self.loaded.iter().any(|loaded| loaded == module)
        }

        fn insert(&mut self, module: &str) -> Result<(), Failure> {
            if self.unfit.contains(&module) {
                return Err(Failure::Refused(format!("{module} does not fit")));
            }
            if !self.is_loaded(module) {
                self.loaded.push(module.to_owned());
            }
            Ok(())
        }

        fn remove(&mut self, module: &str) -> Result<(), Failure> {
            if self.used.contains(&module) {
                return Err(Failure::Refused(format!("{module} is in use")));
            }
            self.loaded.retain(|loaded| loaded != module);
            Ok(())
        }
    }

    #[test]
    fn one_takes_the_place_of_the_other() {
        for (before, to) in [(Manager::Rust, Manager::C), (Manager::C, Manager::Rust)] {
            let mut host = Fake::with(before);
            assert!(replace(&mut host, Some(before), to).is_ok());
            assert!(host.has_only(to));
        }
    }

    #[test]
    fn json_says_what_was_done() {
        let to = Manager::Rust;
        let unloaded = replace(&mut Fake::with(Manager::C), Some(Manager::C), to).unwrap();
        assert_eq!(
            json::object(&done(Some(Manager::C), to, &unloaded)),
            r#"{"manager": "rust", "before": "c", "unloaded": [{"name": "rdma_ucm"},
 {"name": "rdma_cm"},
 {"name": "ib_cm"}], "loaded": [{"name": "rust_rdma_cm"}]}"#
        );
        let unloaded = replace(&mut Fake::default(), None, Manager::C).unwrap();
        let row = done(None, Manager::C, &unloaded);
        assert_eq!(
            (row.text("before"), row.rows("unloaded").len()),
            ("none", 0)
        );
        assert_eq!(row.rows("loaded").len(), 3);
        // It was loaded before.
        let row = done(Some(to), to, &[]);
        assert_eq!((row.text("manager"), row.text("before")), ("rust", "rust"));
        assert!(row.rows("unloaded").is_empty() && row.rows("loaded").is_empty());
    }

    #[test]
    fn a_module_that_comes_into_use_meanwhile_stays_with_all_that_belong_to_it() {
        for (before, to, used) in [
            (Manager::Rust, Manager::C, &["rust_rdma_cm"]),
            (Manager::C, Manager::Rust, &["rdma_cm"]),
        ] {
            let mut host = Fake::with(before);
            host.used = used;
            let told = replace(&mut host, Some(before), to)
                .unwrap_err()
                .to_string();
            assert!(host.has_only(before), "{:?}", host.loaded);
            assert!(told.contains("as before"), "{told}");
            assert!(told.contains("is in use"), "{told}");
        }
    }

    #[test]
    fn a_module_that_does_not_fit_gives_its_place_back() {
        for (before, to, unfit) in [
            (Manager::Rust, Manager::C, &["rdma_cm"]),
            (Manager::C, Manager::Rust, &["rust_rdma_cm"]),
        ] {
            let mut host = Fake::with(before);
            host.unfit = unfit;
            let told = replace(&mut host, Some(before), to)
                .unwrap_err()
                .to_string();
            assert!(host.has_only(before), "{:?}", host.loaded);
            assert!(told.contains("as before"), "{told}");
        }
        let mut host = Fake::default();
        host.unfit = &["rdma_cm"];
        assert!(replace(&mut host, None, Manager::C).is_err());
        assert!(host.loaded.is_empty());
    }
}
