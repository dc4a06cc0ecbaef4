// SPDX-License-Identifier: GPL-2.0

//! Generic netlink: families of commands.
//!
//! The kernel crate has families from Linux 7.3 on, with groups but without commands.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{net::Net, netlink_group::Group};
use crate::{bindings, kext::this_module::THIS_MODULE};
use core::{marker::PhantomData, marker::PhantomPinned, ptr::NonNull};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    container_of,
    error::{from_result, to_result},
    prelude::*,
    sync::Arc,
    types::{ForeignOwnable, Opaque},
};

/// A command of a family.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// A command that anybody may give, and that is answered by any number of messages.
    Dump(u8),
    /// A command of those who have `CAP_NET_ADMIN` in the initial user namespace.
    Act(u8),
}

/// A family of commands.
///
/// The methods are called in the process that uses the socket, and may sleep.
pub(crate) trait Family: Send + Sync + Sized + 'static {
    /// The name of the family.
    const NAME: &'static CStr;
    /// The version of the family.
    const VERSION: u32;
    /// The name of the multicast group of the family.
    const GROUP: &'static CStr;
    /// The commands, in the order of their numbers.
    const OPERATIONS: &'static [Operation];
    /// The attributes of [`Operation::Act`], each of which is a `u32`.
    const NUMBERS: &'static [u16];
    /// The state of a dump between two calls of [`dump`](Self::dump).
    type Dump: Send;

    /// Begins a dump.
    fn start(&self, request: &Request<'_>) -> Result<Self::Dump>;

    /// Adds messages to a dump until `out` is full, and returns its error then, or until there are
    /// no more.
    fn dump(&self, dump: &mut Self::Dump, out: &mut Answer<'_>) -> Result;

    /// Carries out a command.
    fn act(&self, request: &Request<'_>) -> Result;
}

/// `CAP_NET_ADMIN`.
const CAP_NET_ADMIN: c_int = 12;

/// The length of the header of an attribute (`NLA_HDRLEN`).
const HEADER: usize = 4;

/// A request, and the socket that it was sent from.
///
/// # Invariants
///
/// Both pointers are valid; `skb` is that of a request from user space.
pub(crate) struct Request<'a> {
    skb: *mut bindings::sk_buff,
    info: *const bindings::genl_info,
    _lifetime: PhantomData<&'a ()>,
}

impl Request<'_> {
    /// Returns the number of the command.
    pub(crate) fn command(&self) -> u8 {
        // SAFETY: By the type invariant; each request has the header.
        unsafe { (*(*self.info).genlhdr).cmd }
    }

    /// Returns the network namespace of the socket.
    pub(crate) fn net(&self) -> &Net {
        // SAFETY: By the type invariant. The socket keeps its namespace.
        unsafe { Net::from_raw(bindings::rust_rdma_genl_info_net(self.info)) }
    }

    /// Returns the user who has opened the socket, in the initial user namespace.
    pub(crate) fn user(&self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { bindings::rust_rdma_netlink_user(self.skb) }
    }

    /// Returns the number that a user of the initial user namespace has in that of the socket, or
    /// `None` if it has none there.
    pub(crate) fn user_as_seen(&self, user: u32) -> Option<u32> {
        // SAFETY: By the type invariant.
        let seen = unsafe { bindings::rust_rdma_netlink_user_seen(self.skb, user) };
        (seen != u32::MAX).then_some(seen)
    }

    /// Returns whether the sender administers the network of the socket's namespace.
    ///
    /// To be called in the process that has sent the request: not in [`Family::dump`].
    pub(crate) fn is_from_admin(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::netlink_net_capable(self.skb, CAP_NET_ADMIN) }
    }

    /// Returns whether the sender administers the network of the host. Called like
    /// [`is_from_admin`](Self::is_from_admin).
    pub(crate) fn is_from_host_admin(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::netlink_capable(self.skb, CAP_NET_ADMIN) }
    }

    /// Returns the value of one of the [`Family::NUMBERS`], if the request has it. To be called in
    /// [`Family::act`].
    pub(crate) fn number<T: Family>(&self, attribute: u16) -> Option<u32> {
        if !T::NUMBERS.contains(&attribute) {
            return None;
        }
        // SAFETY: The table of attributes of a command that is carried out has a place for each of
        // the numbers. Netlink has checked the length of an attribute that is there.
        unsafe {
            let found = *(*self.info).attrs.add(usize::from(attribute));
            (!found.is_null()).then(|| found.byte_add(HEADER).cast::<u32>().read_unaligned())
        }
    }
}

/// The answer to a request for a dump: a part of the messages.
///
/// # Invariants
///
/// `skb` is one that netlink has made for the answer, and nobody else uses it.
pub(crate) struct Answer<'a> {
    skb: *mut bindings::sk_buff,
    request: Request<'a>,
    family: *const bindings::genl_family,
}

impl<'a> Answer<'a> {
    /// Returns the request.
    pub(crate) fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// Adds a message with the attributes that `fill` puts into it, which gets the request, too.
    ///
    /// Fails with [`EMSGSIZE`], and adds nothing, if there is no room for it.
    pub(crate) fn message(
        &mut self,
        command: u8,
        fill: impl FnOnce(&Request<'_>, &mut Message<'_>) -> Result,
    ) -> Result {
        const NLM_F_MULTI: c_int = 2;
        // SAFETY: The request and the family are valid for the call, and so is our buffer.
        let header = unsafe {
            let info = self.request.info;
            let (port, seq) = ((*info).snd_portid, (*info).snd_seq);
            bindings::genlmsg_put(self.skb, port, seq, self.family, NLM_F_MULTI, command)
        };
        let header = NonNull::new(header).ok_or(EMSGSIZE)?;
        // SAFETY: The message was begun above, in our buffer.
        let mut message = unsafe { Message::new(self.skb) };
        let filled = fill(&self.request, &mut message);
        // SAFETY: This is the message that was begun.
        unsafe {
            match filled {
                Ok(()) => bindings::rust_rdma_genlmsg_end(self.skb, header.as_ptr()),
                Err(_) => bindings::rust_rdma_genlmsg_cancel(self.skb, header.as_ptr()),
            }
        }
        filled
    }
}

/// A message that is being written.
///
/// # Invariants
///
/// `skb` is valid, the message is the last one in it, and nobody else uses it.
pub(crate) struct Message<'a> {
    skb: *mut bindings::sk_buff,
    _lifetime: PhantomData<&'a mut ()>,
}

impl Message<'_> {
    /// Begins to write attributes to the last message in a buffer.
    ///
    /// # Safety
    ///
    /// `skb` must be valid, and nobody else may use it during the lifetime of the result.
    pub(super) unsafe fn new(skb: *mut bindings::sk_buff) -> Self {
        // INVARIANT: By the safety requirements.
        Message {
            skb,
            _lifetime: PhantomData,
        }
    }

    /// Adds an attribute with these bytes. Fails with [`EMSGSIZE`] if there is no room.
    pub(crate) fn bytes(&mut self, attribute: u16, bytes: &[u8]) -> Result {
        let len = c_int::try_from(bytes.len()).map_err(|_| EMSGSIZE)?;
        let data = bytes.as_ptr().cast();
        // SAFETY: The buffer is valid by the type invariant, and so are the bytes.
        to_result(unsafe { bindings::nla_put(self.skb, c_int::from(attribute), len, data) })
    }

    /// Adds a number. Fails like [`bytes`](Self::bytes).
    pub(crate) fn u32(&mut self, attribute: u16, value: u32) -> Result {
        self.bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds a number, in 4 bytes if it fits in them (`NLA_UINT`). Fails like
    /// [`bytes`](Self::bytes).
    pub(crate) fn uint(&mut self, attribute: u16, value: u64) -> Result {
        match u32::try_from(value) {
            Ok(value) => self.u32(attribute, value),
            Err(_) => self.bytes(attribute, &value.to_ne_bytes()),
        }
    }

    /// Adds a text, which has no NUL. Fails like [`bytes`](Self::bytes).
    pub(crate) fn text(&mut self, attribute: u16, text: &[u8]) -> Result {
        let len = c_int::try_from(text.len()).map_err(|_| EMSGSIZE)?;
        let with_nul = len.checked_add(1).ok_or(EMSGSIZE)?;
        // SAFETY: The buffer is valid by the type invariant.
        let place = unsafe { bindings::nla_reserve(self.skb, attribute.into(), with_nul) };
        if place.is_null() {
            return Err(EMSGSIZE);
        }
        // SAFETY: There is room for the text and a NUL behind the header.
        unsafe {
            let to = place.cast::<u8>().add(HEADER);
            to.copy_from_nonoverlapping(text.as_ptr(), text.len());
            to.add(text.len()).write(0);
        }
        Ok(())
    }

    /// Adds a C string. Fails like [`bytes`](Self::bytes).
    pub(crate) fn c_str(&mut self, attribute: u16, text: &CStr) -> Result {
        self.bytes(attribute, text.to_bytes_with_nul())
    }

    /// Adds an attribute with the attributes that `fill` puts into it. Fails like
    /// [`bytes`](Self::bytes).
    pub(crate) fn nest(
        &mut self,
        attribute: u16,
        fill: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        // SAFETY: The buffer is valid by the type invariant.
        let start = unsafe { bindings::rust_rdma_nla_nest_start(self.skb, attribute.into()) };
        if start.is_null() {
            return Err(EMSGSIZE);
        }
        // If this fails, the whole message is cancelled.
        fill(self)?;
        // SAFETY: The buffer is valid by the type invariant, and the attribute was begun above.
        unsafe { bindings::rust_rdma_nla_nest_end(self.skb, start) };
        Ok(())
    }
}

/// The tables that a family points to.
struct Tables {
    operations: KVec<bindings::genl_split_ops>,
    #[expect(dead_code, reason = "the operations point to it")]
    policy: KVec<bindings::nla_policy>,
    groups: KVec<bindings::genl_multicast_group>,
}

/// A registration of a family; dropping it unregisters the family, and waits for the commands that
/// are being carried out.
///
/// A dump holds a reference to the module until its last message is read, so that the module is not
/// unloaded meanwhile.
///
/// # Invariants
///
/// `family`, which points to `tables`, is registered.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<T: Family> {
    #[pin]
    family: Opaque<bindings::genl_family>,
    tables: Tables,
    context: T,
    group: Arc<Group>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A family can be unregistered by any task; the rest is constant.
unsafe impl<T: Family> Send for Registration<T> {}
// SAFETY: A shared reference gives access to the context only.
unsafe impl<T: Family> Sync for Registration<T> {}

impl<T: Family> Registration<T> {
    /// Creates an initialiser that registers the family, whose multicast group `group` becomes. May
    /// sleep.
    ///
    /// Fails with [`ENOMEM`], or `EEXIST` if the name is taken.
    pub(crate) fn new(context: T, group: Arc<Group>) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let tables = Tables::new::<T>()?;
            let mut family = tables.family::<T>()?;
            let opened = group.clone();
            Ok(try_pin_init!(Self {
                tables,
                context,
                group,
                // The last, because commands may come at once.
                family <- Opaque::try_ffi_init(move |slot: *mut bindings::genl_family| {
                    family.module = THIS_MODULE;
                    // SAFETY: `slot` is valid for writes and pinned. The tables stay where they are
                    // until the family is unregistered, before which the group is closed.
                    unsafe {
                        slot.write(family);
                        to_result(bindings::genl_register_family(slot))
                            .inspect(|()| opened.open(slot))
                    }
                }),
                _pin: PhantomPinned,
            }? Error))
        })
    }

    /// Returns the registration of a family.
    ///
    /// # Safety
    ///
    /// `family` must be that of a [`Registration<T>`], which lives for `'a`.
    unsafe fn of<'a>(family: *const bindings::genl_family) -> &'a Self {
        // SAFETY: By the safety requirements.
        unsafe { &*container_of!(Opaque::cast_from(family), Self, family) }
    }

    /// Carries out a command.
    ///
    /// # Safety
    ///
    /// Called by netlink for a family of ours.
    unsafe extern "C" fn act(skb: *mut bindings::sk_buff, info: *mut bindings::genl_info) -> c_int {
        from_result(|| {
            // INVARIANT: Both are valid for the call.
            let request = Request {
                skb,
                info,
                _lifetime: PhantomData,
            };
            // SAFETY: The family is ours, and is registered during the call.
            let this = unsafe { Self::of((*info).family) };
            this.context.act(&request)?;
            Ok(0)
        })
    }

    /// Returns the request of a dump.
    ///
    /// # Safety
    ///
    /// `cb` must be that of a dump of ours, for `'a`.
    unsafe fn request<'a>(cb: *mut bindings::netlink_callback) -> Request<'a> {
        // SAFETY: By the safety requirements: this is what `genl_dumpit_info()` returns.
        let info = unsafe { &raw const (*(*cb).data.cast::<bindings::genl_dumpit_info>()).info };
        // INVARIANT: The request is kept as long as the dump.
        Request {
            // SAFETY: By the safety requirements.
            skb: unsafe { (*cb).skb },
            info,
            _lifetime: PhantomData,
        }
    }

    /// Returns the place of the state of a dump.
    ///
    /// # Safety
    ///
    /// `cb` must be valid.
    unsafe fn state(cb: *mut bindings::netlink_callback) -> *mut *mut c_void {
        // SAFETY: By the safety requirements.
        unsafe { (&raw mut (*cb).__bindgen_anon_1).cast() }
    }

    /// Begins a dump.
    ///
    /// # Safety
    ///
    /// Called by netlink for a family of ours, once for each dump.
    unsafe extern "C" fn start(cb: *mut bindings::netlink_callback) -> c_int {
        from_result(|| {
            // SAFETY: The dump is ours.
            let request = unsafe { Self::request(cb) };
            // SAFETY: The family is ours, and is registered during the call.
            let this = unsafe { Self::of((*request.info).family) };
            let dump = KBox::new(this.context.start(&request)?, GFP_KERNEL_ACCOUNT)?;
            // SAFETY: The dump is ours, and has room for a pointer.
            unsafe { Self::state(cb).write(dump.into_foreign()) };
            Ok(0)
        })
    }

    /// Continues a dump.
    ///
    /// # Safety
    ///
    /// Called by netlink for a dump that was begun, by one task at a time.
    unsafe extern "C" fn dump(
        skb: *mut bindings::sk_buff,
        cb: *mut bindings::netlink_callback,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The dump is ours.
            let request = unsafe { Self::request(cb) };
            // SAFETY: The request is valid.
            let family = unsafe { (*request.info).family };
            // SAFETY: The family is ours. The dump keeps the module, and so the registration.
            let this = unsafe { Self::of(family) };
            // SAFETY: `start` has stored it, and this is the only task that uses it.
            let dump = unsafe { KBox::<T::Dump>::borrow_mut(Self::state(cb).read()) };
            // INVARIANT: The buffer is that of the answer.
            let mut answer = Answer {
                skb,
                request,
                family,
            };
            this.context.dump(dump, &mut answer)?;
            Ok(0)
        })
    }

    /// Ends a dump.
    ///
    /// # Safety
    ///
    /// Called by netlink for a dump that was begun, once, at its end or when its socket is closed.
    unsafe extern "C" fn done(cb: *mut bindings::netlink_callback) -> c_int {
        // SAFETY: `start` has stored it, and nobody uses it any more.
        drop(unsafe { KBox::<T::Dump>::from_foreign(Self::state(cb).read()) });
        0
    }
}

#[pinned_drop]
impl<T: Family> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        self.group.close();
        // SAFETY: Registered by the type invariant.
        unsafe { bindings::genl_unregister_family(self.family.get()) };
    }
}

impl Tables {
    /// Creates the tables of a family.
    fn new<T: Family>() -> Result<Self> {
        const GENL_ADMIN_PERM: u8 = 1;
        const GENL_CMD_CAP_DO: u8 = 2;
        const GENL_CMD_CAP_DUMP: u8 = 4;
        const NLA_U32: u8 = 3;

        let last = T::NUMBERS.iter().copied().max().unwrap_or(0);
        let mut policy = KVec::with_capacity(usize::from(last).saturating_add(1), GFP_KERNEL)?;
        for number in 0..=last {
            let mut kind: bindings::nla_policy = pin_init::zeroed();
            if T::NUMBERS.contains(&number) {
                kind.type_ = NLA_U32;
            }
            // There is room for all.
            let _ = policy.push_within_capacity(kind);
        }
        let mut operations = KVec::with_capacity(T::OPERATIONS.len(), GFP_KERNEL)?;
        for operation in T::OPERATIONS {
            let mut entry: bindings::genl_split_ops = pin_init::zeroed();
            match *operation {
                Operation::Dump(command) => {
                    entry.cmd = command;
                    entry.flags = GENL_CMD_CAP_DUMP;
                    entry.__bindgen_anon_1.__bindgen_anon_2 =
                        bindings::genl_split_ops__bindgen_ty_1__bindgen_ty_2 {
                            start: Some(Registration::<T>::start),
                            dumpit: Some(Registration::<T>::dump),
                            done: Some(Registration::<T>::done),
                        };
                }
                Operation::Act(command) => {
                    entry.cmd = command;
                    entry.flags = GENL_CMD_CAP_DO | GENL_ADMIN_PERM;
                    entry.policy = policy.as_ptr();
                    entry.maxattr = last.into();
                    entry.__bindgen_anon_1.__bindgen_anon_1.doit = Some(Registration::<T>::act);
                }
            }
            let _ = operations.push_within_capacity(entry);
        }
        let mut groups = KVec::with_capacity(1, GFP_KERNEL)?;
        let _ = groups.push_within_capacity(Group::entry(T::GROUP));
        Ok(Tables {
            operations,
            policy,
            groups,
        })
    }

    /// Returns a family with these tables. Fails with [`EINVAL`] if the family has too many
    /// commands.
    fn family<T: Family>(&self) -> Result<bindings::genl_family> {
        let mut family: bindings::genl_family = pin_init::zeroed();
        for (to, from) in family.name.iter_mut().zip(T::NAME.to_bytes_with_nul()) {
            *to = *from;
        }
        family.version = T::VERSION;
        family.set_netnsok(1);
        family.set_parallel_ops(1);
        family.split_ops = self.operations.as_ptr();
        family.mcgrps = self.groups.as_ptr();
        family.n_mcgrps = 1;
        family.n_split_ops = u8::try_from(self.operations.len()).map_err(|_| EINVAL)?;
        Ok(family)
    }
}
