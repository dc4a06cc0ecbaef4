// SPDX-License-Identifier: GPL-2.0

//! That every fair run comes to rest.
//!
//! In a state where no fair step changes anything, [`model`](crate::model) checks S3 and S4. That
//! says something about every run only if each of them gets to such a state, that is, if fair
//! steps cannot go round in a circle. This walks all states by itself, and so also says whether
//! another program than stateright finds as many.

use crate::world::{Rules, Step, World};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The result of a walk.
pub struct Walk {
    pub states: usize,
    pub fair_edges: usize,
    /// True if all states were seen.
    pub complete: bool,
    /// States on a circle of fair steps, or that lead to none but such.
    pub circling: usize,
    /// Longest run of fair steps, if no run is endless.
    pub longest: usize,
}

/// Walks all states, for as long as `patience` and at most `limit` states.
pub fn walk(rules: &Rules, limit: usize, patience: Duration) -> Walk {
    let start = Instant::now();
    let mut numbers = HashMap::new();
    let mut states = vec![World::new()];
    numbers.insert(World::new(), 0u32);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut complete = true;
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while at < states.len() {
        if at % 4096 == 0 && (states.len() > limit || start.elapsed() > patience) {
            complete = false;
            break;
        }
        let world = states[at].clone();
        steps.clear();
        rules.fair_steps(&world, &mut steps);
        let fair = steps.len();
        steps.clear();
        rules.steps(&world, &mut steps);
        for (i, step) in steps.iter().enumerate() {
            let Some(next) = rules.after(&world, *step) else {
                continue;
            };
            let count = states.len();
            let to = *numbers.entry(next).or_insert_with_key(|next| {
                states.push(next.clone());
                u32::try_from(count).unwrap_or(u32::MAX)
            });
            // The fair steps come first.
            if i < fair {
                edges.push((u32::try_from(at).unwrap_or(u32::MAX), to));
            }
        }
        at += 1;
    }
    let (circling, longest) = circles(states.len(), &edges);
    Walk {
        states: states.len(),
        fair_edges: edges.len(),
        complete,
        circling,
        longest,
    }
}

/// States that are left when those without a successor are taken away, again and again; and how
/// often that could be done.
fn circles(states: usize, edges: &[(u32, u32)]) -> (usize, usize) {
    let mut out = vec![0u32; states];
    let mut first = vec![0usize; states + 1];
    for (from, to) in edges {
        out[*from as usize] += 1;
        first[*to as usize + 1] += 1;
    }
    for i in 0..states {
        first[i + 1] += first[i];
    }
    let mut fill = first.clone();
    let mut into = vec![0u32; edges.len()];
    for (from, to) in edges {
        into[fill[*to as usize]] = *from;
        fill[*to as usize] += 1;
    }
    let mut rest: Vec<usize> = (0..states).filter(|state| out[*state] == 0).collect();
    let mut left = states - rest.len();
    let mut longest = 0;
    while !rest.is_empty() {
        let mut next = Vec::new();
        for state in rest {
            for from in &into[first[state]..first[state + 1]] {
                let from = *from as usize;
                out[from] -= 1;
                if out[from] == 0 {
                    next.push(from);
                    left -= 1;
                }
            }
        }
        longest += usize::from(!next.is_empty());
        rest = next;
    }
    (left, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found() {
        assert_eq!(circles(3, &[(0, 1), (1, 2)]), (0, 2));
        assert_eq!(circles(4, &[(0, 1), (1, 2), (2, 1), (2, 3)]).0, 3);
    }
}
