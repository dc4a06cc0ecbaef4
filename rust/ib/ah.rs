// SPDX-License-Identifier: GPL-2.0

//! Address handles (`struct ib_ah`), which tell a device how to reach a peer.
//!
//! Connections of a user with the same address vector share a handle, which is destroyed with the
//! last of them.
//!
//! Devices have a limited number of handles (32,767 on soft-RoCE). Programs keep no more than
//! [`max_kept`] of a port, and a user no more than its limit. A connection beyond that, whose
//! address vector the user does not share, has a handle for each message only. So no user can keep
//! others from connecting. Parts of the kernel always keep their handles.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    ah_cache::AhKey,
    device::{Device, DeviceRef},
    gid::GidAttr,
    mad::Agent,
};
use crate::{
    bindings,
    kext::{
        delay,
        reclaim::NoIo,
        users::{Charge, UserRef},
    },
};
use cmproto::{addr::Gid, path::Path, ucma::account::Resource};
use core::ptr::NonNull;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, error::from_err_ptr, prelude::*, sync::Arc};

/// Returns the number of address handles of a port from which programs keep no further ones: half
/// of its share of those of the device, and 16,384 at most.
fn max_kept(device: &Device) -> u32 {
    const MAX: u32 = 16_384;

    // Some drivers do not say how many there are.
    let all = match device.max_ah() {
        0 => u32::MAX,
        all => all,
    };
    let ports = u32::try_from(device.ports().count()).unwrap_or(u32::MAX);
    let of_port = all.checked_div(ports).unwrap_or(0);
    (of_port / 2).min(MAX)
}

/// The link-layer part of an address vector.
#[derive(Copy, Clone)]
pub(crate) enum AhLink {
    /// An address vector of RoCE.
    Roce {
        /// The MAC address of the next hop.
        dmac: [u8; 6],
    },
    /// An address vector of InfiniBand or Omni-Path.
    Ib {
        /// The destination LID: the LID of the peer or of the router. Only on Omni-Path it has more
        /// than 16 bits.
        dlid: u32,
        /// The path bits: the low bits of the source LID.
        path_bits: u8,
    },
}

/// An address vector, which describes how to reach a peer (IBTA 11.2.2.1).
#[derive(Copy, Clone)]
pub(crate) struct AhSpec<'a> {
    /// The source GID. RoCE requires one. Without one, InfiniBand messages carry no GRH.
    pub(crate) sgid: Option<&'a GidAttr>,
    /// The destination GID.
    pub(crate) dgid: Gid,
    /// The flow label, 20 bits.
    pub(crate) flow_label: u32,
    /// The hop limit: the number of routers that a message may pass, plus one.
    pub(crate) hop_limit: u8,
    /// The traffic class, 8 bits.
    pub(crate) traffic_class: u8,
    /// The service level, 4 bits.
    pub(crate) sl: u8,
    /// The static rate, an `enum ib_rate`; 0 for the rate of the port.
    pub(crate) static_rate: u8,
    /// The link-layer part.
    pub(crate) link: AhLink,
}

impl<'a> AhSpec<'a> {
    /// Creates the address vector for `path` from `sgid` at a port.
    ///
    /// `dmac` is the MAC address of the next hop on RoCE; without it the address vector is one of
    /// InfiniBand or Omni-Path.
    pub(crate) fn along(
        path: &Path,
        device: &Device,
        port: u32,
        sgid: Option<&'a GidAttr>,
        dmac: Option<[u8; 6]>,
    ) -> Self {
        AhSpec {
            sgid: sgid.filter(|_| dmac.is_some() || path.has_grh()),
            dgid: path.dgid,
            flow_label: path.flow_label,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            sl: path.sl,
            static_rate: path.rate,
            link: match dmac {
                Some(dmac) => AhLink::Roce { dmac },
                None => AhLink::Ib {
                    dlid: path.dlid,
                    path_bits: path.slid_bits(device.path_bits_mask(port).unwrap_or(0)),
                },
            },
        }
    }
}

/// A handle for sending to a peer through the QP of a MAD agent. Dropping it may sleep.
///
/// # Invariants
///
/// If the handle has a `key`, this counts as one of its users.
pub(crate) struct Ah(Arc<Handle>);

/// An address handle, or the attributes to create one.
pub(super) struct Handle {
    kind: Kind,
    /// The key of the handle, if other connections may share it.
    key: Option<AhKey>,
    /// The charge for a handle that a program keeps.
    _charge: Option<Charge>,
}

/// The two forms of a [`Handle`].
///
/// # Invariants
///
/// `ah` is an address handle of `_device`, is counted in `agent`, and is destroyed only by the
/// owner of this.
enum Kind {
    /// An address handle that exists.
    Created {
        ah: NonNull<bindings::ib_ah>,
        agent: Arc<Agent>,
        /// Keeps the device, and thereby the protection domain of the handle.
        _device: DeviceRef,
    },
    /// The attributes of a handle that is created for each message.
    Described(KBox<Description>),
}

/// The attributes of an address handle.
struct Description {
    agent: Arc<Agent>,
    device: DeviceRef,
    sgid: Option<GidAttr>,
    /// The address vector without the source GID.
    spec: AhSpec<'static>,
}

// SAFETY: An address handle may be used and destroyed by any task.
unsafe impl Send for Handle {}

// SAFETY: An address handle is not changed after its creation.
unsafe impl Sync for Handle {}

impl Ah {
    /// Finds or creates a handle for an address vector. May sleep. A handle for a program is
    /// charged to `user`; without one it is for a part of the kernel.
    ///
    /// Fails with [`ENODEV`] if the agent has been unregistered, and [`EINVAL`] if `spec` does not
    /// suit the agent's port or `device` is not the agent's.
    pub(crate) fn new(
        agent: &Arc<Agent>,
        device: &DeviceRef,
        spec: &AhSpec<'_>,
        user: Option<&UserRef>,
    ) -> Result<Self> {
        let key = AhKey::of(spec, user);
        if let Some(handle) = agent.ah_cache().join(&key) {
            // INVARIANT: `join` has counted this user.
            return Ok(Ah(handle));
        }
        let charge = match user.map(|user| Charge::new(user, Resource::AddressHandles)) {
            None => None,
            Some(Ok(charge)) if agent.handles() < max_kept(device) => Some(charge),
            Some(_) => return Self::described(agent, device, spec),
        };
        let handle = Handle::create(agent, device, spec, Some(key), charge)?;
        // INVARIANT: `add` has counted this user.
        Ok(Ah(agent.ah_cache().add(key, handle)?))
    }

    /// Creates the description of a handle. Fails like [`Ah::new`].
    #[cold]
    fn described(agent: &Arc<Agent>, device: &DeviceRef, spec: &AhSpec<'_>) -> Result<Self> {
        // Errors of the device are those of the messages.
        spec.to_attr(device, agent.port_num())?;
        let description = Description {
            agent: agent.clone(),
            device: device.clone(),
            sgid: spec.sgid.cloned(),
            spec: AhSpec {
                sgid: None,
                ..*spec
            },
        };
        let described = Handle {
            kind: Kind::Described(KBox::new(description, GFP_KERNEL_ACCOUNT)?),
            key: None,
            _charge: None,
        };
        Ok(Ah(Arc::new(described, GFP_KERNEL_ACCOUNT)?))
    }

    /// Returns the agent that may send with this handle.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        self.0.agent()
    }

    /// Returns the address handle for a message, and creates it if none is kept. May sleep.
    ///
    /// Fails like [`Ah::new`] if it has to create the handle.
    pub(super) fn for_message(&self) -> Result<Arc<Handle>> {
        let Kind::Described(description) = &self.0.kind else {
            return Ok(self.0.clone());
        };
        let spec = AhSpec {
            sgid: description.sgid.as_ref(),
            ..description.spec
        };
        Handle::create(&description.agent, &description.device, &spec, None, None)
    }
}

impl Drop for Ah {
    fn drop(&mut self) {
        if let Some(key) = &self.0.key {
            self.agent().ah_cache().leave(key);
        }
    }
}

impl Handle {
    /// Creates an address handle. May sleep.
    fn create(
        agent: &Arc<Agent>,
        device: &DeviceRef,
        spec: &AhSpec<'_>,
        key: Option<AhKey>,
        charge: Option<Charge>,
    ) -> Result<Arc<Self>> {
        let port = agent.port_num();
        let mut attr = spec.to_attr(device, port)?;
        let registered = agent.registered()?;
        delay::point();
        if registered.device() != device.as_raw() {
            return Err(EINVAL);
        }
        // SAFETY: The agent and its protection domain are registered while we use the agent;
        // the function takes its own reference to the GID.
        let ah = from_err_ptr(unsafe {
            bindings::rdma_create_ah(
                registered.pd(),
                &raw mut attr,
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
            )
        })?;
        drop(registered);
        let ah = NonNull::new(ah).ok_or(ENOMEM)?;
        agent.count_handle();
        let this = Handle {
            // INVARIANT: The handle was just created, and counted.
            kind: Kind::Created {
                ah,
                agent: agent.clone(),
                _device: device.clone(),
            },
            key,
            _charge: charge,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the agent that may send with this handle.
    fn agent(&self) -> &Arc<Agent> {
        match &self.kind {
            Kind::Created { agent, .. } => agent,
            Kind::Described(description) => &description.agent,
        }
    }

    /// Returns the address handle, or null if there are only its attributes.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        match &self.kind {
            Kind::Created { ah, .. } => ah.as_ptr(),
            Kind::Described(_) => core::ptr::null_mut(),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Kind::Created { ah, agent, .. } = &self.kind else {
            return;
        };
        // The driver may allocate, and this may run where a message was sent.
        let _scope = NoIo::begin();
        // SAFETY: By the type invariant the handle is ours, and `_device` keeps the device. A
        // message that uses the handle holds an `Arc` to `self`.
        unsafe {
            bindings::rdma_destroy_ah_user(
                ah.as_ptr(),
                bindings::rdma_destroy_ah_flags_RDMA_DESTROY_AH_SLEEPABLE,
                core::ptr::null_mut(),
            )
        };
        agent.uncount_handle();
    }
}

/// Sets the destination LID of attributes of InfiniBand or Omni-Path, and the path bits.
///
/// Fails with [`EINVAL`] for attributes of another type, or if the LID is too long for them.
pub(super) fn set_lid(attr: &mut bindings::rdma_ah_attr, dlid: u32, path_bits: u8) -> Result {
    match attr.type_ {
        bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB => {
            attr.__bindgen_anon_1.ib = bindings::ib_ah_attr {
                dlid: u16::try_from(dlid).map_err(|_| EINVAL)?,
                src_path_bits: path_bits,
            };
        }
        bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA => {
            attr.__bindgen_anon_1.opa = bindings::opa_ah_attr {
                dlid,
                src_path_bits: path_bits,
                // As in C, the permissive LID of InfiniBand is not that of the peer.
                make_grd: dlid == u32::from(u16::MAX),
            };
        }
        _ => return Err(EINVAL),
    }
    Ok(())
}

impl AhSpec<'_> {
    /// Converts the address vector to its C form, which borrows the GID.
    fn to_attr(self, device: &DeviceRef, port: u32) -> Result<bindings::rdma_ah_attr> {
        if !device.is_port_valid(port) {
            return Err(EINVAL);
        }
        let mut attr = bindings::rdma_ah_attr {
            sl: self.sl,
            static_rate: self.static_rate,
            port_num: port,
            ..Default::default()
        };
        // SAFETY: The device is registered and has the port.
        attr.type_ = unsafe { bindings::rust_rdma_ah_find_type(device.as_raw(), port) };

        match self.link {
            AhLink::Roce { dmac } => {
                if !device.protocol_roce(port) || self.sgid.is_none() {
                    return Err(EINVAL);
                }
                let roce = bindings::roce_ah_attr { dmac };
                attr.__bindgen_anon_1.roce = roce;
            }
            AhLink::Ib { dlid, path_bits } => set_lid(&mut attr, dlid, path_bits)?,
        }
        if let Some(sgid) = self.sgid {
            if sgid.device() != device || sgid.port_num() != port {
                return Err(EINVAL);
            }
            attr.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
            attr.grh = bindings::ib_global_route {
                sgid_attr: sgid.as_raw(),
                dgid: bindings::ib_gid { raw: self.dgid.0 },
                flow_label: self.flow_label & 0xf_ffff,
                // The C field has 8 bits, although a GID table can be longer.
                sgid_index: u8::try_from(sgid.index()).map_err(|_| EINVAL)?,
                hop_limit: self.hop_limit,
                traffic_class: self.traffic_class,
            };
        }
        Ok(attr)
    }
}
