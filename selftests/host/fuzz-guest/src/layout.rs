// SPDX-License-Identifier: GPL-2.0

//! The fields of each request, at the places that [`cmproto::ucma_abi`] gives them.

use cmproto::ucma_abi::{self as abi, Command, LEVEL_TUNING};
use std::mem::{offset_of, size_of};

/// The meaning of a field, from which its values follow.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Id,
    Membership,
    QueuePair,
    File,
    /// The address of the buffer for the answer.
    Answer,
    /// The address of the value of an option.
    Content,
    Address,
    /// The length of what the field with this index has.
    LengthOf(usize),
    Bytes,
    /// One of these numbers, of which the first is the most usual one.
    Number(&'static [u64]),
}

/// A field of a request.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub at: usize,
    pub len: usize,
    pub kind: Kind,
}

/// A command, and its request.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub command: Command,
    pub len: usize,
    /// The size of the buffer for the answer that a program gives.
    pub answer: usize,
    pub fields: &'static [Field],
}

/// Returns the size of a field that a function finds.
const fn size<S, T>(_: fn(&S) -> &T) -> usize {
    size_of::<T>()
}

macro_rules! layouts {
    ($($command:ident($request:ident) -> $answer:literal {
        $($($field:ident).+: $kind:expr,)*
    })*) => {
        &[$(Layout {
            command: Command::$command,
            len: size_of::<abi::$request>(),
            answer: $answer,
            fields: &[$(Field {
                at: offset_of!(abi::$request, $($field).+),
                len: size(|request: &abi::$request| &request.$($field).+),
                kind: $kind,
            }),*],
        }),*]
    };
}

use Kind::*;

const UID: Kind = Number(&[1, 2, 3, 0]);
const ZERO: Kind = Number(&[0, 1]);
const TIMEOUT: Kind = Number(&[500, 1, 0, u32::MAX as u64]);
const SMALL: Kind = Number(&[1, 0, 7, 8, 255]);

/// The commands, by their numbers. GET_OPTION, which is not implemented, has no request.
pub const LAYOUTS: &[Layout] = layouts! {
    CreateId(CreateId) -> 4 {
        uid: UID,
        response: Answer,
        ps: Number(&[0x106, 0x111, 0x13f, 2, 0, 0xffff]),
        qp_type: Number(&[2, 4, 3, 9, 10, 0, 255]),
    }
    DestroyId(DestroyId) -> 4 { response: Answer, id: Id, }
    BindIp(BindIp) -> 0 { addr: Address, id: Id, }
    ResolveIp(ResolveIp) -> 0 { src_addr: Address, dst_addr: Address, id: Id, timeout_ms: TIMEOUT, }
    ResolveRoute(ResolveRoute) -> 0 { id: Id, timeout_ms: TIMEOUT, }
    QueryRoute(Query) -> 208 { response: Answer, id: Id, option: ZERO, }
    Connect(Connect) -> 0 {
        conn_param.qp_num: QueuePair,
        conn_param.qkey: ZERO,
        conn_param.private_data: Bytes,
        conn_param.private_data_len: Number(&[0, 56, 57, 180, 181, 255]),
        conn_param.srq: SMALL,
        conn_param.responder_resources: SMALL,
        conn_param.initiator_depth: SMALL,
        conn_param.flow_control: SMALL,
        conn_param.retry_count: SMALL,
        conn_param.rnr_retry_count: SMALL,
        conn_param.valid: SMALL,
        id: Id,
        ece.vendor_id: ZERO,
        ece.attr_mod: ZERO,
    }
    Listen(Listen) -> 0 { id: Id, backlog: Number(&[0, 1, 2, u32::MAX as u64]), }
    Accept(Accept) -> 0 {
        uid: UID,
        conn_param.qp_num: QueuePair,
        conn_param.private_data: Bytes,
        conn_param.private_data_len: Number(&[0, 196, 197, 136, 137, 255]),
        conn_param.srq: SMALL,
        conn_param.responder_resources: SMALL,
        conn_param.initiator_depth: SMALL,
        conn_param.flow_control: SMALL,
        conn_param.rnr_retry_count: SMALL,
        conn_param.valid: SMALL,
        id: Id,
        ece.vendor_id: ZERO,
        ece.attr_mod: ZERO,
    }
    Reject(Reject) -> 0 {
        id: Id,
        private_data_len: Number(&[0, 148, 149, 136, 137, 255]),
        reason: Number(&[28, 0, 35, 1]),
        private_data: Bytes,
    }
    Disconnect(Disconnect) -> 0 { id: Id, }
    InitQpAttr(InitQpAttr) -> 144 {
        response: Answer,
        id: Id,
        qp_state: Number(&[1, 2, 3, 0, 4, 5, 6, 7]),
    }
    GetEvent(GetEvent) -> 336 { response: Answer, }
    GetOption(GetEvent) -> 0 {}
    SetOption(SetOption) -> 0 {
        optval: Content,
        id: Id,
        level: Number(&[0, 1, LEVEL_TUNING as u64, 2]),
        optname: Number(&[1, 0, 2, 3, 4, 5, 6]),
        optlen: LengthOf(0),
    }
    Notify(Notify) -> 0 { id: Id, event: Number(&[4, 6, 0]), }
    JoinIpMcast(JoinIpMcast) -> 4 { response: Answer, uid: UID, addr: Address, id: Id, }
    LeaveMcast(DestroyId) -> 4 { response: Answer, id: Membership, }
    MigrateId(MigrateId) -> 4 { response: Answer, id: Id, fd: File, }
    Query(Query) -> 512 { response: Answer, id: Id, option: Number(&[0, 1, 2, 3, 4]), }
    Bind(Bind) -> 0 { id: Id, addr_size: LengthOf(3), reserved: ZERO, addr: Address, }
    ResolveAddr(ResolveAddr) -> 0 {
        id: Id,
        timeout_ms: TIMEOUT,
        src_size: Number(&[0, 16, 28, 48, 128]),
        dst_size: LengthOf(6),
        reserved: ZERO,
        src_addr: Address,
        dst_addr: Address,
    }
    JoinMcast(JoinMcast) -> 4 {
        response: Answer,
        uid: UID,
        id: Id,
        addr_size: LengthOf(5),
        join_flags: Number(&[0, 1, 2]),
        addr: Address,
    }
    ResolveIbService(ResolveIbService) -> 0 {
        id: Id,
        ibs.service_id: ZERO,
        ibs.service_name: Bytes,
        ibs.flags: Number(&[0, 1, 2, 3]),
    }
    WriteCmEvent(WriteCmEvent) -> 0 {
        id: Id,
        event: Number(&[18, 19, 0]),
        status: ZERO,
        param: Bytes,
    }
};

/// Returns the layout of a command; numbers go round.
pub fn layout(number: u8) -> &'static Layout {
    &LAYOUTS[usize::from(number) % LAYOUTS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_all_commands_in_order() {
        let commands: Vec<_> = LAYOUTS.iter().map(|layout| layout.command).collect();
        assert_eq!(commands, Command::ALL);
    }

    #[test]
    fn lengths_are_of_addresses_and_contents() {
        for layout in LAYOUTS {
            for field in layout.fields {
                assert!(field.at + field.len <= layout.len);
                if let LengthOf(index) = field.kind {
                    assert!(matches!(layout.fields[index].kind, Address | Content));
                }
            }
        }
    }
}
