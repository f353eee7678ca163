//! Writes Chakra's execution traces octet by octet, after the description of protocol buffers: it shares nothing with what reads them.

/// The types of nodes.
pub(crate) const METADATA: u64 = 1;
pub(crate) const LOAD: u64 = 2;
pub(crate) const COMPUTE: u64 = 4;
pub(crate) const SEND: u64 = 5;
pub(crate) const RECEIVE: u64 = 6;
pub(crate) const COLLECTIVE: u64 = 7;

/// The types of collectives.
pub(crate) const ALL_REDUCE: u64 = 0;
pub(crate) const ALL_GATHER: u64 = 2;
pub(crate) const BROADCAST: u64 = 5;
pub(crate) const ALL_TO_ALL: u64 = 6;
pub(crate) const REDUCE_SCATTER: u64 = 7;
pub(crate) const BARRIER: u64 = 9;

/// The fields of an attribute's values.
pub(crate) const INT64: u64 = 9;
pub(crate) const UINT64: u64 = 13;
pub(crate) const BOOL: u64 = 27;

/// Seven bits in each octet, the lowest first.
pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    while number >= 0x80 {
        octets.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    octets.push((number & 0x7f) as u8);
    octets
}

/// A field that is a number.
pub(crate) fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

/// A field that is a text or a message.
pub(crate) fn text(field: u64, octets: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(octets.len() as u64), octets.to_vec()].concat()
}

/// A node.
#[derive(Clone)]
pub(crate) struct Node(Vec<u8>);

impl Node {
    pub(crate) fn new(id: u64, name: &str, kind: u64) -> Self {
        // What is zero is not written.
        let id = if id == 0 { Vec::new() } else { number(1, id) };
        Self([id, text(2, name.as_bytes()), number(3, kind)].concat())
    }

    /// It waits for these, for their data; in one field, as numbers are packed.
    pub(crate) fn after(self, ids: &[u64]) -> Self {
        let packed: Vec<u8> = ids.iter().flat_map(|&id| varint(id)).collect();
        self.field(&text(5, &packed))
    }

    /// It waits for this one, which controls it; not packed, as older writers have it.
    pub(crate) fn controlled_by(self, id: u64) -> Self {
        self.field(&number(4, id))
    }

    pub(crate) fn lasts(self, micros: u64) -> Self {
        self.field(&number(7, micros))
    }

    /// An attribute with a value of the type of `field`, given as that is written.
    pub(crate) fn attribute(self, name: &str, value: &[u8]) -> Self {
        self.field(&text(10, &[text(1, name.as_bytes()), value.to_vec()].concat()))
    }

    pub(crate) fn with(self, name: &str, value: u64) -> Self {
        self.attribute(name, &number(UINT64, value))
    }

    pub(crate) fn of_group(self, name: &str) -> Self {
        self.attribute("pg_name", &text(29, name.as_bytes()))
    }

    pub(crate) fn given(self, values: &str) -> Self {
        self.field(&text(8, &text(1, values.as_bytes())))
    }

    pub(crate) fn field(mut self, octets: &[u8]) -> Self {
        self.0.extend(octets);
        self
    }
}

/// A collective as ASTRA-sim's generator writes one.
pub(crate) fn collective(id: u64, name: &str, kind: u64, size: u64) -> Node {
    let node = Node::new(id, name, COLLECTIVE).attribute("is_cpu_op", &number(BOOL, 0));
    node.attribute("comm_type", &number(INT64, kind)).with("comm_size", size)
}

/// What a file of these nodes has: a message about itself, and then they.
pub(crate) fn trace(nodes: &[Node]) -> Vec<u8> {
    file(&text(1, b"0.0.4"), nodes)
}

/// The same with another message in front.
pub(crate) fn file(metadata: &[u8], nodes: &[Node]) -> Vec<u8> {
    let messages = std::iter::once(metadata).chain(nodes.iter().map(|node| &node.0[..]));
    messages.flat_map(|message| [varint(message.len() as u64), message.to_vec()].concat()).collect()
}
