// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm tune`.

use crate::{
    failure::Failure,
    json,
    netlink::Socket,
    row::{dump, Row},
    show::port,
    table::Table,
};
use clap::Subcommand;
use cmproto::{
    cm::Tunable,
    netlink::{Attr, Command},
};

#[derive(Subcommand)]
pub enum Action {
    /// Shows the tunables of all ports.
    Show,
    /// Sets tunables of a port, or of all ports of a device.
    Set {
        /// A device, or a port as DEVICE/PORT.
        port: String,
        /// Tunables and values.
        #[arg(required = true, value_name = "NAME=VALUE")]
        values: Vec<String>,
    },
}

/// Returns the tunable and the value of NAME=VALUE.
fn parse(assignment: &str) -> Result<(Tunable, u32), Failure> {
    let (name, value) = assignment
        .split_once('=')
        .ok_or_else(|| Failure::Wrong(format!("no NAME=VALUE: {assignment}")))?;
    let tunable = Tunable::ALL
        .into_iter()
        .find(|tunable| Attr::of(*tunable).name() == name);
    let tunable = tunable.ok_or_else(|| {
        let names = Tunable::ALL
            .map(|tunable| Attr::of(tunable).name())
            .join(", ");
        Failure::Wrong(format!("no tunable {name}: there are {names}"))
    })?;
    match value
        .parse::<u32>()
        .ok()
        .filter(|value| tunable.check(*value).is_ok())
    {
        Some(value) => Ok((tunable, value)),
        None => Err(Failure::Wrong(format!(
            "{name} is a number from 0 to {}",
            tunable.max()
        ))),
    }
}

/// Shows the tunables.
pub fn show(socket: &mut Socket, as_json: bool) -> Result<(), Failure> {
    let ports = dump(socket, Command::PortGet)?;
    if as_json {
        say!("{}", json::array(&ports));
        return Ok(());
    }
    let mut table = Table::new(&["PORT", "TUNABLE", "VALUE", "DEFAULT", "MAXIMUM"]);
    for row in &ports {
        for tunable in Tunable::ALL {
            let name = Attr::of(tunable).name();
            let value = row
                .number(name)
                .map_or("-".into(), |value| value.to_string());
            let numbers = [tunable.default_value(), tunable.max()].map(|n| n.to_string());
            let [default, max] = numbers;
            table.row([port(row), name.to_owned(), value, default, max]);
        }
    }
    table.print();
    Ok(())
}

/// Returns whether `name` means the port: DEVICE or DEVICE/PORT.
fn is_meant(name: &str, row: &Row) -> bool {
    name == row.text("dev-name") || name == port(row)
}

/// Carries out an action. Nothing is set if any of it is wrong.
pub fn act(socket: &mut Socket, action: &Action, as_json: bool) -> Result<(), Failure> {
    let Action::Set { port, values } = action else {
        return show(socket, as_json);
    };
    let values: Vec<_> = values
        .iter()
        .map(|text| parse(text))
        .collect::<Result<_, _>>()?;
    let ports = dump(socket, Command::PortGet)?;
    let meant: Vec<_> = ports.iter().filter(|row| is_meant(port, row)).collect();
    if meant.is_empty() {
        return Err(Failure::Wrong(format!("no port {port}")));
    }
    for row in meant {
        let at = [("dev-index", Attr::DevIndex), ("port", Attr::Port)];
        let at = at.map(|(name, attr)| (attr, row.number(name).unwrap_or(0) as u32));
        let set = values
            .iter()
            .map(|(tunable, value)| (Attr::of(*tunable), *value));
        let numbers: Vec<_> = at
            .into_iter()
            .chain(set)
            .map(|(attr, n)| (attr as u16, n.to_ne_bytes()))
            .collect();
        let attributes: Vec<_> = numbers.iter().map(|(attr, n)| (*attr, &n[..])).collect();
        socket.act(Command::PortSet as u8, &attributes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_takes() {
        assert_eq!(parse("max-retries=15").unwrap(), (Tunable::MaxRetries, 15));
        for wrong in [
            "max-retries",
            "max-retries=16",
            "max-retries=-1",
            "retries=1",
            "=",
            "",
        ] {
            assert_eq!(parse(wrong).unwrap_err().status(), 2, "{wrong}");
        }
    }
}
