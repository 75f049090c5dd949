//! The program at the ingress of a device with AF_XDP sockets. It gives the sockets the frames to forward, and the kernel all
//! others.
//!
//! ```text
//! frames with a VLAN tag: to the sockets, if the router has such interfaces; else to the kernel
//! frames to a group of stations: to the kernel
//! the rest as the filter of packet sockets has it; where that drops, this gives the frame to the socket of its queue
//! ```
//!
//! Frames of a queue without a socket go to the kernel.

use super::assembler::{
    self, ADD_VALUE, AND_VALUE, Assembler, CALL, EXIT, JUMP, JUMP_DIFFERENT, JUMP_EQUAL, LOAD_BYTE,
    LOAD_HALF, LOAD_WORD, Label, MOVE, MOVE_VALUE, STACK, STORE_WORD,
};

/// Helper: gives the frame to an entry of a map.
const REDIRECT: i32 = 51;
/// Result: pass the frame to the kernel.
const PASS: i32 = 2;
/// Fields of the context, a `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const DEVICE: i16 = 12;
const QUEUE: i16 = 16;

/// Assembles the program. The key is on the stack, 20 bytes below its top; register 7 is the frame, 8 its end.
pub(super) fn program(addresses: i32, sockets: i32, tagged: bool) -> Vec<u8> {
    let mut asm = Assembler::default();
    let be = |value: u16| i32::from(value.to_be());
    asm.put(MOVE, 6, 1, 0, 0);
    asm.put(LOAD_WORD, 7, 6, DATA, 0);
    asm.put(LOAD_WORD, 8, 6, DATA_END, 0);
    within(&mut asm, 14);
    asm.put(LOAD_HALF, 2, 7, 12, 0);
    let way = if tagged { Label::Take } else { Label::Pass };
    asm.jump(JUMP_EQUAL, 2, be(0x8100), way);
    asm.jump(JUMP_EQUAL, 2, be(0x88a8), way);
    asm.put(LOAD_BYTE, 3, 7, 0, 0);
    asm.put(AND_VALUE, 3, 0, 0, 1);
    asm.jump(JUMP_DIFFERENT, 3, 0, Label::Pass);
    asm.put(LOAD_WORD, 3, 6, DEVICE, 0);
    asm.put(STORE_WORD, STACK, 3, -20, 0);
    asm.jump(JUMP_EQUAL, 2, be(0x0800), Label::V4);
    asm.jump(JUMP_EQUAL, 2, be(0x86dd), Label::V6);
    asm.jump(JUMP, 0, 0, Label::Pass);

    asm.place(Label::V4);
    assembler::mapped(&mut asm);
    within(&mut asm, 14 + 20);
    asm.put(LOAD_WORD, 3, 7, 14 + 16, 0);
    asm.put(STORE_WORD, STACK, 3, -4, 0);
    assembler::scope_v4(&mut asm);

    asm.place(Label::V6);
    within(&mut asm, 14 + 40);
    for word in 0..4 {
        asm.put(LOAD_WORD, 3, 7, 14 + 24 + 4 * word, 0);
        asm.put(STORE_WORD, STACK, 3, -16 + 4 * word, 0);
    }
    assembler::scope_v6(&mut asm);
    assembler::find(&mut asm, addresses);
    asm.place(Label::Take);
    take(&mut asm, sockets);
    asm.place(Label::Pass);
    asm.put(MOVE_VALUE, 0, 0, 0, PASS);
    asm.put(EXIT, 0, 0, 0, 0);
    asm.finish()
}

/// Assembles a program that gives every frame to the sockets: for a bridge.
pub(super) fn everything(sockets: i32) -> Vec<u8> {
    let mut asm = Assembler::default();
    asm.put(MOVE, 6, 1, 0, 0);
    take(&mut asm, sockets);
    asm.finish()
}

/// Passes shorter frames to the kernel. The verifier requires this check before these bytes are read.
fn within(asm: &mut Assembler, bytes: i32) {
    asm.put(MOVE, 4, 7, 0, 0);
    asm.put(ADD_VALUE, 4, 0, 0, bytes);
    asm.jump_above(4, 8, Label::Pass);
}

fn take(asm: &mut Assembler, sockets: i32) {
    asm.put(LOAD_WORD, 2, 6, QUEUE, 0);
    asm.map(1, sockets);
    // The result for a frame whose queue has no socket.
    asm.put(MOVE_VALUE, 3, 0, 0, PASS);
    asm.put(CALL, 0, 0, 0, REDIRECT);
    asm.put(EXIT, 0, 0, 0, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_leads_forward_into_the_program() {
        for tagged in [false, true] {
            assembler::check(&program(5, 6, tagged));
        }
        assembler::check(&everything(6));
    }
}
