// The second front: what is decided on a connection once more, and the isolation run, contracts and clients, with
// node:http in the place of uWebSockets.js.

import { test } from 'node:test';
import { assertSuitesPass } from '../support/run-suites.ts';

const SUITES = [
  'test/isolation/isolation.test.ts',
  'test/integration/frame-guard.test.ts',
  'test/integration/early-answers.long.test.ts',
  'test/integration/http-*.test.ts',
  'test/integration/connection-caps.test.ts',
  'test/integration/body-in*.test.ts',
  'test/integration/relay-faults.test.ts',
  'test/integration/relay-shared-memory.long.test.ts',
  'test/integration/relay-replay.test.ts',
  'test/contract/4-bodies-in-chunks.test.ts',
  'test/contract/4.1-*.test.ts',
  'test/e2e/clients-openai.test.ts',
];

test('every suite of the front passes over node:http', () => assertSuitesPass(SUITES, { HTTP_FRONT: 'node' }));
