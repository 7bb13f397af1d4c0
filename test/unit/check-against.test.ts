// What the sender of a wrong field is told: in plain words, whatever is wrong with the field.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { checkAgainst } from '../../src/domain/refusals/check-against.ts';

const SCHEMA = z.strictObject({
  name: z.string(),
  frozen: z.boolean().optional(),
  role: z.enum(['owner', 'member']).optional(),
  limits: z
    .array(
      z.discriminatedUnion('kind', [z.object({ kind: z.literal('budget') }), z.object({ kind: z.literal('rate') })]),
    )
    .optional(),
  amount: z.string('must be a decimal string').optional(),
  labels: z.record(z.string(), z.string()).optional(),
});

describe('a field that is not valid', () => {
  for (const [fields, field, reason] of [
    [{}, 'name', 'it is required'],
    [{ name: 5 }, 'name', 'it must be a string'],
    [{ name: 'a', frozen: 'yes' }, 'frozen', 'it must be true or false'],
    [{ name: 'a', role: 'boss' }, 'role', 'it must be owner or member'],
    [{ name: 'a', limits: {} }, 'limits', 'it must be a list'],
    [{ name: 'a', limits: [{ kind: 'x' }] }, 'limits.0.kind', 'it must be budget or rate'],
    [{ name: 'a', labels: [] }, 'labels', 'it must be an object'],
    [{ name: 'a', amount: 5 }, 'amount', 'it must be a decimal string'],
    [{ name: 'a', colour: 5 }, 'colour', 'there is no such field'],
  ] as const) {
    test(`${JSON.stringify(fields)}: ${reason}`, () => {
      assert.deepEqual(checkAgainst(SCHEMA, fields), { kind: 'invalid_field', field, reason });
    });
  }
});
