// SPDX-License-Identifier: GPL-2.0

//! Simulates nodes of the RDMA connection manager, and judges their behaviour.
//!
//! Two or three nodes run the state machines of [`cmproto`], with the tables and the checks that
//! the module has around them. Their users connect, accept, reject, disconnect and destroy at any
//! moment, some of them for datagrams (SIDR); the network between them loses, repeats, delays (and
//! so reorders) and corrupts messages and is cut in two at times; nodes restart with the same GUID.
//! Where the network keeps the order of messages it is one of InfiniBand in half of the
//! simulations: users of connections propose alternate paths by LAPs, of which some end nowhere.
//! Time is virtual, and a seed decides everything: a seed that finds an error finds it again, and
//! is shrunk to a short [`Script`].
//!
//! # The rules
//!
//! The rules are judged after each step, unless stated otherwise.
//!
//! - **S1** *A communication id is never bound to two live connections.* The id of an endpoint
//!   finds that endpoint in its node's table, as long as it exists. If both ends of a pair (each
//!   names the other's id) are established, then they agree on both queue pairs, on the service and
//!   on the active side, and belong to the same call of connect.
//! - **S2** *No established side whose other side has seen a REJ.* If a connection was told of a
//!   REJ, then no connection whose peer it is (by its id, with the other's id or none) is
//!   established, now or later. The protocol does not guarantee this for a lost REJ, because a REJ
//!   is sent once. S4 demands it if no REJ can be lost.
//! - **S3** *Every connect ends in exactly one of established, rejected, unreachable.* The events
//!   of each endpoint are a word of the language that [`rules::Stage`] spells out, for both sides;
//!   and no REQ or REP is in flight for longer than (retries + 1) intervals, and 60 s more for each
//!   that was answered by an MRA, nor given up before those intervals and the times of the MRAs are
//!   over. Unless its user destroys the connection, a call therefore has one outcome, after a
//!   bounded time. A REJ that comes when the connection is established ends it, but is no second
//!   outcome. A LAP is over after (retries + 1) intervals, and when the LAPs of two established
//!   ends are, either both or none have an alternate path, unless one was given up.
//! - **S4** *Every established side is told of the end.* (a) A DREQ that arrives and names it ends
//!   an established connection. (b) A DREQ is in flight for a bounded time as in S3, then the user
//!   is told, whatever the peer does. (c) When the network has become perfect, every half of a
//!   connection that is left can be ended by its own user within that time, and at once if its
//!   other end does not exist any more. (d) There is no half of a connection in a simulation whose
//!   network was perfect all the time and whose nodes never restarted. (e) A side whose peer's
//!   queue pair is claimed by another connection asks the peer whether it still has the connection,
//!   and so does a node at intervals, if it is tuned to.
//!   If the peer does not have it, the side is told so within a round trip, and the connection
//!   ends; if the peer has it, the connection stays. No peer is asked more often than once a
//!   second. The protocol guarantees no more: a peer that dies sends nothing; a peer that destroys
//!   sends one DREQ, once; an XRC target sends nothing even then; and a passive side that gives up
//!   waiting for the RTU does so in silence, so that an active side that accepts its REP later has
//!   no peer.
//! - **S5** *No (GUID, QPN) is accepted again within time wait.* The protocol as Linux speaks it
//!   does not guarantee that: an endpoint leaves the tables when it enters time wait. The rule is
//!   that until then no other connection has its peer's communication id from its REQ or REP on,
//!   nor its queue pair from its REP or RTU on: the connection is found by both, and by nothing
//!   else afterwards. A counter has the number of queue pairs that come again within the time wait
//!   of their last connection.
//! - **S6** *A duplicate of any message at any time changes nothing but retransmission.* A message
//!   that has changed the state of a connection before leaves that connection equal in all its
//!   parts when it comes again (the same in every bit), and its user is told nothing. An MRA that
//!   comes after another send of the request answers that send. If the connection has left the
//!   tables, a REQ is a new one: the protocol cannot know better.
//! - **S7** *Message count.* A connection sends each of REQ, REP and DREQ at most (retries + 1)
//!   times, and 7 times more at a node that sends early, a REP once more for each repeated REQ, and
//!   an RTU, DREP, MRA or REJ at most once more than there are messages that call for it. A LAP is
//!   sent as often as a REQ for each proposal, and once more for each LAP of the peer, and an APR
//!   once for each LAP. A message
//!   that belongs to no connection is sent only in answer to a message. A node that has confirmed
//!   no request is sent one message for each REQ, and 4 more in any 10 s.
//! - **S8** *Destroy terminates without the peer.* A connection that was destroyed is over, or in a
//!   time wait of at most 17 s with nothing in flight; its user is told nothing more; and in the
//!   end no endpoint is left.
//! - **S9** *Sizes are bounded.* A node has one communication id per endpoint, two ids of peers per
//!   endpoint that is tracked, no more requests that wait for a user than its backlog, and four
//!   events per endpoint; a simulation ends; and in the end the tables are empty.
//!
//! For datagrams the same rules say: the requester is told the result once and in time (S3), and
//! the result is that of the service (S1); a repeated request changes nothing (S6), and each
//! request has one answer at most (S7); a destroyed endpoint sends no request, and keeps its answer
//! for a bounded time (S8).
//!
//! There are three more rules: the timer of a connection runs in the states that wait for something
//! and in no other; a verb that fails changes nothing; nothing panics.
//!
//! Once a corrupt message was not detected as such, peers can disagree about anything. The rules
//! about pairs (S2, the second half of S1) are not judged from then on, all others are.

mod counts;
mod network;
mod node;
mod observer;
mod plan;
pub mod rules;
pub mod run;
pub mod script;
mod shrink;
pub mod storm;
mod world;

use std::panic::{catch_unwind, AssertUnwindSafe};

pub use self::{
    counts::Counts,
    network::{Network, Weather},
    plan::{plan, Knobs},
    shrink::shrink,
    world::{Outcome, World},
};
use self::{
    rules::{Rule, Violation},
    script::{Script, Step},
};

/// Plays `script` in `network`. A panic breaks a rule, too.
fn play_in(script: &Script, network: Network, trace: bool) -> Outcome {
    let world = World::new(script, network, trace);
    catch_unwind(AssertUnwindSafe(|| world.run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Outcome {
            counts: Counts::default(),
            violation: Some(Violation {
                rule: Rule::Panic,
                what: text.unwrap_or("?").into(),
            }),
            trace: Vec::new(),
            network: Network::of(script),
        }
    })
}

/// Plays a script.
pub fn play(script: &Script, trace: bool) -> Outcome {
    play_in(script, Network::of(script), trace)
}

/// Plays the script of a seed.
pub fn play_seed(seed: u64, knobs: &Knobs, trace: bool) -> Outcome {
    let (script, network) = plan(seed, knobs);
    play_in(&script, network, trace)
}

/// Plays a script in the weather that `seed` brings.
pub fn play_in_weather(script: &Script, seed: u64, weather: Weather) -> Outcome {
    play_in(script, Network::drawn(seed, weather), false)
}

/// Returns the script that a seed stands for, with all actions of the network.
pub fn script_of(seed: u64, knobs: &Knobs) -> Script {
    let (mut script, network) = plan(seed, knobs);
    // The record up to a panic would be lost with the world.
    let record = play_in(&script, network, false).network.record();
    let network = record
        .into_iter()
        .map(|(which, fate)| Step::Network(which, fate));
    script.steps.extend(network);
    script
}
