// SPDX-License-Identifier: GPL-2.0

//! Settings in configfs: a directory per thing that an administrator names, with a directory of
//! files for each of its parts.
//!
//! The kernel crate has groups that users make, but not the groups that come with them
//! (`configfs_add_default_group()`), and has it only where configfs is built in.
//!
//! C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)

use crate::{bindings, kext::this_module::THIS_MODULE};
use core::{marker::PhantomPinned, ptr, slice};
use kernel::{
    container_of, error::to_result, prelude::*, str::CStrExt as _, sync::Arc, types::Opaque,
};

/// What is set in configfs, as `<NAME>/<thing>/<PARTS>/<number>/<file>`.
///
/// All methods are called in the process that uses configfs, and may sleep. Those for the files of
/// a thing are not called any more when its directory was removed.
pub(crate) trait Settings: Send + Sync + Sized + 'static {
    /// The directory of all.
    const NAME: &'static CStr;
    /// The directory of the parts of a thing.
    const PARTS: &'static CStr;
    /// The names of the files of a part.
    const FILES: [&'static CStr; FILES];

    /// The number of parts of the thing with this name, which are numbered from 1.
    ///
    /// An error is what making the directory fails with.
    fn parts(&self, name: &[u8]) -> Result<u32>;

    /// The contents of a file of a part, `file` being its index in [`Settings::FILES`].
    fn show(&self, name: &[u8], part: u32, file: usize) -> Result<Text>;

    /// Takes what was written to a file.
    fn store(&self, name: &[u8], part: u32, file: usize, text: &[u8]) -> Result;
}

/// The number of files of a part.
pub(crate) const FILES: usize = 8;

/// A short text.
pub(crate) struct Text {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl Text {
    const CAPACITY: usize = 32;

    /// The text with a line feed after it; what does not fit is cut off.
    pub(crate) fn line(text: &[u8]) -> Self {
        let mut line = Text {
            bytes: [0; Self::CAPACITY],
            len: 0,
        };
        for (to, from) in line
            .bytes
            .iter_mut()
            .zip(Iterator::chain(text.iter(), b"\n"))
        {
            *to = *from;
            line.len = line.len.saturating_add(1);
        }
        line
    }

    /// The number in decimal, with a line feed after it.
    pub(crate) fn number(number: u32) -> Self {
        // As many as the largest number has.
        let mut digits = [b'0'; 10];
        let mut rest = number;
        let mut first = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            // Less than 10.
            *digit = b'0'.saturating_add((rest % 10) as u8);
            rest /= 10;
            first = at;
            if rest == 0 {
                break;
            }
        }
        Self::line(digits.get(first..).unwrap_or(&[]))
    }
}

/// The longest name of a directory (`NAME_MAX`), in bytes.
const NAME_MAX: usize = 255;

/// The name of a directory.
///
/// # Invariants
///
/// The last byte is 0.
struct Name([u8; NAME_MAX + 1]);

impl Name {
    /// Copies a name; what is too long is cut off.
    ///
    /// # Safety
    ///
    /// `name` must be a string that ends with a NUL.
    unsafe fn copy(name: *const c_char) -> Self {
        let mut bytes = [0; NAME_MAX + 1];
        for (i, to) in bytes.iter_mut().take(NAME_MAX).enumerate() {
            // SAFETY: No byte before was the last one of the string.
            let byte = unsafe { *name.add(i) };
            if byte == 0 {
                break;
            }
            *to = byte;
        }
        // INVARIANT: The last byte was not written to.
        Self(bytes)
    }

    /// The bytes, without the NUL.
    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }

    fn as_char_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// The directory of a part of a thing.
///
/// # Invariants
///
/// From its initialisation until its release, `group` owns a reference to the object.
#[pin_data]
struct Part<T: Settings> {
    group: Opaque<bindings::config_group>,
    number: u32,
    thing: Arc<Thing<T>>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Send for Part<T> {}
// SAFETY: As above.
unsafe impl<T: Settings> Sync for Part<T> {}

/// The directory of a thing.
///
/// # Invariants
///
/// From their initialisation until their release, `group` and `parts_group` own a reference to the
/// object each.
#[pin_data]
struct Thing<T: Settings> {
    group: Opaque<bindings::config_group>,
    parts_group: Opaque<bindings::config_group>,
    name: Name,
    settings: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Send for Thing<T> {}
// SAFETY: As above.
unsafe impl<T: Settings> Sync for Thing<T> {}

/// What configfs is told of the directories. Constant once it is complete.
struct Types {
    attrs: [bindings::configfs_attribute; FILES],
    /// Ends with a null pointer.
    attr_list: [*mut bindings::configfs_attribute; FILES + 1],
    root_ops: bindings::configfs_group_operations,
    thing_ops: bindings::configfs_item_operations,
    parts_ops: bindings::configfs_item_operations,
    part_ops: bindings::configfs_item_operations,
    root: bindings::config_item_type,
    thing: bindings::config_item_type,
    parts: bindings::config_item_type,
    part: bindings::config_item_type,
}

/// Keeps the settings in configfs; dropping it removes them.
///
/// While an administrator has directories in it, the module has references and is not unloaded.
///
/// # Invariants
///
/// `subsystem` is registered; `types` and `settings` belong to it.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Registration<T: Settings> {
    // At the start, so that a pointer to it leads to the registration.
    #[pin]
    subsystem: Opaque<bindings::configfs_subsystem>,
    types: KBox<Types>,
    settings: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A subsystem can be unregistered by any task; the rest is constant.
unsafe impl<T: Settings> Send for Registration<T> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: Settings> Sync for Registration<T> {}

impl<T: Settings> Registration<T> {
    /// Creates an initialiser that registers. May sleep.
    ///
    /// Fails with [`ENOMEM`], or `EEXIST` if the name is taken.
    pub(crate) fn new(settings: Arc<T>) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let types = Types::new::<T>()?;
            let root: *const bindings::config_item_type = &types.root;
            Ok(try_pin_init!(Self {
                types,
                settings,
                subsystem <- Opaque::try_ffi_init(
                    move |slot: *mut bindings::configfs_subsystem| {
                        // SAFETY: `slot` is valid for writes and pinned. The types stay where they
                        // are until the subsystem is unregistered.
                        unsafe { Self::register(slot, root) }
                    },
                ),
                _pin: PhantomPinned,
            }? Error))
        })
    }

    /// # Safety
    ///
    /// `slot` must be valid for writes, and it and `root` stay valid while it is registered.
    unsafe fn register(
        slot: *mut bindings::configfs_subsystem,
        root: *const bindings::config_item_type,
    ) -> Result {
        // SAFETY: By the safety requirements. A subsystem is all zeros but for what is set here.
        unsafe {
            slot.write_bytes(0, 1);
            bindings::config_group_init_type_name(
                &raw mut (*slot).su_group,
                T::NAME.as_char_ptr(),
                root,
            );
            bindings::__mutex_init(
                &raw mut (*slot).su_mutex,
                c"configfs_subsystem".as_char_ptr(),
                kernel::static_lock_class!().as_ptr(),
            );
            to_result(bindings::configfs_register_subsystem(slot))
        }
    }
}

#[pinned_drop]
impl<T: Settings> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant. There are no directories in it: each holds a
        // reference to the module.
        unsafe { bindings::configfs_unregister_subsystem(self.subsystem.get()) };
    }
}

impl Types {
    /// The file with the number `FILE`, without its name.
    fn attr<T: Settings, const FILE: usize>() -> bindings::configfs_attribute {
        bindings::configfs_attribute {
            ca_owner: THIS_MODULE,
            ca_mode: 0o644,
            show: Some(show::<T, FILE>),
            store: Some(store::<T, FILE>),
            ..pin_init::zeroed()
        }
    }

    fn new<T: Settings>() -> Result<KBox<Self>> {
        let mut attrs = [
            Self::attr::<T, 0>(),
            Self::attr::<T, 1>(),
            Self::attr::<T, 2>(),
            Self::attr::<T, 3>(),
            Self::attr::<T, 4>(),
            Self::attr::<T, 5>(),
            Self::attr::<T, 6>(),
            Self::attr::<T, 7>(),
        ];
        for (attr, name) in attrs.iter_mut().zip(T::FILES) {
            attr.ca_name = name.as_char_ptr();
        }
        let item_type = || bindings::config_item_type {
            ct_owner: THIS_MODULE,
            ..pin_init::zeroed()
        };
        let release = |release: unsafe extern "C" fn(*mut bindings::config_item)| {
            bindings::configfs_item_operations {
                release: Some(release),
                ..pin_init::zeroed()
            }
        };
        let mut this = KBox::new(
            Self {
                attrs,
                attr_list: [ptr::null_mut(); FILES + 1],
                root_ops: bindings::configfs_group_operations {
                    make_group: Some(make_group::<T>),
                    drop_item: Some(drop_item::<T>),
                    ..pin_init::zeroed()
                },
                thing_ops: release(release_thing::<T>),
                parts_ops: release(release_parts::<T>),
                part_ops: release(release_part::<T>),
                root: item_type(),
                thing: item_type(),
                parts: item_type(),
                part: item_type(),
            },
            GFP_KERNEL,
        )?;
        let types = &mut *this;
        for (to, from) in types.attr_list.iter_mut().zip(types.attrs.iter_mut()) {
            *to = from;
        }
        types.root.ct_group_ops = &types.root_ops;
        types.thing.ct_item_ops = &types.thing_ops;
        types.parts.ct_item_ops = &types.parts_ops;
        types.part.ct_item_ops = &types.part_ops;
        types.part.ct_attrs = types.attr_list.as_mut_ptr();
        Ok(this)
    }
}

impl<T: Settings> Thing<T> {
    /// Makes the directory of a thing, with all that is in it.
    ///
    /// The caller gets the reference to the thing that its group owns.
    fn make(registration: &Registration<T>, name: Name) -> Result<*const Self> {
        let settings = registration.settings.clone();
        let types = &registration.types;
        let count = settings.parts(name.bytes())?;
        let thing = Arc::pin_init(
            pin_init!(Thing {
                group: Opaque::zeroed(),
                parts_group: Opaque::zeroed(),
                name,
                settings,
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: The groups own the references that are forgotten here.
        let _ = Arc::into_raw(thing.clone());
        let _ = Arc::into_raw(thing.clone());
        // SAFETY: The groups are zeroed, and stay where they are until they are released; the names
        // are copied. Each group is put into one list, and nobody else sees them yet.
        unsafe {
            bindings::config_group_init_type_name(
                thing.group.get(),
                thing.name.as_char_ptr(),
                &types.thing,
            );
            bindings::config_group_init_type_name(
                thing.parts_group.get(),
                T::PARTS.as_char_ptr(),
                &types.parts,
            );
            bindings::rust_rdma_configfs_add_default_group(
                thing.parts_group.get(),
                thing.group.get(),
            );
        }
        for number in 1..=count {
            if let Err(error) = Part::add(&thing, number, &types.part) {
                // SAFETY: Nobody has seen the groups, so that this releases all of them.
                unsafe { Self::dissolve(thing.group.get()) };
                return Err(error);
            }
        }
        Ok(Arc::as_ptr(&thing))
    }

    /// Drops the references with which the groups of a thing were made.
    ///
    /// # Safety
    ///
    /// `group` must be that of a thing that was made, and this be called once.
    unsafe fn dissolve(group: *mut bindings::config_group) {
        // SAFETY: By the safety requirements. The reference of `group` keeps the thing until the
        // last line, which may release it.
        unsafe {
            let thing = container_of!(Opaque::cast_from(group), Self, group);
            bindings::configfs_remove_default_groups((*thing).parts_group.get());
            bindings::configfs_remove_default_groups(group);
            bindings::config_item_put(&raw mut (*group).cg_item);
        }
    }
}

impl<T: Settings> Part<T> {
    /// Makes the directory of a part and puts it into that of its thing.
    fn add(
        thing: &Arc<Thing<T>>,
        number: u32,
        item_type: *const bindings::config_item_type,
    ) -> Result {
        let parts_group = thing.parts_group.get();
        let thing = thing.clone();
        let part = Arc::pin_init(
            pin_init!(Part {
                group: Opaque::zeroed(),
                number,
                thing,
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        let mut digits = [0; 11];
        // INVARIANT: The group owns the reference that is forgotten here.
        let part = Arc::into_raw(part);
        // SAFETY: The group is zeroed, and stays where it is until it is released; the name is
        // copied. The buffer is as long as said, and no number is longer.
        unsafe {
            bindings::snprintf(
                digits.as_mut_ptr(),
                digits.len(),
                c"%u".as_char_ptr(),
                number,
            );
            let group = (*part).group.get();
            bindings::config_group_init_type_name(group, digits.as_ptr(), item_type);
            bindings::rust_rdma_configfs_add_default_group(group, parts_group);
        }
        Ok(())
    }
}

/// Called when a directory is made.
///
/// # Safety
///
/// `group` must be that of a registered subsystem of a [`Registration<T>`], and `name` a string.
unsafe extern "C" fn make_group<T: Settings>(
    group: *mut bindings::config_group,
    name: *const c_char,
) -> *mut bindings::config_group {
    // SAFETY: The subsystem is at the start of the registration, and its group is at its own start.
    let registration = unsafe {
        &*container_of!(group, bindings::configfs_subsystem, su_group).cast::<Registration<T>>()
    };
    // SAFETY: By the safety requirements.
    match Thing::make(registration, unsafe { Name::copy(name) }) {
        // SAFETY: The reference keeps the object.
        Ok(thing) => unsafe { (*thing).group.get() },
        Err(error) => error.to_ptr(),
    }
}

/// Called when a directory was removed: drops the references with which its groups were made.
///
/// # Safety
///
/// `item` must be that of the group of a [`Thing<T>`].
unsafe extern "C" fn drop_item<T: Settings>(
    _parent: *mut bindings::config_group,
    item: *mut bindings::config_item,
) {
    // SAFETY: By the safety requirements; configfs calls this once.
    unsafe { Thing::<T>::dissolve(container_of!(item, bindings::config_group, cg_item)) };
}

/// Called when nobody refers to the group of a thing any more.
///
/// # Safety
///
/// `item` must be that of the group of a [`Thing<T>`].
unsafe extern "C" fn release_thing<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe {
        let group = container_of!(item, bindings::config_group, cg_item);
        drop(Arc::from_raw(container_of!(
            Opaque::cast_from(group),
            Thing<T>,
            group
        )));
    }
}

/// As [`release_thing`], for the group of the parts.
///
/// # Safety
///
/// `item` must be that of the group of the parts of a [`Thing<T>`].
unsafe extern "C" fn release_parts<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe {
        let group = container_of!(item, bindings::config_group, cg_item);
        drop(Arc::from_raw(container_of!(
            Opaque::cast_from(group),
            Thing<T>,
            parts_group
        )));
    }
}

/// The part that an item is of.
///
/// # Safety
///
/// `item` must be that of the group of a [`Part<T>`], which stays for `'a`.
unsafe fn part_of<'a, T: Settings>(item: *mut bindings::config_item) -> &'a Part<T> {
    // SAFETY: By the safety requirements.
    unsafe {
        let group = container_of!(item, bindings::config_group, cg_item);
        &*container_of!(Opaque::cast_from(group), Part<T>, group)
    }
}

/// As [`release_thing`], for the group of a part.
///
/// # Safety
///
/// `item` must be that of the group of a [`Part<T>`].
unsafe extern "C" fn release_part<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe { drop(Arc::from_raw(ptr::from_ref(part_of::<T>(item)))) };
}

/// Called when a file is read.
///
/// # Safety
///
/// `item` must be that of the group of a [`Part<T>`], and `page` a page.
unsafe extern "C" fn show<T: Settings, const FILE: usize>(
    item: *mut bindings::config_item,
    page: *mut c_char,
) -> isize {
    // SAFETY: By the safety requirements; the part is there during the call.
    let part = unsafe { part_of::<T>(item) };
    let thing = &part.thing;
    let text = match thing.settings.show(thing.name.bytes(), part.number, FILE) {
        Ok(text) => text,
        Err(error) => return error.to_errno() as isize,
    };
    // SAFETY: The page is longer than any text, and nobody else has it.
    unsafe { ptr::copy_nonoverlapping(text.bytes.as_ptr(), page.cast(), text.len) };
    text.len as isize
}

/// Called when a file was written to. What counts ends before the first NUL.
///
/// # Safety
///
/// `item` must be that of the group of a [`Part<T>`], and `page` hold `len` bytes.
unsafe extern "C" fn store<T: Settings, const FILE: usize>(
    item: *mut bindings::config_item,
    page: *const c_char,
    len: usize,
) -> isize {
    // SAFETY: By the safety requirements; the part is there during the call.
    let (part, text) = unsafe {
        let text = slice::from_raw_parts(page.cast::<u8>(), len);
        (part_of::<T>(item), text)
    };
    let thing = &part.thing;
    let text = text.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let stored = thing
        .settings
        .store(thing.name.bytes(), part.number, FILE, text);
    match stored {
        // At most a page.
        Ok(()) => text.len() as isize,
        Err(error) => error.to_errno() as isize,
    }
}
