// SPDX-License-Identifier: GPL-2.0

//! A value in an object that belongs to the tree which the object is in.

use crate::link::HasLink;
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::{self, NonNull},
};

/// A value in an object, to which the tree gives access that has the object by its link with keys
/// of the type `K`: shared access with a shared reference to the tree, and exclusive access with an
/// exclusive one.
///
/// So the lock that protects the tree protects the values of its objects, too. As long as the
/// object is in no such tree, nobody has access.
///
/// # Invariants
///
/// `value` is accessed only by the tree that has claimed the link, as above, or by the owner of the
/// object.
#[repr(transparent)]
pub struct TreeCell<K, V> {
    value: UnsafeCell<V>,
    _tree: PhantomData<fn() -> K>,
}

// SAFETY: A reference to the cell gives no access to the value. The tree does, and has references
// to the object: another task may use the tree only if it may use these, and so, as the bound
// allows, the value.
unsafe impl<K, V: Send + Sync> Sync for TreeCell<K, V> {}

impl<K, V> TreeCell<K, V> {
    /// Creates a cell.
    pub const fn new(value: V) -> Self {
        TreeCell {
            value: UnsafeCell::new(value),
            _tree: PhantomData,
        }
    }
}

/// An object with a value that belongs to the tree with keys of the type `K`.
///
/// It is implemented by [`impl_has_cell!`](crate::impl_has_cell).
///
/// # Safety
///
/// At the offset [`HasCell::CELL`] each object of the type has a field of the type
/// [`TreeCell<K, Self::Value>`].
pub unsafe trait HasCell<K>: HasLink<K> + Sized {
    /// The type of the value.
    type Value;

    /// The offset of the cell in the object.
    const CELL: usize;
}

/// Returns a pointer to the value of an object.
pub(crate) fn value_of<K, T: HasCell<K>>(object: NonNull<T>) -> *mut T::Value {
    // SAFETY: By the safety requirements of `HasCell` this is within the object.
    let cell = unsafe { object.byte_add(T::CELL) }.cast::<TreeCell<K, T::Value>>();
    // SAFETY: As above, there is a cell. No reference to it is made.
    UnsafeCell::raw_get(unsafe { ptr::addr_of!((*cell.as_ptr()).value) })
}

/// Implements [`HasCell`](crate::HasCell) for a type that has a [`TreeCell`](crate::TreeCell) among
/// its fields.
///
/// ```
/// struct Timer {
///     link: containers::Link<u64>,
///     expiries: containers::TreeCell<u64, u32>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// containers::impl_has_cell! {
///     impl HasCell<u64, Value = u32> for Timer { self.expiries }
/// }
/// ```
///
/// The cell belongs to trees with the same keys, of which there is one at a time:
///
/// ```compile_fail,E0308
/// struct Timer {
///     link: containers::Link<u64>,
///     other: containers::Link<u32>,
///     expiries: containers::TreeCell<u64, u32>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u32> for Timer { self.other }
/// }
/// containers::impl_has_cell! {
///     impl HasCell<u32, Value = u32> for Timer { self.expiries }
/// }
/// ```
#[macro_export]
macro_rules! impl_has_cell {
    (
        impl $({$($generics:tt)*})? HasCell<$key:ty, Value = $value:ty> for $object:ty {
            self.$field:ident
        }
    ) => {
        // SAFETY: This is the offset of the field, whose type is compared. A field that is
        // referred to is aligned.
        unsafe impl $(<$($generics)*>)? $crate::HasCell<$key> for $object {
            type Value = $value;

            const CELL: usize = {
                // In an array nothing is converted, for instance dereferenced.
                let _: fn(&Self) -> [&$crate::TreeCell<$key, $value>; 1] = |object| {
                    let field = [&object.$field];
                    field
                };
                ::core::mem::offset_of!(Self, $field)
            };
        }
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{impl_has_link, Link, Tree, TreeCell};
    use std::{rc::Rc, string::String};

    struct Object {
        by_u32: Link<u32>,
        name: TreeCell<u32, String>,
        by_u64: Link<u64>,
        age: TreeCell<u64, u8>,
    }

    impl_has_link! {
        impl HasLink<u32> for Object { self.by_u32 }
    }
    impl_has_link! {
        impl HasLink<u64> for Object { self.by_u64 }
    }
    impl_has_cell! {
        impl HasCell<u32, Value = String> for Object { self.name }
    }
    impl_has_cell! {
        impl HasCell<u64, Value = u8> for Object { self.age }
    }

    fn object(name: &str) -> Rc<Object> {
        Rc::new(Object {
            by_u32: Link::new(),
            name: TreeCell::new(name.into()),
            by_u64: Link::new(),
            age: TreeCell::new(0),
        })
    }

    #[test]
    fn the_tree_of_the_object_has_the_value() {
        let (first, second) = (object("first"), object("second"));
        let mut tree = Tree::<Rc<Object>, u32>::new();
        let mut other = Tree::<Rc<Object>, u32>::new();
        assert!(tree.value(&first).is_none() && tree.get_mut(&1).is_none());
        assert!(tree.insert(1, first.clone()).is_ok() && other.insert(1, second.clone()).is_ok());
        tree.value_mut(&first).unwrap().push('!');
        assert!(tree.value_mut(&second).is_none() && other.value(&first).is_none());
        assert_eq!(tree.value(&first).unwrap(), "first!");

        // It follows the object into another tree.
        let moved = tree.remove(&first).unwrap();
        assert!(tree.value(&first).is_none());
        assert!(other.insert(2, moved).is_ok());
        let (found, name) = other.get_mut(&2).unwrap();
        name.push('?');
        assert!(Rc::ptr_eq(&found, &first) && name == "first!?");
        assert!(other.get_mut(&3).is_none());
        assert_eq!(other.get_mut(&1).unwrap().1, "second");
    }

    #[test]
    fn trees_with_other_keys_have_other_values() {
        let one = object("one");
        let mut names = Tree::<Rc<Object>, u32>::new();
        let mut ages = Tree::<Rc<Object>, u64>::new();
        assert!(names.insert(7, one.clone()).is_ok() && ages.insert(3, one.clone()).is_ok());
        let (name, age) = (
            names.value_mut(&one).unwrap(),
            ages.value_mut(&one).unwrap(),
        );
        *age += 1;
        name.push('!');
        assert_eq!((*age, name.as_str()), (1, "one!"));
        // Objects are used while their values are.
        let (found, name) = names.get_mut(&7).unwrap();
        assert!(found.by_u64.is_linked() && name == "one!");
    }
}
