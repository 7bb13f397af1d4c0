// What holds for every refusal in every envelope, and the headers that tell clients whether to try again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import type { RefusalRule } from '../../src/domain/refusals/refusal-rule.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { type EnvelopeName, renderRefusal } from '../../src/domain/refusals/render.ts';
import { statusLine } from '../../src/domain/refusals/status-line.ts';
import { EVERY_REFUSAL } from '../support/every-refusal.ts';

const ENVELOPES: readonly EnvelopeName[] = ['gateway', 'platform', 'chat', 'openai', 'messages', 'systemone'];
const CONTEXT = { requestId: 'req-1', publicUrl: 'https://gate.test' };

function headersOf(refusal: Refusal): Record<string, string> {
  return Object.fromEntries(renderRefusal(refusal, 'openai', CONTEXT).headers);
}

describe('every refusal, in every envelope and form', () => {
  for (const refusal of EVERY_REFUSAL) {
    test(refusal.kind, () => {
      const rendered = ENVELOPES.flatMap((envelope) =>
        (['flat', 'dialect'] as const).map((admissionForm) =>
          renderRefusal(refusal, envelope, { ...CONTEXT, admissionForm }),
        ),
      );
      for (const { status, headers, body, closesConnection } of rendered) {
        assert.equal(status, REFUSAL_RULES[refusal.kind].status);
        assert.equal(closesConnection, REFUSAL_RULES[refusal.kind].closesConnection ?? false);
        assert.deepEqual(headers, rendered[0]?.headers, 'headers do not depend on the envelope');
        assert.equal(headers.filter(([name]) => name === 'content-type').length, 1);
        assert.equal(headers.find(([name]) => name === 'content-type')?.[1], 'application/json');
        for (const [name, value] of headers) assert.match(`${name}: ${value}`, /^[a-z-]+: [ -~]+$/);
        const parsed = JSON.parse(body) as Record<string, unknown>;
        assert.ok('error' in parsed || 'detail' in parsed);
      }
    });
  }
});

describe('retry headers', () => {
  test('say stop exactly where time does not help, and how long where it does', () => {
    for (const refusal of EVERY_REFUSAL) {
      const rule: RefusalRule = REFUSAL_RULES[refusal.kind] as RefusalRule;
      const headers = headersOf(refusal);
      assert.equal(headers['x-should-retry'], String(rule.retryable), refusal.kind);
      assert.equal(rule.retryable, rule.retryAfterMs !== undefined, `${refusal.kind}: a retryable row has a wait`);
      if (!rule.retryable) assert.equal(headers['retry-after'], undefined);
      else assert.ok(Number.isInteger(Number(headers['retry-after'])) && Number(headers['retry-after']) >= 1);
      if ([400, 401, 402, 403, 404, 405, 411, 413, 415, 422, 426].includes(rule.status))
        assert.equal(rule.retryable, false, refusal.kind);
    }
  });

  const waits: readonly (readonly [number, string, string, string])[] = [
    [0, '1', '1', 'true'],
    [0.2, '1', '1', 'true'],
    [999, '1', '999', 'true'],
    [1000, '1', '1000', 'true'],
    [1000.5, '2', '1001', 'true'],
    [59_999, '60', '59999', 'true'],
    [60_000, '60', '60000', 'true'],
    // Clients sleep through any Retry-After; past a minute they are told not to wait on their own.
    [60_001, '61', '60001', 'false'],
    [3_600_000, '3600', '3600000', 'false'],
  ];
  for (const [retryAfterMs, seconds, ms, should] of waits) {
    test(`for a wait of ${retryAfterMs} ms`, () => {
      const headers = headersOf({ kind: 'rate_limit', retryAfterMs });
      assert.deepEqual(
        [headers['retry-after'], headers['retry-after-ms'], headers['x-should-retry']],
        [seconds, ms, should],
      );
    });
  }

  test('of a used-up budget name the reset but do not invite a retry', () => {
    const headers = headersOf({ kind: 'usage_limit_exceeded', retryAfterMs: 5000 });
    assert.deepEqual([headers['retry-after'], headers['x-should-retry']], ['5', 'false']);
  });
});

describe('other headers', () => {
  test('a 401 names the scheme, a 405 the methods', () => {
    for (const refusal of EVERY_REFUSAL) {
      const headers = headersOf(refusal);
      assert.equal(headers['www-authenticate'], REFUSAL_RULES[refusal.kind].status === 401 ? 'Bearer' : undefined);
      assert.equal(headers['allow'], refusal.kind === 'method_not_allowed' ? 'GET, POST' : undefined);
    }
  });
});

describe('texts', () => {
  test('show what a caller wrote in short, and escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
        for (const refusal of [
          { kind: 'unknown_model', model: text },
          { kind: 'duplicate_key', key: text },
          { kind: 'unknown_path', path: text },
          { kind: 'invalid_field', field: text, reason: 'r' },
        ] as const) {
          const { body } = renderRefusal(refusal, 'openai', CONTEXT);
          assert.ok(body.length < 3000);
          const { error } = JSON.parse(body) as { error: { message: string } };
          assert.ok(Array.from(error.message).every((character) => character >= ' '));
        }
      }),
    );
  });

  test('name the amounts when they are known', () => {
    const { body } = renderRefusal(
      { kind: 'insufficient_credit', authorizedAmount: picoUsd(18_750_000n), available: picoUsd(0n) },
      'openai',
      CONTEXT,
    );
    assert.match(body, /up to 0\.00001875 USD, with 0 USD available\./);
  });

  test('are sentences, apart from the fixed strings of the gateway envelope', () => {
    for (const refusal of EVERY_REFUSAL) {
      if (REFUSAL_RULES[refusal.kind].family === 'gateway') continue;
      const { error } = JSON.parse(renderRefusal(refusal, 'gateway', CONTEXT).body) as { error: string };
      const { message } = JSON.parse(renderRefusal(refusal, 'openai', CONTEXT).body) as { message?: string };
      assert.match(message ?? error, /^[A-Z].*\.$/);
    }
  });
});

describe('statusLine', () => {
  for (const [status, line] of [
    [200, '200 OK'],
    [402, '402 Payment Required'],
    [413, '413 Payload Too Large'],
    [422, '422 Unprocessable Entity'],
    [426, '426 Upgrade Required'],
    [429, '429 Too Many Requests'],
    [502, '502 Bad Gateway'],
    [529, '529 Overloaded'],
    [599, '599 Server Error'],
    [999, '999 Unknown'],
  ] as const) {
    test(line, () => assert.equal(statusLine(status), line));
  }
  test('is legal for every three-digit status', () => {
    for (let status = 100; status < 1000; status++)
      assert.match(statusLine(status), /^[1-9]\d\d [A-Za-z][A-Za-z '()-]*$/);
  });
});
