// SPDX-License-Identifier: GPL-2.0

//! A place where others find an object.

use crate::word::WordPtr;
use core::ptr::{self, NonNull};

/// A pointer to an object, for tasks that have no other way to it, such as callbacks.
///
/// A task that gets the pointer sees the object as it was when the pointer was published. Its
/// publisher keeps the object, by other means, for as long as somebody may have found it.
pub struct Published<T>(WordPtr<T>);

impl<T> Published<T> {
    /// Creates a place without an object.
    #[cfg(not(loom))]
    #[inline]
    pub const fn new() -> Self {
        Self(WordPtr::new(ptr::null_mut()))
    }

    /// Creates a place without an object.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(WordPtr::new(ptr::null_mut()))
    }

    /// Publishes an object, in the place of another one.
    #[inline]
    pub fn publish(&self, object: NonNull<T>) {
        self.0.store_release(object.as_ptr());
    }

    /// Publishes an object, unless there is one. Returns whether it was published.
    #[inline]
    pub fn claim(&self, object: NonNull<T>) -> bool {
        self.0.change(ptr::null_mut(), object.as_ptr()).is_ok()
    }

    /// Withdraws the object. Tasks that have found it may still use it.
    #[inline]
    pub fn withdraw(&self) {
        self.0.store_release(ptr::null_mut());
    }

    /// Returns the object, if there is one.
    #[inline]
    pub fn get(&self) -> Option<NonNull<T>> {
        NonNull::new(self.0.load_acquire())
    }
}

impl<T> Default for Published<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_until_it_is_withdrawn() {
        let (mut one, mut other) = (1, 2);
        let (one, other) = (NonNull::from(&mut one), NonNull::from(&mut other));
        static PLACE: Published<i32> = Published::new();
        assert_eq!(PLACE.get(), None);
        assert!(PLACE.claim(one) && !PLACE.claim(other));
        assert_eq!(PLACE.get(), Some(one));
        PLACE.publish(other);
        assert_eq!(PLACE.get(), Some(other));
        PLACE.withdraw();
        assert_eq!(PLACE.get(), None);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn, Memory};
    use loom::sync::Arc;

    struct Places {
        objects: [Memory; 2],
        place: Published<u32>,
    }

    /// A pointer that stands for the object with that number.
    fn pointer_to(number: usize) -> NonNull<u32> {
        NonNull::without_provenance(number.saturating_add(1).try_into().unwrap())
    }

    impl Places {
        fn new() -> Arc<Self> {
            Arc::new(Places {
                objects: [Memory::new(0), Memory::new(0)],
                place: Published::new(),
            })
        }

        fn found(&self) -> Option<u32> {
            let number = self.place.get()?.addr().get() - 1;
            Some(self.objects[number].read())
        }
    }

    #[test]
    fn who_finds_an_object_sees_what_is_in_it() {
        every_schedule(|| {
            let places = Places::new();
            let finder = spawn(&places, Places::found);
            places.objects[1].write(7);
            places.place.publish(pointer_to(1));
            assert!(matches!(finder.join().unwrap(), None | Some(7)));
        });
    }

    #[test]
    fn one_of_two_has_the_place() {
        every_schedule(|| {
            let places = Places::new();
            let claim = |places: &Places, number: usize| {
                places.objects[number].write(7);
                places.place.claim(pointer_to(number))
            };
            let other = spawn(&places, move |places| claim(places, 0));
            let here = claim(&places, 1);
            assert_eq!(places.found(), Some(7));
            assert!(here != other.join().unwrap());
        });
    }
}
