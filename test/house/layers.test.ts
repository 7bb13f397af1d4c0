// The layer rules work: dependency-cruiser sees our modules, and finds a seeded breach of each rule.

import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { cruise, type ICruiseOptions, type ICruiseResult } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { ROOT } from './sources.ts';

const { forbidden, options } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as {
  forbidden: { name: string }[];
  options: ICruiseOptions;
};

async function cruiseIn(directory: string, folders: readonly string[]): Promise<ICruiseResult> {
  const { tsConfig: _, ...cruiseOptions } = options as ICruiseOptions & { tsConfig: unknown };
  const { output } = await cruise(
    [...folders],
    { ...cruiseOptions, ruleSet: { forbidden: forbidden as never }, validate: true, baseDir: directory },
    {},
    { tsConfig: extractTSConfig(join(ROOT, 'tsconfig.json')) },
  );
  assert.equal(typeof output, 'object');
  return output as ICruiseResult;
}

/** One small tree with a breach of every rule: the file, and what it imports. */
const BREACHES: Readonly<Record<string, { path: string; imports: string }>> = {
  'no-circular': { path: 'src/platform/ring-back.ts', imports: './ring.ts' },
  'domain-is-a-leaf': { path: 'src/domain/reaches-out.ts', imports: '../storage/store.ts' },
  'records-are-a-leaf': { path: 'src/records/keeps.ts', imports: '../storage/store.ts' },
  'upstream-knows-no-request': { path: 'src/upstream/looks-back.ts', imports: '../http/front.ts' },
  'domain-does-no-io': { path: 'src/domain/reads-files.ts', imports: 'node:fs' },
  'platform-is-below-all': { path: 'src/platform/looks-up.ts', imports: '../domain/leaf.ts' },
  'planes-apart': { path: 'src/generation/crosses.ts', imports: '../control-plane/report.ts' },
  'only-roots-know-the-planes': { path: 'jobs/knows-a-plane.ts', imports: '../src/control-plane/report.ts' },
  'nothing-imports-the-roots': { path: 'src/storage/calls-up.ts', imports: '../main.ts' },
  'installation-knows-no-process': { path: 'src/installation/starts.ts', imports: '../control-plane/report.ts' },
  'only-storage-talks-to-databases': { path: 'jobs/talks-to-postgres.ts', imports: 'pg' },
  'storage-knows-the-domain-only': { path: 'src/storage/knows-http.ts', imports: '../http/front.ts' },
  'only-http-knows-uws': { path: 'src/gateway/knows-uws.ts', imports: 'uWebSockets.js' },
  'only-commands-know-listed-prices': { path: 'src/gateway/looks-prices-up.ts', imports: '@pydantic/genai-prices' },
  'http-knows-no-plane': { path: 'src/http/knows-storage.ts', imports: '../storage/store.ts' },
  'no-analytics-in-a-request': { path: 'src/generation/waits.ts', imports: '../storage/clickhouse/facts.ts' },
  'workers-are-pure': { path: 'workers/keeps.ts', imports: '../src/storage/store.ts' },
  'jobs-stand-on-storage': { path: 'jobs/serves.ts', imports: '../src/http/front.ts' },
  'simulator-stands-alone': { path: 'src/simulator/knows-us.ts', imports: '../domain/leaf.ts' },
  'console-stands-alone': { path: 'src/console/reaches-in.ts', imports: '../domain/leaf.ts' },
  'nothing-imports-the-console': { path: 'src/gateway/draws.ts', imports: '../console/format.ts' },
  'connect-stands-alone': { path: 'src/connect/knows-prices.ts', imports: '../domain/leaf.ts' },
  'load-stands-alone': { path: 'src/load/knows-prices.ts', imports: '../domain/leaf.ts' },
  'not-to-test': { path: 'src/gateway/tests.ts', imports: '../../test/support.ts' },
  'no-orphans': { path: 'src/platform/orphan.ts', imports: '' },
};
const BYSTANDERS = [
  'src/domain/leaf.ts',
  'src/storage/store.ts',
  'src/storage/clickhouse/facts.ts',
  'src/control-plane/report.ts',
  'src/http/front.ts',
  'src/console/format.ts',
  'src/main.ts',
  'test/support.ts',
];

describe('layers', () => {
  test('every rule has a seeded breach, and every breach is caught by its rule', async (context) => {
    const directory = temporaryDirectory(context);
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    };
    for (const path of BYSTANDERS) write(path, 'export const value = 1;\n');
    for (const { path, imports } of Object.values(BREACHES))
      write(
        path,
        imports === ''
          ? 'export const value = 1;\n'
          : `import * as found from '${imports}';\nexport const value = found;\n`,
      );
    // One half of the cycle imports only a type: that is a cycle, too.
    write(
      'src/platform/ring.ts',
      `import type * as found from './ring-back.ts';\nexport const value = {} as typeof found;\n`,
    );
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));

    const { summary } = await cruiseIn(directory, ['src', 'jobs', 'workers', 'test']);
    const caught = new Set(summary.violations.map(({ rule, from }) => `${rule.name} ${from}`));
    assert.deepEqual(forbidden.map(({ name }) => name).sort(), Object.keys(BREACHES).sort());
    for (const [rule, { path }] of Object.entries(BREACHES))
      assert.ok(caught.has(`${rule} ${path}`), `${rule} does not catch ${path}; caught: ${[...caught].join(', ')}`);
  });

  test('the cruise of our own tree sees our modules', async () => {
    // With an unknown version of TypeScript dependency-cruiser finds no modules and reports success.
    const { summary } = await cruiseIn(ROOT, ['src/platform', 'src/domain']);
    assert.ok(summary.totalCruised > 20, `only ${summary.totalCruised} modules seen`);
  });
});
