// A name for a credential that nobody can foresee or turn back into it: its hash under a secret of this process (SipHash, 128 bits). A cryptographic
// hash without a secret does as well; through OpenSSL it was 3 % of a request's CPU on a busy machine.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { assert } from '../../../platform/assert.ts';

const TEXT_LENGTH_MAX = 256;

// Addresses are those of sip-hash.as.ts.
const SECRET = 0;
const SECRET_BYTES = 16;
const HASH = 16;
const HASH_WORDS = 8;
const TEXT = 64;
const ASCII_MAX = 0x7f;

interface HashModule {
  readonly memory: { readonly buffer: ArrayBuffer };
  hash(length: number): void;
}

// TypeScript has these types only together with all of the browser's.
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

export class SipHash {
  private readonly module: HashModule;
  private readonly text: Uint8Array;
  private readonly hash: Uint16Array;

  constructor(secret: Uint8Array = randomBytes(SECRET_BYTES)) {
    assert(secret.length === SECRET_BYTES, 'the secret of SipHash has 16 bytes');
    const wasm = new WebAssembly.Module(readFileSync(new URL('./sip-hash.wasm', import.meta.url)));
    // The artifact is ours and compared with its source by `npm run check`: its exports are known.
    this.module = new WebAssembly.Instance(wasm).exports as HashModule;
    const { buffer } = this.module.memory;
    new Uint8Array(buffer).set(secret, SECRET);
    this.text = new Uint8Array(buffer, TEXT);
    this.hash = new Uint16Array(buffer, HASH, HASH_WORDS);
  }

  /** Of the characters of `text` from `start` to `end`, as eight UTF-16 units; null where they are more than 256, or one is not ASCII. */
  of(text: string, start: number, end: number): string | null {
    if (end - start > TEXT_LENGTH_MAX) return null;
    const bytes = this.text;
    let all = 0;
    for (let index = start; index < end; index++) {
      const code = text.charCodeAt(index);
      all |= code;
      bytes[index - start] = code;
    }
    if (all > ASCII_MAX) return null;
    this.module.hash(end - start);
    const { hash } = this;
    return String.fromCharCode(hash[0]!, hash[1]!, hash[2]!, hash[3]!, hash[4]!, hash[5]!, hash[6]!, hash[7]!);
  }
}
