// SPDX-License-Identifier: GPL-2.0

//! A tree of objects, sorted by key.

use crate::{
    avl::{NodePtr, Root},
    cell::{value_of, HasCell},
    count::Count,
    counted::{Borrowed, Counted},
    link::{HasLink, Link},
};
use core::{marker::PhantomData, ptr::NonNull};

/// A tree of objects, sorted by keys of the type `K`, that owns a reference `R` to each.
///
/// Each method takes time that grows with the logarithm of the number of objects, and none
/// allocates. Several objects may have equal keys; they are in the order in which they were
/// entered.
///
/// If `N` is `usize`, the tree counts its objects, or some of them, and knows how many are before a
/// key.
///
/// If the comparison of keys panics or contradicts itself, the order is not specified; an object
/// that is to be removed is found all the same.
///
/// # Invariants
///
/// For each link in `root` the tree owns what [`Counted::into_raw`] has made of a reference to the
/// object, and the pointer to the link was made of that pointer.
pub struct Tree<R, K, N = ()>
where
    R: Counted<Target: HasLink<K, N>>,
    K: Copy + Ord,
    N: Count,
{
    root: Root<K, N>,
    _objects: PhantomData<R>,
}

// SAFETY: The tree has references and keys, both of which may be sent.
unsafe impl<R, K, N> Send for Tree<R, K, N>
where
    R: Counted<Target: HasLink<K, N>> + Send,
    K: Copy + Ord + Send,
    N: Count,
{
}

// SAFETY: With a shared reference to the tree, its references and keys are only read.
unsafe impl<R, K, N> Sync for Tree<R, K, N>
where
    R: Counted<Target: HasLink<K, N>> + Sync,
    K: Copy + Ord + Sync,
    N: Count,
{
}

impl<R, K> Tree<R, K>
where
    R: Counted<Target: HasLink<K>>,
    K: Copy + Ord,
{
    /// Creates an empty tree that does not count.
    pub fn new() -> Self {
        Self::empty()
    }
}

impl<R, K> Tree<R, K, usize>
where
    R: Counted<Target: HasLink<K, usize>>,
    K: Copy + Ord,
{
    /// Creates an empty tree that counts.
    pub fn counting() -> Self {
        Self::empty()
    }

    /// Counts an object that is in this tree, or does not count it any more. One that is entered is
    /// counted at first.
    pub fn set_counted(&mut self, object: &R::Target, is_counted: bool) {
        if let Some(node) = self.root.find(HasLink::<K, usize>::link(object)) {
            // SAFETY: The node was found in this tree.
            unsafe { self.root.set_weight(node, usize::from(is_counted)) };
        }
    }

    /// Returns whether an object is in this tree and counted.
    pub fn is_counted(&self, object: &R::Target) -> bool {
        let node = self.root.find(HasLink::<K, usize>::link(object));
        node.is_some_and(|node| node.weight() == 1)
    }

    /// Returns the number of counted objects whose key is below `key`.
    pub fn count_below(&self, key: &K) -> usize {
        self.root.count_below(key)
    }
}

impl<R, K, N> Tree<R, K, N>
where
    R: Counted<Target: HasLink<K, N>>,
    K: Copy + Ord,
    N: Count,
{
    fn empty() -> Self {
        Tree {
            root: Root::new(),
            _objects: PhantomData,
        }
    }

    /// Returns whether the tree is empty.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Enters an object with the key `key`.
    ///
    /// If the object is in a tree already, it stays there, and the reference is returned.
    pub fn insert(&mut self, key: K, object: R) -> Result<(), R> {
        let object = Raw::<R>::new(object);
        // SAFETY: By the safety requirements of `HasLink` there is a link, and by those of
        // `Counted` it stays where it is until `remove_node` has removed it.
        if unsafe { self.root.insert(key, object.link()) } {
            // INVARIANT: The tree owns what the reference was turned into.
            core::mem::forget(object);
            Ok(())
        } else {
            Err(object.into_reference())
        }
    }

    /// Removes an object, and returns the reference to it, if it is in this tree.
    pub fn remove(&mut self, object: &R::Target) -> Option<R> {
        let node = self.root.find(HasLink::<K, N>::link(object))?;
        // SAFETY: The node was found in this tree.
        Some(unsafe { self.remove_node(node) })
    }

    /// Removes the first object, and returns the reference to it.
    pub fn pop_first(&mut self) -> Option<R> {
        let node = self.root.first()?;
        // SAFETY: The node was found in this tree.
        Some(unsafe { self.remove_node(node) })
    }

    /// Removes an object.
    ///
    /// # Safety
    ///
    /// The node must be one of this tree.
    unsafe fn remove_node(&mut self, node: NodePtr<K, N>) -> R {
        let object = object_of::<R, K, N>(node);
        // SAFETY: By the safety requirements.
        unsafe { self.root.remove(node) };
        // SAFETY: By the type invariant the tree owned what a reference was turned into. The link
        // is not in the tree any more, so that this is the last use of it.
        unsafe { R::from_raw(object) }
    }

    /// Returns the key of an object, if it is in this tree.
    pub fn key(&self, object: &R::Target) -> Option<K> {
        Some(self.root.find(HasLink::<K, N>::link(object))?.key())
    }

    /// Changes the key of an object if it is in this tree, and in the same place with that key.
    /// Returns whether it is. This takes less time than to remove the object and to enter it again.
    pub fn set_key(&mut self, object: &R::Target, key: K) -> bool {
        let node = self.root.find(HasLink::<K, N>::link(object));
        // SAFETY: The node was found in this tree.
        node.is_some_and(|node| unsafe { self.root.set_key(node, key) })
    }

    /// Calls `look` on the keys of the objects before and after one, if that one is in this tree
    /// and has such neighbours.
    pub fn beside<T>(&self, object: &R::Target, look: impl Fn(&K) -> T) -> [Option<T>; 2] {
        let Some(node) = self.root.find(HasLink::<K, N>::link(object)) else {
            return [None, None];
        };
        [node.before(), node.after()].map(|beside| Some(beside?.look(&look)))
    }

    /// Returns the object after one, if that one is in this tree.
    pub fn after(&self, object: &R::Target) -> Option<Borrowed<'_, R>> {
        let node = self.root.find(HasLink::<K, N>::link(object))?;
        Some(self.lend(node.after()?).1)
    }

    /// Returns the first object, and its key.
    pub fn first(&self) -> Option<(K, Borrowed<'_, R>)> {
        Some(self.lend(self.root.first()?))
    }

    /// Returns the first object whose key is not below `key`, and its key.
    pub fn lower_bound(&self, key: &K) -> Option<(K, Borrowed<'_, R>)> {
        Some(self.lend(self.root.lower_bound(key)?))
    }

    /// Returns the first object with the key `key`.
    #[inline]
    pub fn get(&self, key: &K) -> Option<Borrowed<'_, R>> {
        let (found, object) = self.lower_bound(key)?;
        (found == *key).then_some(object)
    }

    /// Lends the reference to the object at `node`, which is one of this tree.
    fn lend(&self, node: NodePtr<K, N>) -> (K, Borrowed<'_, R>) {
        // SAFETY: By the type invariant the tree owns what a reference was turned into, and it
        // keeps that as long as it is borrowed.
        let object = unsafe { Borrowed::new(object_of::<R, K, N>(node)) };
        (node.key(), object)
    }
}

impl<R, K> Tree<R, K>
where
    R: Counted<Target: HasCell<K>>,
    K: Copy + Ord,
{
    /// Returns the value of an object that is in this tree.
    pub fn value(&self, object: &R::Target) -> Option<&<R::Target as HasCell<K>>::Value> {
        let node = self.root.find(HasLink::<K>::link(object))?;
        // SAFETY: The link is in this tree, which is borrowed for as long as the result, so that
        // the value is only read.
        Some(unsafe { &*value_of(object_of::<R, K, ()>(node)) })
    }

    /// Returns the value of an object that is in this tree.
    pub fn value_mut(
        &mut self,
        object: &R::Target,
    ) -> Option<&mut <R::Target as HasCell<K>>::Value> {
        let node = self.root.find(HasLink::<K>::link(object))?;
        // SAFETY: The link is in this tree, which is exclusively borrowed for as long as the
        // result, and so is the value.
        Some(unsafe { &mut *value_of(object_of::<R, K, ()>(node)) })
    }

    /// Returns the first object with the key `key`, and its value.
    #[allow(clippy::type_complexity)] // It is a pair.
    pub fn get_mut(
        &mut self,
        key: &K,
    ) -> Option<(Borrowed<'_, R>, &mut <R::Target as HasCell<K>>::Value)> {
        let node = self.root.lower_bound(key)?;
        if node.key() != *key {
            return None;
        }
        let value = value_of(object_of::<R, K, ()>(node));
        // SAFETY: As in `value_mut`. The reference to the object gives no access to the value.
        Some((self.lend(node).1, unsafe { &mut *value }))
    }
}

#[cfg(all(test, not(loom)))]
impl<R, K, N> Tree<R, K, N>
where
    R: Counted<Target: HasLink<K, N>>,
    K: Copy + Ord,
    N: Count,
{
    /// Checks the invariants, and returns the keys and the objects in order.
    pub(crate) fn check(&self) -> std::vec::Vec<(K, Borrowed<'_, R>)> {
        let nodes = self.root.check();
        nodes.into_iter().map(|node| self.lend(node)).collect()
    }
}

impl<R, K> Default for Tree<R, K>
where
    R: Counted<Target: HasLink<K>>,
    K: Copy + Ord,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<R, K, N> Drop for Tree<R, K, N>
where
    R: Counted<Target: HasLink<K, N>>,
    K: Copy + Ord,
    N: Count,
{
    fn drop(&mut self) {
        /// Goes on if the end of an object panics.
        struct Rest<'a, R, K, N>(&'a mut Tree<R, K, N>)
        where
            R: Counted<Target: HasLink<K, N>>,
            K: Copy + Ord,
            N: Count;

        impl<R, K, N> Drop for Rest<'_, R, K, N>
        where
            R: Counted<Target: HasLink<K, N>>,
            K: Copy + Ord,
            N: Count,
        {
            fn drop(&mut self) {
                while self.0.pop_first().is_some() {}
            }
        }

        let rest = Rest(self);
        while rest.0.pop_first().is_some() {}
    }
}

/// A pointer that a reference was turned into, which it becomes again when this is dropped.
///
/// # Invariants
///
/// The pointer was returned by [`Counted::into_raw`], and belongs to this object.
struct Raw<R: Counted>(NonNull<R::Target>);

impl<R: Counted> Raw<R> {
    fn new(object: R) -> Self {
        // INVARIANT: This owns the pointer.
        Self(R::into_raw(object))
    }

    fn into_reference(self) -> R {
        let pointer = self.0;
        core::mem::forget(self);
        // SAFETY: By the type invariant; the object that the pointer belonged to is gone.
        unsafe { R::from_raw(pointer) }
    }

    /// Returns the link of the object.
    fn link<K, N>(&self) -> NonNull<Link<K, N>>
    where
        R::Target: HasLink<K, N>,
    {
        // SAFETY: By the safety requirements of `HasLink` this is within the object.
        unsafe { self.0.byte_add(<R::Target as HasLink<K, N>>::OFFSET) }.cast()
    }
}

impl<R: Counted> Drop for Raw<R> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; this is the end of the object.
        drop(unsafe { R::from_raw(self.0) });
    }
}

/// Returns the object that has the link at `node`.
fn object_of<R, K, N>(node: NodePtr<K, N>) -> NonNull<R::Target>
where
    R: Counted<Target: HasLink<K, N>>,
    N: Count,
{
    // SAFETY: By the invariant of `Tree` the pointer was made by adding this to that of an object.
    unsafe { node.as_ptr().byte_sub(<R::Target as HasLink<K, N>>::OFFSET) }.cast()
}
