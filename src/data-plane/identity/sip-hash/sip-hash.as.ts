// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF"), in AssemblyScript: it works on words of 64 bits, which
// JavaScript has only as BigInt. sip-hash.ts owns the interface; check/build-wasm.ts makes the .wasm from this.

// --- Memory -----------------------------------------------------------------------------------------------------------------
const SECRET: usize = 0; // 16 bytes
const HASH: usize = 16; // 16 bytes
const TEXT: usize = 64; // what is hashed, and room for eight bytes behind it

let v0: u64 = 0;
let v1: u64 = 0;
let v2: u64 = 0;
let v3: u64 = 0;

// @ts-ignore: decorator
@inline
function round(): void {
  v0 += v1;
  v2 += v3;
  v1 = rotl<u64>(v1, 13) ^ v0;
  v3 = rotl<u64>(v3, 16) ^ v2;
  v0 = rotl<u64>(v0, 32);
  v2 += v1;
  v0 += v3;
  v1 = rotl<u64>(v1, 17) ^ v2;
  v3 = rotl<u64>(v3, 21) ^ v0;
  v2 = rotl<u64>(v2, 32);
}

function finish(): u64 {
  for (let index = 0; index < 4; index++) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

/** Hashes the first `length` bytes at TEXT under SECRET, to HASH. Overwrites the eight bytes behind them. */
export function hash(length: i32): void {
  const k0 = load<u64>(SECRET);
  const k1 = load<u64>(SECRET + 8);
  v0 = 0x736f6d6570736575 ^ k0;
  v1 = 0x646f72616e646f6d ^ k1 ^ 0xee;
  v2 = 0x6c7967656e657261 ^ k0;
  v3 = 0x7465646279746573 ^ k1;
  // The last word: what is left of the text, zeros, and its length.
  store<u64>(TEXT + length, 0);
  const words = length >> 3;
  store<u8>(TEXT + (words << 3) + 7, <u8>length);
  for (let index = 0; index <= words; index++) {
    const word = load<u64>(TEXT + (index << 3));
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  v2 ^= 0xee;
  store<u64>(HASH, finish());
  v1 ^= 0xdd;
  store<u64>(HASH + 8, finish());
}
