// Measures what preparing a conversation costs (spec 4.11), in the calling thread and through the worker pool, by size
// and shape of the body.

import { prepareConversation } from '../../src/domain/routing/conversation/prepare-conversation.ts';
import type { PreparedConversation } from '../../src/domain/routing/conversation/prepared-conversation.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import { median } from '../harness/median.ts';

const ROUNDS = 9;
const ROUND_BYTES = 8 * 1024 * 1024;
const CALLS_MAX = 1000;

/**
 * An agent's conversation of about this many bytes: a system prompt of a third of them, then turns of a question, a
 * call, a result and an answer.
 */
function conversation(bytes: number): Buffer {
  const prose = 'The quick brown fox reads the ledger, and "quotes" it:\n\tline by line. '.repeat(6);
  const messages: unknown[] = [
    { role: 'system', content: prose.repeat(Math.ceil(bytes / 3 / prose.length)).slice(0, bytes / 3) },
  ];
  let left = bytes - bytes / 3;
  for (let turn = 0; left > 0; turn++) {
    const question = `<system-reminder>\n${prose}\n</system-reminder>\nWhat does step ${turn} of the plan do?`;
    messages.push({
      role: 'user',
      content: [{ type: 'text', text: question.slice(-Math.max(60, Math.min(question.length, left))) }],
    });
    if (left > 600) {
      messages.push({
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `c${turn}`, type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } }],
      });
      messages.push({
        role: 'tool',
        tool_call_id: `c${turn}`,
        content: prose.repeat(8).slice(0, Math.max(40, left - 600)),
      });
      messages.push({ role: 'assistant', content: prose.slice(0, 200) });
    }
    left -= JSON.stringify(messages.slice(-4)).length;
  }
  return Buffer.from(JSON.stringify({ model: 'service/auto', messages }));
}

const chat = (messages: unknown): Buffer => Buffer.from(JSON.stringify({ model: 'service/auto', messages }));
const user = (content: unknown): unknown => ({ role: 'user', content });

const BODIES: readonly (readonly [string, Buffer])[] = [
  ['1 KB', conversation(1024)],
  ['16 KB', conversation(16 * 1024)],
  ['256 KB', conversation(256 * 1024)],
  ['1 MB', conversation(1024 * 1024)],
  ['16 KB of "<"', chat([user('<'.repeat(16_000))])],
  ['16 KB of lines with "<"', chat([user('\n<'.repeat(5500))])],
  ['16 KB of elements', chat([user('<skill></skill>\n'.repeat(900))])],
  ['16 KB of element names', chat([user('\n<task>'.repeat(1800))])],
  ['16 KB of blocks', chat([user(Array.from({ length: 600 }, () => ({ type: 'text', text: 'x' })))])],
  ['16 KB of messages', chat(Array.from({ length: 500 }, () => user('x')))],
  ['16 KB of brackets', Buffer.from(`{"messages":${'['.repeat(8000)}${']'.repeat(8000)}}`)],
  ['1 MB of "a"', chat([user('a'.repeat(1_000_000))])],
  ['1 MB of "<"', chat([user('<'.repeat(1_000_000))])],
  ['1 MB of lines with "<"', chat([user('\n<'.repeat(350_000))])],
  ['60,000 reminders never closed', chat([user('<system-reminder>\n'.repeat(60_000))])],
  ['10,000 messages', chat(Array.from({ length: 10_000 }, (_, index) => user(`message ${index}`)))],
  ['100,000 blocks', chat([user(Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'x' })))])],
];

const pool = new WorkerPool({
  threads: 1,
  queueBytesMax: 256 * 1024 * 1024,
  log: createLog({ level: 'silent', process: 'bench' }),
  metrics: new MetricsRegistry(),
});

async function inPool(body: Buffer): Promise<PreparedConversation> {
  const copy = new Uint8Array(body);
  const options = { bytes: copy.byteLength, deadlineMs: 10_000, transfer: [copy.buffer] };
  const result = await pool.run<PreparedConversation>(
    'prepare-conversation',
    { api: 'chat_completions', body: copy },
    options,
  );
  if (!result.ok) throw new Error(result.reason);
  return result.value;
}

/**
 * Returns the wall time of the work itself, the CPU of the process (all threads) per call, and the CPU of this thread
 * per call, which is the event loop's part.
 */
async function measure(body: Buffer): Promise<string> {
  const calls = Math.max(3, Math.min(CALLS_MAX, Math.floor(ROUND_BYTES / body.byteLength)));
  const own: number[] = [];
  const pooled: number[] = [];
  const loop: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const ownStart = process.cpuUsage();
    for (let call = 0; call < calls; call++) prepareConversation({ api: 'chat_completions', body });
    const ownUsed = process.cpuUsage(ownStart);
    own.push((ownUsed.user + ownUsed.system) / calls);
    await inPool(body);
    const pooledStart = process.cpuUsage();
    const loopStart = process.threadCpuUsage();
    for (let call = 0; call < calls; call++) await inPool(body);
    const loopUsed = process.threadCpuUsage(loopStart);
    const pooledUsed = process.cpuUsage(pooledStart);
    loop.push((loopUsed.user + loopUsed.system) / calls);
    pooled.push((pooledUsed.user + pooledUsed.system) / calls);
  }
  return [own, pooled, loop].map((values) => median(values).toFixed(1).padStart(10)).join('');
}

const startMs = systemClock.monotonicMs();
console.log(`${'CPU, µs per call'.padEnd(32)}${'bytes'.padStart(10)}   in-thread   in-pool  its loop`);
for (const [name, body] of BODIES)
  console.log(`${name.padEnd(32)}${String(body.byteLength).padStart(10)}  ${await measure(body)}`);
console.log(`${((systemClock.monotonicMs() - startMs) / 1000).toFixed(0)} s`);
await pool.close();
