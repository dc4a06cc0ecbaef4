// SPDX-License-Identifier: GPL-2.0

//! Tests of the tree, by comparison with [`BTreeMap`]. They are run under Miri, too, with fewer
//! operations.

use crate::{impl_has_link, Counted, Link, Tree};
use std::{
    cell::Cell,
    cmp::Ordering,
    collections::BTreeMap,
    panic::{catch_unwind, AssertUnwindSafe},
    ptr::NonNull,
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        Arc, Mutex,
    },
};

// SAFETY: An `Arc` lends its object mutably, or moves it, only while there is no other `Arc`.
unsafe impl<T> Counted for Arc<T> {
    fn into_raw(this: Self) -> NonNull<T> {
        NonNull::new(Arc::into_raw(this).cast_mut()).unwrap()
    }

    unsafe fn from_raw(pointer: NonNull<T>) -> Self {
        // SAFETY: By the safety requirements.
        unsafe { Arc::from_raw(pointer.as_ptr()) }
    }
}

// SAFETY: As for `Arc`.
unsafe impl<T> Counted for Rc<T> {
    fn into_raw(this: Self) -> NonNull<T> {
        NonNull::new(Rc::into_raw(this).cast_mut()).unwrap()
    }

    unsafe fn from_raw(pointer: NonNull<T>) -> Self {
        // SAFETY: By the safety requirements.
        unsafe { Rc::from_raw(pointer.as_ptr()) }
    }
}

/// An object in two kinds of trees, with something before, between and behind its links.
struct Object {
    number: usize,
    by_u32: Link<u32>,
    counted: Link<u32, usize>,
    ends: Arc<AtomicUsize>,
    by_pair: Link<(u8, u64)>,
    last: Cell<u8>,
}

impl_has_link! {
    impl HasLink<u32> for Object { self.by_u32 }
}

impl_has_link! {
    impl HasLink<u32, usize> for Object { self.counted }
}

impl_has_link! {
    impl HasLink<(u8, u64)> for Object { self.by_pair }
}

impl Drop for Object {
    fn drop(&mut self) {
        assert!(!self.by_u32.is_linked() && !self.by_pair.is_linked());
        self.ends.fetch_add(1, Relaxed);
    }
}

impl Object {
    fn new(number: usize, ends: &Arc<AtomicUsize>) -> Self {
        Object {
            number,
            by_u32: Link::new(),
            counted: Link::new(),
            ends: ends.clone(),
            by_pair: Link::new(),
            last: Cell::new(0),
        }
    }

    fn some(count: usize, ends: &Arc<AtomicUsize>) -> Vec<Rc<Object>> {
        (0..count)
            .map(|number| Rc::new(Object::new(number, ends)))
            .collect()
    }
}

/// Numbers that look random, and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Compares the tree with the model, whose keys have the number of the entry behind them.
fn compare(tree: &Tree<Rc<Object>, u32>, model: &BTreeMap<(u32, u64), usize>) {
    let there: Vec<_> = tree
        .check()
        .into_iter()
        .map(|(key, object)| (key, object.number))
        .collect();
    let expected: Vec<_> = model.iter().map(|(&(key, _), &n)| (key, n)).collect();
    assert_eq!(there, expected);
    assert_eq!(tree.is_empty(), model.is_empty());
}

/// Does random operations on a tree of at most `count` objects with keys below `keys`.
fn as_the_model(seed: u64, operations: u32, count: usize, keys: u64) {
    let mut random = Random(seed);
    let ends = Arc::default();
    let objects = Object::some(count, &ends);
    let mut tree = Tree::new();
    let mut model = BTreeMap::new();
    // The key of each object that is in the tree, in the model.
    let mut key_of = vec![None; count];
    for entry in 0..u64::from(operations) {
        let object = &objects[random.below(count as u64) as usize];
        let slot = &mut key_of[object.number];
        let key = random.below(keys) as u32;
        match random.below(8) {
            0..=3 => {
                let entered = tree.insert(key, object.clone());
                assert_eq!(entered.is_ok(), slot.is_none());
                if slot.is_none() {
                    *slot = Some((key, entry));
                    model.insert((key, entry), object.number);
                }
            }
            4..=5 => {
                assert_eq!(tree.key(object), slot.map(|(key, _)| key));
                let removed = tree.remove(object);
                assert_eq!(removed.is_some(), slot.is_some());
                assert!(removed.is_none_or(|removed| Rc::ptr_eq(&removed, object)));
                if let Some(key) = slot.take() {
                    model.remove(&key);
                }
            }
            6 => {
                let found = tree.lower_bound(&key).map(|(key, o)| (key, o.number));
                let mut from = model.range((key, 0)..);
                assert_eq!(found, from.next().map(|(&(key, _), &n)| (key, n)));
                let at = model.range((key, 0)..).next();
                let at = at.filter(|(&(found, _), _)| found == key);
                assert_eq!(tree.get(&key).map(|o| o.number), at.map(|(_, &n)| n));
                let first = tree.first().map(|(key, o)| (key, o.number));
                let expected = model.first_key_value();
                assert_eq!(first, expected.map(|(&(key, _), &n)| (key, n)));
            }
            _ => {
                let popped = tree.pop_first().map(|o| o.number);
                let expected = model.pop_first().map(|(_, n)| n);
                assert_eq!(popped, expected);
                if let Some(number) = popped {
                    key_of[number] = None;
                }
            }
        }
        compare(&tree, &model);
        for object in &objects {
            assert_eq!(object.by_u32.is_linked(), key_of[object.number].is_some());
            let is_in = usize::from(key_of[object.number].is_some());
            assert_eq!(Rc::strong_count(object), 1 + is_in);
        }
    }
    drop(tree);
    assert!(objects.iter().all(|object| Rc::strong_count(object) == 1));
    drop(objects);
    assert_eq!(ends.load(Relaxed), count);
}

#[test]
fn behaves_as_the_model() {
    let (rounds, operations) = if cfg!(miri) { (2, 60) } else { (40, 2000) };
    for seed in 1..=rounds {
        for (count, keys) in [(3, 3), (12, 100), (60, 8), (150, 1 << 30)] {
            let operations = if cfg!(miri) && count > 20 {
                30
            } else {
                operations
            };
            as_the_model(seed, operations, count, keys);
        }
    }
}

/// Enters a thousand objects, forwards, backwards or in disorder, and removes them in another
/// order: the tree is high then.
#[test]
fn is_balanced_in_every_order() {
    let count = if cfg!(miri) { 40 } else { 1000 };
    let orders: [fn(u32, u32) -> u32; 4] = [
        |n, _| n,
        |n, count| count - 1 - n,
        // 3 has no divisor in common with a power of ten.
        |n, count| n * 3 % count,
        |n, count| if n % 2 == 0 { n / 2 } else { count - 1 - n / 2 },
    ];
    let ends = Arc::default();
    let objects = Object::some(count as usize, &ends);
    for enter in orders {
        for remove in orders {
            let mut tree = Tree::new();
            for n in 0..count {
                let key = enter(n, count);
                assert!(tree.insert(key, objects[key as usize].clone()).is_ok());
                if n % 16 == 0 {
                    tree.check();
                }
            }
            assert!(tree.check().into_iter().map(|(key, _)| key).eq(0..count));
            for n in 0..count {
                let key = remove(n, count);
                assert!(tree.remove(&objects[key as usize]).is_some());
                if n % 16 == 0 {
                    tree.check();
                }
            }
            assert!(tree.is_empty());
        }
    }
}

/// Every tree of up to six nodes, and every node of it removed.
#[test]
fn is_balanced_in_every_small_tree() {
    fn orders(left: Vec<u32>, done: Vec<u32>, call: &mut impl FnMut(&[u32])) {
        if left.is_empty() {
            return call(&done);
        }
        for at in 0..left.len() {
            let (mut left, mut done) = (left.clone(), done.clone());
            done.push(left.remove(at));
            orders(left, done, call);
        }
    }
    let ends = Arc::default();
    let most = if cfg!(miri) { 4 } else { 6 };
    let objects = Object::some(most as usize, &ends);
    for count in 1..=most {
        orders((0..count).collect(), Vec::new(), &mut |order| {
            for first in 0..count {
                let mut tree = Tree::new();
                for &key in order {
                    assert!(tree.insert(key, objects[key as usize].clone()).is_ok());
                    tree.check();
                }
                assert!(tree.remove(&objects[first as usize]).is_some());
                tree.check();
            }
        });
    }
}

#[test]
fn a_link_is_in_one_tree() {
    let ends = Arc::default();
    let [a, b] = [0, 1].map(|number| Rc::new(Object::new(number, &ends)));
    let mut here = Tree::<_, u32>::new();
    let mut there = Tree::<_, u32>::new();
    assert!(here.insert(1, a.clone()).is_ok());
    assert!(there.insert(2, b.clone()).is_ok());
    // Neither another tree nor the same one takes it, or gives it.
    assert!(there
        .insert(1, a.clone())
        .is_err_and(|back| Rc::ptr_eq(&a, &back)));
    assert!(here
        .insert(3, a.clone())
        .is_err_and(|back| Rc::ptr_eq(&a, &back)));
    assert!(there.remove(&a).is_none());
    assert_eq!((there.key(&a), here.key(&a)), (None, Some(1)));
    // Its other link is free.
    let mut pairs = Tree::<_, (u8, u64)>::new();
    assert!(pairs.insert((7, 8), a.clone()).is_ok());
    assert_eq!(pairs.key(&a), Some((7, 8)));
    assert!(here.remove(&a).is_some());
    assert_eq!((pairs.key(&a), here.key(&a)), (Some((7, 8)), None));
    assert!(there.insert(1, a.clone()).is_ok());
    here.check();
    assert_eq!(there.check().len(), 2);
    assert_eq!(pairs.check().len(), 1);
    drop((here, there, pairs));
    assert_eq!([Rc::strong_count(&a), Rc::strong_count(&b)], [1, 1]);
}

/// Objects may be used, and their references counted, while they are in a tree.
#[test]
fn objects_in_a_tree_can_be_used() {
    let ends = Arc::default();
    let objects = Object::some(5, &ends);
    let mut tree = Tree::new();
    for object in &objects {
        assert!(tree.insert(object.number as u32, object.clone()).is_ok());
    }
    let (key, third) = tree.lower_bound(&2).unwrap();
    third.last.set(3);
    let kept = (*third).clone();
    assert_eq!((key, objects[2].last.get()), (2, 3));
    drop(objects);
    assert_eq!(ends.load(Relaxed), 0);
    drop(tree.remove(&kept));
    kept.last.set(4);
    assert_eq!((kept.last.get(), ends.load(Relaxed)), (4, 0));
    drop(kept);
    assert_eq!(ends.load(Relaxed), 1);
    drop(tree);
    assert_eq!(ends.load(Relaxed), 5);
}

/// The tree may have the last reference; it is what removing returns.
#[test]
fn the_last_reference_is_returned() {
    let ends = Arc::default();
    let mut tree = Tree::<Rc<Object>, u32>::new();
    assert!(tree.insert(1, Rc::new(Object::new(0, &ends))).is_ok());
    let last = tree.pop_first().unwrap();
    assert!(!last.by_u32.is_linked());
    assert_eq!((Rc::strong_count(&last), ends.load(Relaxed)), (1, 0));
    assert!(Rc::try_unwrap(last).is_ok());
    assert_eq!(ends.load(Relaxed), 1);
}

/// A tree that counts knows how many of the counted objects are before a key, and every tree which
/// objects are beside one, whatever is entered, removed and changed.
#[test]
fn neighbours_and_counted_objects() {
    let (rounds, operations) = if cfg!(miri) { (2, 60) } else { (40, 1000) };
    for seed in 1..=rounds {
        let mut random = Random(seed);
        let count = [3, 30, 200][seed as usize % 3];
        let ends = Arc::default();
        let objects = Object::some(count, &ends);
        let mut tree = Tree::<Rc<Object>, u32, usize>::counting();
        // For each key of an object: the object, and whether it is counted.
        let mut model = BTreeMap::<u32, (usize, bool)>::new();
        for _ in 0..operations {
            let object = &objects[random.below(count as u64) as usize];
            let (key, is_counted) = (random.below(1 << 10) as u32, random.below(2) == 0);
            match (tree.key(object), random.below(3)) {
                (None, _) if model.contains_key(&key) => continue,
                (None, _) => {
                    assert!(tree.insert(key, object.clone()).is_ok());
                    model.insert(key, (object.number, true));
                }
                (Some(before), 0) => {
                    assert!(tree.remove(object).is_some());
                    model.remove(&before);
                }
                (Some(before), 1) => {
                    tree.set_counted(object, is_counted);
                    model.insert(before, (object.number, is_counted));
                }
                (Some(_), _) if model.contains_key(&key) => continue,
                (Some(before), _) => {
                    let (low, high) = (before.min(key), before.max(key));
                    let stays = model.range(low..=high).count() == 1;
                    assert_eq!(tree.set_key(object, key), stays);
                    if stays {
                        let entry = model.remove(&before).unwrap();
                        model.insert(key, entry);
                    }
                }
            }
            let there = tree.check().into_iter().map(|(key, o)| (key, o.number));
            assert!(there.eq(model.iter().map(|(&key, &(number, _))| (key, number))));
            for key in [0, key, key + 1, 1 << 10] {
                let counted = model
                    .range(..key)
                    .filter(|(_, (_, is_counted))| *is_counted);
                assert_eq!(tree.count_below(&key), counted.count());
            }
            let at = tree.key(object);
            let is_counted = at.is_some_and(|at| model[&at].1);
            assert_eq!(tree.is_counted(object), is_counted);
            let before = at.and_then(|at| model.range(..at).next_back());
            let after = at.and_then(|at| model.range(at + 1..).next());
            let beside = [before, after].map(|beside| Some(*beside?.0));
            assert_eq!(tree.beside(object, |key| *key), beside);
            let next = tree.after(object).map(|next| next.number);
            assert_eq!(next, after.map(|(_, (number, _))| *number));
        }
    }
}

thread_local! {
    static COMPARISONS_LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// A key whose comparison panics when [`COMPARISONS_LEFT`] is 0, or lies.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bad {
    value: u64,
    lies: bool,
}

impl PartialOrd for Bad {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bad {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARISONS_LEFT.with(|left| left.set(left.get().checked_sub(1).expect("no more")));
        if self.lies {
            return (self.value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7).cmp(&other.value);
        }
        self.value.cmp(&other.value)
    }
}

struct BadObject {
    link: Link<Bad>,
    ends: Arc<AtomicUsize>,
    panics: bool,
}

impl_has_link! {
    impl HasLink<Bad> for BadObject { self.link }
}

impl BadObject {
    fn new(ends: &Arc<AtomicUsize>, panics: bool) -> Rc<Self> {
        Rc::new(BadObject {
            link: Link::new(),
            ends: ends.clone(),
            panics,
        })
    }
}

impl Drop for BadObject {
    fn drop(&mut self) {
        self.ends.fetch_add(1, Relaxed);
        assert!(!self.panics);
    }
}

#[test]
fn a_panic_in_a_comparison_changes_nothing() {
    let ends = Arc::default();
    let mut tree = Tree::new();
    for value in 0..20 {
        let key = Bad { value, lies: false };
        assert!(tree.insert(key, BadObject::new(&ends, false)).is_ok());
    }
    let before: Vec<_> = tree.check().iter().map(|(key, _)| key.value).collect();
    let key = Bad {
        value: 10,
        lies: false,
    };
    for comparisons in 0..4 {
        let object = BadObject::new(&ends, false);
        COMPARISONS_LEFT.with(|left| left.set(comparisons));
        let entered = catch_unwind(AssertUnwindSafe(|| {
            tree.insert(key, object.clone()).is_ok()
        }));
        assert!(entered.is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| tree.lower_bound(&key).is_some())).is_err());
        COMPARISONS_LEFT.with(|left| left.set(u32::MAX));
        // The reference was dropped, and the link is free.
        assert!(!object.link.is_linked());
        assert_eq!(Rc::strong_count(&object), 1);
        let after = tree.check().into_iter().map(|(key, _)| key.value);
        assert!(after.eq(before.iter().copied()));
    }
    assert_eq!(ends.load(Relaxed), 4);
    drop(tree);
    assert_eq!(ends.load(Relaxed), 24);
}

/// Keys that contradict themselves make a disorder, but a tree all the same.
#[test]
fn a_comparison_that_lies_loses_nothing() {
    let ends = Arc::default();
    let mut tree = Tree::new();
    let objects: Vec<_> = (0..50).map(|_| BadObject::new(&ends, false)).collect();
    for (value, object) in (0..).zip(&objects) {
        let lies = value % 3 != 0;
        assert!(tree.insert(Bad { value, lies }, object.clone()).is_ok());
        tree.check();
    }
    for object in objects.iter().rev() {
        assert!(tree.remove(object).is_some_and(|o| Rc::ptr_eq(&o, object)));
        tree.check();
    }
    assert!(tree.is_empty());
    drop(objects);
    assert_eq!(ends.load(Relaxed), 50);
}

/// If the end of an object panics, the tree still drops the others.
#[test]
fn a_panic_in_a_drop_leaks_nothing() {
    let ends = Arc::default();
    let mut tree = Tree::new();
    for value in 0..9 {
        let object = BadObject::new(&ends, value == 4);
        assert!(tree.insert(Bad { value, lies: false }, object).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(tree))).is_err());
    assert_eq!(ends.load(Relaxed), 9);
}

/// Threads share objects and two trees, each with a lock. Miri finds data races.
#[test]
fn threads_share_objects() {
    struct Shared {
        link: Link<u64>,
        // Changed only while the object is in no tree.
        ends: Arc<AtomicUsize>,
    }

    impl_has_link! {
        impl HasLink<u64> for Shared { self.link }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            self.ends.fetch_add(1, Relaxed);
        }
    }

    let ends: Arc<AtomicUsize> = Arc::default();
    let objects: Vec<_> = (0..6)
        .map(|_| {
            Arc::new(Shared {
                link: Link::new(),
                ends: ends.clone(),
            })
        })
        .collect();
    let trees = [(); 2].map(|()| Mutex::new(Tree::<Arc<Shared>, u64>::new()));
    let operations = if cfg!(miri) { 60 } else { 20_000 };
    std::thread::scope(|scope| {
        for thread in 1..=3 {
            let (objects, trees) = (&objects, &trees);
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..operations {
                    let object = &objects[random.below(6) as usize];
                    let mut tree = trees[random.below(2) as usize].lock().unwrap();
                    let removed = if random.below(2) == 0 {
                        tree.insert(random.below(9), object.clone()).err()
                    } else {
                        tree.remove(object)
                    };
                    drop(tree);
                    drop(removed);
                }
            });
        }
    });
    let there: usize = trees
        .iter()
        .map(|tree| tree.lock().unwrap().check().len())
        .sum();
    let linked = objects.iter().filter(|object| object.link.is_linked());
    assert_eq!(there, linked.count());
    drop(trees);
    assert!(objects.iter().all(|object| Arc::strong_count(object) == 1));
    drop(objects);
    assert_eq!(ends.load(Relaxed), 6);
}
