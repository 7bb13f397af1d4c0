// Traces at a real OpenTelemetry Collector: it takes the spans of a retried request as they are meant. `otelcol` with
// an OTLP receiver and the debug exporter, which any distribution has.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { traceIdOf } from '../../jobs/observing/spans-of-execution.ts';
import { TraceExport } from '../../jobs/observing/trace-export.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { findFreePort } from '../support/free-port.ts';
import { needs } from '../support/programs.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

test('a collector takes every span with its attributes, parents and errors', needs('otelcol'), async (context) => {
  const endpoint = `127.0.0.1:${await findFreePort()}`;
  const file = join(temporaryDirectory(context), 'collector.yaml');
  writeFileSync(
    file,
    stringify({
      receivers: { otlp: { protocols: { http: { endpoint } } } },
      exporters: { debug: { verbosity: 'detailed' } },
      service: {
        telemetry: { metrics: { level: 'none' } },
        pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
      },
    }),
  );
  const collector = spawn('otelcol', ['--config', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [collector.stdout, collector.stderr])
    stream.on('data', (text: Buffer) => (said += String(text)));
  context.after(async () => {
    collector.kill('SIGTERM');
    if (collector.exitCode === null) await once(collector, 'exit');
  });
  await waitFor(
    'the collector',
    () => said,
    (text) => text.includes('Everything is ready'),
    30_000,
  );

  const metrics = new MetricsRegistry();
  const exporter = new TraceExport({
    url: `http://${endpoint}/v1/traces`,
    headers: {},
    ratio: 1,
    resource: { serviceName: 'tollgate', version: '1.2.3', instance: 'machine-1' },
    log: silentLog,
    metrics,
  });
  const attempts = [
    { provider: 'first', started_ms: 1, ended_ms: 20, cause: 'connect', status: null },
    { provider: 'second', started_ms: 20, ended_ms: null, cause: null, status: null },
  ];
  const record = terminalRecord(executionStart({ provider: 'second' }), { attempts });
  exporter.ended([record]);
  await exporter.stop(5_000);
  assert.match(metrics.render(), /tollgate_trace_spans_total\{result="sent"\} 3/);

  await waitFor(
    'the spans',
    () => said,
    (text) => text.split('Span #').length > 3,
  );
  assert.equal(said.split(`Trace ID       : ${traceIdOf(record.id)}`).length - 1, 3, said);
  assert.match(said, /Name {11}: POST \/v1\/chat\/completions\n {4}Kind {11}: Server/);
  assert.match(said, /-> service\.name: Str\(tollgate\)/);
  assert.match(said, /-> gen_ai\.provider\.name: Str\(first\)/);
  assert.match(said, /-> error\.type: Str\(connect\)/);
  assert.match(said, /-> gen_ai\.usage\.input_tokens: Int\(120\)/);
  assert.match(said, /Status code {4}: Error\n {4}Status message : connect/);
});
