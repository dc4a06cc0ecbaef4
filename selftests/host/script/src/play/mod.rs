// SPDX-License-Identifier: GPL-2.0

//! Plays a script: the peer and the user.

mod peer;
mod user;

use crate::{
    parse::{Script, Step, Timing, Value, What},
    wire::{self, Field, Holds, Kind, Mad},
    world::{Endpoint, Event, Input, Micros, Names, Sent, Under, Watch, Who, World},
};
use std::{
    collections::{HashMap, VecDeque},
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

const BOTH: Watch = Watch {
    wire: true,
    events: true,
};
/// Service ids of annex A11: the port space before the port.
const PS_TCP: u64 = 0x0106;
const PS_UDP: u64 = 0x0111;

/// A connection, as the peer and the user know it.
#[derive(Default)]
struct Conn {
    /// The number among the connections of the script.
    index: u32,
    /// The peer's communication id, queue pair and sequence number.
    comm: u64,
    qpn: u64,
    psn: u64,
    /// The id of its request for a datagram service.
    request: u64,
    /// The ids of the system under test, once they are known.
    remote: Option<u64>,
    remote_qpn: Option<u64>,
    /// Transaction ids of the two exchanges of each connection.
    tid: u64,
    dreq_tid: u64,
    /// The transaction id of the last LAP, of either side.
    lap_tid: u64,
    /// The user's end.
    endpoint: Option<Endpoint>,
    /// The last message of each kind, each way.
    sent: HashMap<Kind, (Who, Vec<u8>)>,
    seen: HashMap<Kind, (Micros, Mad)>,
}

/// A script being played.
pub struct Play<'a> {
    world: &'a mut dyn World,
    names: Names,
    conns: HashMap<String, Conn>,
    variables: HashMap<String, u64>,
    wire: VecDeque<Sent>,
    events: VecDeque<Event>,
    /// When the last step was done.
    mark: Micros,
    log: String,
}

type Result<T = ()> = std::result::Result<T, String>;

/// Plays a script in a world. An error says which line failed, and what happened before.
pub fn play(script: &Script, world: &mut dyn World) -> Result {
    let names = world.names();
    let port = u64::from(names.port);
    let variables = [
        ("port", port),
        ("guid", names.guid),
        ("service", PS_TCP << 16 | port),
        ("udp_service", PS_UDP << 16 | port),
    ];
    world.tune(&script.tuning);
    if let Some(can_migrate) = script.infiniband {
        world.use_infiniband(can_migrate);
    }
    let mark = world.now();
    let mut play = Play {
        world,
        names,
        conns: HashMap::new(),
        variables: variables.map(|(name, value)| (name.into(), value)).into(),
        wire: VecDeque::new(),
        events: VecDeque::new(),
        mark,
        log: String::new(),
    };
    let under = play.world.under();
    let mut steps = script.steps.iter();
    let played = steps
        .by_ref()
        .filter(|step| step.on.is_empty() || step.on.contains(&under))
        .try_for_each(|step| {
            play.step(step)
                .map_err(|error| format!("line {}: {}\n  {error}", step.line, step.text))
        })
        .and_then(|()| play.nothing(play.world.retry_timeout().min(50_000)));
    played.map_err(|error| format!("{error}\n  what happened:\n{}", play.log))
}

/// The word for a number that most engineers know by it.
fn word(field: &str, word: &str) -> Option<u64> {
    Some(match (field, word) {
        ("message", "REQ") | ("transport", "RC") => 0,
        ("message", "REP") | ("transport", "UC") => 1,
        ("message", "OTHER") => 2,
        ("transport", "XRC") => 3,
        _ => return None,
    })
}

impl Play<'_> {
    fn note(&mut self, text: &str) {
        let at = self.world.now();
        let _ = writeln!(self.log, "    {:>9.3} {text}", at as f64 / 1e6);
    }

    /// The connection of this name; the first mention makes it.
    fn conn(&mut self, name: &str) -> &mut Conn {
        let count = u32::try_from(self.conns.len()).unwrap_or(0);
        let port = u64::from(self.names.port);
        self.conns.entry(name.into()).or_insert_with(|| {
            let n = u64::from(count);
            Conn {
                index: count,
                comm: 0x11 + n,
                qpn: 0x101 + n,
                psn: 0x1000 + n,
                // C takes the requests of all hosts for those of one.
                request: port << 16 | (0x11 + n),
                tid: 0x5000_0000 + n,
                dreq_tid: 0x6000_0000 + n,
                ..Conn::default()
            }
        })
    }

    fn endpoint(&mut self, name: &str) -> Result<Endpoint> {
        let endpoint = self.conn(name).endpoint;
        endpoint.ok_or(format!("the user has no connection @{name}"))
    }

    fn variable(&self, name: &str, offset: i64) -> Result<u64> {
        let value = self
            .variables
            .get(name)
            .ok_or(format!("${name} is not known"))?;
        Ok(value.wrapping_add_signed(offset))
    }

    fn address(&self, word: &str) -> Option<IpAddr> {
        Some(match word {
            "peer" => self.names.peer,
            "local" => self.names.local,
            "stranger" => self.names.stranger,
            "zero" if self.names.local.is_ipv6() => Ipv6Addr::UNSPECIFIED.into(),
            "zero" => Ipv4Addr::UNSPECIFIED.into(),
            _ => return None,
        })
    }

    /// A value as the number that is meant for a field.
    fn number(&self, name: &str, value: &Value) -> Result<u64> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Variable(variable, offset) => self.variable(variable, *offset),
            Value::Word(text) => word(name, text).ok_or(format!("{name}={text}?")),
            _ => Err(format!("{name} wants a number")),
        }
    }

    /// A value as the bytes that are meant for a field that is not a number.
    fn bytes(&self, field: &Field, value: &Value) -> Result<Vec<u8>> {
        let address = match (field.holds, value) {
            (Holds::Data, Value::Bytes(bytes)) => return Ok(bytes.clone()),
            (Holds::Data, _) => return Err(format!("{} wants \"...\" or fill:N", field.name)),
            // The GID that no address is mapped to.
            (Holds::Gid, Value::Word(word)) if word == "zero" => return Ok(vec![0; 16]),
            (_, Value::Address(address)) => *address,
            (_, Value::Word(word)) => self.address(word).ok_or(format!("{word}?"))?,
            _ => return Err(format!("{} wants an address", field.name)),
        };
        Ok(match field.holds {
            Holds::Gid => wire::gid(address),
            _ => wire::address(address),
        }
        .to_vec())
    }

    fn set(&self, mad: &mut Mad, kind: Kind, name: &str, value: &Value) -> Result {
        let field = kind
            .field(name)
            .ok_or(format!("{} has no {name}", kind.name()))?;
        match (field.holds, value) {
            (Holds::Number, Value::Word(word)) if word == "ones" => mad.set_ones(field),
            (Holds::Number, _) => mad.set_number(field, self.number(name, value)?)?,
            _ => mad.set_bytes(field, &self.bytes(field, value)?)?,
        }
        Ok(())
    }

    /// Checks that a field is as expected. A variable that is not known becomes known.
    fn compare(&mut self, mad: &Mad, kind: Kind, name: &str, value: &Value) -> Result {
        let field = kind
            .field(name)
            .ok_or(format!("{} has no {name}", kind.name()))?;
        if *value == Value::Word("any".into()) {
            return Ok(());
        }
        if field.holds != Holds::Number {
            let mut want = self.bytes(field, value)?;
            let got = mad.bytes(field);
            want.resize(got.len(), 0);
            return match want == got {
                true => Ok(()),
                false => Err(format!("{name}: want {want:02x?}, got {got:02x?}")),
            };
        }
        let got = mad.number(field);
        if let Value::Variable(variable, 0) = value {
            if !self.variables.contains_key(variable) {
                self.variables.insert(variable.clone(), got);
                return Ok(());
            }
        }
        let want = self.number(name, value)?;
        same(name, want, got)
    }

    fn step(&mut self, step: &Step) -> Result {
        self.note(&step.text);
        let details = &step.details;
        match &step.what {
            What::User(verb) => self.user(verb, details)?,
            What::Event(kind) => return self.event(*kind, details),
            What::Send { dup, kind } => self.send(*dup, *kind, details)?,
            What::Receive { lost, kind } => return self.receive(*lost, *kind, details),
            What::Nothing(time) => self.nothing(*time)?,
            What::Wait(time) => {
                let nobody = Watch {
                    wire: false,
                    events: false,
                };
                self.world.next(nobody, self.world.now() + time);
            }
        }
        self.mark = self.world.now();
        Ok(())
    }

    // Time
    // ------------------------------------------------------------------------------------------

    fn deadline(&self, timing: Timing, from: Micros) -> Micros {
        // Late is not wrong on a machine that others use, too.
        let slack = self.world.slack() * 10;
        match timing {
            Timing::Now => self.world.now() + self.world.retry_timeout(),
            Timing::Within(time) => from + time + slack,
            Timing::After(time, percent) => from + time + time * percent / 100 + slack,
        }
    }

    fn check_time(&self, timing: Timing, from: Micros, at: Micros) -> Result {
        let Timing::After(time, percent) = timing else {
            return Ok(());
        };
        let least = time.saturating_sub(time * percent / 100 + self.world.slack());
        let passed = at.saturating_sub(from);
        match passed >= least {
            true => Ok(()),
            false => Err(format!("it came after {} ms", passed / 1000)),
        }
    }

    /// Collects what happens until `enough`, or until the deadline.
    fn fill(&mut self, watch: Watch, until: Micros, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            match self.world.next(watch, until) {
                None => return,
                Some(input) => self.take(input),
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Mad(sent) => {
                self.note(&format!("    -> {:?}: {}", sent.to, sent.mad.describe()));
                self.wire.push_back(*sent);
            }
            Input::Event(event) => {
                self.note(&format!("    {event}"));
                self.events.push_back(*event);
            }
        }
    }

    fn nothing(&mut self, time: Micros) -> Result {
        let until = self.world.now() + time;
        while let Some(input) = self.world.next(BOTH, until) {
            self.take(input);
        }
        if let Some(sent) = self.wire.front() {
            return Err(format!("nothing was expected: {}", sent.mad.describe()));
        }
        if let Some(event) = self.events.front() {
            return Err(format!("no event was expected: {event}"));
        }
        Ok(())
    }
}

fn same(name: &str, want: u64, got: u64) -> Result {
    match want == got {
        true => Ok(()),
        false => Err(format!("{name}: want {want:#x}, got {got:#x}")),
    }
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Result<T> {
    T::try_from(number).map_err(|_| format!("{number:#x} is too large"))
}

/// Returns true if a script is for this implementation.
pub fn is_for(script: &Script, under: Under) -> bool {
    script.only.is_empty() || script.only.contains(&under)
}
