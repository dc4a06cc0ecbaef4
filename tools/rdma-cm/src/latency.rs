// SPDX-License-Identifier: GPL-2.0

//! `rdma-cm stat --latency`: how long the phases of connections took.

use crate::{
    failure::Failure,
    json,
    netlink::Socket,
    row::{dump, Row},
    show::port,
    table::Table,
};
use cmproto::{
    latency::{upper_limit, BUCKETS},
    netlink::Command,
};

/// The latencies of a phase at a port.
pub struct Histogram<'a> {
    pub row: &'a Row,
    pub phase: &'a str,
    /// The sum of the latencies, in microseconds.
    pub sum: u64,
    /// Longest latency in microseconds, if there is a limit, and number, of all buckets.
    pub buckets: Vec<(Option<u64>, u64)>,
}

impl<'a> Histogram<'a> {
    /// Returns the histogram in a message, which leaves out empty buckets.
    pub fn of(row: &'a Row) -> Self {
        let counts = row.rows("latency-bucket");
        let bucket = |bucket| {
            let limit = upper_limit(bucket).map(|limit| limit.as_micros());
            let mut found = counts.iter().filter(|row| row.number("up-to-us") == limit);
            let count = found.next().and_then(|row| row.number("count"));
            (limit, count.unwrap_or(0))
        };
        Histogram {
            row,
            phase: row.text("phase"),
            sum: row.number("latency-sum-us").unwrap_or(0),
            buckets: (0..BUCKETS).map(bucket).collect(),
        }
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Returns the upper limit of the bucket below or in which `percent` of the latencies are.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let mut left = (self.count() * percent).div_ceil(100);
        let mut buckets = self.buckets.iter();
        let bucket = buckets.find(|(_, count)| {
            left = left.saturating_sub(*count);
            left == 0
        });
        bucket?.0
    }
}

/// Returns microseconds as a text of three digits and a unit.
fn time(us: u64) -> String {
    let (value, unit) = match us {
        0..1_000 => return format!("{us} us"),
        1_000..1_000_000 => (us, "ms"),
        _ => (us / 1_000, "s"),
    };
    let (whole, part) = (value / 1_000, value % 1_000);
    match whole {
        0..10 => format!("{whole}.{:02} {unit}", part / 10),
        10..100 => format!("{whole}.{} {unit}", part / 100),
        _ => format!("{whole} {unit}"),
    }
}

/// Prints the latencies: what the module tells, or with percentiles as a table.
pub fn show(socket: &mut Socket, as_json: bool) -> Result<(), Failure> {
    let rows = dump(socket, Command::LatencyGet)?;
    if as_json {
        say!("{}", json::array(&rows));
        return Ok(());
    }
    let mut table = Table::new(&["PORT", "PHASE", "COUNT", "MEAN", "P50", "P99", "MOST"]);
    for histogram in rows.iter().map(Histogram::of) {
        let count = histogram.count();
        let Some(mean) = histogram.sum.checked_div(count) else {
            continue;
        };
        let up_to = |percent| match histogram.percentile(percent) {
            Some(limit) => format!("<= {}", time(limit)),
            None => "> 67 s".into(),
        };
        table.row([
            port(histogram.row),
            histogram.phase.to_owned(),
            count.to_string(),
            time(mean),
            up_to(50),
            up_to(99),
            up_to(100),
        ]);
    }
    table.print();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Value;

    fn row(buckets: &[(Option<u64>, u64)]) -> Row {
        let bucket = |(limit, count): &(Option<u64>, u64)| {
            let limit = limit.map(|limit| ("up-to-us", Value::Number(limit)));
            let count = ("count", Value::Number(*count));
            Row(limit.into_iter().chain([count]).collect())
        };
        let buckets = buckets.iter().map(bucket).collect();
        Row(vec![
            ("phase", Value::Text("req".into())),
            ("latency-sum-us", Value::Number(1_000)),
            ("latency-bucket", Value::Rows(buckets)),
        ])
    }

    #[test]
    fn a_percentile_is_the_limit_of_its_bucket() {
        let row = row(&[(Some(64), 50), (Some(1_024), 49), (None, 1)]);
        let histogram = Histogram::of(&row);
        assert_eq!((histogram.count(), histogram.sum), (100, 1_000));
        let limits = [1, 50, 51, 99, 100].map(|percent| histogram.percentile(percent));
        assert_eq!(limits, [Some(64), Some(64), Some(1_024), Some(1_024), None]);
    }

    #[test]
    fn empty_buckets_are_there() {
        let row = row(&[(Some(128), 3)]);
        let buckets = Histogram::of(&row).buckets;
        assert_eq!(buckets.len(), BUCKETS);
        assert_eq!(
            buckets[..3],
            [(Some(64), 0), (Some(128), 3), (Some(256), 0)]
        );
        assert_eq!(buckets[BUCKETS - 1], (None, 0));
    }

    #[test]
    fn times_have_three_digits() {
        let times = [0, 999, 1_024, 16_384, 131_072, 1_048_576, 67_108_864].map(time);
        let want = [
            "0 us", "999 us", "1.02 ms", "16.3 ms", "131 ms", "1.04 s", "67.1 s",
        ];
        assert_eq!(times, want);
    }
}
