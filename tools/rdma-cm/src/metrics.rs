// SPDX-License-Identifier: GPL-2.0

//! Output for Prometheus (OpenMetrics 1.0).

use crate::{
    failure::Failure,
    netlink::Socket,
    row::{dump, Row},
    stat::counters,
};
use cmproto::netlink::{Command, CounterKind};
use std::fmt::Write;

/// Returns a value of a label.
fn label(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

/// Returns all metrics, up to the line that ends them.
pub fn text(socket: &mut Socket) -> Result<String, Failure> {
    let counted = dump(socket, Command::CounterGet)?;
    let users = dump(socket, Command::UserGet)?;
    let listeners = dump(socket, Command::ListenerGet)?;
    let connections = dump(socket, Command::ConnectionGet)?;
    let mut out = String::new();
    for kind in CounterKind::ALL {
        family_of_counters(&mut out, kind, &counted);
    }
    family_of_users(&mut out, &users);
    for name in ["backlog", "unread", "parked", "refused"] {
        family_of_listeners(&mut out, name, &listeners);
    }
    family_of_states(&mut out, &connections);
    out += "# EOF\n";
    Ok(out)
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn family_of_counters(out: &mut String, kind: CounterKind, rows: &[Row]) {
    let help = match kind {
        CounterKind::TxMsgs => "Messages sent.",
        CounterKind::TxRetries => "Messages sent again because they were not answered.",
        CounterKind::RxMsgs => "Messages received.",
        CounterKind::RxDuplicates => "Duplicates among the messages received.",
        CounterKind::RxDrops => "Messages received and dropped.",
        CounterKind::TxRejects => "REJs sent.",
        CounterKind::RxRejects => "REJs received by connections.",
        CounterKind::TxEarlyRetries => "Messages sent again early.",
        CounterKind::EarlyRetriesAnswered => "Requests answered after an early retry.",
    };
    let of = match kind {
        CounterKind::RxDrops | CounterKind::TxRejects | CounterKind::RxRejects => "reason",
        _ => "message",
    };
    let name = format!("rdma_cm_{}", kind.name().replace('-', "_"));
    head(out, &name, "counter", help);
    for counter in counters(rows).filter(|counter| counter.kind == kind.name()) {
        let device = label(counter.port.text("dev-name"));
        let port = counter.port.number("port").unwrap_or(0);
        let what = label(counter.name);
        let _ = writeln!(
            out,
            "{name}_total{{device={device},port=\"{port}\",{of}={what}}} {}",
            counter.value
        );
    }
}

fn family_of_users(out: &mut String, users: &[Row]) {
    let name = "rdma_cm_user_resources";
    head(out, name, "gauge", "What users have of what is limited.");
    for (user, resource) in users
        .iter()
        .flat_map(|user| user.rows("resource").iter().map(move |found| (user, found)))
    {
        let uid = user
            .number("uid")
            .map_or("unknown".into(), |uid| uid.to_string());
        let what = label(resource.text("name"));
        let used = resource.number("used").unwrap_or(0);
        let _ = writeln!(out, "{name}{{uid=\"{uid}\",resource={what}}} {used}");
    }
}

fn family_of_listeners(out: &mut String, what: &str, listeners: &[Row]) {
    let name = format!("rdma_cm_listener_{what}");
    let help = match what {
        "backlog" => "Requests that may wait to be read.",
        "unread" => "Requests that wait to be read.",
        "parked" => "Requests that wait beside a full backlog.",
        _ => "Requests for which there was no room.",
    };
    // A listener that goes takes its count along.
    head(out, &name, "gauge", help);
    for (id, listener) in listeners.iter().enumerate() {
        let Some(value) = listener.number(what) else {
            continue;
        };
        let address = label(listener.text("src"));
        let _ = writeln!(out, "{name}{{listener=\"{id}\",address={address}}} {value}");
    }
}

fn family_of_states(out: &mut String, connections: &[Row]) {
    let name = "rdma_cm_connections";
    head(
        out,
        name,
        "gauge",
        "Connections and attempts at one, by state.",
    );
    let mut states = std::collections::BTreeMap::new();
    for row in connections {
        let device = row.text("dev-name");
        let state = match row.text("cm-state") {
            "" => row.text("state"),
            state => state,
        };
        *states.entry((device, state)).or_insert(0_u64) += 1;
    }
    for ((device, state), count) in states {
        let (device, state) = (label(device), label(state));
        let _ = writeln!(out, "{name}{{device={device},state={state}}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Value;

    #[test]
    fn counters_are_metrics() {
        let text = |text: &str| Value::Text(text.into());
        let counter = Row(vec![
            ("name", text("no \"QP\"")),
            ("value", Value::Number(3)),
        ]);
        let row = Row(vec![
            ("dev-name", text("rxe0")),
            ("port", Value::Number(1)),
            ("counter-kind", text("tx-rejects")),
            ("counter", Value::Rows(vec![counter])),
        ]);
        let mut out = String::new();
        family_of_counters(&mut out, CounterKind::TxRejects, &[row]);
        let want = "# TYPE rdma_cm_tx_rejects counter\n\
            # HELP rdma_cm_tx_rejects REJs sent.\n\
            rdma_cm_tx_rejects_total{device=\"rxe0\",port=\"1\",reason=\"no \\\"QP\\\"\"} 3\n";
        assert_eq!(out, want);
    }
}
