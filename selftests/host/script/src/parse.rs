// SPDX-License-Identifier: GPL-2.0

//! Reads a script.

use crate::{
    wire::Kind,
    world::{Micros, Under, EVENTS},
};
use cmproto::{
    cm::{Tunable, Tuning},
    errno::Errno,
};
use std::net::IpAddr;

/// A value in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// A status can be negative.
    Negative(i64),
    Bytes(Vec<u8>),
    Address(IpAddr),
    /// `$name`, `$name+1`: learned from an expected message, or predefined.
    Variable(String, i64),
    /// A word, which the field interprets: `peer`, `any`, `ones`, `REQ` ...
    Word(String),
}

/// Arguments, in their order.
pub type Args = Vec<(String, Value)>;

/// When something has to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    #[default]
    Now,
    Within(Micros),
    /// With a tolerance in percent.
    After(Micros, u64),
}

/// The statement of one line.
#[derive(Clone, Debug)]
pub enum What {
    /// The user makes the call with this name.
    User(String),
    /// The user is told an event of this kind.
    Event(u32),
    Send {
        dup: bool,
        kind: Kind,
    },
    Receive {
        lost: bool,
        kind: Kind,
    },
    Nothing(Micros),
    Wait(Micros),
}

/// The words that can follow the first words of a step.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub conn: String,
    pub args: Args,
    pub timing: Timing,
    pub fails: Option<i32>,
    pub again: bool,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Step {
    pub line: usize,
    pub text: String,
    /// Only there.
    pub on: Vec<Under>,
    pub what: What,
    pub details: Details,
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    pub is_ipv6: bool,
    /// The links are those of InfiniBand, over which queue pairs can migrate or not.
    pub infiniband: Option<bool>,
    /// Empty for everywhere.
    pub only: Vec<Under>,
    /// Takes seconds of real time: started first.
    pub is_slow: bool,
    /// The tuning of this CM; where nothing is said, it does as C.
    pub tuning: Tuning,
    pub steps: Vec<Step>,
}

/// `on` and `only` name these.
fn place(word: &str) -> Result<Vec<Under>, String> {
    Ok(match word {
        "c" => vec![Under::C],
        "rust" => vec![Under::Rust, Under::Host],
        "host" => vec![Under::Host],
        "guest" => vec![Under::C, Under::Rust],
        _ => return Err(format!("on {word}?")),
    })
}

/// Returns the tunable that a word of `tune` stands for.
fn tunable(word: &str) -> Result<Tunable, String> {
    let name = word.replace('_', "");
    let mut all = Tunable::ALL.iter().copied();
    let found = all.find(|tunable| format!("{tunable:?}").eq_ignore_ascii_case(&name));
    found.ok_or(format!("tune {word}?"))
}

/// Tuned to do as C.
fn as_c() -> Result<Tuning, String> {
    let mut tuning = Tuning::NONE;
    for tunable in [Tunable::EarlyRetry, Tunable::Parking] {
        tuning
            .set(tunable, 0)
            .map_err(|errno| errno.name().to_string())?;
    }
    Ok(tuning)
}

/// Returns a predicate that says for one character after the other if it is outside of all strings.
fn outside() -> impl FnMut(char) -> bool {
    let mut is_quoted = false;
    move |c| {
        is_quoted ^= c == '"';
        !is_quoted
    }
}

/// Words of a line; a string is one word, and a comment ends it.
fn words(line: &str) -> Result<Vec<&str>, String> {
    let mut is_outside = outside();
    let comment = line.find(|c| is_outside(c) && c == '#');
    let line = &line[..comment.unwrap_or(line.len())];
    if line.matches('"').count() % 2 != 0 {
        return Err("a string has no end".into());
    }
    let mut is_outside = outside();
    let words = line.split(|c: char| is_outside(c) && c.is_whitespace());
    Ok(words.filter(|word| !word.is_empty()).collect())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn value(text: &str) -> Result<Value, String> {
    if let Some(number) = number(text) {
        return Ok(Value::Number(number));
    }
    if let Some(number) = text.strip_prefix('-').and_then(number) {
        let number = i64::try_from(number).map_err(|_| format!("{text}: too large"))?;
        return Ok(Value::Negative(-number));
    }
    if let Some(text) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        return Ok(Value::Bytes(text.bytes().collect()));
    }
    if let Some(len) = text.strip_prefix("fill:") {
        // 1, 2, 3 ... so that a shift would be seen.
        let len = len.parse::<usize>().map_err(|_| format!("{text}?"))?;
        let fill = (1..=len)
            .map(|n| u8::try_from(n % 256).unwrap_or(0))
            .collect();
        return Ok(Value::Bytes(fill));
    }
    if let Some(name) = text.strip_prefix('$') {
        let end = name.find(['+', '-']).unwrap_or(name.len());
        let offset = match name[end..].split_at_checked(1) {
            None => 0,
            Some((sign, offset)) => {
                let offset = number(offset).and_then(|offset| i64::try_from(offset).ok());
                let offset = offset.ok_or(format!("{text}?"))?;
                if sign == "-" {
                    -offset
                } else {
                    offset
                }
            }
        };
        return Ok(Value::Variable(name[..end].into(), offset));
    }
    if let Ok(address) = text.parse() {
        return Ok(Value::Address(address));
    }
    Ok(Value::Word(text.into()))
}

fn duration(text: &str) -> Result<Micros, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1_000),
        None => (text.strip_suffix('s').unwrap_or(""), 1_000_000),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text}: no duration"))?;
    Ok(number * unit)
}

/// The errors that a call can be expected to have.
fn errno(name: &str) -> Result<i32, String> {
    let found = Errno::ALL.iter().find(|errno| errno.name() == name);
    found
        .map(|errno| errno.code())
        .ok_or(format!("fails {name}?"))
}

fn details(words: &[&str]) -> Result<Details, String> {
    let mut details = Details::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or(format!("{word} what?"));
        if word == "again" {
            details.again = true;
        } else if word == "fails" {
            details.fails = Some(errno(next()?)?);
        } else if word == "within" {
            details.timing = Timing::Within(duration(next()?)?);
        } else if word == "after" {
            let time = duration(next()?)?;
            let tolerance = next()?;
            let percent = tolerance
                .strip_prefix("+-")
                .and_then(|text| text.strip_suffix('%'))
                .and_then(|text| text.parse().ok())
                .ok_or(format!("{tolerance}: want +-N%"))?;
            details.timing = Timing::After(time, percent);
        } else if let Some(conn) = word.strip_prefix('@') {
            details.conn = conn.into();
        } else if let Some((name, text)) = word.split_once('=') {
            details.args.push((name.into(), value(text)?));
        } else {
            return Err(format!("{word}?"));
        }
    }
    Ok(details)
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or(format!("no message {name}"))
}

fn event(name: &str) -> Result<u32, String> {
    let kind = EVENTS.iter().position(|event| *event == name);
    let kind = kind.and_then(|kind| u32::try_from(kind).ok());
    kind.ok_or(format!("no event {name}"))
}

/// Returns the statement of a step, and the words that follow.
fn what<'a>(words: &'a [&'a str]) -> Result<(What, &'a [&'a str]), String> {
    let send = |dup, name| kind(name).map(|kind| What::Send { dup, kind });
    let receive = |lost, name| kind(name).map(|kind| What::Receive { lost, kind });
    Ok(match words {
        ["<", name, rest @ ..] => (send(false, name)?, rest),
        ["dup", "<", name, rest @ ..] => (send(true, name)?, rest),
        [">", name, rest @ ..] => (receive(false, name)?, rest),
        ["drop", ">", name, rest @ ..] => (receive(true, name)?, rest),
        ["user", verb, rest @ ..] => (What::User((*verb).into()), rest),
        ["expect", "event", name, rest @ ..] => (What::Event(event(name)?), rest),
        ["nothing", "for", time] => (What::Nothing(duration(time)?), &[]),
        ["wait", time] => (What::Wait(duration(time)?), &[]),
        _ => return Err(format!("{}?", words.join(" "))),
    })
}

impl Script {
    /// Reads the text of a script; errors name the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self {
            is_ipv6: false,
            infiniband: None,
            only: Vec::new(),
            is_slow: false,
            tuning: as_c()?,
            steps: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            script
                .line(number, line)
                .map_err(|error| format!("line {number}: {error}"))?;
        }
        Ok(script)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        match words(line)?[..] {
            [] => {}
            ["family", "ipv6"] => self.is_ipv6 = true,
            ["link", "infiniband", ref without @ ..] => {
                self.infiniband = Some(without != ["without", "migration"]);
                self.only = place("host")?;
            }
            ["only", "on", on] => self.only = place(on)?,
            ["tune", name, value] => {
                let tunable = tunable(name)?;
                let value = value.parse().map_err(|_| format!("{value}?"))?;
                // Over InfiniBand it runs on the host only, where it can be tuned, too.
                if self.infiniband.is_none() {
                    self.only = place("rust")?;
                }
                let set = self.tuning.set(tunable, value);
                set.map_err(|_| format!("{value} is too large"))?;
            }
            ["slow"] => self.is_slow = true,
            ["on", on, ref words @ ..] if on.ends_with(':') => {
                let on = place(on.trim_end_matches(':'))?;
                self.step(number, line, on, words)?;
            }
            ref words => self.step(number, line, Vec::new(), words)?,
        }
        Ok(())
    }

    fn step(
        &mut self,
        line: usize,
        text: &str,
        on: Vec<Under>,
        words: &[&str],
    ) -> Result<(), String> {
        let (what, rest) = what(words)?;
        self.steps.push(Step {
            line,
            text: text.trim().into(),
            on,
            what,
            details: details(rest)?,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(value("0x10"), Ok(Value::Number(16)));
        assert_eq!(value("-110"), Ok(Value::Negative(-110)));
        assert_eq!(value("\"a b\""), Ok(Value::Bytes(b"a b".to_vec())));
        assert_eq!(value("fill:2"), Ok(Value::Bytes(vec![1, 2])));
        assert_eq!(value("$a-1"), Ok(Value::Variable("a".into(), -1)));
        assert_eq!(value("$a+0x10"), Ok(Value::Variable("a".into(), 16)));
        assert_eq!(value("peer"), Ok(Value::Word("peer".into())));
        assert_eq!(value("10.0.0.1"), Ok(Value::Address([10, 0, 0, 1].into())));
    }

    #[test]
    fn lines() {
        let script = Script::parse(
            "# comment\nfamily ipv6\nslow\nuser listen backlog=1 # why\n< REQ private=\"a # b\"\n\
             on c: drop > REP again after 256ms +-10%\n",
        );
        let script = script.unwrap();
        assert!(script.is_ipv6 && script.is_slow);
        assert_eq!(script.steps.len(), 3);
        assert_eq!(script.steps[2].on, [Under::C]);
        let Step { what, details, .. } = &script.steps[2];
        assert!(matches!(what, What::Receive { lost: true, .. }));
        assert!(details.again);
        assert_eq!(details.timing, Timing::After(256_000, 10));
    }

    #[test]
    fn errors_name_the_line() {
        for text in [
            "\n< FOO",
            "\nuser accept fails EFOO",
            "\nexpect event X",
            "\n< REQ \"",
            "\nx",
        ] {
            assert!(Script::parse(text).unwrap_err().starts_with("line 2: "));
        }
    }
}
