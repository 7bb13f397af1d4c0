// Execution ids: UUIDv7 (RFC 9562, 5.7), growing within a process, made on every request and therefore cheap.
//
//   xxxxxxxx-xxxx-7ccc-Vrrr-rrrrrrrrrrrr   x = 48 bits of milliseconds    c = 12-bit counter
//                                          V = variant and 2 random bits  r = 60 random bits
//
// The counter is RFC 9562's method 1 (6.2): it starts at a random value below half its range in every new millisecond,
// counts up inside it, and when it is used up the timestamp is run ahead by one. The same rule holds ids in order while
// the machine's clock steps back.

import { randomFillSync } from 'node:crypto';
import { assert } from './assert.ts';
import type { Clock } from './clock.ts';

/** A call to the system's random source costs about as much as fifty ids, so each call draws for 512 ids. */
const DRAWS_PER_ID = 6;
const POOL_DRAWS = 512 * DRAWS_PER_ID;
const COUNTER_MAX = 0xfff;
const COUNTER_SEED_MASK = 0x7ff;
const TIMESTAMP_MAX = 2 ** 48 - 1;

const DIGITS = Buffer.from('0123456789abcdef');
/** The places of the milliseconds' digits, the last one first. */
const TIME_AT = [12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1, 0] as const;
const VARIANT_AT = 19;
/** The places of the 60 random bits, three digits for each draw. */
const TRIPLES_AT = [20, 24, 27, 30, 33] as const;
const COUNTER_AT = 15;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Creates the process's source of ids. `fillRandom` must fill the whole array; tests pass their own. */
export function createExecutionIdSource(
  clock: Clock,
  fillRandom: (bytes: Uint8Array) => void = (bytes) => void randomFillSync(bytes),
): () => string {
  const pool = new Uint16Array(POOL_DRAWS);
  const poolBytes = new Uint8Array(pool.buffer);
  /** The buffer of the next id. One flat string, because joined strings are flattened each time they are written. */
  const text = Buffer.from('00000000-0000-7000-8000-000000000000');
  let position = POOL_DRAWS;
  let timestampMs = -1;
  let counter = 0;

  const startMillisecond = (ms: number, seed: number): void => {
    assert(ms >= 0 && ms <= TIMESTAMP_MAX, 'execution id: the clock is outside what a UUIDv7 can carry');
    timestampMs = ms;
    counter = seed & COUNTER_SEED_MASK;
    let left = ms;
    for (const at of TIME_AT) {
      text[at] = DIGITS[left % 16] as number;
      left = Math.floor(left / 16);
    }
  };
  const writeTriple = (at: number, bits: number): void => {
    text[at] = DIGITS[(bits >> 8) & 0xf] as number;
    text[at + 1] = DIGITS[(bits >> 4) & 0xf] as number;
    text[at + 2] = DIGITS[bits & 0xf] as number;
  };

  return () => {
    if (position === POOL_DRAWS) {
      fillRandom(poolBytes);
      position = 0;
    }
    const at = position;
    position += DRAWS_PER_ID;

    const seed = pool[at] as number;
    const nowMs = Math.floor(clock.nowMs());
    if (nowMs > timestampMs) startMillisecond(nowMs, seed);
    else if (counter === COUNTER_MAX) startMillisecond(timestampMs + 1, seed);
    else counter++;

    writeTriple(COUNTER_AT, counter);
    // The seed uses the low bits of the first draw; its two highest bits go into the variant.
    text[VARIANT_AT] = DIGITS[8 + (seed >> 14)] as number;
    for (let triple = 0; triple < TRIPLES_AT.length; triple++)
      writeTriple(TRIPLES_AT[triple] as number, pool[at + 1 + triple] as number);
    return text.toString('latin1');
  };
}

/** The millisecond in which an execution id was made; null when the text is not a UUIDv7 and so not an id of ours. */
export function executionIdTimeMs(id: string): number | null {
  if (id.length !== 36 || !UUID_V7.test(id)) return null;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The beginning of all ids of that millisecond, including the second hyphen. `timeMs` must be whole. */
function executionIdTimeText(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`;
}

/** A lower bound of all ids made in that millisecond or later. */
export function firstExecutionIdAt(timeMs: number): string {
  return `${executionIdTimeText(Math.max(0, Math.floor(timeMs)))}7000-8000-000000000000`;
}
