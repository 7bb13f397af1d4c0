// Spec 7.7: what a guardrail refuses, route by route: the route's own envelope with the code in it, and `guardrail` at
// the top level.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GuardrailFinding, Refusal } from '../../src/domain/refusals/refusal.ts';
import { type AdmissionForm, type EnvelopeName, renderRefusal } from '../../src/domain/refusals/render.ts';
import { GENERATION_ROUTES, type GenerationRoute } from '../support/generation-routes.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { routeTable } from '../support/route-table.ts';

const FINDING: GuardrailFinding = { policy: 'customer data', rule: 'cards', entity: 'credit_card', stage: 'input' };
const BLOCKED: Refusal = { kind: 'guardrail_blocked', guardrail: FINDING };

interface Row {
  readonly envelope: EnvelopeName;
  /** The envelope's own error, with this type and code. */
  readonly error: (type: string, code: string, message: string) => object;
}

const ERRORS: Readonly<Record<GenerationRoute['envelope'], Row['error']>> = {
  openai: openaiError,
  messages: messagesError,
  systemone: (type, code, message) => ({ detail: { error_type: type, message, code } }),
};

const ROWS: Readonly<Record<string, Row>> = Object.fromEntries(
  GENERATION_ROUTES.map(({ path, envelope }) => [
    path,
    { envelope: path === '/v1/chat/completions' ? 'chat' : envelope, error: ERRORS[envelope] },
  ]),
);

function openaiError(type: string, code: string, message: string): object {
  return { error: { message, type, code, param: null } };
}

function messagesError(type: string, code: string, message: string): object {
  return { type: 'error', error: { type, message, code } };
}

function render(refusal: Refusal, envelope: EnvelopeName, admissionForm: AdmissionForm) {
  const { status, headers, body } = renderRefusal(refusal, envelope, {
    requestId: 'req-1',
    publicUrl: 'https://gate.test',
    admissionForm,
  });
  return { status, headers: Object.fromEntries(headers), body: refusalBody(body) };
}

test('every generation route is here, with the envelope that it has', () => {
  const routes = routeTable().filter(
    ({ method, path, plane }) => plane === 'data' && method === 'POST' && !path.includes(':'),
  );
  assert.deepEqual(
    Object.fromEntries(routes.map(({ path, envelope }) => [path, envelope])),
    Object.fromEntries(Object.entries(ROWS).map(([path, { envelope }]) => [path, envelope])),
  );
});

for (const [path, { envelope, error }] of Object.entries(ROWS)) {
  describe(`POST ${path}`, () => {
    test('guardrail_blocked: 400, and which rule it was', () => {
      const message =
        'The guardrail "customer data" of your organization blocked this request (rule "cards"). ' +
        'Remove what the rule does not allow, or ask an administrator of the organization.';
      for (const form of ['flat', 'dialect'] as const) {
        const { status, headers, body } = render(BLOCKED, envelope, form);
        assert.equal(status, 400);
        assert.equal(headers['x-should-retry'], 'false');
        assert.deepEqual(body, { ...error('invalid_request_error', 'guardrail_blocked', message), guardrail: FINDING });
      }
    });

    test('guardrail_unavailable of what could not be read says so, and of a reply not that nobody was asked', () => {
      const said = (refusal: Refusal) => {
        const { status, headers, body } = render(refusal, envelope, 'flat');
        return `${status} ${headers['x-should-retry']} ${JSON.stringify(body)}`;
      };
      const ofRequest = /could not look at all of the request, so it was not sent to a provider\./;
      // Who was asked may answer another time.
      const late = said({ kind: 'guardrail_unavailable', unread: 'input' });
      assert.match(late, /^503 true .*"guardrail_unavailable"/);
      assert.match(late, ofRequest);
      const never = said({ kind: 'guardrail_unread', unread: 'input' });
      assert.match(never, /^503 false .*"guardrail_unavailable"/);
      assert.match(never, ofRequest);
      // Another reply would be another call that is paid for.
      const withheld = said({ kind: 'guardrail_unread', unread: 'output' });
      assert.match(withheld, /^503 false .*"guardrail_unavailable"/);
      assert.match(withheld, /could not look at all of the reply, so it is withheld\./);
    });

    test('guardrail_unavailable: 503 api_error', () => {
      const message =
        'The guardrails of your organization could not be loaded, so the request was not sent to a provider. ' +
        'Try again after the time in the Retry-After header.';
      for (const form of ['flat', 'dialect'] as const) {
        const { status, headers, body } = render({ kind: 'guardrail_unavailable' }, envelope, form);
        assert.equal(status, 503);
        assert.deepEqual([headers['retry-after'], headers['x-should-retry']], ['2', 'true']);
        assert.deepEqual(body, error('api_error', 'guardrail_unavailable', message));
      }
    });
  });
}

test('a rule without an entity says so', () => {
  const { body } = render({ kind: 'guardrail_blocked', guardrail: { ...FINDING, entity: null } }, 'chat', 'flat');
  assert.deepEqual((body as { guardrail: unknown }).guardrail, { ...FINDING, entity: null });
});
