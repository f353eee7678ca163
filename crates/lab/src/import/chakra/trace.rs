//! What stands in one trace: messages of protocol buffers, each behind its length, the first about the file and all others nodes.
//!
//! Fields have the numbers of `et_def.proto` in MLCommons' chakra, which are those of all its versions: what later ones add is not read.
//! Nothing that a file says of lengths is believed before so much has been read.

use std::fmt;
use std::io::{BufRead, ErrorKind, Read as _};

/// The longest message, protocol buffers' own bound as long as nobody sets another. Nodes have some hundred octets.
const MESSAGE_MAX: u64 = 64 << 20;

/// A node as it stands in the file, without what is not asked for.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    /// A [`NodeType`], or another number.
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) control: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_us: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<Inputs>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum NodeType {
    Invalid = 0,
    Metadata = 1,
    MemoryLoad = 2,
    MemoryStore = 3,
    Compute = 4,
    Send = 5,
    Receive = 6,
    Collective = 7,
    Storage = 8,
    Batch = 9,
    Checkpoint = 10,
}

/// What a node is given.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Inputs {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

/// A named value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub(super) value: Option<Value>,
}

/// A value of one of the types that an attribute may have; of lists that of booleans alone.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of booleans.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

/// The first message of a file. What it says is not asked for, in whichever version it says it.
#[derive(Clone, PartialEq, prost::Message)]
struct Metadata {}

impl Node {
    /// The value of an attribute, if it has it.
    pub(super) fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }
}

impl Value {
    /// As a number from 0 on; `None` where it is none.
    pub(super) fn number(&self) -> Option<u64> {
        match *self {
            Self::Uint64(number) | Self::Fixed64(number) => Some(number),
            Self::Uint32(number) | Self::Fixed32(number) => Some(number.into()),
            Self::Int64(number) | Self::Sint64(number) | Self::Sfixed64(number) => number.try_into().ok(),
            Self::Int32(number) | Self::Sint32(number) | Self::Sfixed32(number) => number.try_into().ok(),
            Self::Bool(is) => Some(is.into()),
            Self::Double(number) => whole(number),
            Self::Float(number) => whole(number.into()),
            Self::Text(ref text) => text.parse().ok(),
            Self::Bools(_) => None,
        }
    }

    /// As a name.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            other => other.number().map(|number| number.to_string()),
        }
    }
}

/// A number that a floating-point value holds without a rest.
fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in range")]
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

/// Where a file is no trace, and why.
#[derive(Debug)]
pub(super) struct Damage {
    /// The octet at which the message begins, or its length, from 0.
    pub(super) at: u64,
    /// What is wrong there.
    pub(super) what: Wrong,
}

/// What is wrong with a file.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It cannot be read on.
    Io(std::io::Error),
    /// It ends within a message, or within a length.
    Ends,
    /// A length that no message has.
    Length,
    /// No message of the kind that stands here.
    Message(prost::DecodeError),
    /// It is compressed.
    Compressed,
    /// There is nothing in it.
    Empty,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.what {
            Wrong::Io(error) => write!(f, "it cannot be read at octet {at}: {error}"),
            Wrong::Ends => write!(f, "it ends within the message at octet {at}; copy or make it anew"),
            Wrong::Length => {
                write!(
                    f,
                    "at octet {at} there is no length of a message; give a Chakra trace, or make it anew"
                )
            }
            Wrong::Message(error) => {
                write!(
                    f,
                    "no message of a Chakra trace at octet {at} ({error}); give a Chakra trace, or make it anew"
                )
            }
            Wrong::Compressed => f.write_str("it is compressed; unpack it with gunzip"),
            Wrong::Empty => f.write_str("there is nothing in it; a trace begins with a message about itself"),
        }
    }
}

/// The nodes of a trace, one after the other.
pub(super) struct Nodes<R> {
    from: R,
    /// How many octets have been read.
    at: u64,
    message: Vec<u8>,
}

impl<R: BufRead> Nodes<R> {
    /// Goes past the first message.
    pub(super) fn new(mut from: R) -> Result<Self, Damage> {
        let damage = |what| Damage { at: 0, what };
        let begin = from.fill_buf().map_err(|error| damage(Wrong::Io(error)))?;
        if begin.is_empty() {
            return Err(damage(Wrong::Empty));
        }
        if begin.starts_with(&[0x1f, 0x8b]) {
            return Err(damage(Wrong::Compressed));
        }
        let mut nodes = Self { from, at: 0, message: Vec::new() };
        nodes.next_as::<Metadata>()?;
        Ok(nodes)
    }

    /// The next node; `None` behind the last.
    pub(super) fn next_node(&mut self) -> Result<Option<Node>, Damage> {
        self.next_as()
    }

    fn next_as<M: prost::Message + Default>(&mut self) -> Result<Option<M>, Damage> {
        let Some(length) = self.length()? else { return Ok(None) };
        let at = self.at;
        let damage = |what| Damage { at, what };
        self.message.clear();
        let mut part = self.from.by_ref().take(length);
        let read = part.read_to_end(&mut self.message).map_err(|error| damage(Wrong::Io(error)))? as u64;
        if read < length {
            return Err(damage(Wrong::Ends));
        }
        self.at += read;
        M::decode(&self.message[..]).map(Some).map_err(|error| damage(Wrong::Message(error)))
    }

    /// The length of the next message: seven bits in each octet, the lowest first; `None` at the end of the file.
    fn length(&mut self) -> Result<Option<u64>, Damage> {
        let at = self.at;
        let damage = |what| Damage { at, what };
        let mut length = 0;
        for place in 0..5 {
            let mut octet = [0];
            match self.from.read_exact(&mut octet) {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                    return Err(damage(Wrong::Io(error)));
                }
                Err(_) if place == 0 => return Ok(None),
                Err(_) => return Err(damage(Wrong::Ends)),
            }
            self.at += 1;
            length |= u64::from(octet[0] & 0x7f) << (7 * place);
            if octet[0] & 0x80 == 0 {
                return if length <= MESSAGE_MAX { Ok(Some(length)) } else { Err(damage(Wrong::Length)) };
            }
        }
        Err(damage(Wrong::Length))
    }
}
