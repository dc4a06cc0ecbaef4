// SPDX-License-Identifier: GPL-2.0

//! The manual pages and the completions, which a package installs.

use crate::{
    failure::Failure,
    json,
    row::{names, Row, Value},
};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use cmproto::{cm::Tunable, netlink::Attr};
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

/// The sections of the page that no argument has.
const SECTIONS: &str = include_str!("sections.roff");

/// The page of cm.conf, before and after the list of tunables.
const CONF: [&str; 2] = [include_str!("conf.roff"), include_str!("conf-end.roff")];

/// Writes the manual pages, and the completion of each shell, into a directory. Names the files only as JSON.
pub fn generate(command: &Command, dir: &Path, as_json: bool) -> Result<(), Failure> {
    let mut files = ["rdma-cm.8", "cm.conf.5"]
        .map(|name| dir.join(name))
        .to_vec();
    page(command, &mut File::create(&files[0])?)?;
    conf_page(&mut File::create(&files[1])?)?;
    // Without the hidden commands, which the completions would offer.
    let mut command = Command::new("rdma-cm")
        .args(command.get_arguments())
        .subcommands(visible(command));
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        files.push(clap_complete::generate_to(
            shell,
            &mut command,
            "rdma-cm",
            dir,
        )?);
    }
    if as_json {
        let files = names(files.iter().map(|file| file.to_string_lossy()));
        let row = Row(vec![("files", Value::Rows(files))]);
        say!("{}", json::object(&row));
    }
    Ok(())
}

/// Writes the manual page.
fn page(command: &Command, to: &mut impl Write) -> io::Result<()> {
    let mut command = command.clone();
    command.build();
    let man = Man::new(command.clone())
        .section("8")
        .manual("RDMA connection manager");
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    writeln!(to, ".SH COMMANDS")?;
    subcommands(&command, to)?;
    to.write_all(SECTIONS.as_bytes())
}

/// Returns the meaning of a tunable, and its unit.
fn meaning(tunable: Tunable) -> &'static str {
    match tunable {
        Tunable::ResponseTimeout => {
            "a time code: the time that a peer may take to answer a request, beside the time that \
            packets take there and back. After both the request is sent again"
        }
        Tunable::MaxRetries => {
            "how often a request that is not answered is sent again, not counting early retries"
        }
        Tunable::Deadline => {
            "milliseconds: the longest time from a call that connects, accepts or disconnects \
            until the event that says how it ended. 0 is no limit but the retries"
        }
        Tunable::Timewait => {
            "a time code: the longest time from the end of a connection until its queue pair \
            number may be used again"
        }
        Tunable::EarlyRetry => {
            "milliseconds: the shortest time after which a request that is not answered is sent \
            again early. 0 is never"
        }
        Tunable::Parking => {
            "how many requests wait beside a full backlog of a listener. 0 is none: they are dropped"
        }
        Tunable::ReusePort => {
            "1: ids of one user may listen at one address of the port, and share the requests, unless \
            they set this themselves. 0: they may not"
        }
        Tunable::DeadLink => {
            "milliseconds: how long an interface (on InfiniBand a port) may be down until the \
            connections over it end. 0 is for ever"
        }
        Tunable::Keepalive => {
            "seconds: the longest time between two questions to the peer of a connection whether it \
            still has the connection, so that one that has restarted is found out. 0 is never"
        }
    }
}

/// Writes the page of cm.conf.
fn conf_page(to: &mut impl Write) -> io::Result<()> {
    let [before, after] = CONF;
    to.write_all(before.as_bytes())?;
    for tunable in Tunable::ALL {
        writeln!(
            to,
            ".TP\n.B {}",
            Attr::of(tunable).name().replace('-', "\\-")
        )?;
        let [default, max] = [tunable.default_value(), tunable.max()];
        writeln!(to, "{} (0 to {max}, default {default}).", meaning(tunable))?;
    }
    writeln!(to, ".PP")?;
    writeln!(
        to,
        "A time code t stands for 2^(t \\- 8) milliseconds: 18 for 1 s, 20 for 4.1 s, 22 for 16.4 s."
    )?;
    to.write_all(after.as_bytes())
}

/// Returns the subcommands that a user calls.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// Writes a subsection for each subcommand.
fn subcommands(command: &Command, to: &mut impl Write) -> io::Result<()> {
    for command in visible(command) {
        let name = command.get_bin_name().unwrap_or_default();
        writeln!(to, ".SS {}", name.replace('-', "\\-"))?;
        if let Some(about) = command.get_long_about().or(command.get_about()) {
            writeln!(to, "{about}")?;
        }
        // The arguments of all commands are above.
        let own = command.clone().mut_args(|argument| {
            let everywhere = ["help", "version", "json"].contains(&argument.get_id().as_str());
            argument.hide(everywhere)
        });
        let mut options = Vec::new();
        Man::new(own).render_options_section(&mut options)?;
        for line in String::from_utf8_lossy(&options).lines() {
            if line != ".SH OPTIONS" {
                writeln!(to, "{line}")?;
            }
        }
        subcommands(command, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::CommandFactory;

    /// Calls a function with each subcommand that a user calls.
    fn each(command: &Command, f: &mut impl FnMut(&Command)) {
        for command in visible(command) {
            f(command);
            each(command, f);
        }
    }

    #[test]
    fn the_page_of_the_file_has_each_tunable() {
        let mut page = Vec::new();
        conf_page(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.matches("\n.TP\n.B ").count(), Tunable::ALL.len());
        assert!(page.contains(
            "\n.B deadline\\-ms\nmilliseconds: the longest time from a call that connects"
        ));
        assert!(page.contains("(0 to 3600000, default 0)."));
    }

    #[test]
    fn the_page_has_each_subcommand_and_argument() {
        let mut page = Vec::new();
        super::page(&Arguments::command(), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap().replace("\\-", "-");
        let mut command = Arguments::command();
        command.build();
        let mut commands = 0;
        each(&command, &mut |command| {
            let name = command.get_bin_name().unwrap();
            let start = page
                .find(&format!("\n.SS {name}\n"))
                .unwrap_or_else(|| panic!("{name} is missing"));
            let section = page[start + 1..].split("\n.S").next().unwrap();
            assert!(section.contains(&command.get_about().unwrap().to_string()));
            for argument in command.get_arguments().filter(|one| !one.is_global_set()) {
                if let (Some(help), false) = (argument.get_help(), argument.get_id() == "help") {
                    assert!(section.contains(&help.to_string()), "{name}: {help}");
                }
            }
            commands += 1;
        });
        assert!(commands >= 7, "{commands} commands");
        for section in ["EXIT STATUS", "JSON", "FILES", "EXAMPLES", "SEE ALSO"] {
            assert!(
                page.contains(&format!("\n.SH \"{section}\"\n")),
                "{section}"
            );
        }
    }
}
