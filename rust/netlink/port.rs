// SPDX-License-Identifier: GPL-2.0

//! The ports: their tunables, counters and latencies.

use super::Family;
use crate::{
    device::port::Port,
    endpoint::CmDevice,
    globals::Globals,
    kext::{
        net::Net,
        netlink::{Answer, Message, Request},
    },
};
use cmproto::{
    cm::{Tunable, Tuning},
    event::Phase,
    latency::{upper_limit, BUCKETS},
    netlink::{Attr, BucketAttr, Command, CounterAttr, CounterKind},
};
use kernel::{prelude::*, sync::Arc};

/// The place of a port in the order of devices and ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    device: u32,
    port: u32,
}

impl Place {
    /// The first place.
    pub(super) const FIRST: Self = Place { device: 0, port: 0 };

    /// Returns the next place.
    fn after(self) -> Self {
        Place {
            port: self.port.saturating_add(1),
            ..self
        }
    }
}

/// A port, and its device.
struct Found {
    at: Place,
    device: Arc<CmDevice>,
    port: Arc<Port>,
}

impl Found {
    /// Returns the first port from `place` on whose device is accessible in `net`.
    fn from(globals: &Globals, net: &Net, place: Place) -> Option<Self> {
        globals.devices.find_map_from(place.device, |device| {
            let index = device.device.index();
            let port = device.ports().find(|port| {
                let at = Place {
                    device: index,
                    port: port.num,
                };
                at >= place && device.device.access_netns(net)
            })?;
            Some(Found {
                at: Place {
                    device: index,
                    port: port.num,
                },
                device: device.clone(),
                port: port.clone(),
            })
        })
    }

    /// Adds the attributes that name the port.
    fn put_name(&self, message: &mut Message<'_>) -> Result {
        put_device(&self.device, message)?;
        message.u32(Attr::Port as u16, self.at.port)
    }
}

/// Adds the attributes that name a device.
pub(super) fn put_device(device: &CmDevice, message: &mut Message<'_>) -> Result {
    message.u32(Attr::DevIndex as u16, device.device.index())?;
    message.text(Attr::DevName as u16, &device.device.name())
}

/// Dumps the ports from `place` on, with their tunables.
pub(super) fn ports(
    globals: &Globals,
    net: &Net,
    place: &mut Place,
    out: &mut Answer<'_>,
) -> Result {
    while let Some(found) = Found::from(globals, net, *place) {
        out.message(Command::PortGet as u8, |_, message| {
            found.put_name(message)?;
            message.u32(Attr::Protocol as u16, found.port.protocol as u32)?;
            for tunable in Tunable::ALL {
                message.u32(Attr::of(tunable) as u16, found.port.tuned(tunable))?;
            }
            Ok(())
        })?;
        *place = found.at.after();
    }
    Ok(())
}

/// Dumps a message of the kind `command` for each of `items` of each port from `place` on, the
/// first time from the `next`th item on. `put` adds the attributes about the item.
fn each<T>(
    globals: &Globals,
    net: &Net,
    (place, next): (&mut Place, &mut usize),
    out: &mut Answer<'_>,
    (command, items): (Command, &[T]),
    put: impl Fn(&Port, &T, &mut Message<'_>) -> Result,
) -> Result {
    while let Some(found) = Found::from(globals, net, *place) {
        if found.at != *place {
            *place = found.at;
            *next = 0;
        }
        while let Some(item) = items.get(*next) {
            out.message(command as u8, |_, message| {
                found.put_name(message)?;
                put(&found.port, item, message)
            })?;
            *next = next.saturating_add(1);
        }
        *place = found.at.after();
    }
    Ok(())
}

/// Dumps the counters of the ports from `place` on, the first time from the `next`th kind on.
pub(super) fn counters(
    globals: &Globals,
    net: &Net,
    place: &mut Place,
    next: &mut usize,
    out: &mut Answer<'_>,
) -> Result {
    let kinds = (Command::CounterGet, &CounterKind::ALL[..]);
    each(
        globals,
        net,
        (place, next),
        out,
        kinds,
        |port, kind, message| {
            message.u32(Attr::CounterKind as u16, *kind as u32)?;
            port.counts.visit(*kind, |code, name, value| {
                message.nest(Attr::Counter as u16, |message| {
                    message.u32(CounterAttr::Code as u16, code.into())?;
                    message.c_str(CounterAttr::Name as u16, name)?;
                    message.uint(CounterAttr::Value as u16, value)
                })
            })
        },
    )
}

/// Dumps the latencies of the ports from `place` on, the first time from the `next`th phase on.
/// Empty buckets are left out.
pub(super) fn latencies(
    globals: &Globals,
    net: &Net,
    place: &mut Place,
    next: &mut usize,
    out: &mut Answer<'_>,
) -> Result {
    let phases = (Command::LatencyGet, &Phase::ALL[..]);
    each(
        globals,
        net,
        (place, next),
        out,
        phases,
        |port, phase, message| {
            let latencies = &port.counts.latencies;
            message.u32(Attr::Phase as u16, *phase as u32)?;
            message.uint(Attr::LatencySum as u16, latencies.sum(*phase).as_micros())?;
            for (bucket, count) in (0..BUCKETS).zip(latencies.buckets(*phase)) {
                if count == 0 {
                    continue;
                }
                message.nest(Attr::LatencyBucket as u16, |message| {
                    if let Some(limit) = upper_limit(bucket) {
                        message.uint(BucketAttr::UpTo as u16, limit.as_micros())?;
                    }
                    message.uint(BucketAttr::Count as u16, count)
                })?;
            }
            Ok(())
        },
    )
}

/// Sets tunables of a port.
///
/// Fails with `EINVAL` if a value is too large, or if no port is named, and with `ENODEV` if there
/// is no such port. Nothing is set then.
pub(super) fn set(globals: &Globals, request: &Request<'_>) -> Result {
    let number = |attr: Attr| request.number::<Family>(attr as u16);
    let at = number(Attr::DevIndex).zip(number(Attr::Port));
    let (device, port) = at.ok_or(EINVAL)?;
    let device = globals.devices.by_index(device).ok_or(ENODEV)?;
    let port = device.port(port).ok_or(ENODEV)?;
    let mut tuning = Tuning::NONE;
    for tunable in Tunable::ALL {
        if let Some(value) = number(Attr::of(tunable)) {
            tuning.set(tunable, value).map_err(|_| EINVAL)?;
        }
    }
    for tunable in Tunable::ALL {
        if let Some(value) = tuning.own(tunable) {
            port.tune(tunable, value)?;
        }
    }
    Ok(())
}
