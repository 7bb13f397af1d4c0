// `tollgate guardrail probe`: how often a model copies a placeholder verbatim, asked through a gateway.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { runCommand } from '../support/gateway.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

let upstream: FakeUpstream;
let front: Front;
/** What the model makes of a placeholder, one reply after another. */
let replies: readonly ((placeholder: string) => string)[] = [];
let asked = 0;
before(async () => {
  upstream = await startFakeUpstream(({ body }) => {
    const placeholder = /TGE\d{12}/.exec(body.toString())?.[0] ?? '';
    const content = replies[asked++ % replies.length]?.(placeholder) ?? '';
    return {
      headers: [['content-type', 'application/json']],
      body: JSON.stringify({
        choices: [{ index: 0, message: { role: 'assistant', content } }],
        usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      }),
    };
  });
  front = await startFront({ configurationYaml: testConfiguration({ upstreamUrl: upstream.url }) });
});
after(async () => {
  await front?.stop();
  await upstream?.close();
});

const probe = async (...more: readonly string[]) => {
  const { exitCode, output } = await runCommand(['guardrail', 'probe', '--url', front.url, ...more], {
    TOLLGATE_KEY: KEYS.acme,
  });
  return { exitCode, lines: output.trim().split('\n') };
};

test('what is copied, altered and left out is counted', async () => {
  replies = [
    (placeholder) => `Dear ${placeholder}!`,
    (placeholder) => `{"to": "${placeholder}"}`,
    (placeholder) => `send("${placeholder.toLowerCase()}@example.com", "hello")`,
    () => 'Somebody called.',
  ];
  assert.deepEqual(await probe('--model', 'sim/small', '--samples', '8'), {
    exitCode: 0,
    lines: ['verbatim\t4 of 8\t50 %', 'altered\t2 of 8\t25 %', 'absent\t2 of 8\t25 %'],
  });
  const placeholders = upstream.requests.map(({ body }) => /TGE\d{12}/.exec(body.toString())?.[0]);
  assert.equal(new Set(placeholders).size, 8, 'another one each time');
});

test('what cannot be measured is said', async () => {
  const unknown = await probe('--model', 'sim/nothing');
  assert.equal(unknown.exitCode, 1);
  assert.match(unknown.lines.join(), /answers 404/);
  assert.match((await probe('--model', 'sim/small', '--samples', '0')).lines.join(), /whole number from 1 to 1000/);
  assert.match((await probe()).lines.join(), /--model is missing/);
});
