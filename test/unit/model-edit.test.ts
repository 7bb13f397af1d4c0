// What stands in a body in the place of the client's `model`.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyEdits } from '../../src/generation/request/edits.ts';
import { modelEdit } from '../../src/generation/request/model-edit.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';

function sent(text: string, instead: string | null): string {
  const body = Buffer.from(text);
  const modelAt = new RequestScanner().scan(body).valueOf('model');
  assert.ok(modelAt !== null, text);
  const names = { modelJson: Buffer.from('"large"'), insteadOfModel: instead === null ? null : Buffer.from(instead) };
  return Buffer.concat(applyEdits(body, [modelEdit(body, modelAt, names)])).toString();
}

const MEMBERS = '"v":"1"';

describe('the model of a body', () => {
  const cases: readonly (readonly [body: string, named: string, replaced: string, removed: string])[] = [
    ['{"model":"a","b":1}', '{"model":"large","b":1}', '{"v":"1","b":1}', '{"b":1}'],
    ['{"b":1,"model":"a"}', '{"b":1,"model":"large"}', '{"b":1,"v":"1"}', '{"b":1}'],
    [
      '{"b":1, "model" : "a" , "c":2}',
      '{"b":1, "model" : "large" , "c":2}',
      '{"b":1, "v":"1" , "c":2}',
      '{"b":1,  "c":2}',
    ],
    [
      '{ "b":1 ,\n "model"\t:\r\n"a"\n}',
      '{ "b":1 ,\n "model"\t:\r\n"large"\n}',
      '{ "b":1 ,\n "v":"1"\n}',
      '{ "b":1 \n}',
    ],
    ['{"model":"a"}', '{"model":"large"}', '{"v":"1"}', '{}'],
    [
      String.raw`{"b":"\"","\u006dodel":"a\"b"}`,
      String.raw`{"b":"\"","\u006dodel":"large"}`,
      String.raw`{"b":"\"","v":"1"}`,
      String.raw`{"b":"\""}`,
    ],
  ];
  for (const [body, named, replaced, removed] of cases) {
    test(body, () => {
      assert.equal(sent(body, null), named);
      assert.equal(sent(body, MEMBERS), replaced);
      assert.equal(sent(body, ''), removed);
      for (const edited of [named, replaced, removed]) JSON.parse(edited);
    });
  }
});
