// SPDX-License-Identifier: GPL-2.0

//! The source of a received MAD.

use super::gid::NetworkType;
use crate::bindings;
use cmproto::{addr::Gid, path::FromLink, wire::GRH_LEN};
use core::ptr;

/// The IP protocol number of UDP, which RoCE v2 uses.
const IPPROTO_UDP: u8 = 17;

/// The source address and the headers of a received message.
#[derive(Clone, Debug)]
pub(crate) struct MadSource {
    /// The port that has received the message.
    pub(crate) port_num: u32,
    /// The GID of the sender; zero without a GRH.
    pub(crate) sgid: Gid,
    /// The destination GID; zero without a GRH.
    pub(crate) dgid: Gid,
    /// Set if the message has a GRH, as it always should on RoCE.
    pub(crate) has_grh: bool,
    /// The type of the network header.
    pub(crate) network: NetworkType,
    /// The index of the P_Key of the message.
    pub(crate) pkey_index: u16,
    /// The LID of the sender; meaningless on RoCE.
    pub(crate) slid: u32,
    /// The path bits: the low bits of the destination LID.
    pub(crate) dlid_path_bits: u8,
    /// The service level, 4 bits.
    pub(crate) sl: u8,
    /// The VLAN id, if the message had a VLAN tag.
    pub(crate) vlan_id: Option<u16>,
    /// The flow label, 20 bits; 0 over IPv4, which has none.
    pub(crate) flow_label: u32,
    /// The traffic class, or the type of service over IPv4.
    pub(crate) traffic_class: u8,
    /// The hop limit or time to live on arrival.
    pub(crate) hop_limit: u8,
}

impl MadSource {
    /// Returns the link-layer source of a message that was received over InfiniBand, or over
    /// Omni-Path if `is_opa` is set.
    pub(crate) fn link(&self, is_opa: bool) -> FromLink {
        FromLink {
            lid: self.slid,
            path_bits: self.dlid_path_bits,
            sl: self.sl,
            has_grh: self.has_grh,
            is_opa,
        }
    }

    /// Reads the source of a received message.
    ///
    /// # Safety
    ///
    /// `agent` must be registered, and all that `recv` points to must be valid.
    pub(super) unsafe fn new(
        agent: *mut bindings::ib_mad_agent,
        recv: &bindings::ib_mad_recv_wc,
    ) -> Self {
        // SAFETY: By the safety requirements.
        let (device, port, wc) =
            unsafe { ((*agent).device, u32::from((*agent).port_num), &*recv.wc) };
        let flags = wc.wc_flags as u32;
        let has_grh = flags & bindings::ib_wc_flags_IB_WC_GRH != 0;
        let mut this = Self {
            port_num: port,
            sgid: Gid::ZERO,
            dgid: Gid::ZERO,
            has_grh,
            network: NetworkType::Ib,
            pkey_index: wc.pkey_index,
            slid: wc.slid,
            dlid_path_bits: wc.dlid_path_bits,
            sl: wc.sl,
            vlan_id: (flags & bindings::ib_wc_flags_IB_WC_WITH_VLAN != 0).then_some(wc.vlan_id),
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
        };
        if !has_grh {
            return this;
        }
        // SAFETY: The message has a GRH, or the headers that replace it.
        let grh = unsafe { &*recv.recv_buf.grh };
        // SAFETY: The device is registered and has the port.
        if unsafe { bindings::rust_rdma_cap_eth_ah(device, port) } {
            this.network = if flags & bindings::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE != 0 {
                NetworkType::from_raw(u32::from(wc.network_hdr_type))
            } else {
                guess_network(grh)
            };
        }
        this.read_grh(grh);
        this
    }

    /// Reads the fields of the header of the type `network`.
    fn read_grh(&mut self, grh: &bindings::ib_grh) {
        if self.network == NetworkType::Ipv4 {
            // SAFETY: A GRH has that many bytes without padding, and any bytes are valid.
            let bytes = unsafe { &*ptr::from_ref(grh).cast::<[u8; GRH_LEN]>() };
            // The IPv4 header is in the last 20 bytes; the first 20 bytes are undefined.
            let [.., _, tos, _, _, _, _, _, _, ttl, _, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
                *bytes;
            self.traffic_class = tos;
            self.hop_limit = ttl;
            self.sgid = Gid::from_v4([s0, s1, s2, s3]);
            self.dgid = Gid::from_v4([d0, d1, d2, d3]);
            return;
        }
        let word = u32::from_be(grh.version_tclass_flow);
        let [_, _, _, class] = (word >> 20).to_be_bytes();
        self.flow_label = word & 0xf_ffff;
        self.traffic_class = class;
        self.hop_limit = grh.hop_limit;
        // SAFETY: Any bytes are a GID.
        let (sgid, dgid) = unsafe { (Gid(grh.sgid.raw), Gid(grh.dgid.raw)) };
        self.sgid = sgid;
        self.dgid = dgid;
    }
}

/// Determines the network header of a RoCE message if the device does not report it.
fn guess_network(grh: &bindings::ib_grh) -> NetworkType {
    // SAFETY: The union of network headers is as long as a GRH.
    let version = unsafe { bindings::ib_get_rdma_header_version(ptr::from_ref(grh).cast()) };
    if version == 4 {
        NetworkType::Ipv4
    } else if grh.next_hdr == IPPROTO_UDP {
        NetworkType::Ipv6
    } else {
        NetworkType::RoceV1
    }
}
