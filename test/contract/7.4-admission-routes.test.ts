// Spec 7.4 over HTTP: admission refusals, kind x route x form -> status line, headers and body, with the operator's
// switch off and on.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import {
  CONTRACT_MODELS,
  type ContractAnswer,
  callRoute,
  GENERATION_ROUTES,
  type GenerationRoute,
} from '../support/generation-routes.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

type Form = 'flat' | 'dialect';

interface Row {
  readonly code: string;
  readonly status: number;
  readonly family: 'credit' | 'traffic';
  readonly param: (route: GenerationRoute) => string | null;
  /** null: this refusal cannot happen on the route. */
  readonly body: (route: GenerationRoute) => object | null;
  readonly key: string;
}

const ANSWER_BYTES = 100;
const isFree = (route: GenerationRoute): boolean => route.path.endsWith('/count_tokens');
const isText = (route: GenerationRoute): boolean => route.model === 'sim/small' && !isFree(route);
const LIMIT_FIELDS: Readonly<Record<string, string>> = { '/v1/responses': 'max_output_tokens' };

const ROWS: readonly Row[] = [
  {
    code: 'insufficient_credit',
    status: 402,
    family: 'credit',
    param: () => null,
    body: (route) => (isFree(route) ? null : { model: route.model, ...route.fields }),
    key: KEYS.broke,
  },
  {
    code: 'not_safely_billable',
    status: 422,
    family: 'credit',
    param: (route) => LIMIT_FIELDS[route.path] ?? (isText(route) ? 'max_tokens' : 'n'),
    body: (route) => {
      if (isText(route)) return { model: 'sim/uncapped', ...route.fields };
      return route.model === 'sim/image' ? { model: route.model, n: 11, ...route.fields } : null;
    },
    key: KEYS.acme,
  },
  {
    code: 'upstream_cooldown',
    status: 429,
    family: 'traffic',
    param: () => null,
    body: (route) => ({ model: `${route.model}-paused`, ...route.fields }),
    key: KEYS.acme,
  },
];

describe('admission refusals', () => {
  let upstream: FakeUpstream;
  const installations = new Map<Form, Front>();

  before(async () => {
    upstream = await startFakeUpstream(() => ({
      status: 429,
      headers: [
        ['retry-after', '300'],
        ['content-type', 'application/json'],
      ],
      body: '{}',
    }));
    const configurationYaml = testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS });
    const start = (form: Form, env: Record<string, string>) =>
      startFront({ configurationYaml, env }).then((started) => installations.set(form, started));
    await Promise.all([start('flat', {}), start('dialect', { DIALECT_REFUSALS: 'all' })]);
    for (const tollgate of installations.values()) {
      for (const model of new Set(GENERATION_ROUTES.map((route) => route.model))) {
        const route = GENERATION_ROUTES.find((found) => found.model === model) as GenerationRoute;
        const answer = await callRoute(tollgate.url + route.path, {
          key: KEYS.acme,
          body: JSON.stringify({ model: `${route.model}-paused`, ...route.fields }),
        });
        assert.equal(answer.status, 429, answer.body);
      }
    }
  });

  after(async () => {
    await Promise.all([...installations.values()].map((tollgate) => tollgate.stop()));
    await upstream?.close();
  });

  for (const form of ['flat', 'dialect'] as const) {
    for (const route of GENERATION_ROUTES) {
      for (const row of ROWS) {
        const body = row.body(route);
        if (body === null) continue;
        test(`${route.path}, ${row.code}, ${form}: ${row.status}`, async () => {
          const answer = await callRoute(installations.get(form)?.url + route.path, {
            key: row.key,
            body: JSON.stringify(body),
          });
          assertRefusal(route, row, route.switchName === null ? 'flat' : form, answer);
        });
      }
    }
  }
});

function assertRefusal(route: GenerationRoute, row: Row, form: Form, answer: ContractAnswer): void {
  assert.equal(answer.status, row.status, answer.body);
  assert.equal(answer.reason, STATUS_CODES[row.status]);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.match(String(answer.headers['x-service-execution-id']), /^[0-9a-f-]{36}$/, 'a refused request has a record');
  const body = refusalBody(answer.body) as Record<string, unknown> & { error: string | { message: string } };
  const message = typeof body.error === 'string' ? body['message'] : body.error.message;
  assert.ok(typeof message === 'string' && message.length > 10 && answer.body.length > ANSWER_BYTES);
  assert.deepEqual(body, { ...errorOf(route, row, form, message), ...topLevelOf(row, answer) });
}

function errorOf(route: GenerationRoute, { code, family, param }: Row, form: Form, message: string): object {
  if (form === 'flat') return { error: code, message };
  const type = family === 'credit' ? 'billing_error' : 'rate_limit_error';
  return route.envelope === 'messages'
    ? { type: 'error', error: { type, message, code } }
    : { error: { message, type, code, param: param(route) } };
}

/** Spec 7.4: the same in both forms. */
function topLevelOf({ code, family }: Row, answer: ContractAnswer): object {
  if (family === 'credit') {
    assert.equal(answer.headers['x-should-retry'], 'false');
    assert.equal(answer.headers['retry-after'], undefined);
    const origin = /"balance_url":"(.*?)\/v1\//.exec(answer.body)?.[1] ?? '';
    assert.match(origin, /^http:\/\/127\.0\.0\.1:\d+$/);
    return {
      billing: {
        code,
        retryable: false,
        balance_url: `${origin}/v1/billing/credits`,
        top_up_url: `${origin}/v1/billing/deposits`,
      },
    };
  }
  const seconds = Number(answer.headers['retry-after']);
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 300);
  assert.ok(Math.ceil(Number(answer.headers['retry-after-ms']) / 1000) === seconds);
  return { retryable: true, retry_after_seconds: seconds };
}
