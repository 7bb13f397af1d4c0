// `node benchmarks/capacity.ts`: how many bytes a request leaves behind, and how many database transactions it causes,
// for the capacity model (docs/capacity.md). It measures sizes and counts, which a busy machine does not change, and no
// times.

import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parse, stringify } from 'yaml';
import { createPostgres } from '../src/storage/postgres/pool.ts';
import { startTollgate } from '../test/support/gateway.ts';
import { httpCall } from '../test/support/http-call.ts';
import { readMetrics } from '../test/support/metric-values.ts';
import { silentLog } from '../test/support/silent-log.ts';
import { startSimulatedProvider } from '../test/support/simulated-provider.ts';
import { waitFor } from '../test/support/waiting.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const KEY = `tg-capacity-${'a'.repeat(32)}`;
const PER_SECOND = 100;
const { values } = parseArgs({ options: { requests: { type: 'string', default: '5000' } } });
const requests = Number(values.requests);

const provider = await startSimulatedProvider();
const demo = parse(
  readFileSync(join(ROOT, 'deploy/demo.yaml'), 'utf8').replace('${SIMULATED_PROVIDER_URL}', provider.url),
);
demo.organizations[0].keys[0].secret = KEY;
const tollgate = await startTollgate({ configurationYaml: stringify(demo), ownPostgres: true });
try {
  const postgres = createPostgres({ url: tollgate.postgresUrl, log: silentLog, max: 1 });
  await send(200);
  const before = await look();
  await send(requests);
  const after = await look();
  await postgres.close();
  const each = (name: keyof typeof before) =>
    ((after[name] - before[name]) / requests).toFixed(name === 'commits' ? 3 : 0);
  console.log(`${requests} requests of 1 KB at ${PER_SECOND}/s; of each:`);
  console.log(`  Postgres, tables and indexes  ${each('tableBytes')} bytes`);
  console.log(`  Postgres, write-ahead log     ${each('walBytes')} bytes`);
  console.log(`  Postgres, transactions        ${each('commits')}`);
  console.log(`  ClickHouse, files             ${each('clickhouseBytes')} bytes`);
  console.log(`  resident memory of gateways and jobs at the end  ${(after.residentBytes / 1e6).toFixed(0)} MB`);

  async function look() {
    const metrics = await readMetrics(tollgate.adminUrl);
    await postgres.query({ name: 'checkpoint', text: 'CHECKPOINT' });
    const { rows } = await postgres.query<Record<'wal' | 'tables' | 'commits', string>>({
      name: 'sizes',
      text: `SELECT pg_current_wal_lsn() - '0/0' AS wal, xact_commit AS commits,
                    (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace) AS tables
               FROM pg_stat_database WHERE datname = current_database()`,
    });
    const [row] = rows;
    assert.ok(row !== undefined);
    return {
      walBytes: Number(row.wal),
      tableBytes: Number(row.tables),
      commits: Number(row.commits),
      clickhouseBytes: bytesBelow(join(tollgate.dataDir, 'clickhouse', 'store')),
      residentBytes: metrics('tollgate_resident_memory_bytes'),
    };
  }
} finally {
  await tollgate.stop();
  await provider.stop();
}

/** Sends requests at an even pace, and waits until the last one is a fact. */
async function send(count: number): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const content = 'word '.repeat(190);
  const body = JSON.stringify({ model: 'sim/small', max_tokens: 50, messages: [{ role: 'user', content }] });
  const facts = async () => (await readMetrics(tollgate.adminUrl))('tollgate_facts_inserted_total');
  const wanted = (await facts()) + count;
  const started = performance.now();
  for (let sent = 0; sent < count; ) {
    const due = Math.min(count, Math.ceil(((performance.now() - started) / 1_000) * PER_SECOND));
    const step = Array.from({ length: due - sent }, () =>
      httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body }),
    );
    for (const { status } of await Promise.all(step)) assert.equal(status, 200);
    sent = due;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await waitFor('the facts', facts, (inserted) => inserted >= wanted, 60_000);
}

function bytesBelow(directory: string): number {
  return globSync('**/*', { cwd: directory, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
