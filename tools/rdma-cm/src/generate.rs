// SPDX-License-Identifier: GPL-2.0

//! The manual page and the completions, which a package installs.

use crate::failure::Failure;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

/// The sections of the page that no argument has.
const SECTIONS: &str = include_str!("sections.roff");

/// Writes the manual page, and the completion of each shell, into a directory.
pub fn generate(command: &Command, dir: &Path) -> Result<(), Failure> {
    page(command, &mut File::create(dir.join("rdma-cm.8"))?)?;
    // Without the hidden commands, which the completions would offer.
    let mut command = Command::new("rdma-cm")
        .args(command.get_arguments())
        .subcommands(visible(command));
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "rdma-cm", dir)?;
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
        for section in ["EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"] {
            assert!(
                page.contains(&format!("\n.SH \"{section}\"\n")),
                "{section}"
            );
        }
    }
}
