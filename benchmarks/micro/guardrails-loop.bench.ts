// Measures how long a text that is designed to be slow blocks the event loop: bodies of the largest size that is
// screened there, and larger ones, which go to a worker. Prints the time of the synchronous part, how long others
// waited and the whole time (medians of nine); for a stream its slowest event. benchmarks/README.md says how to run it.

import { Buffer } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { ENTITY_NAMES } from '../../src/domain/guardrails/entities.ts';
import { placeNodes } from '../../src/domain/guardrails/text-places.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { screenBody } from '../../src/generation/guardrails/screen-body.ts';
import { StreamScreen } from '../../src/generation/guardrails/stream-screen.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import { policyOf, ruleOf } from '../../test/support/guardrail-policies.ts';
import { HOSTILE_TEXTS, hostileText } from '../../test/support/hostile-texts.ts';
import { silentLog } from '../../test/support/silent-log.ts';
import { median } from '../harness/median.ts';

const NO_CLOAKING = { scopes: null, values: null };
const MEGABYTE = 1_048_576;
const ROUNDS = 9;
const STREAMS = 3;
/** The text's size: with the JSON around it, the most that the event loop screens itself. */
const INLINE_BYTES = 32_000;

function compiled(id: string, ...rules: Parameters<typeof ruleOf>[0][]): CompiledPolicy {
  const found = compilePolicy([policyOf(rules.map(ruleOf), { id })], 'chat_completions');
  if (found === null) throw new Error('no rule');
  return found;
}

const everything = compiled('everything', { detect: ENTITY_NAMES });
/** The largest patterns that a policy may have. */
const exploding = compiled('exploding', {
  patterns: Array.from({ length: 4 }, (_, index) => ({ regex: `[a-z]*${'abcd'[index]}[a-z]{200}`, maxLength: 256 })),
});
const emails = compiled('emails', { detect: ['email'] });

const page = readFileSync(new URL('../../docs/guardrails.md', import.meta.url));
const prose = Buffer.alloc(102_400, page);

function bodyOf(text: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text.toString('latin1') }] }));
}

const workers = new WorkerPool({
  threads: 1,
  queueBytesMax: 64 * MEGABYTE,
  log: silentLog,
  metrics: new MetricsRegistry(),
});

/**
 * Prints one row. The call is timed until it returns: that part is synchronous, whether or not a promise has to be
 * awaited.
 */
async function print(name: string, policy: CompiledPolicy, text: Buffer): Promise<void> {
  const whole = { stage: 'input' as const, body: bodyOf(text), places: chatCompletions.texts, parts: null };
  const [atOnceMs, lateMs, wholeMs]: [number[], number[], number[]] = [[], [], []];
  let end = '';
  for (let round = 0; round < ROUNDS; round += 1) {
    const startMs = performance.now();
    const screening = screenBody(policy, whole, NO_CLOAKING, workers);
    atOnceMs.push(performance.now() - startMs);
    const [{ report }, late] = await besides(screening);
    lateMs.push(late);
    wholeMs.push(performance.now() - startMs);
    end = screening instanceof Promise ? 'worker' : 'loop';
    if (report.not_scanned !== undefined) end += `, ${report.not_scanned.join()}`;
  }
  const [atOnce, late, all] = [atOnceMs, lateMs, wholeMs].map((taken) => median(taken).toFixed(2).padStart(7));
  console.log(`${name.padEnd(56)} ${atOnce} ms at once, then ${late} ms late, ${all} ms in all; ${end}`);
}

/** Runs the work and measures how long others waited for the event loop, at most. */
async function besides<T>(work: T | Promise<T>): Promise<[T, number]> {
  let isOver = false;
  let longestMs = 0;
  let lastMs = performance.now();
  const turn = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const done = await work;
  isOver = true;
  turn();
  return [done, longestMs];
}

for (const name of HOSTILE_TEXTS) await print(`32 KB of ${name}`, everything, hostileText(name, INLINE_BYTES));
for (const name of HOSTILE_TEXTS) await print(`1 MB of ${name}`, everything, hostileText(name, MEGABYTE));
for (const [bytes, policy] of [
  [INLINE_BYTES, 'emails'],
  [102_400, 'emails'],
  [INLINE_BYTES, 'everything'],
  [102_400, 'everything'],
] as const)
  await print(
    `${bytes} bytes of prose, ${policy}`,
    policy === 'emails' ? emails : everything,
    prose.subarray(0, bytes),
  );
await print('100,000 findings', emails, Buffer.alloc(700_000, 'a@b.co '));
for (const bytes of [440, 4_000, 65_000, MEGABYTE])
  await print(`${bytes} bytes for patterns that explode`, exploding, Buffer.alloc(bytes, 'a'));

/** Screens a stream of such a text event by event; prints its slowest event, the least of several streams. */
function printStream(name: string, policy: CompiledPolicy, text: Buffer, pieceBytes: number): void {
  const longestMs = Math.min(...Array.from({ length: STREAMS }, () => longestEventMs(policy, text, pieceBytes)));
  console.log(`${name.padEnd(56)} ${longestMs.toFixed(2).padStart(7)} ms for an event`);
}

function longestEventMs(policy: CompiledPolicy, text: Buffer, pieceBytes: number): number {
  const rules = { compiled: policy, stage: 'output' as const, placeholders: null, values: null };
  const stream = new StreamScreen(rules, placeNodes(chatCompletions.texts).event);
  let longestMs = 0;
  for (let at = 0; at + pieceBytes <= text.length; at += pieceBytes) {
    const content = JSON.stringify(text.toString('latin1', at, at + pieceBytes));
    const event = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":${content}}}]}\n\n`);
    const startMs = performance.now();
    stream.feed(event, () => true);
    if (at > 0) longestMs = Math.max(longestMs, performance.now() - startMs);
  }
  return longestMs;
}

printStream('stream of patterns that explode, 4 bytes an event', exploding, Buffer.alloc(4_000, 'a'), 4);
printStream('stream of patterns that explode, 300 bytes an event', exploding, Buffer.alloc(60_000, 'a'), 300);
for (const name of [
  'private addresses',
  'seed words that are no phrase',
  'accounts in pieces',
  'phones that no plan has',
])
  printStream(`stream of ${name}, 16 KB an event`, everything, hostileText(name, MEGABYTE), 16_384);
await workers.close();
