// What requests hold for, beside what providers counted for them: in no recorded exchange was more read or written than
// its request's bound, of those that an organization that is billed may send.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundTokens } from '../../src/generation/admission/worst-case-cost.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { MODEL } from '../support/real-bills.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const SKIP = sharedAssets() === null ? 'no recordings beside the repository' : false;
/** xAI begins every prompt with some of its own; of the shortest requests their bytes do not cover that. */
const GROK_ADDS_MAX = 64;
const UNLIMITED = { ...MODEL, maxOutputTokens: null, maxCompletionTokensCap: 1_000_000, servedBy: [] };

const scanner = new RequestScanner();

for (const [format, dialect, countMin] of [
  ['chat', chatCompletions, 100],
  ['responses', responses, 60],
  ['messages', messages, 60],
] as const) {
  test(`${format}: no recorded request used more than its bound`, { skip: SKIP }, () => {
    let compared = 0;
    for (const { name, status, requestBody, expectedUsage } of loadRecordedExchanges(format)) {
      if (requestBody === null || status !== 200 || expectedUsage === null) continue;
      const scanned = scanner.scan(requestBody);
      const bounds = dialect.readBounds(scanned, requestBody);
      if ('kind' in bounds || bounds.refusalIfBilled != null) continue;
      const measure = { bytes: requestBody.length, attachments: scanned.attachments, carriedTokens: 0 };
      const bound = boundTokens(dialect, UNLIMITED, bounds, measure);
      assert.ok(bound, name);
      const isGrok = /"model": ?"grok/.test(requestBody.toString());
      const { inputTokens, outputTokens } = expectedUsage;
      const inputMax = bound.inputTokensMax + (isGrok ? GROK_ADDS_MAX : 0);
      assert.ok((inputTokens ?? 0) <= inputMax, `${name}: ${inputTokens} in, ${inputMax} bound`);
      assert.ok((outputTokens ?? 0) <= bound.outputTokensMax, `${name}: ${outputTokens} out`);
      compared += 1;
    }
    assert.ok(compared >= countMin, `${compared} compared`);
  });
}
