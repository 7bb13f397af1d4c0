// For how long a text that is made to be slow keeps the event loop from everybody else: bodies as large as are screened
// there, and larger ones, which go to a worker. Prints the CPU time of what is done at once (the median of nine, of a
// stream its longest event), and how late the loop was meanwhile; benchmarks/README.md says how to run it.

import { Buffer } from 'node:buffer';
import { monitorEventLoopDelay } from 'node:perf_hooks';
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

const NO_CLOAKING = { scopes: null, values: null };
const MEGABYTE = 1_048_576;
const ROUNDS = 9;
/** With the JSON around it as much as the event loop screens itself. */
const INLINE_BYTES = 32_000;

function compiled(id: string, ...rules: Parameters<typeof ruleOf>[0][]): CompiledPolicy {
  const found = compilePolicy([policyOf(rules.map(ruleOf), { id })], 'chat_completions');
  if (found === null) throw new Error('no rule');
  return found;
}

const everything = compiled('everything', { detect: ENTITY_NAMES });
/** As large as a policy may have them. */
const exploding = compiled('exploding', {
  patterns: Array.from({ length: 4 }, (_, index) => ({ regex: `[a-z]*${'abcd'[index]}[a-z]{200}`, maxLength: 256 })),
});
const emails = compiled('emails', { detect: ['email'] });

function bodyOf(text: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text.toString('latin1') }] }));
}

const workers = new WorkerPool({
  threads: 1,
  queueBytesMax: 64 * MEGABYTE,
  log: silentLog,
  metrics: new MetricsRegistry(),
});

/** What is done before it is known whether it has to be waited for is done at once. */
async function print(name: string, policy: CompiledPolicy, text: Buffer): Promise<void> {
  const whole = { stage: 'input' as const, body: bodyOf(text), places: chatCompletions.texts, parts: null };
  const tookMs: number[] = [];
  let end = '';
  const delay = monitorEventLoopDelay({ resolution: 1 });
  for (let round = 0; round < ROUNDS; round += 1) {
    const startMs = performance.now();
    const before = process.threadCpuUsage();
    const screening = screenBody(policy, whole, NO_CLOAKING, workers);
    const { user, system } = process.threadCpuUsage(before);
    tookMs.push((user + system) / 1_000);
    delay.enable();
    const { report } = await screening;
    delay.disable();
    const isWaited = screening instanceof Promise;
    end = `${isWaited ? 'worker' : 'loop'}, ${(performance.now() - startMs).toFixed(0)} ms in all`;
    if (report.not_scanned !== undefined) end += `, ${report.not_scanned.join()}`;
  }
  const atOnceMs = tookMs.toSorted((one, other) => one - other)[ROUNDS >> 1] ?? 0;
  const lateMs = (delay.max / 1e6).toFixed(1);
  console.log(`${name.padEnd(56)} ${atOnceMs.toFixed(2).padStart(7)} ms at once, then ${lateMs} ms late; ${end}`);
}

for (const name of HOSTILE_TEXTS) await print(`32 KB of ${name}`, everything, hostileText(name, INLINE_BYTES));
for (const name of HOSTILE_TEXTS) await print(`1 MB of ${name}`, everything, hostileText(name, MEGABYTE));
await print('100,000 findings', emails, Buffer.alloc(700_000, 'a@b.co '));
for (const bytes of [440, 4_000, 65_000, MEGABYTE])
  await print(`${bytes} bytes for patterns that explode`, exploding, Buffer.alloc(bytes, 'a'));

/** A stream of such a text, an event at a time. */
function printStream(name: string, policy: CompiledPolicy, text: Buffer, pieceBytes: number): void {
  const rules = { compiled: policy, stage: 'output' as const, placeholders: null, values: null };
  const stream = new StreamScreen(rules, placeNodes(chatCompletions.texts).event);
  let longestMs = 0;
  for (let at = 0; at + pieceBytes <= text.length; at += pieceBytes) {
    const content = JSON.stringify(text.toString('latin1', at, at + pieceBytes));
    const event = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":${content}}}]}\n\n`);
    // The thread's own CPU time: on a busy machine others take turns, and compilers have threads of their own.
    const before = process.threadCpuUsage();
    stream.feed(event);
    const { user, system } = process.threadCpuUsage(before);
    if (at > 0) longestMs = Math.max(longestMs, (user + system) / 1_000);
  }
  console.log(`${name.padEnd(56)} ${longestMs.toFixed(2).padStart(7)} ms for an event`);
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
