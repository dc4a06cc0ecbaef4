// SPDX-License-Identifier: GPL-2.0

//! Properties of a resolution that hold for any inputs in any order.

use proptest::prelude::*;

use super::*;

/// One input of a resolution.
#[derive(Clone, Debug)]
enum Step {
    Resolve(u64, u8, usize),
    Reply(u8, usize, usize),
    Destroy(bool),
    /// A MAD with this attribute and contents, and with the right request id or not.
    Receive(Attribute, Vec<u8>, bool),
    DuplicateReq,
    Wait(u64),
    Deadline,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (any::<u64>(), any::<u8>(), 0..300usize).prop_map(|(t, r, l)| Step::Resolve(t, r, l)),
        2 => (any::<u8>(), 0..100usize, 0..200usize).prop_map(|(s, i, l)| Step::Reply(s, i, l)),
        1 => any::<bool>().prop_map(Step::Destroy),
        4 => (
            prop::sample::select(&Attribute::ALL[..]),
            prop::collection::vec(any::<u8>(), wire::DATA_LEN),
            any::<bool>(),
        )
            .prop_map(|(a, d, id)| Step::Receive(a, d, id)),
        2 => Just(Step::DuplicateReq),
        2 => (0..100_000u64).prop_map(Step::Wait),
        3 => Just(Step::Deadline),
    ]
}

fn apply(r: &mut Resolution, step: &Step, now: &mut Instant) -> Actions {
    let before = r.clone();
    let data = [0x5a; 300];
    let result = match step {
        Step::Resolve(timeout, retries, len) => {
            let params = ResolveParams {
                timeout: Duration::from_micros(*timeout),
                max_cm_retries: *retries,
                ..ResolveParams::new(SERVICE, 0xffff)
            };
            r.resolve(&params, &data[..*len], *now)
        }
        Step::Reply(status, info, len) => {
            let params = ReplyParams::failure(Status(*status));
            r.reply(&params, &data[..*info], &data[..*len], *now)
        }
        Step::Destroy(user) => Ok(r.destroy(
            if *user {
                DestroyCause::User
            } else {
                DestroyCause::NoMemory
            },
            *now,
        )),
        Step::Receive(attribute, bytes, own_id) => {
            let mut mad = [0; MAD_LEN];
            let hdr = Header::new(Attribute::SidrReq, TID);
            wire::encode(&hdr, &Message::SidrReq(question()), &mut mad).unwrap();
            mad[16..18].copy_from_slice(&attribute.id().to_be_bytes());
            mad[wire::HEADER_LEN..].copy_from_slice(bytes);
            if *own_id {
                mad[wire::HEADER_LEN..][..4].copy_from_slice(&ID.to_be_bytes());
            }
            let (_, msg) = wire::decode(&mad).unwrap();
            Ok(r.receive(&msg, *now))
        }
        Step::DuplicateReq => Ok(r.duplicate_req(*now)),
        Step::Wait(us) => {
            *now = *now + Duration::from_micros(*us);
            Ok(r.timeout(*now))
        }
        Step::Deadline => {
            *now = (*now).max(r.deadline().unwrap_or(*now));
            Ok(r.timeout(*now))
        }
    };
    result.unwrap_or_else(|_| {
        assert_eq!(*r, before, "a verb failed, and changed something");
        Actions::none()
    })
}

proptest! {
    #[test]
    fn nothing_goes_wrong(asked in any::<bool>(), steps in prop::collection::vec(step(), 0..60)) {
        let mut r = match asked {
            true => Situation::ReqRcvd.resolution(),
            false => Situation::Fresh.resolution(),
        };
        let mut now = at(0);
        let (mut sent, mut told, mut released) = (0, 0, 0);
        let mut repeated = 0;
        for step in &steps {
            let deadline = r.deadline();
            let actions = apply(&mut r, step, &mut now);
            // A change of the deadline is always reported to the caller.
            prop_assert!(r.deadline() == deadline || actions.contains(Action::Timer)
                || r.is_closed());
            for action in actions {
                prop_assert_eq!(released, 0, "{:?} after the end", action);
                match action {
                    Action::Send(message) => {
                        sent += 1;
                        let mut mad = [0; MAD_LEN];
                        prop_assert!(r.encode(message, &mut mad).is_ok());
                        prop_assert!(wire::decode(&mad).is_ok());
                    }
                    Action::Count(Counter::Repeat(_)) => repeated += 1,
                    Action::Deliver(_) => told += 1,
                    Action::Release => released += 1,
                    Action::Timer | Action::ReleaseRequest | Action::Count(_) => {}
                }
                if matches!(action, Action::Release) {
                    prop_assert!(r.is_closed());
                }
            }
            if r.is_closed() {
                prop_assert_eq!((r.deadline(), r.state()), (None, State::Idle));
            }
            prop_assert!(sent - repeated <= 16);
            prop_assert!(told <= 1);
            if released == 1 {
                break;
            }
        }
        // The resolution ends by itself as soon as the user is gone.
        let _ = r.destroy(DestroyCause::User, now);
        while let Some(deadline) = r.deadline() {
            let _ = r.timeout(deadline);
        }
        prop_assert!(r.is_closed());
    }
}
