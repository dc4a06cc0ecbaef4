// SPDX-License-Identifier: GPL-2.0

//! Character devices with `write()` and `poll()` but no data to read.
//!
//! C headers: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h)
//!
//! The kernel crate's `miscdevice` supports neither operation, cannot place a node below `/dev`,
//! and leaves `owner` empty, so that an open descriptor does not pin the module. The devices of
//! this file do.

use crate::{
    bindings,
    kext::{seq_file::SeqFile, this_module::THIS_MODULE, uaccess::UserBytes, wait::WaitQueue},
};
use core::{marker::PhantomData, mem::size_of, ptr};
use kernel::{
    device::Device,
    error::{from_result, to_result},
    fs::{file::flags, File, LocalFile},
    prelude::*,
    sync::{aref::ARef, Arc, ArcBorrow},
    types::{ForeignOwnable, Opaque},
};

/// The `poll()` event that input is available (`EPOLLIN | EPOLLRDNORM`).
pub(crate) const POLL_IN: u32 = 0x0001 | 0x0040;

/// The object behind an open file of the device.
///
/// The file is a stream: it has no position, `read()` fails with [`EINVAL`] and `lseek()` with
/// [`ESPIPE`].
pub(crate) trait CharFile: Send + Sync + Sized + 'static {
    /// The data that all files of the device share.
    type Context: Send + Sync + 'static;

    /// The name of the device, as in `/sys/class/misc`.
    const NAME: &'static CStr;
    /// The path of the device below `/dev`.
    const NODENAME: &'static CStr;
    /// The permissions of the device node.
    const MODE: u16;

    /// Opens a file (`open()`). Runs under a lock of the misc device core, so it should be short.
    fn open(context: &Self::Context, file: &File) -> Result<Arc<Self>>;

    /// Handles a `write()` of the bytes in `user` and returns the number of bytes consumed.
    ///
    /// Several tasks can call this for one file at the same time.
    fn write(
        this: ArcBorrow<'_, Self>,
        file: &OpenFile<'_, Self>,
        user: UserBytes,
    ) -> Result<usize>;

    /// Handles a `poll()`: registers the caller with the wait queues and returns the ready events.
    fn poll(this: ArcBorrow<'_, Self>, poll: &Poll<'_, Self>) -> u32;

    /// Shows the file to a reader of `/proc/PID/fdinfo`.
    fn show(this: ArcBorrow<'_, Self>, out: &SeqFile);

    /// Releases the file after its last descriptor was closed.
    ///
    /// Other tasks may still hold references to `this`.
    fn release(this: Arc<Self>);
}

/// An open file of a device whose files are `T`.
///
/// # Invariants
///
/// The file's operations are those of [`Registration<T>`], and its private data is a pointer from
/// [`Arc::into_foreign`] that stays until the file is released.
pub(crate) struct OpenFile<'a, T: CharFile> {
    file: &'a File,
    _private: PhantomData<ArcBorrow<'a, T>>,
}

impl<'a, T: CharFile> OpenFile<'a, T> {
    /// Creates a reference to an open file from a C pointer.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of a [`Registration<T>`], for the duration of `'a`.
    unsafe fn from_raw(file: *mut bindings::file) -> Self {
        // INVARIANT: The safety requirements are the type invariant.
        Self {
            // SAFETY: The file is open. It is a stream, so that there is no position for
            // `fdget_pos()` to protect.
            file: unsafe { File::from_raw_file(file) },
            _private: PhantomData,
        }
    }

    /// Returns the object behind the file.
    pub(crate) fn get(&self) -> ArcBorrow<'a, T> {
        // SAFETY: By the type invariant. The file is open for the whole of `'a`.
        unsafe { Arc::borrow(private_data(self.file)) }
    }

    /// Returns whether the file is in non-blocking mode (`O_NONBLOCK`) at the moment.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.file.flags() & flags::O_NONBLOCK != 0
    }

    /// Returns whether the current task has the credentials that the file was opened with.
    pub(crate) fn opened_by_current(&self) -> bool {
        crate::kext::cred::opened_by_current(self.file)
    }

    /// Returns the object behind another descriptor of the current task.
    ///
    /// Fails with [`EBADF`] if there is no such descriptor, and with [`EINVAL`] if it is not a file
    /// of the same device.
    pub(crate) fn sibling(&self, fd: u32) -> Result<Arc<T>> {
        let other = LocalFile::fget(fd)?;
        // SAFETY: Both files are valid, and `f_op` of an open file does not change.
        let (ours, theirs) = unsafe { ((*self.file.as_ptr()).f_op, (*other.as_ptr()).f_op) };
        if !ptr::eq(ours, theirs) {
            return Err(EINVAL);
        }
        // SAFETY: The operations are the same, so that the type invariant holds for `other` too.
        // The file stays open for as long as `other` refers to it.
        let object = unsafe { Arc::<T>::borrow(private_data(&other)) };
        Ok(object.into())
    }
}

/// Returns the private data of a file.
fn private_data(file: &LocalFile) -> *mut c_void {
    // SAFETY: The file is valid, and nothing but `open` changes the field.
    unsafe { (*file.as_ptr()).private_data }
}

/// A single call of `poll()`.
///
/// # Invariants
///
/// `table` is null or valid.
pub(crate) struct Poll<'a, T: CharFile> {
    file: OpenFile<'a, T>,
    table: *mut bindings::poll_table,
}

impl<T: CharFile> Poll<'_, T> {
    /// Registers the caller to be woken by `queue`, a field of the object behind the file.
    ///
    /// The poll table refers to the queue, without a reference count, until the file is released.
    /// Only a queue inside the file's own object lives that long, so any other queue is not
    /// accepted. Because of that, the memory of the queue can be freed after the release without a
    /// grace period.
    pub(crate) fn register(&self, queue: &WaitQueue) {
        let object: *const T = &*self.file.get();
        let offset = (ptr::from_ref(queue).addr()).wrapping_sub(object.addr());
        if offset >= size_of::<T>() {
            kernel::pr_warn_once!("poll: the wait queue is not one of the file\n");
            return;
        }
        // SAFETY:
        // - The file is open, and the table null or valid by the type invariant.
        // - The queue is a part of the object behind the file, which is pinned and lives until the
        //   release. The kernel removes all pollers of the file from the queue before the release.
        unsafe {
            bindings::poll_wait(self.file.file.as_ptr(), queue.as_raw(), self.table);
        }
    }
}

/// A registered device; dropping it removes the device.
///
/// # Invariants
///
/// `misc` is registered with the operations of `T`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Registration<T: CharFile> {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    context: T::Context,
}

// SAFETY: A misc device can be removed by any thread, and the context is `Send`.
unsafe impl<T: CharFile> Send for Registration<T> {}
// SAFETY: A shared reference gives access to the context, which is `Sync`, and to constant fields.
unsafe impl<T: CharFile> Sync for Registration<T> {}

impl<T: CharFile> Registration<T> {
    /// Creates an initialiser that registers the device.
    ///
    /// The kernel chooses the minor number. The directory of the device in `/sys` has an attribute
    /// `abi_version`.
    pub(crate) fn new(context: T::Context) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            context,
            misc <- Opaque::try_ffi_init(|slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR as c_int,
                    name: T::NAME.as_char_ptr(),
                    nodename: T::NODENAME.as_char_ptr(),
                    mode: T::MODE,
                    fops: &Self::FOPS,
                    groups: (&raw mut bindings::rust_rdma_ucm_groups).cast(),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(misc) };
                // SAFETY: Just initialised. It does not move, and is removed before it is freed.
                // `context` is initialised before, for a file can be opened at once.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        }? Error)
    }

    /// Returns the device in `/sys/class/misc`.
    pub(crate) fn device(&self) -> ARef<Device> {
        // SAFETY: The pointer was set by the registration and is constant since; the device is
        // valid for as long as it is registered.
        unsafe { Device::get_device((*self.misc.get()).this_device) }
    }

    const FOPS: bindings::file_operations = bindings::file_operations {
        owner: THIS_MODULE,
        open: Some(Self::open),
        release: Some(Self::release),
        write: Some(Self::write),
        poll: Some(Self::poll),
        show_fdinfo: Some(Self::show_fdinfo),
        ..pin_init::zeroed()
    };

    /// Opens a file.
    ///
    /// # Safety
    ///
    /// Called by the misc device core, with a new file whose private data is our `misc`.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: Both are valid for the call.
            to_result(unsafe { bindings::stream_open(inode, file) })?;
            // SAFETY: The private data of a new file is the `misc` of a registration, at whose
            // start it is. The caller holds a lock that removing the device takes, too.
            let this = unsafe { &*private_data(File::from_raw_file(file)).cast::<Self>() };
            // SAFETY: The file is valid for the call, and nobody else has it yet.
            let object = T::open(&this.context, unsafe { File::from_raw_file(file) })?;
            // INVARIANT: The file is one of ours from now on.
            // SAFETY: The file is valid for the call, and nobody else has it yet.
            unsafe { (*file).private_data = object.into_foreign() };
            Ok(0)
        })
    }

    /// Releases a file.
    ///
    /// # Safety
    ///
    /// Called by the kernel, once, when nobody has the file any more.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: The file is valid for the call, and this is the end of what `open` left there.
        let object = unsafe { Arc::<T>::from_foreign((*file).private_data) };
        T::release(object);
        0
    }

    /// Writes to a file.
    ///
    /// # Safety
    ///
    /// Called by the kernel with a file of ours.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buf: *const c_char,
        len: usize,
        _: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: The file is ours, and open for the call.
        let file = unsafe { OpenFile::<T>::from_raw(file) };
        let user = UserBytes::new(buf.addr(), len);
        match T::write(file.get(), &file, user) {
            Ok(taken) => isize::try_from(taken).unwrap_or(isize::MAX),
            Err(e) => isize::try_from(e.to_errno()).unwrap_or(-1),
        }
    }

    /// Polls a file.
    ///
    /// # Safety
    ///
    /// Called by the kernel with a file of ours; `table` is null or valid.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // INVARIANT: The safety requirements are the type invariant.
        let poll = Poll {
            // SAFETY: The file is ours, and open for the call.
            file: unsafe { OpenFile::<T>::from_raw(file) },
            table,
        };
        T::poll(poll.file.get(), &poll)
    }

    /// Shows a file to a reader of `/proc/PID/fdinfo`.
    ///
    /// # Safety
    ///
    /// Called by the kernel with a file of ours; `out` is valid, and nobody else uses it.
    unsafe extern "C" fn show_fdinfo(out: *mut bindings::seq_file, file: *mut bindings::file) {
        // SAFETY: By the safety requirements, and for the call.
        let out = unsafe { SeqFile::from_raw(out) };
        // SAFETY: The file is ours, and open for the call.
        let file = unsafe { OpenFile::<T>::from_raw(file) };
        T::show(file.get(), out);
    }
}

#[pinned_drop]
impl<T: CharFile> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant. An open file pins the module, so no file is
        // open.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}
