// What a request's head says of its body: the media types that are told apart, and what an endpoint that takes others
// says that it takes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { describeRefusal } from '../../src/domain/refusals/description.ts';
import { type BodyType, FORM_ALONE, FORM_OR_JSON, JSON_ALONE, readBodyType } from '../../src/http/body-type.ts';

const FORM = 'multipart/form-data; boundary=b';
const NOT = 'The Content-Type of the request is not';
const ENCODED = 'The body of the request has a Content-Encoding.';

/** What it is taken for, or what the refusal says. The codings: a line of the head each. */
const CASES: readonly (readonly [type: string, taken: readonly BodyType[], expected: string, ...codings: string[]])[] =
  [
    ['application/json', JSON_ALONE, 'json'],
    ['Application/JSON ; charset=utf-8', JSON_ALONE, 'json'],
    ['application/vnd.api+json', JSON_ALONE, 'json'],
    ['', JSON_ALONE, 'json'],
    ['', FORM_OR_JSON, 'json'],
    ['', FORM_ALONE, `${NOT} multipart/form-data.`],
    [FORM, FORM_OR_JSON, 'form'],
    ['Multipart/Form-Data;boundary=b', FORM_ALONE, 'form'],
    [FORM, JSON_ALONE, `${NOT} application/json.`],
    ['application/json', FORM_ALONE, `${NOT} multipart/form-data.`],
    ['text/plain', JSON_ALONE, `${NOT} application/json.`],
    ['application/jsonp', JSON_ALONE, `${NOT} application/json.`],
    ['text/plain', FORM_OR_JSON, `${NOT} multipart/form-data or application/json.`],
    ['multipart/mixed; boundary=b', FORM_OR_JSON, `${NOT} multipart/form-data or application/json.`],
    ['multipart/form-database', FORM_OR_JSON, `${NOT} multipart/form-data or application/json.`],
    ['application/json', JSON_ALONE, 'json', 'identity'],
    ['application/json', JSON_ALONE, 'json', 'Identity'],
    ['application/json', JSON_ALONE, 'json', ''],
    ['application/json', JSON_ALONE, ENCODED, 'gzip'],
    [FORM, FORM_OR_JSON, ENCODED, 'identity, br'],
    ['application/json', JSON_ALONE, ENCODED, 'identity', 'gzip'],
    ['application/json', JSON_ALONE, ENCODED, '', 'GZIP'],
    ['application/json', JSON_ALONE, 'json', 'identity', 'identity, '],
  ];

describe('the body that a head announces', () => {
  for (const [contentType, taken, expected, ...codings] of CASES)
    test(`${contentType || 'no type'} ${JSON.stringify(codings)} where ${taken.join(' and ')} may come: ${expected}`, () => {
      const headers = ['accept', 'content-encoding', ...codings.flatMap((coding) => ['content-encoding', coding])];
      const read = readBodyType({ contentType, headers }, taken);
      assert.equal(typeof read === 'string' ? read : describeRefusal(read).summary, expected);
    });
});
