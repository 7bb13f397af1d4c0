// What the gateway itself says in OpenAI's dialect fits OpenAI's own description of it: every refusal that a route of
// that dialect can make. The models list is checked against it in 4.6-model-catalog.test.ts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { EVERY_REFUSAL } from '../support/every-refusal.ts';
import { loadOpenapiSchemas } from '../support/openapi-schema.ts';

const schemas = loadOpenapiSchemas();

describe('refusals in the OpenAI-style envelope', { skip: schemas === null && 'the description is not there' }, () => {
  // Spec 7.6: those of the gateway family have a form of their own.
  for (const refusal of EVERY_REFUSAL.filter(({ kind }) => REFUSAL_RULES[kind].family !== 'gateway')) {
    test(refusal.kind, () => {
      for (const envelope of ['chat', 'openai'] as const) {
        const { body } = renderRefusal(refusal, envelope, {
          requestId: 'req-1',
          publicUrl: 'https://gate.test',
          admissionForm: 'dialect',
        });
        assert.deepEqual(schemas?.problems('ErrorResponse', JSON.parse(body)), []);
      }
    });
  }

  test('the description does refuse what is not an error', () => {
    assert.deepEqual(schemas?.problems('ErrorResponse', { error: 'insufficient_credit' }), [
      '$.error: string instead of object',
    ]);
  });
});
