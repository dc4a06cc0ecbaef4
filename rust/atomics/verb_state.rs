// SPDX-License-Identifier: GPL-2.0

//! The state of an identifier for which one verb may be called once.

use crate::word::Word32;

/// An identifier of the active side that was not used yet.
const UNUSED: u32 = 0;
/// A request that was not answered yet.
const REQUESTED: u32 = 1;
/// An identifier that was used, or a request that was answered.
const USED: u32 = 2;

/// The state of an identifier that connects once, or of a request that is answered once.
pub struct VerbState(Word32);

impl VerbState {
    /// Creates the state of an identifier that has not connected.
    pub fn unused() -> Self {
        Self(Word32::new(UNUSED))
    }

    /// Creates the state of a request that was not answered.
    pub fn requested() -> Self {
        Self(Word32::new(REQUESTED))
    }

    /// Begins to connect. Returns false if this is a request, or for the second time.
    pub fn connect(&self) -> bool {
        self.0.change(UNUSED, USED).is_ok()
    }

    /// Begins an answer to the request. Returns false if this is none, or if it was answered.
    pub fn answer(&self) -> bool {
        self.0.change(REQUESTED, USED).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_its_side() {
        let active = VerbState::unused();
        assert!(!active.answer());
        assert!(active.connect());
        assert!(!active.connect() && !active.answer());

        let request = VerbState::requested();
        assert!(!request.connect());
        assert!(request.answer());
        assert!(!request.answer() && !request.connect());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn};
    use loom::sync::Arc;

    #[test]
    fn a_request_is_answered_by_one_of_two() {
        every_schedule(|| {
            let request = Arc::new(VerbState::requested());
            let other = spawn(&request, VerbState::answer);
            let here = request.answer();
            assert!(here != other.join().unwrap());
        });
    }
}
