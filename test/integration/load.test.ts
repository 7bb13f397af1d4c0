// `tollgate load` against servers whose behaviour is known: what stalls is not flattered, percentiles are not below the
// server's own, errors are told by kind, and an interrupted load prints what it measured.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadCommand } from '../../src/commands/load.ts';
import { buildLoadRequest } from '../../src/load/load-request.ts';
import { loadFigures, renderLoadText } from '../../src/load/render-load.ts';
import { type LoadPlan, runLoad, tryOnce } from '../../src/load/run-load.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { runCommand } from '../support/gateway.ts';
import { type Answer, startLoadTarget } from '../support/load-target.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const atOnce: Answer = (_, reply) => reply.end('{}');

function planFor(url: string, plan: Partial<LoadPlan> & { api?: string }): LoadPlan {
  const { api = 'chat_completions', ...rest } = plan;
  return {
    request: buildLoadRequest({ target: new URL(url), api, key: 'k', model: 'm', prompt: 'Hello', maxTokens: null }),
    rate: null,
    concurrency: 0,
    areStreamed: false,
    streams: 0,
    seconds: 0.5,
    timeoutMs: 20_000,
    ...rest,
  };
}

function load(plan: LoadPlan) {
  return runLoad(plan, systemClock, new AbortController().signal, () => undefined);
}

describe('a load', () => {
  test('a server that stalls for a second is seen by all that was due in it, not by the one request it held', async (context) => {
    // The server runs in this very process: while it stalls, nothing can be sent either.
    const target = await startLoadTarget((_, reply, index) => {
      if (index === 20) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
      reply.end('{}');
    });
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { rate: 100, seconds: 2 }));
    assert.equal(measurements.requests.latency.count, 200);
    assert.ok(measurements.requests.latency.percentileUs(99) >= 950_000);
    assert.ok(measurements.requests.latency.percentileUs(75) >= 450_000);
    assert.ok(measurements.ownDelay.maxUs >= 900_000, 'and the command says that it sent late itself');
  });

  test('a server that holds all its replies back is seen the same', async (context) => {
    const held: (() => void)[] = [];
    let isStalled = false;
    const target = await startLoadTarget((_, reply, index) => {
      if (index === 20) {
        isStalled = true;
        setTimeout(() => {
          isStalled = false;
          for (const release of held) release();
        }, 1_000);
      }
      if (isStalled) held.push(() => reply.end('{}'));
      else reply.end('{}');
    });
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { rate: 100, seconds: 1 }));
    assert.equal(measurements.requests.latency.count, 100);
    assert.ok(measurements.requests.latency.percentileUs(50) >= 450_000);
    assert.ok(measurements.requests.latency.maxUs >= 950_000);
  });

  test('each percentile is at least that of the server’s own log, and is not far from it', async (context) => {
    const target = await startLoadTarget((_, reply, index) => setTimeout(() => reply.end('{}'), 20 + (index % 50) * 8));
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { rate: 200, seconds: 1 }));
    const own = [...target.tookMs].sort((one, other) => one - other);
    assert.equal(measurements.requests.latency.count, own.length);
    for (const percent of [10, 50, 90, 99, 100]) {
      const theirs = own[Math.ceil((percent / 100) * own.length) - 1] ?? Number.NaN;
      const ours = measurements.requests.latency.percentileUs(percent) / 1_000;
      // Three significant digits, and the server's clock begins when it has read the head.
      assert.ok(ours >= theirs * 0.998 - 1, `p${percent}: ${ours} ms, the server's ${theirs} ms`);
    }
    const planned = 20 + 49 * 8;
    assert.ok(measurements.requests.latency.percentileUs(50) / 1_000 >= planned / 2 - 10);
  });

  test('errors are told by kind, and are in no latency', async (context) => {
    const answers: Answer[] = [
      atOnce,
      (_, reply) => reply.writeHead(429).end('{"error":{}}'),
      (_, reply) => void reply.writeHead(200, { 'content-length': '100' }).write('{', () => reply.destroy()),
      (_, reply) => reply.end(),
      () => undefined,
    ];
    const target = await startLoadTarget((request, reply, index) => answers[index % 5]?.(request, reply, index));
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { rate: 50, seconds: 0.5, timeoutMs: 2_500 }));
    assert.deepEqual([...measurements.errors.keys()].sort(), [
      'an empty reply',
      'no whole reply within 2.5 s',
      'status 429',
      'the reply was cut: UND_ERR_SOCKET',
    ]);
    assert.deepEqual(new Set(measurements.errors.values()), new Set([5]));
    assert.equal(measurements.requests.latency.count, 5);
    assert.equal(measurements.open, 0);
  });

  test('streams are kept open in their number; their events and ends are measured', async (context) => {
    let open = 0;
    let openMost = 0;
    const target = await startLoadTarget((_, reply, index) => {
      openMost = Math.max(openMost, ++open);
      reply.once('close', () => (open -= 1));
      reply.write('data: {"a":1}\n\n');
      setTimeout(() => reply.write('data: {"a":2}\n\n'), 30);
      setTimeout(() => reply.end(index % 4 === 3 ? '' : 'data: [DONE]\n\n'), 60);
    });
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { streams: 4, seconds: 0.6 }));
    assert.equal(openMost, 4);
    const { latency, firstByte, betweenEvents } = measurements.streams;
    assert.ok(latency.count >= 3);
    assert.ok(latency.percentileUs(1) >= 58_000 && firstByte.count === latency.count);
    assert.ok(betweenEvents.maxUs >= 25_000);
    assert.deepEqual([...measurements.errors.keys()], ['a stream without its last event']);
  });

  test('replies that are only waited for do not count as served a second', async (context) => {
    const target = await startLoadTarget((_, reply) => setTimeout(() => reply.end('{}'), 500));
    context.after(() => target.close());
    const result = await load(planFor(target.url, { concurrency: 4, seconds: 0.2 }));
    assert.equal(result.measurements.good, 4);
    assert.equal(result.goodInTime, 0);
    assert.match(renderLoadText(result), /^4 requests in \d+\.\d s: 4 good replies \(0\.0 a second in it\)/);
    assert.equal(loadFigures(result)['good_per_second'], 0);
  });

  test('a closed loop has as many requests open as it was told', async (context) => {
    const target = await startLoadTarget((_, reply) => setTimeout(() => reply.end('{}'), 20));
    context.after(() => target.close());
    const { measurements } = await load(planFor(target.url, { concurrency: 3, seconds: 0.3 }));
    assert.equal(new Set(target.seen.map(({ socket }) => socket.remotePort)).size, 3);
    assert.equal(measurements.requests.latency.count, target.seen.length);
  });

  for (const [api, path, header] of [
    ['chat_completions', '/v1/chat/completions', undefined],
    ['responses', '/v1/responses', undefined],
    ['messages', '/v1/messages', 'k'],
  ] as const) {
    test(`${api}: path, key and the try before the load`, async (context) => {
      const target = await startLoadTarget(atOnce);
      context.after(() => target.close());
      assert.equal(await tryOnce(planFor(target.url, { api, rate: 1 }), systemClock), null);
      assert.equal(await tryOnce(planFor(`${target.url}/other/v2/`, { api, rate: 1 }), systemClock), null);
      const [first, second] = target.seen;
      assert.equal(first?.url, path);
      assert.equal(second?.url, path.replace('/v1', '/other/v2'));
      assert.equal(first?.headers.authorization, 'Bearer k');
      assert.equal(first?.headers['x-api-key'], header);
    });
  }
});

describe('tollgate load', () => {
  test('prints percentiles and writes them as JSON and as a histogram log', async (context) => {
    const target = await startLoadTarget(atOnce);
    context.after(() => target.close());
    const directory = temporaryDirectory(context);
    const [json, hdr] = [join(directory, 'load.json'), join(directory, 'load.hlog')];
    const { exitCode, output } = await runCommand(
      [
        'load',
        '--target',
        target.url,
        '--model',
        'm',
        '--rate',
        '40',
        '--seconds',
        '0.5',
        '--json',
        json,
        '--hdr',
        hdr,
      ],
      { ...process.env, TOLLGATE_KEY: 'from-the-environment' },
    );
    assert.equal(exitCode, 0, output);
    assert.match(output, /^20 requests in \d+\.\d s: 20 good replies/);
    assert.match(output, /requests: latency +20 /);
    assert.equal(target.seen.length, 21, 'one request before the load is not counted');
    assert.equal(target.seen[0]?.headers.authorization, 'Bearer from-the-environment');
    const figures = JSON.parse(readFileSync(json, 'utf8')) as Record<string, unknown>;
    assert.equal(figures['good'], 20);
    assert.equal((figures['request_latency_ms'] as { count: number }).count, 20);
    assert.match(readFileSync(hdr, 'utf8'), /^Tag=request_latency,0\.000,\S+,HISTF/m);
  });

  test('says what is wrong with its arguments, and with a target that is not there or refuses', async (context) => {
    const refusing = await startLoadTarget((_, reply) => reply.writeHead(401).end('{"error":"no such key"}'));
    context.after(() => refusing.close());
    const usual = ['--target', refusing.url, '--model', 'm'];
    const cases: [readonly string[], RegExp][] = [
      [['--model', 'm', '--rate', '1'], /^UsageFault: --target is missing/],
      [
        ['--target', 'ftp://x', '--model', 'm', '--rate', '1'],
        /^UsageFault: .* not an http:\/\/ or https:\/\/ address/,
      ],
      [usual, /^UsageFault: --rate, --concurrency or --streams is missing/],
      [[...usual, '--rate', '1', '--concurrency', '1'], /^UsageFault: .* exclude each other/],
      [[...usual, '--rate', '0'], /^UsageFault: --rate is "0"/],
      [[...usual, '--streams', '1.5'], /^UsageFault: --streams takes a whole number/],
      [[...usual, '--rate', '1', '--api', 'soap'], /^UsageFault: unknown API "soap"/],
      [[...usual, '--rate', '1', '--key', 'two words'], /^UsageFault: --key has characters/],
      [[...usual, '--rate', '1'], /before the load failed: status 401: \{"error":"no such key"\}/],
      [[...usual, '--rate', '1', '--json', '/nowhere/load.json'], /cannot write \/nowhere\/load.json: ENOENT/],
      [['--target', 'http://127.0.0.1:9', '--model', 'm', '--rate', '1'], /no reply: ECONNREFUSED/],
    ];
    for (const [args, text] of cases) {
      const printed = (): void => assert.fail('nothing was measured');
      await assert.rejects(loadCommand.run(args, { environment: {}, print: printed }), (error: Error) => {
        assert.match(`${error.name}: ${error.message}`, text);
        return true;
      });
    }
  });

  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`ended by ${signal}, it prints what it has measured and what was still open`, async (context) => {
      const target = await startLoadTarget((_, reply, index) =>
        index > 5 && index % 2 === 0 ? undefined : reply.end('{}'),
      );
      context.after(() => target.close());
      const args = ['load', '--target', target.url, '--model', 'm', '--rate', '50', '--seconds', '3600'];
      const child = spawn(process.execPath, [COMMAND, ...args], {
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
      const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
      await waitFor(
        'twenty requests',
        () => target.seen.length,
        (count) => count > 20,
      );
      // As a terminal does: to all processes of the command.
      process.kill(-(child.pid ?? Number.NaN), signal);
      assert.equal(await closed, exitCode, output);
      assert.match(output, /requests: latency/);
      assert.match(output, /\d+ requests had no whole reply when the load was stopped/);
    });
  }
});
