// SPDX-License-Identifier: GPL-2.0

//! Settings in configfs.
//!
//! An administrator creates a directory per object. The kernel adds a
//! directory for each of its parts, and each part has the same set of files.
//!
//! The kernel crate supports groups that users create, but not the default groups that come with
//! them (`configfs_add_default_group()`), and it supports configfs only where it is built in.
//!
//! C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)

use crate::{bindings, kext::this_module::THIS_MODULE};
use core::{marker::PhantomPinned, ptr, slice};
use kernel::{container_of, error::to_result, prelude::*, str::CString, sync::Arc, types::Opaque};

/// A set of settings in configfs with paths `<NAME>/<object>/<PARTS>/<number>/<file>`.
///
/// All methods are called in the process that uses configfs, and may sleep. The methods for the
/// files of an object are not called any more after its directory was removed.
pub(crate) trait Settings: Send + Sync + Sized + 'static {
    /// The name of the top directory.
    const NAME: &'static CStr;
    /// The name of the directory that holds the parts of an object.
    const PARTS: &'static CStr;
    /// The names of the files of a part.
    const FILES: [&'static CStr; FILES];

    /// Returns the number of parts of the object called `name`. Parts are numbered from 1.
    ///
    /// If this fails, `mkdir()` of the directory fails with the same error.
    fn parts(&self, name: &[u8]) -> Result<u32>;

    /// Returns the contents of a file of a part, which are shorter than a page. `file` is its index
    /// in [`Settings::FILES`].
    fn show(&self, name: &[u8], part: u32, file: usize) -> Result<CString>;

    /// Stores the value that was written to a file of a part.
    fn store(&self, name: &[u8], part: u32, file: usize, text: &[u8]) -> Result;
}

/// The number of files of a part.
pub(crate) const FILES: usize = 11;

/// The longest name of a directory (`NAME_MAX`), in bytes.
const NAME_MAX: usize = 255;

/// The name of a directory.
///
/// # Invariants
///
/// The last byte is 0.
struct Name([u8; NAME_MAX + 1]);

impl Name {
    /// Copies a name, cut off at `NAME_MAX` bytes.
    ///
    /// # Safety
    ///
    /// `name` must be a string that ends with a NUL.
    unsafe fn copy(name: *const c_char) -> Self {
        let mut bytes = [0; NAME_MAX + 1];
        for (i, to) in bytes.iter_mut().take(NAME_MAX).enumerate() {
            // SAFETY: No byte before this one was the terminating NUL.
            let byte = unsafe { *name.add(i) };
            if byte == 0 {
                break;
            }
            *to = byte;
        }
        // INVARIANT: The loop does not write to the last byte.
        Self(bytes)
    }

    /// Returns the bytes without the terminating NUL.
    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }

    fn as_char_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// The directory of a part of an object.
///
/// # Invariants
///
/// From its initialisation until its release, `group` owns a reference to the object.
#[pin_data]
struct Part<T: Settings> {
    group: Opaque<bindings::config_group>,
    number: u32,
    object: Arc<Object<T>>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Send for Part<T> {}
// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Sync for Part<T> {}

/// The directory of an object.
///
/// # Invariants
///
/// From their initialisation until their release, `group` and `parts_group` own a reference to the
/// object each.
#[pin_data]
struct Object<T: Settings> {
    group: Opaque<bindings::config_group>,
    parts_group: Opaque<bindings::config_group>,
    name: Name,
    settings: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Send for Object<T> {}
// SAFETY: configfs uses a group from any task under its own locks; the rest is constant.
unsafe impl<T: Settings> Sync for Object<T> {}

/// The item types of the directories. They do not change after their creation.
struct Types {
    attrs: [bindings::configfs_attribute; FILES],
    /// A list of pointers to `attrs` that ends with a null pointer.
    attr_list: [*mut bindings::configfs_attribute; FILES + 1],
    root_ops: bindings::configfs_group_operations,
    object_ops: bindings::configfs_item_operations,
    parts_ops: bindings::configfs_item_operations,
    part_ops: bindings::configfs_item_operations,
    root: bindings::config_item_type,
    object: bindings::config_item_type,
    parts: bindings::config_item_type,
    part: bindings::config_item_type,
}

/// A registration of settings in configfs; dropping it unregisters the settings.
///
/// Each directory that an administrator creates holds a reference to the module, so that the module
/// is not unloaded meanwhile.
///
/// # Invariants
///
/// `subsystem` is registered; `types` and `settings` belong to it.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Registration<T: Settings> {
    // The first field, so that a pointer to the subsystem is a pointer to the registration.
    #[pin]
    subsystem: Opaque<bindings::configfs_subsystem>,
    types: KBox<Types>,
    settings: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A subsystem can be unregistered by any task; the rest is constant.
unsafe impl<T: Settings> Send for Registration<T> {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: Settings> Sync for Registration<T> {}

impl<T: Settings> Registration<T> {
    /// Creates an initialiser that registers the subsystem. May sleep.
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

    /// Initialises and registers the subsystem in `slot`.
    ///
    /// # Safety
    ///
    /// `slot` must be valid for writes, and it and `root` stay valid while it is registered.
    unsafe fn register(
        slot: *mut bindings::configfs_subsystem,
        root: *const bindings::config_item_type,
    ) -> Result {
        // SAFETY: By the safety requirements. All other fields of a subsystem are zero.
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
        // SAFETY: Registered by the type invariant. The subsystem has no directories, because each
        // would hold a reference to the module.
        unsafe { bindings::configfs_unregister_subsystem(self.subsystem.get()) };
    }
}

impl Types {
    /// Returns the attribute of the file with the index `FILE`, without its name.
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
            Self::attr::<T, 8>(),
            Self::attr::<T, 9>(),
            Self::attr::<T, 10>(),
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
                object_ops: release(release_object::<T>),
                parts_ops: release(release_parts::<T>),
                part_ops: release(release_part::<T>),
                root: item_type(),
                object: item_type(),
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
        types.object.ct_item_ops = &types.object_ops;
        types.parts.ct_item_ops = &types.parts_ops;
        types.part.ct_item_ops = &types.part_ops;
        types.part.ct_attrs = types.attr_list.as_mut_ptr();
        Ok(this)
    }
}

impl<T: Settings> Object<T> {
    /// Creates the directory of an object with all its parts.
    ///
    /// The caller takes over the reference to the object that its group owns.
    fn make(registration: &Registration<T>, name: Name) -> Result<*const Self> {
        let settings = registration.settings.clone();
        let types = &registration.types;
        let count = settings.parts(name.bytes())?;
        let object = Arc::pin_init(
            pin_init!(Object {
                group: Opaque::zeroed(),
                parts_group: Opaque::zeroed(),
                name,
                settings,
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: The groups own the two references that are leaked here.
        let _ = Arc::into_raw(object.clone());
        let _ = Arc::into_raw(object.clone());
        // SAFETY: The groups are zeroed, and stay where they are until they are released; the names
        // are copied. Each group is put into one list, and nobody else sees them yet.
        unsafe {
            bindings::config_group_init_type_name(
                object.group.get(),
                object.name.as_char_ptr(),
                &types.object,
            );
            bindings::config_group_init_type_name(
                object.parts_group.get(),
                T::PARTS.as_char_ptr(),
                &types.parts,
            );
            bindings::rust_rdma_configfs_add_default_group(
                object.parts_group.get(),
                object.group.get(),
            );
        }
        for number in 1..=count {
            if let Err(error) = Part::add(&object, number, &types.part) {
                // SAFETY: Nobody has seen the groups, so that this releases all of them.
                unsafe { Self::put_groups(object.group.get()) };
                return Err(error);
            }
        }
        Ok(Arc::as_ptr(&object))
    }

    /// Drops the initial references of the groups of an object.
    ///
    /// # Safety
    ///
    /// `group` must be that of an [`Object`] made by [`Object::make`], and this must be called once
    /// for it.
    unsafe fn put_groups(group: *mut bindings::config_group) {
        // SAFETY: By the safety requirements. The reference of `group` keeps the object until the
        // last line, which may release it.
        unsafe {
            let object = container_of!(Opaque::cast_from(group), Self, group);
            bindings::configfs_remove_default_groups((*object).parts_group.get());
            bindings::configfs_remove_default_groups(group);
            bindings::config_item_put(&raw mut (*group).cg_item);
        }
    }
}

impl<T: Settings> Part<T> {
    /// Creates the directory of a part inside the directory of the parts of `object`.
    fn add(
        object: &Arc<Object<T>>,
        number: u32,
        item_type: *const bindings::config_item_type,
    ) -> Result {
        let parts_group = object.parts_group.get();
        let object = object.clone();
        let part = Arc::pin_init(
            pin_init!(Part {
                group: Opaque::zeroed(),
                number,
                object,
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        let name = CString::try_from_fmt(fmt!("{number}"))?;
        // INVARIANT: The group owns the reference that is leaked here.
        let part = Arc::into_raw(part);
        // SAFETY: The group is zeroed, and stays where it is until it is released; the name is
        // copied.
        unsafe {
            let group = (*part).group.get();
            bindings::config_group_init_type_name(group, name.as_char_ptr(), item_type);
            bindings::rust_rdma_configfs_add_default_group(group, parts_group);
        }
        Ok(())
    }
}

/// Creates the directory `name`; called by configfs for `mkdir()`.
///
/// # Safety
///
/// `group` must be that of a registered subsystem of a [`Registration<T>`], and `name` a string.
unsafe extern "C" fn make_group<T: Settings>(
    group: *mut bindings::config_group,
    name: *const c_char,
) -> *mut bindings::config_group {
    // SAFETY: The subsystem is the first field of the registration and contains the group.
    let registration = unsafe {
        &*container_of!(group, bindings::configfs_subsystem, su_group).cast::<Registration<T>>()
    };
    // SAFETY: By the safety requirements.
    match Object::make(registration, unsafe { Name::copy(name) }) {
        // SAFETY: The reference keeps the object.
        Ok(object) => unsafe { (*object).group.get() },
        Err(error) => error.to_ptr(),
    }
}

/// Drops the initial references of an object; called by configfs after `rmdir()`.
///
/// # Safety
///
/// `item` must be that of the group of an [`Object<T>`].
unsafe extern "C" fn drop_item<T: Settings>(
    _parent: *mut bindings::config_group,
    item: *mut bindings::config_item,
) {
    // SAFETY: By the safety requirements; configfs calls this once.
    unsafe { Object::<T>::put_groups(container_of!(item, bindings::config_group, cg_item)) };
}

/// Releases the group of an object; called by configfs when its last reference was dropped.
///
/// # Safety
///
/// `item` must be that of the group of an [`Object<T>`].
unsafe extern "C" fn release_object<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe {
        let group = container_of!(item, bindings::config_group, cg_item);
        drop(Arc::from_raw(container_of!(
            Opaque::cast_from(group),
            Object<T>,
            group
        )));
    }
}

/// Releases the group of the parts; called by configfs when its last reference was dropped.
///
/// # Safety
///
/// `item` must be that of the group of the parts of an [`Object<T>`].
unsafe extern "C" fn release_parts<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe {
        let group = container_of!(item, bindings::config_group, cg_item);
        drop(Arc::from_raw(container_of!(
            Opaque::cast_from(group),
            Object<T>,
            parts_group
        )));
    }
}

/// Returns the part that an item belongs to.
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

/// Releases the group of a part; called by configfs when its last reference was dropped.
///
/// # Safety
///
/// `item` must be that of the group of a [`Part<T>`].
unsafe extern "C" fn release_part<T: Settings>(item: *mut bindings::config_item) {
    // SAFETY: By the safety requirements; the group gives up its reference.
    unsafe { drop(Arc::from_raw(ptr::from_ref(part_of::<T>(item)))) };
}

/// Reads a file; called by configfs.
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
    let object = &part.object;
    let text = match object.settings.show(object.name.bytes(), part.number, FILE) {
        Ok(text) => text,
        Err(error) => return error.to_errno() as isize,
    };
    let text = text.to_bytes_with_nul().strip_suffix(b"\0").unwrap_or(&[]);
    // SAFETY: The page is longer than any text, and nobody else has it.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), page.cast(), text.len()) };
    // CAST: A text is shorter than a page.
    text.len() as isize
}

/// Stores the text that was written to a file, up to its first NUL; called by configfs.
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
    let object = &part.object;
    let text = text.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let stored = object
        .settings
        .store(object.name.bytes(), part.number, FILE, text);
    match stored {
        // CAST: `len` is at most the size of a page.
        Ok(()) => text.len() as isize,
        Err(error) => error.to_errno() as isize,
    }
}
