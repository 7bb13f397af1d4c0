// Spec 2.1: the members of a generation record by billing status. What is missing is not known; what is known to be
// nothing is 0.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requestDetails } from '../../jobs/reports/request-details.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { type Generation, renderGeneration } from '../../src/records/generation.ts';
import { pendingGeneration } from '../support/pending-generation.ts';

const UNKNOWN = pendingGeneration('01a209f3-5af5-72b0-87d9-fc48d69cc964');

const NAMES = ['id', 'model', 'streamed', 'billing_status', 'currency', 'credential_source', 'authorized_amount'];

const ROWS: readonly (readonly [title: string, Partial<Generation>, members: readonly string[], cost?: number])[] = [
  ['pending: the cost is not known', {}, NAMES],
  ['not_billed has the fields of cancelled', { billingStatus: 'not_billed' }, [...NAMES, 'total_cost'], 0],
  ['cancelled', { billingStatus: 'cancelled', charge: '0' }, [...NAMES, 'total_cost'], 0],
  ['final without a charge that is known', { billingStatus: 'final' }, NAMES],
  [
    'of an organization that is not billed, with what its use is worth',
    { billingStatus: 'not_billed', ratedCost: '5', authorizedAmount: null },
    [...NAMES.slice(0, -1), 'total_cost', 'rated_cost'],
    0,
  ],
  ['served by an own key', { credentialId: UNKNOWN.id, fee: '7' }, [...NAMES, 'credential_id', 'fee']],
  [
    'refused before anybody was asked: with nobody’s key',
    { billingStatus: 'not_billed', hasProvider: false },
    [...NAMES.filter((name) => name !== 'credential_source'), 'total_cost'],
    0,
  ],
  ['routed', { virtualModel: 'service/auto' }, [...NAMES, 'routed_model']],
];

describe('the members of a generation record', () => {
  for (const [title, changes, members, cost] of ROWS) {
    test(title, () => {
      const shown = JSON.parse(renderGeneration({ ...UNKNOWN, ...changes })) as Record<string, unknown>;
      assert.deepEqual(new Set(Object.keys(shown)), new Set(members));
      assert.equal(shown['total_cost'], cost);
      const record = { ...UNKNOWN, ...changes, endedAtMs: 0, usage: null } as unknown as TerminalRecord;
      assert.equal(requestDetails(record).total_cost, cost === undefined ? null : String(cost));
      assert.equal(shown['model'], changes.virtualModel ?? 'sim/small');
    });
  }
});
