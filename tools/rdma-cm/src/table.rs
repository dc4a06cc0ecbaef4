// SPDX-License-Identifier: GPL-2.0

//! Output as a table.

/// The width of a terminal.
const WIDTH: usize = 80;

/// A table whose last column holds what may be long: it is in a line of its own if it does not fit.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Lines below a row, with the number of rows down to it.
    notes: Vec<(usize, String)>,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new(head: &[&'static str]) -> Self {
        Table {
            head: head.to_vec(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row, with a text for each column.
    pub fn row(&mut self, row: impl Into<Vec<String>>) {
        self.rows.push(row.into());
    }

    /// Adds words below the last row, behind a label, in lines that fit.
    pub fn note(&mut self, label: &str, words: &[String]) {
        const INDENT: usize = 4;
        let mut line = format!("{:INDENT$}{label}:", "");
        let mut lines = Vec::new();
        for word in words {
            if line.len() + 1 + word.len() > WIDTH {
                lines.push(line);
                line = " ".repeat(INDENT + 1);
            }
            line = format!("{line} {word}");
        }
        lines.push(line);
        let row = self.rows.len();
        self.notes.extend(lines.into_iter().map(|line| (row, line)));
    }

    /// Returns the lines. Numbers stand to the right.
    pub fn lines(&self) -> Vec<String> {
        let head: Vec<String> = self.head.iter().map(|name| (*name).to_owned()).collect();
        let all: Vec<&Vec<String>> = [&head].into_iter().chain(&self.rows).collect();
        let last = self.head.len() - 1;
        let len = |text: &String| text.chars().count();
        let width = |at: usize| all.iter().map(|row| len(&row[at])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=last).map(width).collect();
        let fits = widths.iter().sum::<usize>() + 2 * last <= WIDTH;
        let is_number = |at: usize| {
            let starts =
                |row: &Vec<String>| row[at].starts_with(|c: char| c.is_ascii_digit() || c == '-');
            self.rows.iter().all(starts)
        };
        let numbers: Vec<bool> = (0..=last).map(is_number).collect();
        let mut lines = Vec::new();
        for (number, row) in all.into_iter().enumerate() {
            let mut line = String::new();
            for (at, text) in row.iter().enumerate().take(last) {
                let pad = " ".repeat(widths[at] - len(text));
                line += &match numbers[at] {
                    true => format!("{pad}{text}  "),
                    false => format!("{text}{pad}  "),
                };
            }
            match fits {
                true if numbers[last] => line += &format!("{:>1$}", row[last], widths[last]),
                true => line += &row[last],
                false => {
                    lines.push(line.trim_end().to_owned());
                    line = format!("    {}", row[last]);
                }
            }
            lines.push(line.trim_end().to_owned());
            let notes = self.notes.iter().filter(|(row, _)| *row == number);
            lines.extend(notes.map(|(_, note)| note.clone()));
        }
        lines
    }

    /// Prints the table, or nothing if it has no rows.
    pub fn print(&self) {
        if !self.rows.is_empty() {
            for line in self.lines() {
                say!("{line}");
            }
        }
    }
}

/// Returns a time for people.
pub fn time(us: u64) -> String {
    let with_digit = |n: u64, unit: u64, name: &str| match n / unit {
        whole @ 0..10 => format!("{whole}.{}{name}", n % unit * 10 / unit),
        whole => format!("{whole}{name}"),
    };
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => with_digit(us, 1_000, "ms"),
        1_000_000..60_000_000 => with_digit(us, 1_000_000, "s"),
        60_000_000..3_600_000_000 => format!("{}m", us / 60_000_000),
        3_600_000_000..172_800_000_000 => format!("{}h", us / 3_600_000_000),
        _ => format!("{}d", us / 86_400_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (us, want) in [
            (0, "0us"),
            (999, "999us"),
            (1_250, "1.2ms"),
            (15_000, "15ms"),
            (4_600_000, "4.6s"),
            (59_999_999, "59s"),
            (60_000_000, "1m"),
            (7_200_000_000, "2h"),
            (172_800_000_000, "2d"),
            (u64::MAX, "213503982d"),
        ] {
            assert_eq!(time(us), want);
        }
    }

    fn table(last: &str) -> Vec<String> {
        let mut table = Table::new(&["NAME", "COUNT", "ADDRESS"]);
        table.row(["a".into(), "12".into(), last.to_owned()]);
        table.row(["longer".into(), "3".into(), "x".into()]);
        table.lines()
    }

    #[test]
    fn columns_are_aligned() {
        let want = [
            "NAME    COUNT  ADDRESS",
            "a          12  y",
            "longer      3  x",
        ];
        assert_eq!(table("y"), want);
    }

    #[test]
    fn what_does_not_fit_has_its_own_line() {
        let long = "y".repeat(70);
        let lines = table(&long);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert_eq!(
            lines[2..4],
            ["a          12".to_owned(), format!("    {long}")]
        );
    }
}
