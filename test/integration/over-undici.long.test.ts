// The second transport: the suites of the relay, the replays of recordings and the isolation run once more, with undici
// in the place of our own client.

import { test } from 'node:test';
import { assertSuitesPass } from '../support/run-suites.ts';

const SUITES = [
  'test/isolation/isolation.test.ts',
  'test/integration/relay-*.test.ts',
  'test/integration/stream-usage.test.ts',
  'test/integration/early-answers.long.test.ts',
  'test/integration/body-in-chunks.test.ts',
  'test/integration/outcome-matrix.test.ts',
  'test/integration/hostile-usage.test.ts',
  'test/integration/cooldown-scope.test.ts',
  'test/integration/generation-faults.test.ts',
  'test/integration/provider-shapes.long.test.ts',
  'test/contract/4.*.test.ts',
  'test/e2e/clients-*.test.ts',
];

test('every suite of the relay passes over undici', () => assertSuitesPass(SUITES, { UPSTREAM_CLIENT: 'undici' }));
