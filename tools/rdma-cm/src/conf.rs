// SPDX-License-Identifier: GPL-2.0

//! `/etc/rdma/cm.conf`: the tunables that ports are to have, cm.conf(5).

use crate::{failure::Failure, tune};
use cmproto::{cm::Tunable, netlink::Attr};
use std::{
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The file that the package installs.
pub const FILE: &str = "/etc/rdma/cm.conf";

/// The word for all ports of the host.
const ALL: &str = "all";

/// Ports of the host. A place that is greater is about fewer ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All ports.
    Host,
    /// The ports of a device.
    Device(String),
    /// A single port.
    Port(String, u32),
}

impl Place {
    /// Returns the place that a word means: "all", DEVICE or DEVICE/PORT.
    pub fn parse(word: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::Wrong(format!(
                "no port {word}: it is DEVICE, DEVICE/PORT or {ALL}"
            ))
        };
        match word.split_once('/') {
            _ if word.contains('=') => Err(wrong()),
            None if word == ALL => Ok(Self::Host),
            None => Ok(Self::Device(word.into())),
            Some((device, port)) => {
                let port = port.parse().map_err(|_| wrong())?;
                Ok(Self::Port(device.into(), port))
            }
        }
    }

    /// Returns whether this port is among them.
    pub fn has(&self, device: &str, port: u32) -> bool {
        match self {
            Self::Host => true,
            Self::Device(name) => name == device,
            Self::Port(name, number) => name == device && *number == port,
        }
    }

    /// Returns the word for places of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Device(_) => "device",
            Self::Port(..) => "port",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => write!(f, "{ALL}"),
            Self::Device(device) => write!(f, "{device}"),
            Self::Port(device, port) => write!(f, "{device}/{port}"),
        }
    }
}

/// Tunables and their values.
pub type Values = Vec<(Tunable, u32)>;

/// A line that sets something.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// The number of the line, from 1.
    pub number: usize,
    /// The ports that it is about.
    pub place: Place,
    values: Values,
}

impl Line {
    /// Returns a line, or nothing if it is empty.
    fn parse(number: usize, text: &str) -> Result<Option<Self>, Failure> {
        let mut words = without_comment(text).split_whitespace();
        let Some(place) = words.next() else {
            return Ok(None);
        };
        let place = Place::parse(place)?;
        let values = words.map(tune::parse).collect::<Result<Values, _>>()?;
        match values.is_empty() {
            true => Err(Failure::Wrong(format!("no NAME=VALUE for {place}"))),
            false => Ok(Some(Self {
                number,
                place,
                values,
            })),
        }
    }

    /// Returns the value of a tunable, the last one if there are several.
    fn value(&self, tunable: Tunable) -> Option<u32> {
        let of = self.values.iter().rev().find(|(name, _)| *name == tunable);
        of.map(|(_, value)| *value)
    }
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

/// A file, as far as it can be understood.
#[derive(Debug, Default)]
pub struct Conf {
    path: PathBuf,
    text: String,
    lines: Vec<Line>,
    /// The faults of the other lines.
    faults: Vec<String>,
}

impl Conf {
    /// Reads a file. One that is not there says nothing.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        match fs::read(path) {
            Ok(bytes) => Ok(Self::parse(path, &String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::parse(path, "")),
            Err(error) => Err(Failure::File(path.into(), error)),
        }
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut conf = Self {
            path: path.into(),
            text: text.into(),
            ..Self::default()
        };
        for (number, line) in (1..).zip(text.lines()) {
            match Line::parse(number, line) {
                Ok(line) => conf.lines.extend(line),
                Err(fault) => conf
                    .faults
                    .push(format!("{}:{number}: {fault}", path.display())),
            }
        }
        conf
    }

    /// Returns a file of this text, for a test.
    #[cfg(test)]
    pub fn parsed(text: &str) -> Self {
        Self::parse(Path::new("cm.conf"), text)
    }

    /// Returns the line that says what a tunable of a port is to be, and its value.
    ///
    /// That is one about the fewest ports, and of several the last one.
    pub fn value(&self, device: &str, port: u32, tunable: Tunable) -> Option<(&Line, u32)> {
        let of_port = self
            .lines
            .iter()
            .filter(|line| line.place.has(device, port));
        let found = of_port.filter_map(|line| Some((line, line.value(tunable)?)));
        found.max_by_key(|(line, _)| (&line.place, line.number))
    }

    /// Fails if lines are wrong, and tells of each.
    pub fn check(self) -> Result<(), Failure> {
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Failure::Lines(self.faults)),
        }
    }

    /// Returns the text of the file when these are the values for a place.
    ///
    /// They go into the last line about it, whose comment stays, or into a new line.
    fn with(&self, place: &Place, values: &[(Tunable, u32)]) -> String {
        let old = self.lines.iter().rev().find(|line| line.place == *place);
        let mut all: Values = old.map_or(Vec::new(), |line| line.values.clone());
        for (tunable, value) in values {
            all.retain(|(old, _)| old != tunable);
            all.push((*tunable, *value));
        }
        let mut new = place.to_string();
        for (tunable, value) in all {
            new += &format!(" {}={value}", Attr::of(tunable).name());
        }
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        match old.and_then(|line| lines.get_mut(line.number - 1)) {
            Some(line) => {
                let comment = &line[without_comment(line).len()..];
                *line = format!("{new} {comment}").trim_end().to_owned();
            }
            None => lines.push(new),
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Prepares the file for these values. It changes when the result is [committed](New::commit).
    pub fn prepare(&self, place: &Place, values: &[(Tunable, u32)]) -> Result<New, Failure> {
        // A link stays one.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut name = path.clone().into_os_string();
        name.push(".new");
        let new = New {
            path,
            new: name.into(),
        };
        let write = |to: &Path| {
            let mut file = fs::File::create(to)?;
            file.write_all(self.with(place, values).as_bytes())?;
            file.sync_all()
        };
        match write(&new.new) {
            Ok(()) => Ok(new),
            Err(error) => Err(Failure::File(self.path.clone(), error)),
        }
    }
}

/// A new file, which takes the place of the old one or is removed.
pub struct New {
    path: PathBuf,
    new: PathBuf,
}

impl New {
    /// Puts the new file in the place of the old one.
    pub fn commit(self) -> Result<(), Failure> {
        fs::rename(&self.new, &self.path).map_err(|error| Failure::File(self.path.clone(), error))
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // After a commit there is none.
        let _ = fs::remove_file(&self.new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Tunable::{Deadline, EarlyRetry, MaxRetries};

    const TEXT: &str = "\
# A comment.
all early-retry-ms=50 max-retries=7

rxe0 deadline-ms=500	max-retries=3 # slow peers
rxe0/2 max-retries=0
all max-retries=8
";

    #[test]
    fn the_line_about_the_fewest_ports_counts_and_then_the_last() {
        let conf = Conf::parsed(TEXT);
        let value = |device, port, tunable| {
            let found = conf.value(device, port, tunable);
            found.map(|(line, value)| (line.place.kind(), line.number, value))
        };
        assert_eq!(value("rxe0", 2, MaxRetries), Some(("port", 5, 0)));
        assert_eq!(value("rxe0", 1, MaxRetries), Some(("device", 4, 3)));
        assert_eq!(value("rxe00", 1, MaxRetries), Some(("host", 6, 8)));
        assert_eq!(value("rxe0", 1, EarlyRetry), Some(("host", 2, 50)));
        assert_eq!(value("rxe1", 1, Deadline), None);
        assert!(conf.check().is_ok());
    }

    #[test]
    fn the_example_of_the_page_for_administrators_is_right() {
        let page = include_str!("../../../Documentation/administration.rst");
        let example = page.split("is its manual page::\n\n").nth(1).unwrap();
        let conf = Conf::parsed(example.split("\n\n").next().unwrap());
        assert_eq!(conf.value("mlx5_0", 2, Deadline).unwrap().1, 60_000);
        assert_eq!(conf.value("mlx5_1", 1, Deadline).unwrap().1, 5000);
        assert!(conf.check().is_ok());
    }

    #[test]
    fn of_several_values_in_a_line_the_last_one_counts() {
        let conf = Conf::parsed("rxe0 max-retries=3 max-retries=4");
        assert_eq!(conf.value("rxe0", 1, MaxRetries).unwrap().1, 4);
    }

    #[test]
    fn a_wrong_line_does_nothing_and_the_others_count() {
        let text = "rxe0 max-retries=3\nrxe0 deadline-ms=5 max-retries=16\nmax-retries=2\nrxe0\n\
            rxe0/x max-retries=1\nrxe0/ max-retries=1\nrxe0 retries=1\nrxe0 max-retries = 1\n\
            rxe0 \u{fffd}=1\nrxe0 max-retries=99999999999999999999\nall early-retry-ms=0";
        let conf = Conf::parsed(text);
        assert_eq!(conf.value("rxe0", 1, MaxRetries).unwrap().1, 3);
        assert_eq!(conf.value("rxe0", 1, Deadline), None);
        assert_eq!(conf.value("rxe0", 1, EarlyRetry).unwrap().1, 0);
        let numbers: Vec<_> = conf
            .faults
            .iter()
            .map(|fault| fault.split(':').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(numbers, ["2", "3", "4", "5", "6", "7", "8", "9", "10"]);
        assert_eq!(
            conf.faults[0],
            "cm.conf:2: max-retries is a number from 0 to 15"
        );
        assert!(conf.faults.iter().all(|fault| !fault.contains('\n')));
        let failure = conf.check().unwrap_err();
        assert_eq!(failure.status(), 5);
        assert_eq!(failure.to_string().lines().count(), 9);
    }

    #[test]
    fn values_that_are_saved_are_those_of_the_place() {
        let conf = Conf::parsed(TEXT);
        let save = |place: &str, values: &[(Tunable, u32)]| {
            let text = conf.with(&Place::parse(place).unwrap(), values);
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            assert!(text.ends_with('\n'));
            lines
        };
        let lines = save("rxe0", &[(MaxRetries, 5), (EarlyRetry, 0)]);
        assert_eq!(lines.len(), 6);
        assert_eq!(
            lines[3],
            "rxe0 deadline-ms=500 max-retries=5 early-retry-ms=0 # slow peers"
        );
        // The last line about a place counts.
        assert_eq!(save("all", &[(MaxRetries, 9)])[5], "all max-retries=9");
        let lines = save("rxe1/1", &[(Deadline, 9)]);
        assert_eq!(lines[6], "rxe1/1 deadline-ms=9");
        assert_eq!(lines[..6].join("\n") + "\n", TEXT);
    }

    #[test]
    fn a_file_changes_when_it_is_committed() {
        let dir = std::env::temp_dir().join(format!("rdma-cm-conf-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let file = dir.join("cm.conf");
        let conf = Conf::read(&file).unwrap();
        drop(conf.prepare(&Place::Host, &[(MaxRetries, 1)]).unwrap());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        let new = conf.prepare(&Place::Host, &[(MaxRetries, 1)]).unwrap();
        new.commit().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "all max-retries=1\n");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        let failure = Conf::read(&dir).unwrap_err();
        assert_eq!(failure.status(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
