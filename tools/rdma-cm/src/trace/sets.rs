// SPDX-License-Identifier: GPL-2.0

//! Sets that are united.

/// Disjoint sets of numbers.
#[derive(Default)]
pub struct Sets(Vec<usize>);

impl Sets {
    /// Adds a set that has only a new number, and returns that.
    pub fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    /// Returns the number that stands for the set of this one.
    pub fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Makes one set of two.
    pub fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[other.max(one)] = one.min(other);
    }
}
