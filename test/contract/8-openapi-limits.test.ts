// The OpenAPI document says the whole contract: what every generation route takes, answers and refuses, and the limits
// of spec 8. That the answers are as it says is asserted wherever a contract test reads one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildOpenapiDocument } from '../../src/control-plane/openapi/build-document.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { GENERATION_ROUTES } from '../support/generation-routes.ts';
import { routeTable } from '../support/route-table.ts';

const CODES = new Set(
  Object.entries(REFUSAL_RULES).map(([kind, { code = kind }]: [string, { code?: string }]) => code),
);

type Json = { readonly [member: string]: Json };

const table = routeTable();
const document = JSON.parse(
  JSON.stringify(buildOpenapiDocument(table, { version: '1', publicUrl: 'https://gate.test' })),
) as Json;

function follow(value: Json | undefined): Json {
  if (value === undefined) return {};
  if (typeof value['$ref'] !== 'string') return value;
  const path = String(value['$ref']).slice('#/'.length).split('/');
  return follow(path.reduce<Json | undefined>((at, name) => at?.[name], document));
}

function at(path: string, ...names: readonly string[]): Json {
  const operation = document['paths']?.[path]?.['post'];
  return names.reduce<Json>((value, name) => follow(value[name]), follow(operation));
}

const namesOf = (value: Json): string[] => Object.keys(value);
const bodyOf = (path: string, type = 'application/json') => at(path, 'requestBody', 'content', type, 'schema');

/** What an answer is called, and what an event of a stream is; null: it does not stream. */
const ANSWERS: Readonly<Record<string, readonly [answer: string, event: string | null]>> = {
  '/v1/chat/completions': ['ChatCompletion', 'ChatCompletionChunk'],
  '/v1/responses': ['Response', 'ResponseEvent'],
  '/v1/messages': ['Message', 'MessageEvent'],
  '/v1/messages/count_tokens': ['TokenCount', null],
  '/v1/images/generations': ['Images', 'ImageEvent'],
  '/v1/images/edits': ['Images', 'ImageEvent'],
  '/v1/embeddings': ['EmbeddingList', null],
  '/v1/systemone': ['Evaluation', null],
};
const JSON_ALONE = /^\{"application\/json":"#\/components\/schemas\/\w+"\}$/;
const GENERATIONS = GENERATION_ROUTES.map(({ path }) => path);
const ROUTED = GENERATIONS.slice(0, 4);
/** Spec 7.4, 7.7, 7.8 and the frame: what any generation can be refused with. */
const STATUSES = [400, 401, 402, 403, 404, 408, 411, 413, 415, 422, 429, 500, 502, 503];

describe('a code that several refusals have', () => {
  const twice = (names: readonly string[]): string[] => names.filter((name, index) => names.indexOf(name) !== index);

  test('stands once in each description, pattern and list of codes', () => {
    const found: string[] = [];
    const visit = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [name, member] of Object.entries(value)) {
        const isText = typeof member === 'string' && (name === 'description' || name === 'pattern');
        const codes = isText ? (member.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []).filter((code) => CODES.has(code)) : [];
        const listed = name === 'enum' && Array.isArray(member) ? member.map(String) : [];
        for (const code of [...twice(codes), ...twice(listed)]) found.push(`${path}/${name}: ${code}`);
        visit(member, `${path}/${name}`);
      }
    };
    visit(document, '');
    assert.deepEqual(found, []);
  });
});

describe('a generation in the OpenAPI document', () => {
  test('every generation route is here', () => {
    const rows = table.filter(({ plane, description }) => plane === 'data' && description.body !== null);
    assert.deepEqual(
      rows.map(({ path }) => path),
      GENERATIONS,
    );
  });

  for (const path of GENERATIONS) {
    test(`${path} says what it answers, as JSON and as a stream`, () => {
      const content = at(path, 'responses', '200', 'content');
      const named = Object.fromEntries(Object.entries(content).map(([type, { schema }]) => [type, schema?.['$ref']]));
      const [answer, event] = ANSWERS[path] ?? [];
      // One of whose names nobody here knows does not stream.
      if (answer === undefined) return assert.match(JSON.stringify(named), JSON_ALONE);
      const streamed = typeof event === 'string' ? { 'text/event-stream': `#/components/schemas/${event}` } : {};
      assert.deepEqual(named, { 'application/json': `#/components/schemas/${answer}`, ...streamed });
    });

    test(`${path} says each status with which it refuses, and the envelopes of it`, () => {
      const refused = namesOf(at(path, 'responses')).filter((status) => status !== '200' && status !== 'default');
      assert.deepEqual(refused.map(Number), STATUSES);
      for (const status of refused) {
        const { anyOf } = at(path, 'responses', status, 'content', 'application/json', 'schema');
        const names = (anyOf as unknown as readonly { readonly $ref: string }[]).map(({ $ref }) => $ref.slice(21));
        assert.equal(names.includes('AdmissionError'), ['402', '403', '422', '429', '503'].includes(status), status);
        assert.equal(names.includes('GatewayError'), ['400', '401', '403', '502'].includes(status), status);
        assert.equal(names.at(-1), 'ProviderError', status);
      }
    });

    test(`${path} names the headers that it reads and writes`, () => {
      const parameters = at(path)['parameters'] as unknown as readonly { readonly name: string; readonly in: string }[];
      const names = parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name.toLowerCase());
      const expected = ['x-client-request-id', 'x-service-tag', 'idempotency-key'];
      for (const name of expected) assert.ok(names.includes(name), name);
      assert.equal(names.includes('x-session-id'), ROUTED.includes(path));
      assert.equal(names.includes('anthropic-version'), path.startsWith('/v1/messages'));
      const own = namesOf(at(path, 'responses', '200', 'headers'));
      const routedModel = ROUTED.includes(path) ? ['X-Service-Routed-Model'] : [];
      const guardrail = ['X-Service-Guardrail', 'X-Service-Guardrail-Count'];
      assert.deepEqual(own, ['X-Service-Execution-Id', ...guardrail, ...routedModel]);
      const refused = namesOf(at(path, 'responses', '429', 'headers'));
      const ids = ['X-Request-Id', 'Request-Id'];
      assert.deepEqual(refused, ['X-Should-Retry', ...ids, 'Retry-After', 'Retry-After-Ms', ...own]);
    });
  }

  test('an admission refusal is whole: every code, and the fields of its family', () => {
    const { anyOf } = follow(document['components']?.['schemas']?.['AdmissionError']);
    const forms = anyOf as unknown as readonly { readonly properties: Json; readonly required: readonly string[] }[];
    assert.deepEqual(
      forms.map(({ required }) => required),
      [
        ['error', 'message', 'request_id', 'billing'],
        ['error', 'message', 'request_id', 'retryable'],
      ],
    );
    const codes = Object.entries(REFUSAL_RULES).flatMap(([kind, { family }]) =>
      family === 'credit' || family === 'traffic' ? [kind] : [],
    );
    const described = forms.flatMap(({ properties }) => properties['error']?.['enum'] as unknown as string[]);
    assert.deepEqual(described.toSorted(), codes.toSorted());
    assert.deepEqual(namesOf(forms[0]?.properties['billing']?.['properties'] ?? {}), [
      'code',
      'retryable',
      'balance_url',
      'top_up_url',
    ]);
  });
});

/** Spec 8: the limit, where the document has it, and its value. */
const LIMITS: readonly (readonly [limit: string, found: () => unknown, value: unknown])[] = [
  ['images: n at least', () => bodyOf('/v1/images/generations')['properties']?.['n']?.['minimum'], 1],
  ['images: n at most', () => bodyOf('/v1/images/generations')['properties']?.['n']?.['maximum'], 10],
  ['edits: n at most', () => bodyOf('/v1/images/edits', 'multipart/form-data')['properties']?.['n']?.['maximum'], 10],
  ['tags: kept', () => tagSchema()['maxItems'], 16],
  ['tags: pattern', () => tagSchema()['items']?.['pattern'], '^[a-z0-9][a-z0-9._:/@-]{0,63}$'],
  ['options of a choice', () => criteriaOf('choice')['maxProperties'], 255],
  ['least levels of a score', () => criteriaOf('score')['minItems'], 2],
  ['most levels of a score', () => criteriaOf('score')['maxItems'], 10],
  ['models of a routing report', () => reportField('by_model')['maxItems'], 25],
  ['corrections of a routing report', () => correctionsOf()['maxItems'], 20],
];

function tagSchema(): Json {
  const parameters = at('/v1/chat/completions')['parameters'] as unknown as readonly Json[];
  return parameters.find(({ name }) => (name as unknown) === 'x-service-tag')?.['schema'] ?? {};
}

function criteriaOf(type: string): Json {
  const { anyOf } = follow(document['components']?.['schemas']?.['TypedQuestion']);
  const forms = anyOf as unknown as readonly { readonly properties: Json }[];
  return (
    forms.find(({ properties }) => (properties['type']?.['const'] as unknown) === type)?.properties['criteria'] ?? {}
  );
}

function reportField(name: string): Json {
  return follow(document['components']?.['schemas']?.['RoutingReport'])['properties']?.[name] ?? {};
}

function correctionsOf(): Json {
  return (reportField('recent_corrections')['anyOf'] as unknown as readonly Json[])[0] ?? {};
}

describe('the limits of spec 8 in the OpenAPI document', () => {
  for (const [limit, found, value] of LIMITS) test(limit, () => assert.deepEqual(found(), value));
});
