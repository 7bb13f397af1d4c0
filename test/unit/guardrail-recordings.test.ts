// Recorded bodies of every API, under a policy that finds nothing in them: nothing of them is written otherwise.
// Streams are in guardrail-stream.test.ts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { screenWhole } from '../../src/domain/guardrails/screen-whole.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { imageGenerations } from '../../src/generation/dialects/images.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { systemone } from '../../src/generation/dialects/systemone.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import { sharedAssets } from '../support/shared-assets.ts';

interface Recorded {
  readonly dialect: Dialect;
  readonly stage: 'input' | 'output';
  readonly body: Buffer;
}

const RULE = ruleOf({ action: 'mask', words: ['zzqqzzqqzz'], detect: ['iban', 'jwt'] });

function checkUnchanged(bodies: readonly Recorded[]): void {
  // Some of them are no JSON.
  const never = compilePolicy([policyOf([RULE], { onFailure: 'pass' })], 'chat_completions');
  assert.ok(never !== null);
  for (const { dialect, stage, body } of bodies) {
    const whole = { stage, body, places: dialect.texts, parts: null };
    const { edits, report } = screenWhole(never, whole, { scopes: null, values: null });
    assert.deepEqual([edits, report.findings], [[], undefined], body.toString('utf8', 0, 100));
  }
}

for (const [dialect, format] of [
  [chatCompletions, 'chat'],
  [responses, 'responses'],
  [messages, 'messages'],
  [countTokens, 'count_tokens'],
  [responses, 'responses_sub'],
] as const) {
  const exchanges = loadRecordedExchanges(format);
  test(`${exchanges.length} recorded ${format} exchanges: nothing found, nothing changed`, () => {
    checkUnchanged(
      exchanges.flatMap(({ requestBody, responseBody, stream }) => [
        ...(requestBody === null || requestBody.length === 0
          ? []
          : [{ dialect, stage: 'input' as const, body: requestBody }]),
        ...(stream ? [] : [{ dialect, stage: 'output' as const, body: responseBody }]),
      ]),
    );
  });
}

const others = [...recordedImages(), ...recordedEvaluations()];
test(`${others.length} recorded bodies of images and evaluations: nothing found, nothing changed`, () => {
  checkUnchanged(others);
});

/** Empty when the recordings are not there. */
function recordedImages(): Recorded[] {
  const folder = sharedAssets('ruby-llm-images');
  const names = folder === null ? [] : readdirSync(folder).filter((name) => name.endsWith('.json'));
  return names.map((name) => ({
    dialect: imageGenerations,
    stage: name.endsWith('.req.json') ? 'input' : 'output',
    body: readFileSync(join(folder ?? '', name)),
  }));
}

/** Empty when the recordings are not there. */
function recordedEvaluations(): Recorded[] {
  const folder = sharedAssets('systemone');
  if (folder === null) return [];
  const lines = readFileSync(join(folder, 'examples.jsonl'), 'utf8').trim().split('\n');
  return lines.flatMap((line) => {
    const { request, response } = JSON.parse(line) as { request?: object; response?: object };
    const bodies = [
      ['input', request],
      ['output', response],
    ] as const;
    return bodies.flatMap(([stage, said]) =>
      said === undefined ? [] : [{ dialect: systemone, stage, body: Buffer.from(JSON.stringify(said)) }],
    );
  });
}
