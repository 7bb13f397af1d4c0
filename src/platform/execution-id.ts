// Execution ids: UUIDv7 (RFC 9562, 5.7), growing within a process, made on every request and therefore cheap.
//
//   xxxxxxxx-xxxx-7ccc-Vrrr-rrrrrrrrrrrr   x = 48 bits of milliseconds, c = 12-bit counter, V = variant and 2 random bits, r = 60 random bits
//
// The counter is RFC 9562's method 1 (6.2): it starts at a random value below half its range in every new millisecond, counts up inside it,
// and when it is used up the timestamp is run ahead by one. The same rule holds ids in order while the machine's clock steps back.

import { randomFillSync } from 'node:crypto';
import { assert } from './assert.ts';
import type { Clock } from './clock.ts';

/** One call to the system's random source costs about as much as fifty ids; drawing for 512 ids at a time makes it vanish. */
const DRAWS_PER_ID = 6;
const POOL_DRAWS = 512 * DRAWS_PER_ID;
const COUNTER_MAX = 0xfff;
const COUNTER_SEED_MASK = 0x7ff;
const TIMESTAMP_MAX = 2 ** 48 - 1;

/** Ids are put together from three hexadecimal digits at a time: few joins, and a table that stays small. */
const HEX_TRIPLES: readonly string[] = Array.from({ length: 0x1000 }, (_, bits) => bits.toString(16).padStart(3, '0'));
const VARIANTS = ['-8', '-9', '-a', '-b'] as const;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Makes the process's id source. `fillRandom` must fill the whole array; tests pass their own. */
export function createExecutionIdSource(clock: Clock, fillRandom: (bytes: Uint8Array) => void = (bytes) => void randomFillSync(bytes)): () => string {
  const pool = new Uint16Array(POOL_DRAWS);
  const poolBytes = new Uint8Array(pool.buffer);
  let position = POOL_DRAWS;
  let timestampMs = -1;
  let counter = 0;
  let prefix = '';

  const startMillisecond = (ms: number, seed: number): void => {
    assert(ms >= 0 && ms <= TIMESTAMP_MAX, 'execution id: the clock is outside what a UUIDv7 can carry');
    timestampMs = ms;
    counter = seed & COUNTER_SEED_MASK;
    const hex = ms.toString(16).padStart(12, '0');
    prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  };
  const triple = (offset: number): string => HEX_TRIPLES[(pool[offset] as number) & 0xfff] as string;

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

    // The seed takes the low bits of the first draw; the variant's two random bits are its highest.
    const variant = VARIANTS[seed >> 14] as string;
    return prefix + HEX_TRIPLES[counter] + variant + triple(at + 1) + '-' + triple(at + 2) + triple(at + 3) + triple(at + 4) + triple(at + 5);
  };
}

/** The millisecond an execution id was made in; null when the text is not a UUIDv7 and so cannot be an execution of ours. */
export function executionIdTimeMs(id: string): number | null {
  if (id.length !== 36 || !UUID_V7.test(id)) return null;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
