//! A request and the memory for its answer.

use crate::abi::{ARGUMENT_BYTES, RequestHeader};

/// A request, with its payload in memory where the payload of the answer goes.
#[derive(Debug)]
pub struct Exchange<'a> {
    header: RequestHeader,
    argument: [u8; ARGUMENT_BYTES],
    length: usize,
    memory: &'a mut [u8],
}

impl<'a> Exchange<'a> {
    /// A request whose payload is the first `length` bytes of `memory`.
    pub fn new(header: RequestHeader, argument: [u8; 128], length: usize, memory: &'a mut [u8]) -> Exchange<'a> {
        Exchange { header, argument, length: length.min(memory.len()), memory }
    }

    /// Who asks for what.
    pub fn header(&self) -> RequestHeader {
        self.header
    }

    /// The structure that the operation begins with, and zeros or what an earlier one left behind it.
    pub fn argument(&self) -> &[u8; 128] {
        &self.argument
    }

    /// What follows that structure: names, values, data to write.
    pub fn payload(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// The memory for the payload of the answer, all of the entry's. The payload of the request is in it, and is lost
    /// where this is written to.
    pub fn room(&mut self) -> &mut [u8] {
        self.memory
    }
}
