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
  prices: z.record(z.string().regex(/^a$/, 'must be a'), z.string()).optional(),
  count: z.int().min(1).max(10).optional(),
  share: z.number().gt(0).lt(1).optional(),
  note: z.string().min(1).max(5).optional(),
  tags: z.array(z.string()).min(2).max(3).optional(),
  code: z.string().regex(/^a$/).optional(),
  texts: z.union([z.string(), z.array(z.string())]).optional(),
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
    [{ name: 'a', prices: { b: '' } }, 'prices.b', 'cannot be a name here: a name must be a'],
    [{ name: 'a', count: 1.5 }, 'count', 'it must be a whole number'],
    [{ name: 'a', count: 1e30 }, 'count', 'it must be at most 9007199254740991'],
    [{ name: 'a', count: 11 }, 'count', 'it must be at most 10'],
    [{ name: 'a', count: 0 }, 'count', 'it must be at least 1'],
    [{ name: 'a', share: 0 }, 'share', 'it must be more than 0'],
    [{ name: 'a', share: 1 }, 'share', 'it must be less than 1'],
    [{ name: 'a', note: '' }, 'note', 'it must have at least 1 character'],
    [{ name: 'a', note: 'abcdef' }, 'note', 'it must have at most 5 characters'],
    [{ name: 'a', tags: [] }, 'tags', 'it must have at least 2 entries'],
    [{ name: 'a', tags: ['', '', '', ''] }, 'tags', 'it must have at most 3 entries'],
    [{ name: 'a', code: 'b' }, 'code', 'it has a form that is not allowed'],
    [{ name: 'a', texts: 5 }, 'texts', 'it must be a string or a list'],
    [{ name: 'a', colour: 5 }, 'colour', 'there is no such field'],
  ] as const) {
    test(`${JSON.stringify(fields)}: ${reason}`, () => {
      assert.deepEqual(checkAgainst(SCHEMA, fields), { kind: 'invalid_field', field, reason });
    });
  }
});
