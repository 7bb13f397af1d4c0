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
const POOL_BYTES = 512 * 16;
const BYTES_PER_ID = 10;
const COUNTER_MAX = 0xfff;
const COUNTER_SEED_MASK = 0x7ff;
const TIMESTAMP_MAX = 2 ** 48 - 1;

const HEX_BYTES: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const HEX_COUNTERS: readonly string[] = Array.from({ length: COUNTER_MAX + 1 }, (_, count) => count.toString(16).padStart(3, '0'));
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Makes the process's id source. `fillRandom` must fill the whole array; tests pass their own. */
export function createExecutionIdSource(
  clock: Clock,
  fillRandom: (bytes: Uint8Array) => void = (bytes) => void randomFillSync(bytes),
): () => string {
  const pool = new Uint8Array(POOL_BYTES);
  let position = POOL_BYTES;
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
  const byte = (offset: number): number => pool[offset] as number;
  const hex = (offset: number): string => HEX_BYTES[pool[offset] as number] as string;

  return () => {
    if (position + BYTES_PER_ID > POOL_BYTES) {
      fillRandom(pool);
      position = 0;
    }
    const at = position;
    position += BYTES_PER_ID;

    const nowMs = Math.floor(clock.nowMs());
    const seed = (byte(at) << 8) | byte(at + 1);
    if (nowMs > timestampMs) startMillisecond(nowMs, seed);
    else if (counter === COUNTER_MAX) startMillisecond(timestampMs + 1, seed);
    else counter++;

    const variant = HEX_BYTES[(byte(at + 2) & 0x3f) | 0x80] as string;
    return (
      prefix + (HEX_COUNTERS[counter] as string) + '-' + variant + hex(at + 3) + '-' +
      hex(at + 4) + hex(at + 5) + hex(at + 6) + hex(at + 7) + hex(at + 8) + hex(at + 9)
    );
  };
}

/** The millisecond an execution id was made in; null when the text is not a UUIDv7 and so cannot be an execution of ours. */
export function executionIdTimeMs(id: string): number | null {
  if (id.length !== 36 || !UUID_V7.test(id)) return null;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
