//! The bytes of the description file, as `docs/formats/image.md` draws them.

use super::{ImageDescription, ImageDisk, ImageDisks, ImageMember, ImageMembers, ImageNode};
use imbrex_core::crc;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::units::BlockCount;
use std::collections::BTreeSet;

/// The version this build writes.
pub const FORMAT_VERSION: u32 = 4;
/// The version that says nothing of labels, the oldest one that is read.
pub(super) const WITHOUT_LABELS: u32 = 3;

const MAGIC: &[u8; 8] = b"IMBREXIM";
const HEADER_BYTES: usize = 64;

/// Why bytes are not a description file of this version.
pub(super) enum FormatError {
    OtherVersion(u32),
    Damaged(&'static str),
}

/// A description file. One without labels is of the version before there were any.
pub(super) fn encode(description: &ImageDescription) -> Vec<u8> {
    let ImageDescription { uuid, stack_toml, size_bytes, nodes, members, disks } = description;
    let mut body = stack_toml.as_bytes().to_vec();
    for node in nodes {
        body.extend((node.name.len() as u32).to_le_bytes());
        body.extend(node.blocks.0.to_le_bytes());
        body.extend(node.replacement.to_le_bytes());
        body.extend(node.name.as_bytes());
    }
    body.extend(members.next.to_le_bytes());
    body.extend((members.list.len() as u16).to_le_bytes());
    for ImageMember { number, node, port } in &members.list {
        body.extend(number.to_le_bytes());
        for name in [node, port] {
            extend_with_name(&mut body, name);
        }
    }
    if let Some(disks) = disks {
        body.extend(disks.next.to_le_bytes());
        body.extend((disks.list.len() as u16).to_le_bytes());
        for disk in &disks.list {
            body.extend(disk.number.to_le_bytes());
            body.extend(u16::from(disk.is_labelled).to_le_bytes());
            extend_with_name(&mut body, &disk.node);
        }
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version_of(description).to_le_bytes());
    bytes.extend((nodes.len() as u32).to_le_bytes());
    bytes.extend(uuid.0);
    bytes.extend(size_bytes.to_le_bytes());
    bytes.extend((stack_toml.len() as u64).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(crc::crc32c(&body).to_le_bytes());
    bytes.extend(crc::crc32c(&bytes).to_le_bytes());
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes.extend(body);
    bytes
}

fn extend_with_name(body: &mut Vec<u8>, name: &str) {
    body.extend((name.len() as u16).to_le_bytes());
    body.extend(name.as_bytes());
}

/// The version that a description is written in.
pub(super) fn version_of(description: &ImageDescription) -> u32 {
    match description.disks {
        Some(_) => FORMAT_VERSION,
        None => WITHOUT_LABELS,
    }
}

/// True of the bytes of a description file of whatever version, and of their beginning, which is what
/// a crash leaves of one.
pub(super) fn may_be_cut(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes)
}

/// The description in a file.
pub(super) fn decode(bytes: &[u8]) -> Result<ImageDescription, FormatError> {
    let damaged = FormatError::Damaged;
    let mut header = Fields {
        bytes: bytes.get(..HEADER_BYTES).ok_or(damaged("it is shorter than its header"))?,
    };
    if header.take(MAGIC.len())? != MAGIC {
        return Err(damaged("it does not begin with the mark of an image"));
    }
    // Another version may have another header, so nothing else is judged before it.
    let version = header.u32()?;
    if !(WITHOUT_LABELS..=FORMAT_VERSION).contains(&version) {
        return Err(FormatError::OtherVersion(version));
    }
    let (covered, checksum) = bytes[..HEADER_BYTES].split_at(HEADER_BYTES - 4);
    if crc::crc32c(covered).to_le_bytes() != checksum {
        return Err(damaged("the checksum of the header is wrong"));
    }
    let nodes = header.u32()?;
    let uuid = Uuid(header.take(16)?.try_into().expect("16 bytes"));
    let size_bytes = header.u64()?;
    let toml_bytes = header.u64()?;
    let (body_bytes, body_checksum) = (header.u64()?, header.u32()?);
    let body = &bytes[HEADER_BYTES..];
    if body.len() as u64 != body_bytes {
        return Err(damaged("it is not as long as its header says"));
    }
    if crc::crc32c(body) != body_checksum {
        return Err(damaged("the checksum of the body is wrong"));
    }
    let mut body = Fields { bytes: body };
    let stack_toml = body.text(toml_bytes)?;
    let nodes = (0..nodes).map(|_| body.node()).collect::<Result<_, FormatError>>()?;
    let members = body.members()?;
    let has_disks = version > WITHOUT_LABELS;
    let disks = has_disks.then(|| body.disks()).transpose()?;
    if !body.bytes.is_empty() {
        return Err(damaged("bytes follow the last entry"));
    }
    Ok(ImageDescription { uuid, stack_toml, size_bytes, nodes, members, disks })
}

/// Reads fields from the front of bytes.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(FormatError::Damaged("an entry is longer than the file"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn node(&mut self) -> Result<ImageNode, FormatError> {
        let name_bytes = self.u32()?;
        Ok(ImageNode {
            blocks: BlockCount(self.u64()?),
            replacement: self.u16()?,
            name: self.text(u64::from(name_bytes))?,
        })
    }

    fn members(&mut self) -> Result<ImageMembers, FormatError> {
        let (next, count) = (self.u16()?, self.u16()?);
        let mut list = Vec::new();
        let mut numbers = BTreeSet::new();
        for _ in 0..count {
            let number = self.u16()?;
            if number == 0 || number >= next || !numbers.insert(number) {
                return Err(FormatError::Damaged(
                    "the number of a member is 0, not below the next one, or that of another",
                ));
            }
            let (node, port) = (self.name()?, self.name()?);
            list.push(ImageMember { number, node, port });
        }
        Ok(ImageMembers { next, list })
    }

    fn disks(&mut self) -> Result<ImageDisks, FormatError> {
        let (next, count) = (self.u16()?, self.u16()?);
        let mut list: Vec<ImageDisk> = Vec::new();
        for _ in 0..count {
            let (number, labelled) = (self.u16()?, self.u16()?);
            if number == 0 || number >= next || list.iter().any(|disk| disk.number == number) {
                return Err(FormatError::Damaged(
                    "the number of a disk is 0, not below the next one, or that of another",
                ));
            }
            if labelled > 1 {
                return Err(FormatError::Damaged("whether a disk has a label is neither 0 nor 1"));
            }
            list.push(ImageDisk { number, is_labelled: labelled == 1, node: self.name()? });
        }
        Ok(ImageDisks { next, list })
    }

    fn name(&mut self) -> Result<String, FormatError> {
        let bytes = self.u16()?;
        self.text(u64::from(bytes))
    }

    fn u16(&mut self) -> Result<u16, FormatError> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes(bytes.try_into().expect("two bytes")))
    }

    fn u32(&mut self) -> Result<u32, FormatError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, FormatError> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn text(&mut self, count: u64) -> Result<String, FormatError> {
        let bytes = self.take(count as usize)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| FormatError::Damaged("a text is not UTF-8"))
    }
}
