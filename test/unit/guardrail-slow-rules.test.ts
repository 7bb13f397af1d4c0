// Rules that their authors made to be slow: what they take from the event loop, which is everybody's, is bounded.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { OnFailure } from '../../src/domain/guardrails/policy.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { inlineBytesMax, screenBody } from '../../src/generation/guardrails/screen-body.ts';
import { ScreenReply } from '../../src/generation/guardrails/screen-reply.ts';
import { Screening } from '../../src/generation/guardrails/screening.ts';
import { CapturedReply } from '../../src/generation/reply/capture.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { inTurnsOf } from '../../src/platform/worker-pool.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';
import { compiledOf, foundIn, policyOf, ruleOf } from '../support/guardrail-policies.ts';

const NO_CLOAKING = { scopes: null, values: null };

describe('many words', () => {
  test('that begin alike are told apart, the longest that ends where a word can', () => {
    const words = Array.from({ length: 1_000 }, (_, index) => `falcon${'x'.repeat(index % 7)}${index}`);
    const compiled = compiledOf(ruleOf({ words: [...words, 'falcon', 'falcon heavy', 'falcon heavy lift'] }));
    assert.deepEqual(
      foundIn(compiled, 'falcon5 falconxxxxx5 FALCON Heavy lifting falcon heavy, falconxx2 falc').map(
        ([, found]) => found,
      ),
      ['falconxxxxx5', 'FALCON Heavy', 'falcon heavy', 'falconxx2'],
    );
  });

  test('letters beyond ASCII are found in upper case, too, and with accents of their own', () => {
    const compiled = compiledOf(ruleOf({ words: ['München', 'żubr'] }));
    const text = `München MÜNCHEN münchen ${'München'.normalize('NFD')} Żubr ŻUBR`;
    assert.equal(foundIn(compiled, text).length, 6);
  });
});

describe('slow patterns', () => {
  const SLOW = Array.from({ length: 4 }, (_, index) => ({ regex: `[a-z]*${'abcd'[index]}[a-z]{200}`, maxLength: 256 }));

  test('a body of a kilobyte is left to a worker, in its organization’s turn', async () => {
    const body = Buffer.from(`{"messages":[{"role":"user","content":"${'a word '.repeat(150)}"}]}`);
    const whole = { stage: 'input' as const, body, places: chatCompletions.texts, parts: null };
    const asked: string[] = [];
    const workers = {
      run: async (name: string, _input: unknown, { source }: { readonly source?: string }) => {
        asked.push(`${name} of ${source}`);
        return { ok: false as const, reason: 'timeout' as const };
      },
    };
    const slow = compiledOf(ruleOf({ patterns: SLOW }));
    const screened = await screenBody(slow, whole, NO_CLOAKING, inTurnsOf(workers as never, 'acme'));
    assert.deepEqual([asked, screened.report.not_scanned], [['screen-text of acme'], ['timeout']]);
    assert.ok(inlineBytesMax(slow, 'output') < 1_024, 'nor is an event of a stream screened on the event loop');
    const plain = compiledOf(ruleOf({ patterns: [{ regex: 'ACME-[0-9]{6}', maxLength: 11 }] }));
    assert.ok(!(screenBody(plain, whole, NO_CLOAKING, workers as never) instanceof Promise));
  });

  const chunk = (content: string): Buffer =>
    Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`);
  /** A stream whose every chunk takes 100 ms to screen. */
  function slowStream(onFailure: OnFailure) {
    let nowMs = 0;
    let out = '';
    let ended = false;
    const compiled = compilePolicy([policyOf([ruleOf({ words: ['falcon'] })], { onFailure })], 'chat_completions');
    assert.ok(compiled !== null);
    const next = {
      onReplyStart: () => {},
      onReplyData: (bytes: Buffer) => void (out += bytes.toString()),
      onReplyPause: () => {},
      onReplyEnd: () => void (ended = true),
    } as unknown as ReplyHandler;
    const screening = new Screening(compiled, { action: 'a', count: 'c' });
    const reply = new CapturedReply();
    reply.isStream = true;
    const screen = new ScreenReply(next, {
      screening,
      compiled,
      reply,
      dialect: chatCompletions,
      exchange: { renderRefusal: ({ kind }: { kind: string }) => ({ body: kind }) } as unknown as Exchange,
      workers: null as never,
      clock: { nowMs: () => 0, monotonicMs: () => (nowMs += 100) },
      abortCall: () => {},
      refuseInstead: () => {},
      onOwnFault: (fault) => assert.fail(String(fault)),
    });
    screen.onReplyStart(200, ['content-type', 'text/event-stream']);
    for (const piece of ['a falc', 'on ', 'flies, falc', 'on', ' and falcon']) screen.onReplyData(chunk(piece));
    screen.onReplyEnd();
    return { out, ended, report: screening.report?.output };
  }

  test('a stream that has taken a quarter of a second goes on unscreened, and that is said', () => {
    const { out, ended, report } = slowStream('pass');
    assert.equal(
      out.match(/"content":"[^"]*"/g)?.join(''),
      '"content":"a [words]""content":" ""content":"flies, falc""content":"on""content":" and falcon"',
    );
    assert.deepEqual([ended, report?.action, report?.not_scanned], [true, 'masked', ['timeout']]);
  });

  test('or ends, where the policy refuses what cannot be screened', () => {
    const { out, ended, report } = slowStream('refuse');
    assert.ok(!out.includes('falcon') && out.endsWith('data: guardrail_unread\n\n'), out);
    assert.deepEqual([ended, report?.not_scanned], [true, ['timeout']]);
  });
});
