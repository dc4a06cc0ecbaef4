// SPDX-License-Identifier: GPL-2.0

//! The blocks of the module that report that they are run, by function.

use std::{collections::BTreeMap, fmt::Write};

/// Lines with a part of the names of functions, and why few of their blocks are reached.
const UNREACHED: &str = include_str!("../unreached");

/// Returns the reason why few blocks of the function are reached, if one is known.
fn reason(function: &str) -> Option<&str> {
    let lines = UNREACHED.lines().filter(|line| !line.starts_with('#'));
    let mut lines = lines.filter_map(|line| line.split_once(' '));
    lines.find_map(|(part, reason)| function.contains(part).then_some(reason))
}

/// A block of the source, which is compiled wherever its function is inlined.
struct Source {
    number: u32,
    function: String,
}

/// The blocks.
pub struct Blocks {
    /// The places in the module's text, in order.
    places: Vec<u64>,
    /// The block of the source of each.
    sources: Vec<Source>,
}

impl Blocks {
    /// Reads lines with a place, in hexadecimal digits, the number of a block of the source, and the
    /// name of a function.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text
            .lines()
            .map(|line| {
                let (place, source) = line.split_once(' ')?;
                let (number, function) = source.split_once(' ')?;
                let source = Source {
                    number: number.parse().ok()?,
                    function: function.to_string(),
                };
                Some((u64::from_str_radix(place, 16).ok()?, source))
            })
            .collect::<Option<Vec<_>>>()?;
        lines.sort_by_key(|(place, _)| *place);
        let (places, sources) = lines.into_iter().unzip();
        Some(Self { places, sources })
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of the block at a place.
    pub fn index(&self, place: u64) -> Option<usize> {
        self.places.binary_search(&place).ok()
    }

    /// Returns a line for each function: the blocks of its source that were reached, all of them, its
    /// name, and the reason if less than half was reached and one is known. The functions that were
    /// reached least come first, and lines for all of them last.
    pub fn report(&self, reached: &[bool]) -> String {
        let mut functions = BTreeMap::<_, BTreeMap<_, bool>>::new();
        for (source, reached) in self.sources.iter().zip(reached) {
            let blocks = functions.entry(source.function.as_str()).or_default();
            *blocks.entry(source.number).or_default() |= *reached;
        }
        let mut lines: Vec<_> = functions
            .into_iter()
            .map(|(name, blocks)| {
                let some = blocks.values().filter(|reached| **reached).count();
                (some, blocks.len(), name)
            })
            .collect();
        lines.sort_by_key(|(some, all, _)| (some * 1000 / all, usize::MAX - all));
        let (mut few, mut sums) = (BTreeMap::<_, usize>::new(), [(0, 0); 2]);
        let mut text = String::new();
        for (some, all, name) in &lines {
            let reason = reason(name);
            let _ = write!(text, "{:3} % {some:4} of {all:4} {name}", some * 100 / all);
            for sum in &mut sums[usize::from(reason.is_some())..] {
                *sum = (sum.0 + some, sum.1 + all);
            }
            if some * 2 < *all {
                *few.entry(reason.unwrap_or("not explained")).or_default() += 1;
                let _ = write!(
                    text,
                    "{}",
                    reason.map_or(String::new(), |why| format!(" # {why}"))
                );
            }
            text.push('\n');
        }
        let whole = ["without the functions that have a reason", "in all"];
        for ((some, all), name) in sums.into_iter().zip(whole) {
            let share = (some * 100).checked_div(all).unwrap_or(0);
            let _ = writeln!(text, "{share:3} % {some:4} of {all:4} {name}");
        }
        for (reason, functions) in few {
            let _ = writeln!(text, "{functions:4} functions below 50 %: {reason}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_and_reported_by_function() {
        let blocks =
            Blocks::parse("20 7 <T as U>::b\n10 8 a\n1f 9 <T as U>::b\n30 9 <T as U>::b\n")
                .unwrap();
        assert_eq!(blocks.count(), 4);
        assert_eq!(blocks.index(0x1f), Some(1));
        assert_eq!(blocks.index(0x1e), None);
        let report = blocks.report(&[true, false, false, true]);
        let want = [
            " 50 %    1 of    2 <T as U>::b",
            "100 %    1 of    1 a",
            " 66 %    2 of    3 without the functions that have a reason",
            " 66 %    2 of    3 in all",
        ];
        assert_eq!(report.lines().collect::<Vec<_>>(), want);
    }

    #[test]
    fn functions_that_are_hardly_reached_have_their_reasons() {
        let blocks = Blocks::parse("10 1 x::iw::y\n20 2 z\n").unwrap();
        let report = blocks.report(&[false, false]);
        assert!(report.contains("x::iw::y # iWARP: there is no siw here\n"));
        assert!(report.contains("   1 functions below 50 %: not explained\n"));
        assert!(Blocks::parse("x 1 y").is_none());
    }
}
