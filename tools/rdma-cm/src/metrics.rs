// SPDX-License-Identifier: GPL-2.0

//! Output for Prometheus (OpenMetrics 1.0).

use crate::{
    failure::Failure,
    latency::Histogram,
    netlink::Socket,
    row::{dump, Row},
    stat::counters,
};
use cmproto::netlink::{Command, CounterKind};
use std::{fmt::Write, fs};

/// Returns a value of a label.
fn label(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

/// A format that Prometheus reads.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    /// OpenMetrics 1.0, in which the name of a counter is that of its samples without "_total".
    OpenMetrics,
    /// The text format 0.0.4, which the textfile collector of node_exporter reads.
    Text,
}

/// Metrics, as text.
struct Metrics {
    format: Format,
    out: String,
}

/// Returns all metrics, in OpenMetrics up to the line that ends them.
///
/// A module that is older than the tool does not tell all of them; the others are returned.
pub fn text(socket: &mut Socket, format: Format) -> Result<String, Failure> {
    let mut metrics = Metrics {
        format,
        out: String::new(),
    };
    let counted = dump(socket, Command::CounterGet)?;
    for kind in CounterKind::ALL {
        metrics.counters(kind, &counted);
    }
    match dump(socket, Command::LatencyGet) {
        Err(Failure::TooOld) => {}
        rows => metrics.latencies(&rows?),
    }
    metrics.users(&dump(socket, Command::UserGet)?);
    let listeners = dump(socket, Command::ListenerGet)?;
    for name in ["backlog", "unread", "parked", "refused"] {
        metrics.listeners(name, &listeners);
    }
    metrics.states(&dump(socket, Command::ConnectionGet)?);
    metrics.peers(&dump(socket, Command::PeerGet)?);
    metrics.module();
    if format == Format::OpenMetrics {
        metrics.out += "# EOF\n";
    }
    Ok(metrics.out)
}

/// Returns microseconds as seconds.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

impl Metrics {
    /// Adds the lines about a family of metrics, whose unit is the last word of its name.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let suffix = match (self.format, kind) {
            (Format::Text, "counter") => "_total",
            _ => "",
        };
        let out = &mut self.out;
        let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        if self.format == Format::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(out, "# UNIT {name} seconds");
        }
        let _ = writeln!(out, "# HELP {name}{suffix} {help}");
    }

    fn counters(&mut self, kind: CounterKind, rows: &[Row]) {
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
        self.head(&name, "counter", help);
        for counter in counters(rows).filter(|counter| counter.kind == kind.name()) {
            let device = label(counter.port.text("dev-name"));
            let port = counter.port.number("port").unwrap_or(0);
            let what = label(counter.name);
            let _ = writeln!(
                self.out,
                "{name}_total{{device={device},port=\"{port}\",{of}={what}}} {}",
                counter.value
            );
        }
    }

    fn latencies(&mut self, rows: &[Row]) {
        let name = "rdma_cm_latency_seconds";
        self.head(
            name,
            "histogram",
            "How long the phases of connections took.",
        );
        for histogram in rows.iter().map(Histogram::of) {
            let device = label(histogram.row.text("dev-name"));
            let port = histogram.row.number("port").unwrap_or(0);
            let phase = label(histogram.phase);
            let of = format!("device={device},port=\"{port}\",phase={phase}");
            let mut below = 0;
            for (limit, count) in &histogram.buckets {
                below += count;
                let limit = limit.map_or("+Inf".into(), seconds);
                let _ = writeln!(self.out, "{name}_bucket{{{of},le=\"{limit}\"}} {below}");
            }
            let _ = writeln!(self.out, "{name}_count{{{of}}} {below}");
            let _ = writeln!(self.out, "{name}_sum{{{of}}} {}", seconds(histogram.sum));
        }
    }

    fn users(&mut self, users: &[Row]) {
        for (name, value, help) in [
            (
                "rdma_cm_user_resources",
                "used",
                "What users have of what is limited.",
            ),
            ("rdma_cm_user_limit", "limit", "What users may have of it."),
        ] {
            self.head(name, "gauge", help);
            for (user, resource) in users
                .iter()
                .flat_map(|user| user.rows("resource").iter().map(move |found| (user, found)))
            {
                let Some(value) = resource.number(value) else {
                    continue;
                };
                let uid = user
                    .number("uid")
                    .map_or("unknown".into(), |uid| uid.to_string());
                let what = label(resource.text("name"));
                let _ = writeln!(self.out, "{name}{{uid=\"{uid}\",resource={what}}} {value}");
            }
        }
    }

    fn listeners(&mut self, what: &str, listeners: &[Row]) {
        let name = format!("rdma_cm_listener_{what}");
        let help = match what {
            "backlog" => "Requests that may wait to be read.",
            "unread" => "Requests that wait to be read.",
            "parked" => "Requests that wait beside a full backlog.",
            _ => "Requests for which there was no room.",
        };
        // A listener that goes takes its count along.
        self.head(&name, "gauge", help);
        for (id, listener) in listeners.iter().enumerate() {
            let Some(value) = listener.number(what) else {
                continue;
            };
            let address = label(listener.text("src"));
            let _ = writeln!(
                self.out,
                "{name}{{listener=\"{id}\",address={address}}} {value}"
            );
        }
    }

    fn states(&mut self, connections: &[Row]) {
        let name = "rdma_cm_connections";
        self.head(name, "gauge", "Connections and attempts at one, by state.");
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
            let _ = writeln!(self.out, "{name}{{device={device},state={state}}} {count}");
        }
    }

    fn peers(&mut self, peers: &[Row]) {
        let name = "rdma_cm_peer_round_trip_seconds";
        self.head(name, "gauge", "Mean time until peers answer.");
        for peer in peers {
            if let Some(us) = peer.number("rtt-us") {
                let (gid, rtt) = (label(peer.text("gid")), seconds(us));
                let _ = writeln!(self.out, "{name}{{peer={gid}}} {rtt}");
            }
        }
        let name = "rdma_cm_peer_unanswered";
        self.head(name, "gauge", "Requests that wait for an answer.");
        for peer in peers {
            let gid = label(peer.text("gid"));
            let value = peer.number("unanswered").unwrap_or(0);
            let _ = writeln!(self.out, "{name}{{peer={gid}}} {value}");
        }
    }

    fn module(&mut self) {
        let version = fs::read_to_string("/sys/module/rust_rdma_cm/version").unwrap_or_default();
        let version = label(version.trim());
        let name = "rdma_cm_module_info";
        self.head(name, "gauge", "The version of the module that is loaded.");
        let _ = writeln!(self.out, "{name}{{version={version}}} 1");
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
        let text = |format, kind: CounterKind| {
            let mut metrics = Metrics {
                format,
                out: String::new(),
            };
            metrics.counters(kind, std::slice::from_ref(&row));
            metrics.out
        };
        let want = "# TYPE rdma_cm_tx_rejects counter\n\
            # HELP rdma_cm_tx_rejects REJs sent.\n\
            rdma_cm_tx_rejects_total{device=\"rxe0\",port=\"1\",reason=\"no \\\"QP\\\"\"} 3\n";
        assert_eq!(text(Format::OpenMetrics, CounterKind::TxRejects), want);
        let want = want
            .replace("rejects counter", "rejects_total counter")
            .replace("rejects REJs", "rejects_total REJs");
        assert_eq!(text(Format::Text, CounterKind::TxRejects), want);
    }

    #[test]
    fn buckets_are_cumulative() {
        let bucket = |limit, count| Row::of(&[("up-to-us", limit), ("count", count)]);
        let row = Row(vec![
            ("dev-name", Value::Text("rxe0".into())),
            ("port", Value::Number(1)),
            ("phase", Value::Text("req".into())),
            ("latency-sum-us", Value::Number(500)),
            (
                "latency-bucket",
                Value::Rows(vec![bucket("64", "2"), bucket("256", "1")]),
            ),
        ]);
        let mut metrics = Metrics {
            format: Format::OpenMetrics,
            out: String::new(),
        };
        metrics.latencies(&[row]);
        let of = "device=\"rxe0\",port=\"1\",phase=\"req\"";
        for (limit, count) in [
            ("0.000064", 2),
            ("0.000128", 2),
            ("0.000256", 3),
            ("+Inf", 3),
        ] {
            let line = format!("\nrdma_cm_latency_seconds_bucket{{{of},le=\"{limit}\"}} {count}\n");
            assert!(metrics.out.contains(&line), "{line}");
        }
        let end = format!(
            "\nrdma_cm_latency_seconds_count{{{of}}} 3\n\
            rdma_cm_latency_seconds_sum{{{of}}} 0.000500\n"
        );
        assert!(metrics.out.ends_with(&end), "{}", metrics.out);
    }

    #[test]
    fn a_unit_is_told() {
        let mut metrics = Metrics {
            format: Format::OpenMetrics,
            out: String::new(),
        };
        metrics.peers(&[Row::of(&[("gid", "10.0.0.2"), ("rtt-us", "1500")])]);
        let want = "# TYPE rdma_cm_peer_round_trip_seconds gauge\n\
            # UNIT rdma_cm_peer_round_trip_seconds seconds\n";
        assert!(metrics.out.starts_with(want));
        let sample = "\nrdma_cm_peer_round_trip_seconds{peer=\"10.0.0.2\"} 0.001500\n";
        assert!(metrics.out.contains(sample));
    }
}
