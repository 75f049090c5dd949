//! A small assembler for the programs that run in the kernel (Documentation/bpf/standardization/instruction-set.rst): jumps
//! lead to labels that are placed later.

pub(super) const MOVE: u8 = 0xbf;
pub(super) const MOVE_VALUE: u8 = 0xb7;
pub(super) const ADD_VALUE: u8 = 0x07;
pub(super) const AND_VALUE: u8 = 0x57;
pub(super) const SHIFT_RIGHT: u8 = 0x77;
pub(super) const LOAD_WORD: u8 = 0x61;
pub(super) const LOAD_HALF: u8 = 0x69;
pub(super) const LOAD_BYTE: u8 = 0x71;
pub(super) const STORE_WORD: u8 = 0x63;
pub(super) const STORE_WORD_VALUE: u8 = 0x62;
pub(super) const STORE_DOUBLE_VALUE: u8 = 0x7a;
pub(super) const LOAD_MAP: u8 = 0x18;
pub(super) const JUMP: u8 = 0x05;
pub(super) const JUMP_EQUAL: u8 = 0x15;
pub(super) const JUMP_AT_LEAST: u8 = 0x35;
pub(super) const JUMP_DIFFERENT: u8 = 0x55;
pub(super) const JUMP_ABOVE: u8 = 0x2d;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;
/// Helper: looks a key up in a map.
pub(super) const LOOK_UP: i32 = 1;
/// Register of the stack.
pub(super) const STACK: u8 = 10;

/// Helper: copies bytes of the frame.
const LOAD_BYTES: i32 = 26;
/// Result: pass the frame to the next program, or to the kernel.
pub(super) const PASS: i32 = -1;
/// Result: drop the frame.
pub(super) const SHOT: i32 = 2;

/// Where a jump leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Label {
    V4,
    V6,
    Find,
    Take,
    Own,
    Kept,
    Station,
    Pass,
}

/// Instructions, with jumps to labels that are not placed yet.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<[u8; 8]>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    pub(super) fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let [a, b] = offset.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        self.code.push([code, registers, a, b, c, d, e, f]);
    }

    pub(super) fn jump(&mut self, code: u8, register: u8, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(code, register, 0, 0, value);
    }

    /// Jumps if register `above` is above register `below`.
    pub(super) fn jump_above(&mut self, above: u8, below: u8, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP_ABOVE, above, below, 0, 0);
    }

    /// Puts the address of a map, by its descriptor, in a register.
    pub(super) fn map(&mut self, register: u8, map: i32) {
        self.put(LOAD_MAP, register, 1, 0, map);
        self.put(0, 0, 0, 0, 0);
    }

    pub(super) fn place(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        for &(at, label) in &self.jumps {
            let target =
                self.labels.iter().find(|placed| placed.0 == label).map_or(at + 1, |placed| placed.1);
            let offset = (target - at - 1) as i16;
            self.code[at][2..4].copy_from_slice(&offset.to_ne_bytes());
        }
        self.code.concat()
    }
}

/// Goes to `otherwise` unless the frame is for an address of VRRP (RFC 5798, section 7.3). Uses the stack from 28 to 20 bytes below its top.
pub(super) fn virtual_router(asm: &mut Assembler, otherwise: Label) {
    copy(asm, 0, -28, 5);
    asm.put(LOAD_WORD, 2, STACK, -28, 0);
    asm.jump(JUMP_DIFFERENT, 2, i32::from_ne_bytes([0, 0, 0x5e, 0]), otherwise);
    // 1 for IPv4, 2 for IPv6.
    asm.put(LOAD_BYTE, 2, STACK, -24, 0);
    asm.put(ADD_VALUE, 2, 0, 0, -1);
    asm.jump(JUMP_AT_LEAST, 2, 2, otherwise);
}

/// Goes on to [`Label::Pass`] or [`Label::Find`] by the IPv4 destination that is on the stack, 4 bytes below its top: groups,
/// reserved, loopback and link-local addresses pass.
pub(super) fn scope_v4(asm: &mut Assembler) {
    asm.put(LOAD_BYTE, 2, STACK, -4, 0);
    asm.jump(JUMP_AT_LEAST, 2, 224, Label::Pass);
    asm.jump(JUMP_EQUAL, 2, 0, Label::Pass);
    asm.jump(JUMP_EQUAL, 2, 127, Label::Pass);
    asm.jump(JUMP_DIFFERENT, 2, 169, Label::Find);
    asm.put(LOAD_BYTE, 2, STACK, -3, 0);
    asm.jump(JUMP_EQUAL, 2, 254, Label::Pass);
    asm.jump(JUMP, 0, 0, Label::Find);
}

/// Like [`scope_v4`], by the IPv6 destination 16 bytes below the top of the stack; falls through to [`Label::Find`].
pub(super) fn scope_v6(asm: &mut Assembler) {
    asm.put(LOAD_BYTE, 2, STACK, -16, 0);
    asm.jump(JUMP_EQUAL, 2, 0xff, Label::Pass);
    asm.jump(JUMP_DIFFERENT, 2, 0xfe, Label::Find);
    asm.put(LOAD_BYTE, 2, STACK, -15, 0);
    asm.put(AND_VALUE, 2, 0, 0, 0xc0);
    asm.jump(JUMP_EQUAL, 2, 0x80, Label::Pass);
}

/// Goes to [`Label::Pass`] if the key on the stack, 20 bytes below its top, is in the map of the machine's addresses.
pub(super) fn find(asm: &mut Assembler, addresses: i32) {
    asm.place(Label::Find);
    look_up(asm, addresses);
    asm.jump(JUMP_DIFFERENT, 0, 0, Label::Pass);
}

/// Looks up the key on the stack, 20 bytes below its top. Register 0 is 0 if the map does not have it.
pub(super) fn look_up(asm: &mut Assembler, map: i32) {
    asm.map(1, map);
    asm.put(MOVE, 2, STACK, 0, 0);
    asm.put(ADD_VALUE, 2, 0, 0, -20);
    asm.put(CALL, 0, 0, 0, LOOK_UP);
}

/// Puts the upper parts of an IPv4-mapped address on the stack, for a key.
pub(super) fn mapped(asm: &mut Assembler) {
    asm.put(STORE_DOUBLE_VALUE, STACK, 0, -16, 0);
    asm.put(STORE_WORD_VALUE, STACK, 0, -8, u32::from_ne_bytes([0, 0, 0xff, 0xff]) as i32);
}

/// Asserts that every jump leads forward into the program, and that it ends.
#[cfg(test)]
pub(super) fn check(code: &[u8]) {
    assert_eq!(code.len() % 8, 0);
    let count = code.len() / 8;
    for (index, instruction) in code.chunks(8).enumerate() {
        if matches!(instruction[0], JUMP | JUMP_EQUAL | JUMP_AT_LEAST | JUMP_DIFFERENT | JUMP_ABOVE) {
            let offset = i16::from_ne_bytes([instruction[2], instruction[3]]);
            assert!(offset >= 0 && index + 1 + (offset as usize) < count, "instruction {index}");
        }
    }
    assert_eq!(code[code.len() - 8], EXIT);
}

/// Copies bytes of the frame to the stack. A frame that is too short passes.
pub(super) fn copy(asm: &mut Assembler, offset: i32, stack: i32, len: i32) {
    asm.put(MOVE, 1, 6, 0, 0);
    asm.put(MOVE_VALUE, 2, 0, 0, offset);
    asm.put(MOVE, 3, STACK, 0, 0);
    asm.put(ADD_VALUE, 3, 0, 0, stack);
    asm.put(MOVE_VALUE, 4, 0, 0, len);
    asm.put(CALL, 0, 0, 0, LOAD_BYTES);
    asm.jump(JUMP_DIFFERENT, 0, 0, Label::Pass);
}
