// The OpenAPI document passes the recommended rules of a public linter without an error or a warning.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildOpenapiDocument } from '../../src/control-plane/openapi/build-document.ts';
import { routeTable } from '../support/route-table.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface LintReport {
  readonly totals: { readonly errors: number; readonly warnings: number };
  readonly problems: readonly Problem[];
}

interface Problem {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** The linter neither reports its use nor looks for a newer version of itself. */
const OFFLINE = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };

/** null: `npm ci` has not been run since the linter became a dependency. */
const linter = (() => {
  try {
    return fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'));
  } catch {
    return null;
  }
})();

test('the OpenAPI document is linted without a warning', {
  skip: linter === null && '@redocly/cli is not installed: run npm ci',
}, async (t) => {
  const path = join(temporaryDirectory(t), 'openapi.json');
  const document = buildOpenapiDocument(routeTable(), { version: '1', publicUrl: 'https://gate.test' });
  writeFileSync(path, JSON.stringify(document));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [linter ?? '', 'lint', path, '--extends', 'recommended', '--format', 'json', '--max-problems', '20'],
    { env: { ...process.env, ...OFFLINE, NODE_OPTIONS: '' }, maxBuffer: 1 << 24 },
  ).catch((failed: { readonly stdout: string }) => failed);
  const { totals, problems } = JSON.parse(stdout) as LintReport;
  // A sign-in always redirects to another page (303). The rule does not expect an operation that only redirects.
  const redirects = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => Object.hasOwn((operation as { responses: object }).responses, '303'))
      .map(([method]) => `#/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}/responses`),
  );
  const isOfRedirect = ({ ruleId, location: [place] }: Problem): boolean =>
    ruleId === 'operation-2xx-response' && redirects.includes(place?.pointer ?? '');
  const said = problems
    .filter((problem) => !isOfRedirect(problem))
    .map(({ ruleId, message, location }) => `${ruleId}: ${message} ${JSON.stringify(location)}`);
  assert.deepEqual(said, []);
  assert.equal(totals.errors + totals.warnings, problems.length);
});
