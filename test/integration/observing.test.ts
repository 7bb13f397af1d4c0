// What jobs tells of ended executions: the access log with `tollgate logs`, and the traces of a plain, a retried, a
// routed, a cut and a blocked request, at a receiver of OTLP. A collector that is away harms nothing.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { AccessLog } from '../../jobs/observing/access-log.ts';
import { TraceExport } from '../../jobs/observing/trace-export.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { type AccessLogEntry, accessLogFile, accessLogLine } from '../../src/records/access-log-line.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { silentLog } from '../support/silent-log.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const KEY = `tg-observed-${'a'.repeat(32)}`;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const STOP_LIMIT_MS = 5_000;

interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status?: { readonly code: number; readonly message: string };
}

/** Keeps what is exported to it. */
class Receiver {
  readonly spans: ReceivedSpan[] = [];
  readonly resources: unknown[] = [];
  headers: IncomingHttpHeaders = {};
  status = 200;
  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.headers = request.headers;
      if (this.status === 200 && request.url === '/v1/traces') this.keep(Buffer.concat(chunks).toString());
      response.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private keep(text: string): void {
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: { resource: unknown; scopeSpans: { spans: ReceivedSpan[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      this.resources.push(resource);
      for (const { spans } of scopeSpans) this.spans.push(...spans);
    }
  }
}

function attributesOf({ attributes }: ReceivedSpan): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

describe('an installation that is observed', () => {
  const receiver = new Receiver();
  let provider: SimulatedProvider;
  let front: Front;

  before(async () => {
    provider = await startSimulatedProvider();
    front = await startFront({
      configurationYaml: configuration(provider.url),
      env: {
        ACCESS_LOG: 'on',
        OTEL_EXPORTER_OTLP_ENDPOINT: await receiver.start(),
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector',
        OTEL_SERVICE_NAME: 'gateway',
      },
    });
  });
  after(async () => {
    await front.stop();
    await provider.stop();
    receiver.stop();
  });

  async function call(model: string, content: string, traceparent?: string, stream = false) {
    const answer = await httpCall(`${front.url}/v1/chat/completions`, {
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        ...(traceparent === undefined ? {} : { traceparent }),
      },
      body: JSON.stringify({ model, stream, messages: [{ role: 'user', content }] }),
      isOffFormat: true,
    });
    return { status: answer.status, id: String(answer.headers['x-service-execution-id']) };
  }

  /** The request's span first, then those below it in order of their beginnings. */
  async function spansOf(id: string, traceId = id.replaceAll('-', '')): Promise<ReceivedSpan[]> {
    const isServer = (span: ReceivedSpan) => attributesOf(span)['tollgate.execution.id'] === id;
    const server = await waitFor(
      'its span',
      () => receiver.spans.find(isServer),
      (span) => span !== undefined,
    );
    assert.ok(server !== undefined);
    assert.equal(server.traceId, traceId);
    const below = receiver.spans.filter(({ parentSpanId }) => parentSpanId === server.spanId);
    for (const span of [server, ...below]) {
      assert.equal(span.traceId, traceId);
      assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), span.name);
    }
    return [server, ...below];
  }

  test('a plain request is a child of its client’s span, with the call below it', async () => {
    const { id } = await call('sim/small', 'Hello', `00-${TRACE}-${PARENT}-01`);
    const [server, chat, ...others] = await spansOf(id, TRACE);
    assert.deepEqual(others, []);
    assert.equal(server?.parentSpanId, PARENT);
    assert.deepEqual([server?.name, server?.kind], ['POST /v1/chat/completions', 2]);
    assert.deepEqual([chat?.name, chat?.kind], ['chat small-2026-05-01', 3]);
    const attributes = attributesOf(chat as ReceivedSpan);
    assert.equal(attributes['gen_ai.provider.name'], 'sim');
    assert.equal(attributes['gen_ai.request.model'], 'sim/small');
    assert.ok(Number(attributes['gen_ai.usage.input_tokens']) > 0);
    assert.ok(Number(attributes['gen_ai.usage.output_tokens']) > 0);
    assert.equal('gen_ai.usage.input_tokens' in attributesOf(server as ReceivedSpan), false, 'tokens count once');
    assert.equal(attributesOf(server as ReceivedSpan)['tollgate.billing.status'], 'final');
    assert.equal(receiver.headers.authorization, 'Bearer collector');
    assert.match(JSON.stringify(receiver.resources[0]), /"service.name".*"gateway".*"service.version"/);
  });

  test('what the client does not sample is not exported', async () => {
    const { id } = await call('sim/small', 'Hello', `00-${'5'.repeat(32)}-${PARENT}-00`);
    const next = await call('sim/small', 'Hello');
    await spansOf(next.id);
    assert.ok(!receiver.spans.some((span) => attributesOf(span)['tollgate.execution.id'] === id));
  });

  test('a retried request has a span for each call', async () => {
    const { id, status } = await call('sim/retried', 'Hello');
    assert.equal(status, 200);
    const [, first, second, ...others] = await spansOf(id);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [first, second].map((span) => attributesOf(span as ReceivedSpan)['gen_ai.provider.name']),
      ['dead', 'sim'],
    );
    assert.equal(first?.status?.code, 2);
    assert.equal(second?.status, undefined);
    assert.ok(BigInt(first?.endTimeUnixNano ?? 0) <= BigInt(second?.startTimeUnixNano ?? 0));
    assert.equal('gen_ai.usage.input_tokens' in attributesOf(first as ReceivedSpan), false);
  });

  test('a routed request has the classifier’s call, its tier and why', async () => {
    const { id } = await call('service/auto', 'Write a sorting function');
    const [server, classify, chat] = await spansOf(id);
    const { 'tollgate.route.tier': tier, 'tollgate.route.reason': reason } = attributesOf(server as ReceivedSpan);
    assert.ok(tier !== undefined && reason === 'classified', JSON.stringify([tier, reason]));
    assert.match(classify?.name ?? '', /^classify /);
    assert.match(chat?.name ?? '', /^chat /);
  });

  test('a cut reply is an error, and a blocked request calls nobody', async () => {
    const cut = await call('sim/small', '[[sim: tokens=50 cut_after=5]] Hello', undefined, true);
    const blocked = await call('sim/small', 'I am ada@example.com');
    assert.equal(blocked.status, 400);
    const [server, ...calls] = await spansOf(blocked.id);
    assert.deepEqual(calls, []);
    assert.equal(attributesOf(server as ReceivedSpan)['tollgate.guardrail'], 'no-mail');
    assert.equal(JSON.stringify(receiver.spans).includes('ada@example.com'), false, 'no texts');
    const [, chat] = await spansOf(cut.id);
    assert.equal(chat?.status?.code, 2, JSON.stringify(chat));
  });

  test('`tollgate logs` shows what ended, and what failed', async () => {
    const { id } = await call('sim/retried', 'The last one');
    const lines = await waitFor(
      'its line',
      async () => (await front.run(['logs', '--json'])).output.trim().split('\n'),
      (shown) => shown.some((line) => line.includes(id)),
    );
    const entry = lines.map((line) => JSON.parse(line) as AccessLogEntry).find((one) => one.id === id);
    assert.ok(entry !== undefined);
    assert.deepEqual([entry.status, entry.attempts, entry.provider, entry.billing_status], [200, 2, 'sim', 'final']);
    assert.match(entry.cost ?? '', /^0\.\d+$/);
    const failed = (await front.run(['logs', '--failed', '--lines', '100'])).output;
    assert.match(failed, /400 \S+ {2}chat_completions {2}sim\/small/);
    assert.ok(!failed.includes(id));
    const shown = (await front.run(['logs', '--lines', '1', '--model', 'sim/retried'])).output.trim();
    assert.match(shown, /200 {2}chat_completions {2}sim\/retried {2}sim \(2 calls\) {2}\d+ ms, first byte \d+ ms/);
    assert.ok(shown.endsWith(id), shown);
    assert.equal(readFileSync(accessLogFile(front.dataDir, 0), 'utf8').includes('The last one'), false, 'no texts');
  });
});

describe('an exporter', () => {
  const resource = { serviceName: 'tollgate', version: '1.0.0', instance: 'one' };
  const make = (url: string, registry: MetricsRegistry, ratio = 1) =>
    new TraceExport({
      url: `${url}/v1/traces`,
      headers: {},
      ratio,
      resource,
      log: silentLog,
      metrics: registry,
      intervalMs: 5,
    });
  const figure = (registry: MetricsRegistry, result: string) =>
    Number(new RegExp(`_spans_total\\{result="${result}"\\} (\\d+)`).exec(registry.render())?.[1]);

  test('holds a bounded number of spans for a collector that is away, and sends them when it is back', async (context) => {
    const receiver = new Receiver();
    const url = await receiver.start();
    context.after(() => receiver.stop());
    receiver.status = 503;
    const registry = new MetricsRegistry();
    const exporter = make(url, registry);
    for (let round = 0; round < 10; round++) exporter.ended(Array.from({ length: 1_000 }, () => terminalRecord()));
    assert.ok(figure(registry, 'dropped') > 10_000, registry.render());
    await waitFor(
      'it to be asked',
      () => receiver.headers,
      (headers) => headers['content-type'] !== undefined,
    );
    assert.equal(receiver.spans.length, 0);
    receiver.status = 200;
    await waitFor(
      'what is left',
      () => figure(registry, 'sent'),
      (sent) => sent > 8_000,
    );
    assert.equal(figure(registry, 'sent') + figure(registry, 'dropped'), 20_000);
    assert.equal(receiver.spans.length, figure(registry, 'sent'));
    await exporter.stop(1_000);
  });

  test('drops what a collector refuses, and ends in time where nobody is', async (context) => {
    const receiver = new Receiver();
    const url = await receiver.start();
    context.after(() => receiver.stop());
    receiver.status = 400;
    const registry = new MetricsRegistry();
    const refusedBy = make(url, registry);
    refusedBy.ended([terminalRecord()]);
    await waitFor(
      'the refusal',
      () => figure(registry, 'dropped'),
      (dropped) => dropped === 2,
    );
    await refusedBy.stop(1_000);
    const nobody = make('http://127.0.0.1:9', new MetricsRegistry());
    nobody.ended([terminalRecord()]);
    await nobody.stop(1_000);
  });

  test('has told all when it has stopped, whole batches too', async (context) => {
    const receiver = new Receiver();
    const url = await receiver.start();
    context.after(() => receiver.stop());
    const exporter = make(url, new MetricsRegistry());
    exporter.ended(Array.from({ length: 512 }, () => terminalRecord()));
    await exporter.stop(STOP_LIMIT_MS);
    assert.equal(receiver.spans.length, 1_024);
  });

  test('exports failures whatever the share is', async (context) => {
    const receiver = new Receiver();
    const url = await receiver.start();
    context.after(() => receiver.stop());
    const exporter = make(url, new MetricsRegistry(), 0);
    exporter.ended([200, 502, null].map((status) => terminalRecord(executionStart(), { status })));
    await exporter.stop(1_000);
    assert.equal(receiver.spans.filter(({ kind }) => kind === 2).length, 2);
  });
});

test('files of the access log replace one another, and a disk that takes none harms nothing', async (context) => {
  const directory = temporaryDirectory(context);
  const metrics = new MetricsRegistry();
  const log = new AccessLog({ dataDirectory: directory, log: silentLog, metrics, fileBytesMax: 2_000 });
  for (let round = 0; round < 20; round++) {
    log.ended([terminalRecord()]);
    await log.stop(STOP_LIMIT_MS);
  }
  const sizes = [0, 1, 2, 3, 4].map((age) => readFileSync(accessLogFile(directory, age)).length);
  assert.ok(
    sizes.every((size) => size > 0 && size <= 2_000),
    sizes.join(),
  );
  const figures = new MetricsRegistry();
  const away = new AccessLog({ dataDirectory: join(directory, 'absent'), log: silentLog, metrics: figures });
  away.ended([terminalRecord()]);
  await away.stop(STOP_LIMIT_MS);
  assert.match(figures.render(), /^tollgate_access_log_dropped_total 1$/m);
});

test('`tollgate logs -f` follows a file that is put aside, and tells nothing again when one is removed', async (context) => {
  const directory = temporaryDirectory(context);
  const [present, aside] = [accessLogFile(directory, 0), accessLogFile(directory, 1)];
  let count = 0;
  const line = (): string => accessLogLine({ ...terminalRecord(), id: `line-${count++}` });
  writeFileSync(aside, line().repeat(20));
  writeFileSync(present, `${line()}null\n7\n\u{0}\n`);
  const child = spawn(process.execPath, [COMMAND, 'logs', '-f', '--lines', '1'], {
    env: { ...process.env, DATA_DIR: directory },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => child.kill());
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  const shown = () => [...output.matchAll(/line-\d+/g)].map(([id]) => id);
  const seen = (...ids: string[]) => waitFor('the lines', shown, (found) => found.join() === ids.join());
  await seen('line-1');
  appendFileSync(present, Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(line())]));
  await seen('line-1', 'line-2');
  appendFileSync(present, line());
  renameSync(present, aside);
  writeFileSync(present, line() + line());
  await seen('line-1', 'line-2', 'line-3', 'line-4', 'line-5');
  writeFileSync(aside, line().repeat(50));
  rmSync(present);
  writeFileSync(present, line());
  await seen('line-1', 'line-2', 'line-3', 'line-4', 'line-5', 'line-7');
});

test('a command whose output nobody reads any more ends, without a word', async (context) => {
  const directory = temporaryDirectory(context);
  const present = accessLogFile(directory, 0);
  writeFileSync(present, accessLogLine(terminalRecord()));
  const child = spawn(process.execPath, [COMMAND, 'logs', '-f'], { env: { ...process.env, DATA_DIR: directory } });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString('utf8')));
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  child.stdout.destroy();
  appendFileSync(present, accessLogLine(terminalRecord()));
  assert.deepEqual(await closed, [141, null]);
  assert.equal(complaint, '');
});

/** The demo, with a model whose first provider is never reached, and a rule against addresses. */
function configuration(providerUrl: string): string {
  const path = fileURLToPath(new URL('../../deploy/demo.yaml', import.meta.url));
  const demo = parse(readFileSync(path, 'utf8').replace('${SIMULATED_PROVIDER_URL}', providerUrl));
  const [small] = demo.models;
  demo.providers.push({ id: 'dead', base_url: 'http://127.0.0.1:9', auth: 'none' });
  const [served] = small.served_by;
  demo.models.push({ ...small, id: 'sim/retried', served_by: [{ ...served, provider: 'dead' }, served] });
  demo.guardrails = [{ name: 'mail', rules: [{ id: 'no-mail', detect: ['email'], stage: 'input', action: 'block' }] }];
  const [organization] = demo.organizations;
  organization.guardrails = { policy: 'mail' };
  organization.keys[0].secret = KEY;
  return stringify(demo);
}
