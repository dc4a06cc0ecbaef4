// SPDX-License-Identifier: GPL-2.0

//! Layouts of structures, as the type information of a kernel module (BTF) tells them.
//!
//! The type information of a module continues that of the kernel: its strings and types are
//! numbered from where those of the kernel end. It leaves out the structures that the kernel has as
//! well: those of whatever is built in. The format is that of `Documentation/bpf/btf.rst` in the
//! kernel.

/// The length of a header, in bytes.
pub const HEADER_LEN: usize = 24;

const MAGIC: u16 = 0xeb9f;
const KIND_STRUCT: u32 = 4;

/// The places of types and strings in type information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    types: Section,
    strings: Section,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    start: usize,
    len: usize,
}

impl Section {
    fn end(self) -> Option<usize> {
        self.start.checked_add(self.len)
    }

    fn of(self, data: &[u8]) -> Option<&[u8]> {
        data.get(self.start..self.end()?)
    }
}

impl Header {
    /// Reads a header, or returns `None` if these bytes are none.
    pub fn read(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let [m0, m1, 1, _flags, rest @ ..] = bytes else {
            return None;
        };
        if u16::from_ne_bytes([*m0, *m1]) != MAGIC {
            return None;
        }
        let mut words = words(rest);
        let mut next = || usize::try_from(words.next()?).ok();
        let header = next()?;
        let mut section = || {
            Some(Section {
                start: header.checked_add(next()?)?,
                len: next()?,
            })
        };
        Some(Self {
            types: section()?,
            strings: section()?,
        })
    }

    /// Returns the length of all the type information, or `None` if there is no such length.
    pub fn total_len(&self) -> Option<usize> {
        Some(self.types.end()?.max(self.strings.end()?))
    }

    /// Returns the offset of the types.
    pub fn types_start(&self) -> usize {
        self.types.start
    }

    /// Returns the length of all types.
    pub fn types_len(&self) -> usize {
        self.types.len
    }

    /// Returns the offset of the strings.
    pub fn strings_start(&self) -> usize {
        self.strings.start
    }

    /// Returns the length of all strings.
    pub fn strings_len(&self) -> usize {
        self.strings.len
    }
}

/// A structure with numbers that a layout must have.
#[derive(Clone, Copy, Debug)]
pub struct Structure<'a> {
    /// Name of the structure.
    pub name: &'a str,
    /// Size in bytes, if that matters.
    pub size: Option<u32>,
    /// Names of members, and their offsets in bytes.
    pub members: &'a [(&'a str, u32)],
}

/// A number that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit<'a> {
    /// The name of the structure.
    pub structure: &'a str,
    /// The member whose offset it is, or `None` for the size of the structure.
    pub member: Option<&'a str>,
    /// The number that is expected.
    pub expected: u32,
    /// The number that the type information has, if it has the member.
    pub found: Option<u32>,
}

/// Compares structures with the type information `module`, which continues that of a kernel with
/// the types `kernel_types` and the strings `kernel_strings`. Returns the first number that
/// differs.
///
/// Without the kernel's types, which are many, a structure that the module leaves out is a misfit
/// of which no number was found. Type information that cannot be read, as it has kinds of types
/// that are not known here, does not differ.
pub fn misfit<'a>(
    module: &[u8],
    kernel_types: &[u8],
    kernel_strings: &[u8],
    expected: &'a [Structure<'a>],
) -> Option<Misfit<'a>> {
    let header = Header::read(module.first_chunk()?)?;
    let types = header.types.of(module)?;
    let strings = Strings {
        kernel: kernel_strings,
        module: header.strings.of(module)?,
    };
    expected.iter().find_map(|structure| {
        let search = |types| Found::search(types, &strings, structure.name);
        let found = match search(types).ok()? {
            None => search(kernel_types).ok()?,
            found => found,
        };
        let differs = |member, expected, found| {
            (found != Some(expected)).then_some(Misfit {
                structure: structure.name,
                member,
                expected,
                found,
            })
        };
        let size = structure.size;
        size.and_then(|size| differs(None, size, found.map(|found| found.size)))
            .or_else(|| {
                structure.members.iter().find_map(|&(member, offset)| {
                    let offset_found = found.and_then(|found| found.offset(&strings, member));
                    differs(Some(member), offset, offset_found)
                })
            })
    })
}

struct Strings<'a> {
    kernel: &'a [u8],
    module: &'a [u8],
}

impl Strings<'_> {
    /// Returns whether the string at `offset` is `name`.
    fn is(&self, offset: u32, name: &str) -> bool {
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        let string = match offset.checked_sub(self.kernel.len()) {
            None => self.kernel.get(offset..),
            Some(offset) => self.module.get(offset..),
        };
        let rest = string.and_then(|string| string.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// A structure in type information.
#[derive(Clone, Copy)]
struct Found<'a> {
    size: u32,
    members: &'a [u8],
    /// The offsets have the sizes of bit fields in their highest byte.
    has_bit_fields: bool,
}

/// A type of a kind whose length is not known, or that has no end.
struct Unknown;

impl<'a> Found<'a> {
    /// Finds the structure called `name`.
    fn search(types: &'a [u8], strings: &Strings<'_>, name: &str) -> Result<Option<Self>, Unknown> {
        let mut rest = types;
        while let Some((head, after)) = rest.split_first_chunk::<12>() {
            let mut words = words(head);
            let (Some(type_name), Some(info), Some(size)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(Unknown);
            };
            let kind = (info >> 24) & 0x1f;
            let (own, next) = len_after(kind, info & 0xffff)
                .and_then(|len| after.split_at_checked(len))
                .ok_or(Unknown)?;
            if kind == KIND_STRUCT && strings.is(type_name, name) {
                return Ok(Some(Self {
                    size,
                    members: own,
                    has_bit_fields: info >> 31 != 0,
                }));
            }
            rest = next;
        }
        Ok(None)
    }

    /// Returns the offset of a member in bytes.
    fn offset(self, strings: &Strings<'_>, name: &str) -> Option<u32> {
        self.members.chunks_exact(12).find_map(|member| {
            let mut words = words(member);
            let (member_name, _type, offset) = (words.next()?, words.next()?, words.next()?);
            let bits = if self.has_bit_fields {
                offset & 0x00ff_ffff
            } else {
                offset
            };
            strings.is(member_name, name).then_some(bits / 8)
        })
    }
}

/// Returns the length of what follows the first twelve bytes of a type, by its kind and the number
/// of its elements.
fn len_after(kind: u32, elements: u32) -> Option<usize> {
    let elements = usize::try_from(elements).ok()?;
    match kind {
        // INT, VAR, DECL_TAG.
        1 | 14 | 17 => Some(4),
        // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG.
        2 | 7..=12 | 16 | 18 => Some(0),
        // ARRAY.
        3 => Some(12),
        // STRUCT, UNION, DATASEC, ENUM64.
        KIND_STRUCT | 5 | 15 | 19 => elements.checked_mul(12),
        // ENUM, FUNC_PROTO.
        6 | 13 => elements.checked_mul(8),
        _ => None,
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let words = bytes.chunks_exact(4).filter_map(|word| word.first_chunk());
    words.map(|&word| u32::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &[u8] = b"\0state\0res\0";
    const MODULE: &[u8] = b"id\0qp_num\0private\0";

    /// Returns the offset of a string.
    fn offset_of(string: &[u8]) -> u32 {
        let all = [KERNEL, MODULE].concat();
        let is_it = |at: &usize| all[*at..].starts_with(string) && all[at + string.len()] == 0;
        (0..all.len()).find(is_it).unwrap() as u32
    }

    fn a_type(kind: u32, name: &[u8], size: u32, elements: u32, rest: &[u32]) -> Vec<u32> {
        let name = if name.is_empty() { 0 } else { offset_of(name) };
        [&[name, (kind << 24) | elements, size], rest].concat()
    }

    fn a_module(types: &[u32]) -> Vec<u8> {
        let len = types.len() as u32 * 4;
        let header = [24, 0, len, len, MODULE.len() as u32];
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in header.iter().chain(types) {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(MODULE);
        bytes
    }

    /// A type of each kind, and then a structure.
    fn example() -> Vec<u32> {
        let private = [offset_of(b"id"), 1, 0, offset_of(b"state"), 2, 0x2000_0060];
        [
            a_type(1, b"res", 4, 0, &[32]),
            a_type(2, b"", 1, 0, &[]),
            a_type(3, b"", 0, 0, &[1, 1, 2]),
            a_type(5, b"private", 8, 1, &[offset_of(b"id"), 1, 8]),
            a_type(6, b"", 4, 2, &[0, 0, 0, 1]),
            a_type(7, b"private", 0, 0, &[]),
            a_type(13, b"", 0, 1, &[0, 1]),
            a_type(14, b"id", 1, 0, &[0]),
            a_type(15, b"", 4, 1, &[1, 0, 4]),
            a_type(17, b"id", 1, 0, &[0]),
            a_type(19, b"", 8, 1, &[0, 0, 0]),
            a_type(4 | 0x80, b"private", 24, 2, &private),
            a_type(4, b"res", 72, 0, &[]),
        ]
        .concat()
    }

    fn of(
        types: &[u32],
        name: &str,
        size: u32,
        members: &[(&str, u32)],
    ) -> Option<(u32, Option<u32>)> {
        let expected = [Structure {
            name,
            size: Some(size),
            members,
        }];
        let misfit = misfit(&a_module(types), &[], KERNEL, &expected)?;
        assert_eq!(misfit.structure, name);
        Some((misfit.expected, misfit.found))
    }

    #[test]
    fn the_same() {
        assert_eq!(
            of(&example(), "private", 24, &[("id", 0), ("state", 12)]),
            None
        );
        assert_eq!(of(&example(), "res", 72, &[]), None);
    }

    #[test]
    fn another_number() {
        assert_eq!(of(&example(), "private", 32, &[]), Some((32, Some(24))));
        assert_eq!(
            of(&example(), "private", 24, &[("state", 16)]),
            Some((16, Some(12)))
        );
    }

    #[test]
    fn a_name_that_is_not_there() {
        // A part of a name, a string without a type, and one that is nowhere.
        for name in ["priv", "qp_num", "other"] {
            assert_eq!(of(&example(), name, 24, &[]), Some((24, None)));
            assert_eq!(of(&example(), "private", 24, &[(name, 8)]), Some((8, None)));
        }
    }

    #[test]
    fn a_structure_that_the_kernel_has() {
        let bytes = |types: &[u32]| -> Vec<u8> {
            types.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let res = bytes(&a_type(4, b"res", 72, 1, &[offset_of(b"state"), 1, 64]));
        let at = |module: &[u32], kernel: &[u8], size, state| {
            let expected = [Structure {
                name: "res",
                size: Some(size),
                members: &[("state", state)],
            }];
            let misfit = misfit(&a_module(module), kernel, KERNEL, &expected)?;
            Some((misfit.member.is_some(), misfit.found))
        };
        assert_eq!(at(&[], &res, 72, 8), None);
        assert_eq!(at(&[], &res, 80, 8), Some((false, Some(72))));
        assert_eq!(at(&[], &res, 72, 16), Some((true, Some(8))));
        // The module has one of its own only where the kernel's is another one.
        let own = a_type(4, b"res", 80, 1, &[offset_of(b"state"), 1, 64]);
        assert_eq!(at(&own, &res, 80, 8), None);
        assert_eq!(at(&[], &[], 72, 8), Some((false, None)));
        let unknown = bytes(&a_type(31, b"", 0, 0, &[]));
        assert_eq!(at(&[], &unknown, 80, 8), None);
    }

    #[test]
    fn what_cannot_be_read_does_not_differ() {
        let kind = [a_type(31, b"", 0, 0, &[]), example()].concat();
        assert_eq!(of(&kind, "private", 1, &[]), None);
        let cut = a_type(4, b"private", 24, 2, &[0; 5]);
        assert_eq!(of(&cut, "private", 1, &[]), None);
        let expected = [Structure {
            name: "private",
            size: Some(1),
            members: &[],
        }];
        let module = a_module(&example());
        assert!(misfit(&module, &[], KERNEL, &expected).is_some());
        for len in 0..module.len() {
            assert_eq!(misfit(&module[..len], &[], KERNEL, &expected), None);
        }
        for byte in 0..3 {
            let mut other = module.clone();
            other[byte] ^= 4;
            assert_eq!(misfit(&other, &[], KERNEL, &expected), None);
        }
    }

    #[test]
    fn lengths() {
        let module = a_module(&example());
        let header = Header::read(module.first_chunk().unwrap()).unwrap();
        assert_eq!(header.total_len(), Some(module.len()));
        assert_eq!(header.strings_len(), MODULE.len());
        assert_eq!(header.strings_start(), module.len() - MODULE.len());
    }
}
