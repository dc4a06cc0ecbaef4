// SPDX-License-Identifier: GPL-2.0

//! A balanced search tree (Adelson-Velsky and Landis) of links.
//!
//! The heights of the two subtrees of a node differ by at most one, so that a tree of `n` nodes is
//! at most 1.45 log2(`n`) high. The balance of a node is the height of its right subtree less that
//! of its left one.
//!
//! A tree may count: each of its nodes has the number of counted nodes in its subtree, so that the
//! number of those before a key is known without a walk.

use crate::{count::Count, link::Link, mark::Number};
use core::{mem::MaybeUninit, ptr::NonNull};

/// A side of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    /// Returns the other side.
    const fn other(self) -> Self {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }

    /// Returns the balance of a node that is one higher on this side.
    const fn balance(self) -> i8 {
        match self {
            Side::Left => -1,
            Side::Right => 1,
        }
    }
}

/// The position of a link in its tree: its neighbours there, and its key.
pub(crate) struct Node<K, N> {
    /// Initialised while the link is in a tree.
    key: MaybeUninit<K>,
    parent: Option<NodePtr<K, N>>,
    left: Option<NodePtr<K, N>>,
    right: Option<NodePtr<K, N>>,
    /// The number of counted nodes in the subtree, if the tree counts.
    count: N,
}

impl<K, N: Count> Node<K, N> {
    /// Creates the position of a link that is in no tree.
    pub(crate) fn new() -> Self {
        Node {
            key: MaybeUninit::uninit(),
            parent: None,
            left: None,
            right: None,
            count: N::of(0),
        }
    }
}

/// A pointer to a link in a tree.
///
/// # Invariants
///
/// The link is valid and in a tree, or is being entered into it or removed from it. The pointer is
/// used by this tree alone, with the shared or exclusive reference to the tree that [`Link`] asks
/// for, and only as long as the tree owns a reference to the object.
pub(crate) struct NodePtr<K, N>(NonNull<Link<K, N>>);

impl<K, N> Clone for NodePtr<K, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, N> Copy for NodePtr<K, N> {}

impl<K, N> PartialEq for NodePtr<K, N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K, N: Count> NodePtr<K, N> {
    /// Returns the pointer as it was when the link was entered.
    pub(crate) fn as_ptr(self) -> NonNull<Link<K, N>> {
        self.0
    }

    fn link(&self) -> &Link<K, N> {
        // SAFETY: By the type invariant the link is valid.
        unsafe { self.0.as_ref() }
    }

    fn node(self) -> *mut Node<K, N> {
        self.link().node.get()
    }

    fn parent(self) -> Option<Self> {
        // SAFETY: By the type invariant the node may be read.
        unsafe { (*self.node()).parent }
    }

    fn set_parent(self, parent: Option<Self>) {
        // SAFETY: By the type invariant the node may be written.
        unsafe { (*self.node()).parent = parent };
    }

    fn child(self, side: Side) -> Option<Self> {
        // SAFETY: By the type invariant the node may be read.
        unsafe {
            match side {
                Side::Left => (*self.node()).left,
                Side::Right => (*self.node()).right,
            }
        }
    }

    /// Makes `child` the child of this node on `side`.
    fn set_child(self, side: Side, child: Option<Self>) {
        // SAFETY: By the type invariant the node may be written.
        unsafe {
            match side {
                Side::Left => (*self.node()).left = child,
                Side::Right => (*self.node()).right = child,
            }
        }
        if let Some(child) = child {
            child.set_parent(Some(self));
        }
    }

    fn count(self) -> usize {
        // SAFETY: By the type invariant the node may be read.
        unsafe { (*self.node()).count.get() }
    }

    fn set_count(self, count: usize) {
        // SAFETY: By the type invariant the node may be written.
        unsafe { (*self.node()).count = N::of(count) };
    }

    /// Returns the count of the child on `side`.
    fn count_of(self, side: Side) -> usize {
        self.child(side).map_or(0, Self::count)
    }

    /// Returns 1 if this node itself is counted, else 0.
    pub(crate) fn weight(self) -> usize {
        let below = self
            .count_of(Side::Left)
            .wrapping_add(self.count_of(Side::Right));
        self.count().wrapping_sub(below)
    }

    fn balance(self) -> i8 {
        self.link().mark.balance()
    }

    fn set_balance(self, balance: i8) {
        self.link().mark.set_balance(balance);
    }

    /// Returns the side of `self` on which its child `child` is.
    fn side_of(self, child: Self) -> Side {
        if self.child(Side::Left) == Some(child) {
            Side::Left
        } else {
            Side::Right
        }
    }

    /// Returns the last node in the direction of `side` below this node, or this node.
    fn outermost(self, side: Side) -> Self {
        let mut node = self;
        while let Some(child) = node.child(side) {
            node = child;
        }
        node
    }

    /// Returns the node beside this one on `side`.
    fn beside(self, side: Side) -> Option<Self> {
        if let Some(child) = self.child(side) {
            return Some(child.outermost(side.other()));
        }
        let mut node = self;
        loop {
            let parent = node.parent()?;
            if parent.side_of(node) == side.other() {
                return Some(parent);
            }
            node = parent;
        }
    }

    /// Returns the node before this one.
    pub(crate) fn before(self) -> Option<Self> {
        self.beside(Side::Left)
    }

    /// Returns the node after this one.
    pub(crate) fn after(self) -> Option<Self> {
        self.beside(Side::Right)
    }
}

impl<K: Copy, N: Count> NodePtr<K, N> {
    /// Returns the key.
    pub(crate) fn key(self) -> K {
        self.look(|key| *key)
    }

    /// Calls `look` on the key.
    pub(crate) fn look<T>(self, look: impl FnOnce(&K) -> T) -> T {
        // SAFETY: By the type invariant the node may be read, and the key is initialised.
        look(unsafe { (*self.node()).key.assume_init_ref() })
    }

    fn set_key(self, key: K) {
        // SAFETY: By the type invariant the node may be written.
        unsafe { (*self.node()).key.write(key) };
    }
}

impl<K: Copy + Ord, N: Count> NodePtr<K, N> {
    /// Returns whether the key of this node is below `key`.
    fn is_below(self, key: &K) -> bool {
        self.look(|own| own < key)
    }

    /// Returns whether the key of this node is above `key`.
    fn is_above(self, key: &K) -> bool {
        self.look(|own| key < own)
    }
}

/// The root of a tree, which owns nothing. The tree counts if `N` does.
///
/// # Invariants
///
/// The links below `root` are exactly those whose mark has the number `number`. They are a tree
/// that is balanced as [above](self).
pub(crate) struct Root<K, N> {
    number: Number,
    root: Option<NodePtr<K, N>>,
}

impl<K, N: Count> Root<K, N> {
    /// Creates an empty tree.
    pub(crate) fn new() -> Self {
        // INVARIANT: No link has the new number.
        Root {
            number: Number::new(),
            root: None,
        }
    }

    /// Returns whether the tree is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Returns whether a link is in the tree.
    pub(crate) fn has(&self, link: &Link<K, N>) -> bool {
        link.mark.is_of(&self.number)
    }

    /// Returns the pointer to a link with which it was entered, if it is in the tree.
    pub(crate) fn find(&self, link: &Link<K, N>) -> Option<NodePtr<K, N>> {
        if !self.has(link) {
            return None;
        }
        // SAFETY: By the type invariant the link is in this tree, so that its node may be read.
        let parent = unsafe { (*link.node.get()).parent };
        let is_it = |node: &NodePtr<K, N>| core::ptr::eq(node.0.as_ptr(), link);
        match parent {
            None => self.root.filter(is_it),
            Some(parent) => parent
                .child(Side::Left)
                .filter(is_it)
                .or_else(|| parent.child(Side::Right).filter(is_it)),
        }
    }

    /// Returns the first link.
    pub(crate) fn first(&self) -> Option<NodePtr<K, N>> {
        Some(self.root?.outermost(Side::Left))
    }

    /// Puts `new` in the place of `old`, whose parent is `parent`.
    fn replace(
        &mut self,
        parent: Option<NodePtr<K, N>>,
        old: NodePtr<K, N>,
        new: Option<NodePtr<K, N>>,
    ) {
        match parent {
            Some(parent) => parent.set_child(parent.side_of(old), new),
            None => {
                self.root = new;
                if let Some(new) = new {
                    new.set_parent(None);
                }
            }
        }
    }

    /// Puts the child of `node` on `side` in the place of `node`, which becomes its child on the
    /// other side. Returns the child. The balances are left to the caller.
    ///
    /// ```text
    ///     node                child
    ///     /  \                /  \
    ///    a   child   ->    node   c
    ///        /  \          /  \
    ///       b    c        a    b
    /// ```
    fn rotate(&mut self, node: NodePtr<K, N>, side: Side) -> NodePtr<K, N> {
        let Some(child) = node.child(side) else {
            return node;
        };
        let parent = node.parent();
        if N::COUNTS {
            let (all, moved) = (node.count(), child.count_of(side.other()));
            let left = all.wrapping_sub(child.count()).wrapping_add(moved);
            node.set_count(left);
            child.set_count(all);
        }
        node.set_child(side, child.child(side.other()));
        self.replace(parent, node, Some(child));
        child.set_child(side.other(), Some(node));
        child
    }

    /// Adds `weight` to the counts from `node` on upwards, up to the root or to before `end`.
    fn add_weight(node: Option<NodePtr<K, N>>, end: Option<NodePtr<K, N>>, weight: usize) {
        let mut next = node;
        while let Some(node) = next.filter(|node| Some(*node) != end) {
            node.set_count(node.count().wrapping_add(weight));
            next = node.parent();
        }
    }

    /// Balances `node`, which is two higher on `side`. Returns the node that has taken its place,
    /// and whether the subtree has become lower.
    fn rebalance(&mut self, node: NodePtr<K, N>, side: Side) -> (NodePtr<K, N>, bool) {
        let high = side.balance();
        let low = side.other().balance();
        let Some(child) = node.child(side) else {
            return (node, false);
        };
        if child.balance() == low {
            self.rotate(child, side.other());
            let top = self.rotate(node, side);
            let (of_node, of_child) = match top.balance() {
                0 => (0, 0),
                balance if balance == high => (low, 0),
                _ => (0, high),
            };
            node.set_balance(of_node);
            child.set_balance(of_child);
            top.set_balance(0);
            return (top, true);
        }
        let was_even = child.balance() == 0;
        let top = self.rotate(node, side);
        node.set_balance(if was_even { high } else { 0 });
        top.set_balance(if was_even { low } else { 0 });
        (top, !was_even)
    }

    /// Restores the balance after the subtree of `node` has become one higher.
    fn has_grown(&mut self, mut node: NodePtr<K, N>) {
        while let Some(parent) = node.parent() {
            let side = parent.side_of(node);
            match parent.balance() {
                0 => parent.set_balance(side.balance()),
                balance if balance == side.balance() => {
                    self.rebalance(parent, side);
                    return;
                }
                _ => {
                    parent.set_balance(0);
                    return;
                }
            }
            node = parent;
        }
    }

    /// Restores the balance after the subtree on the side `side` of `node` has become one lower.
    fn has_shrunk(&mut self, mut node: NodePtr<K, N>, mut side: Side) {
        loop {
            let top = match node.balance() {
                0 => {
                    node.set_balance(side.other().balance());
                    return;
                }
                balance if balance == side.balance() => {
                    node.set_balance(0);
                    node
                }
                _ => match self.rebalance(node, side.other()) {
                    (top, true) => top,
                    (_, false) => return,
                },
            };
            let Some(parent) = top.parent() else {
                return;
            };
            side = parent.side_of(top);
            node = parent;
        }
    }

    /// Counts a link of the tree, or does not count it any more.
    ///
    /// # Safety
    ///
    /// The link must be in this tree.
    pub(crate) unsafe fn set_weight(&mut self, node: NodePtr<K, N>, weight: usize) {
        Self::add_weight(Some(node), None, weight.wrapping_sub(node.weight()));
    }

    /// Removes a link of the tree.
    ///
    /// # Safety
    ///
    /// The link must be in this tree.
    pub(crate) unsafe fn remove(&mut self, node: NodePtr<K, N>) {
        let parent = node.parent();
        let (left, right) = (node.child(Side::Left), node.child(Side::Right));
        if N::COUNTS {
            Self::add_weight(Some(node), None, node.weight().wrapping_neg());
        }
        let shrunk = if let (Some(left), Some(right)) = (left, right) {
            // The next node, which has no left child, takes the place.
            let next = right.outermost(Side::Left);
            if N::COUNTS {
                Self::add_weight(next.parent(), Some(node), next.weight().wrapping_neg());
                next.set_count(node.count());
            }
            let shrunk = match next.parent() {
                Some(above) if above != node => {
                    above.set_child(Side::Left, next.child(Side::Right));
                    next.set_child(Side::Right, Some(right));
                    (above, Side::Left)
                }
                _ => (next, Side::Right),
            };
            next.set_child(Side::Left, Some(left));
            next.set_balance(node.balance());
            self.replace(parent, node, Some(next));
            Some(shrunk)
        } else {
            let shrunk = parent.map(|parent| (parent, parent.side_of(node)));
            self.replace(parent, node, left.or(right));
            shrunk
        };
        if let Some((node, side)) = shrunk {
            self.has_shrunk(node, side);
        }
        // INVARIANT: No other link refers to this one any more.
        node.link().mark.release();
    }
}

impl<K: Copy + Ord, N: Count> Root<K, N> {
    /// Enters a link with the key `key`, behind those with an equal one. Returns false, and does
    /// nothing, if the link is in a tree already. It is counted if the tree counts.
    ///
    /// # Safety
    ///
    /// The link must be valid until it has been removed, and must not be moved until then.
    pub(crate) unsafe fn insert(&mut self, key: K, link: NonNull<Link<K, N>>) -> bool {
        // The keys are compared first: if that panics, nothing has happened.
        let mut above = None;
        let mut next = self.root;
        while let Some(node) = next {
            let side = if node.is_above(&key) {
                Side::Left
            } else {
                Side::Right
            };
            above = Some((node, side));
            next = node.child(side);
        }
        // INVARIANT: If the claim succeeds, the link is being entered into this tree.
        let node = NodePtr(link);
        // SAFETY: By the safety requirements the link is valid.
        if !unsafe { link.as_ref() }.mark.claim(&self.number) {
            return false;
        }
        // SAFETY: The link is claimed for this tree, to which this has an exclusive reference.
        unsafe {
            node.node().write(Node {
                key: MaybeUninit::new(key),
                count: N::of(1),
                ..Node::new()
            })
        };
        match above {
            Some((parent, side)) => {
                parent.set_child(side, Some(node));
                if N::COUNTS {
                    Self::add_weight(Some(parent), None, 1);
                }
                self.has_grown(node);
            }
            None => self.root = Some(node),
        }
        true
    }

    /// Changes the key of a link of the tree if its place stays the same. Returns whether it does.
    ///
    /// # Safety
    ///
    /// The link must be in this tree.
    pub(crate) unsafe fn set_key(&mut self, node: NodePtr<K, N>, key: K) -> bool {
        let is_behind = node.before().is_none_or(|before| !before.is_above(&key));
        let stays = is_behind && node.after().is_none_or(|after| !after.is_below(&key));
        if stays {
            node.set_key(key);
        }
        stays
    }

    /// Returns the first link whose key is not below `key`.
    pub(crate) fn lower_bound(&self, key: &K) -> Option<NodePtr<K, N>> {
        let mut found = None;
        let mut next = self.root;
        while let Some(node) = next {
            if node.is_below(key) {
                next = node.child(Side::Right);
            } else {
                found = Some(node);
                next = node.child(Side::Left);
            }
        }
        found
    }

    /// Returns the number of counted links whose key is below `key`.
    pub(crate) fn count_below(&self, key: &K) -> usize {
        let mut count = 0;
        let mut next = self.root;
        while let Some(node) = next {
            if node.is_below(key) {
                let right = node.child(Side::Right);
                let left = node.count().wrapping_sub(right.map_or(0, NodePtr::count));
                count = left.wrapping_add(count);
                next = right;
            } else {
                next = node.child(Side::Left);
            }
        }
        count
    }
}

#[cfg(all(test, not(loom)))]
impl<K: Copy + Ord, N: Count> Root<K, N> {
    /// Checks the invariants, and returns the links in order.
    pub(crate) fn check(&self) -> std::vec::Vec<NodePtr<K, N>> {
        fn walk<K: Copy + Ord, N: Count>(
            root: &Root<K, N>,
            node: Option<NodePtr<K, N>>,
            parent: Option<NodePtr<K, N>>,
            found: &mut std::vec::Vec<NodePtr<K, N>>,
        ) -> i32 {
            let Some(node) = node else {
                return 0;
            };
            assert!(!N::COUNTS || node.weight() <= 1);
            assert!(root.has(node.link()));
            assert!(node.parent() == parent);
            let left = walk(root, node.child(Side::Left), Some(node), found);
            found.push(node);
            let right = walk(root, node.child(Side::Right), Some(node), found);
            assert_eq!(i32::from(node.balance()), right - left);
            assert!((-1..=1).contains(&(right - left)));
            1 + left.max(right)
        }
        let mut found = std::vec::Vec::new();
        walk(self, self.root, None, &mut found);
        found
    }
}
