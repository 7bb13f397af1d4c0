// What observers of ended executions do where their outlet hangs, fails or is slow, and what `tollgate logs` shows of
// texts that a client made up.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, constants, mkdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AccessLog } from '../../jobs/observing/access-log.ts';
import { TraceExport } from '../../jobs/observing/trace-export.ts';
import { logsCommand } from '../../src/commands/logs.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { ACCESS_LOG_FILES, accessLogFile, accessLogLine } from '../../src/records/access-log-line.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { needs } from '../support/programs.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

/** Far above what these tests ask for: a wait without an end fails there. */
const BACKSTOP = { timeout: 8_000 };
const PIPE = { ...BACKSTOP, ...needs('mkfifo') };

/** A collector that answers with 200, or not at all. */
async function startCollector(context: TestContext, answers: boolean) {
  const seen = { requests: 0 };
  const server = createServer((request, response) => {
    seen.requests += 1;
    request.resume().on('end', () => answers && response.end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces` };
}

function exporterTo(url: string, metrics: MetricsRegistry, intervalMs: number): TraceExport {
  const resource = { serviceName: 'tollgate', version: '1.0.0', instance: 'one' };
  return new TraceExport({ url, headers: {}, ratio: 1, resource, log: silentLog, metrics, intervalMs });
}

test('an exporter ends in its time where a collector takes a batch and does not answer', BACKSTOP, async (context) => {
  const { seen, url } = await startCollector(context, false);
  const exporter = exporterTo(url, new MetricsRegistry(), 5);
  exporter.ended([terminalRecord()]);
  await waitFor(
    'the batch',
    () => seen.requests,
    (requests) => requests > 0,
  );
  await exporter.stop(50);
});

test('an access log that has nothing yet says so, and what writes it', async (context) => {
  const asked = logsCommand.run([], { environment: { DATA_DIR: temporaryDirectory(context) }, print: assert.fail });
  await assert.rejects(
    asked,
    /^StartFault: no request is in the access log of \S+ yet: with ACCESS_LOG=on jobs writes/,
  );
});

test('batches that are full follow one another at once', async (context) => {
  const { url } = await startCollector(context, true);
  const metrics = new MetricsRegistry();
  const exporter = exporterTo(url, metrics, 600_000);
  exporter.ended(Array.from({ length: 2_000 }, () => terminalRecord()));
  await waitFor(
    'all but what fills no batch',
    () => Number(/_spans_total\{result="sent"\} (\d+)/.exec(metrics.render())?.[1]),
    (sent) => sent === 4_000 - (4_000 % 512),
    5_000,
  );
  await exporter.stop(5_000);
  assert.match(metrics.render(), /_spans_total\{result="sent"\} 4000/);
  assert.match(metrics.render(), /_spans_total\{result="dropped"\} 0/);
});

test('a disk that hangs holds up no end of the access log, and memory is bounded', PIPE, async (context) => {
  const directory = temporaryDirectory(context);
  const path = accessLogFile(directory, 0);
  // To open a pipe that nobody reads waits, as a disk does whose server is gone.
  execFileSync('mkfifo', [path]);
  const metrics = new MetricsRegistry();
  const log = new AccessLog({ dataDirectory: directory, log: silentLog, metrics });
  const records = Array.from({ length: 1_000 }, () => terminalRecord());
  for (let round = 0; round < 40; round++) log.ended(records);
  await log.stop(50);
  assert.match(metrics.render(), /^tollgate_access_log_dropped_total [1-9]\d{3,}$/m);
  // What hangs gets a reader that leaves, and what follows a file.
  const reader = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
  unlinkSync(path);
  await reader.close();
  await log.stop(5_000);
});

test('where a full file cannot be put aside nothing is written beyond it, and that is counted', async (context) => {
  const directory = temporaryDirectory(context);
  // In the place of the oldest file lies what cannot be replaced.
  mkdirSync(join(accessLogFile(directory, ACCESS_LOG_FILES - 1), 'of somebody'), { recursive: true });
  for (let age = 0; age < ACCESS_LOG_FILES - 1; age++) writeFileSync(accessLogFile(directory, age), `${age}`);
  const metrics = new MetricsRegistry();
  const log = new AccessLog({ dataDirectory: directory, log: silentLog, metrics, fileBytesMax: 100 });
  log.ended([terminalRecord()]);
  await log.stop(5_000);
  assert.match(metrics.render(), /^tollgate_access_log_dropped_total 1$/m);
  assert.equal(readFileSync(accessLogFile(directory, 0), 'utf8'), '0');
});

test('half a line that a power cut left takes no line behind it along', async (context) => {
  const directory = temporaryDirectory(context);
  const path = accessLogFile(directory, 0);
  const [before, behind] = [terminalRecord(), terminalRecord()];
  writeFileSync(path, accessLogLine(before) + accessLogLine(terminalRecord()).slice(0, 60));
  const log = new AccessLog({ dataDirectory: directory, log: silentLog, metrics: new MetricsRegistry() });
  log.ended([behind]);
  await log.stop(5_000);
  const shown = await shownOf(directory, ['--json']);
  assert.deepEqual(
    shown.map((line) => JSON.parse(line).id),
    [before.id, behind.id],
  );
});

async function shownOf(directory: string, args: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  const environment = { DATA_DIR: directory };
  assert.equal(await logsCommand.run(args, { environment, print: (line) => void lines.push(line) }), 0);
  return lines;
}

test('`tollgate logs` shows the newest lines of all files in order', async (context) => {
  const directory = temporaryDirectory(context);
  const records = Array.from({ length: 9 }, () => terminalRecord());
  const files = [records.slice(7), records.slice(4, 7), records.slice(0, 4)];
  files.forEach((some, age) => writeFileSync(accessLogFile(directory, age), some.map(accessLogLine).join('')));
  for (const count of [1, 2, 4, 9, 20]) {
    const shown = await shownOf(directory, ['--json', '--lines', String(count)]);
    assert.deepEqual(
      shown.map((line) => JSON.parse(line).id),
      records.slice(-count).map(({ id }) => id),
    );
  }
});

test('`tollgate logs -f` shows every line that comes, over the end of a file', BACKSTOP, async (context) => {
  const directory = temporaryDirectory(context);
  const records = Array.from({ length: 5 }, () => terminalRecord());
  const [one = '', two = '', last = '', first = '', second = ''] = records.map(accessLogLine);
  const before = one + two;
  const path = accessLogFile(directory, 0);
  writeFileSync(path, before);
  const args = [fileURLToPath(new URL('../../src/main.ts', import.meta.url)), 'logs', '-f', '--json'];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, DATA_DIR: directory },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (text: Buffer) => (said += text.toString()));
  const shows = (text: string) =>
    waitFor(
      'what came',
      () => said,
      (all) => all === text,
    );
  await shows(before);
  // Both between two looks, and the last line of the old file in two pieces.
  appendFileSync(path, last.slice(0, 100));
  await shows(before);
  appendFileSync(path, last.slice(100));
  renameSync(path, accessLogFile(directory, 1));
  writeFileSync(path, first);
  await shows(before + last + first);
  appendFileSync(path, second);
  await shows(before + last + first + second);
});

test('a model that a client made up neither moves a terminal’s cursor nor breaks a line', async (context) => {
  const directory = temporaryDirectory(context);
  const requestedModel = 'a\u001b[2Jb\u009b1Ac\u2028d\u202ee\u007ff\ng';
  const record = terminalRecord(executionStart({ requestedModel, model: requestedModel }));
  const text = accessLogLine(record);
  assert.doesNotMatch(text.slice(0, -1), /[\p{Cc}\p{Zl}\p{Zp}]/u);
  assert.equal(JSON.parse(text).requested_model, requestedModel);
  writeFileSync(accessLogFile(directory, 0), text);
  const [line = '', ...others] = await shownOf(directory, []);
  assert.deepEqual(others, []);
  assert.ok(line.includes('  a\ufffd[2Jb\ufffd1Ac\ufffdd\ufffde\ufffdf\ufffdg  '), line);
  assert.ok(line.endsWith(record.id));
});
