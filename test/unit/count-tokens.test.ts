// Token counting: published vectors, the chat recipe by hand, replies whole, streamed and cut, and hostile text in
// linear work.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  CL100K_TOKEN_SPLIT_REGEX,
  O200K_TOKEN_SPLIT_REGEX,
  R50K_TOKEN_SPLIT_REGEX,
} from 'gpt-tokenizer/encodingParams/constants';
import { cutLongRuns, RUN_CHARACTERS_MAX } from '../../src/domain/usage/long-runs.ts';
import { begunFlag } from '../../src/platform/begun-flag.ts';

import countTokens, {
  type CountTokensInput,
  type CountTokensOutput,
  loadEncoding,
} from '../../workers/count-tokens.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const encoder = new TextEncoder();
const NOTHING = new Uint8Array();

function countRequest(request: unknown, encoding = 'o200k_base'): Promise<CountTokensOutput> {
  const bytes = typeof request === 'string' ? encoder.encode(request) : encoder.encode(JSON.stringify(request));
  return countTokens({
    api: 'chat_completions',
    encoding,
    request: bytes,
    response: NOTHING,
    responseIsStream: false,
    responseBytesTotal: 0,
    count: { input: true, output: false },
  });
}

async function countResponse(
  response: string | Uint8Array,
  options: { stream?: boolean; bytesTotal?: number } = {},
): Promise<number | null> {
  const bytes = typeof response === 'string' ? encoder.encode(response) : response;
  const input: CountTokensInput = {
    api: 'chat_completions',
    encoding: 'o200k_base',
    request: NOTHING,
    response: bytes,
    responseIsStream: options.stream ?? false,
    responseBytesTotal: options.bytesTotal ?? bytes.byteLength,
    count: { input: false, output: true },
  };
  return (await countTokens(input)).outputTokens;
}

test('a count says that it begins, after its tokenizer is loaded', async () => {
  const begun = begunFlag();
  const { inputTokens } = await countTokens({
    api: 'chat_completions',
    encoding: 'r50k_base',
    request: encoder.encode('{"messages":[]}'),
    response: NOTHING,
    responseIsStream: false,
    responseBytesTotal: 0,
    count: { input: true, output: false },
    begun,
  });
  assert.deepEqual([inputTokens !== null, Atomics.load(begun, 0)], [true, 1]);
});

describe('encodings', () => {
  const vectors: readonly (readonly [string, string, number])[] = [
    ['r50k_base', 'Hello, World! How are you today? 🌍', 12],
    ['r50k_base', 'こんにちは、世界！お元気ですか？', 26],
    ['cl100k_base', 'hello world', 2],
    ['o200k_base', 'hello world', 2],
    ['o200k_base', '', 0],
    // Text that spells a special token is text, and counts as the text it is.
    ['o200k_base', '<|endoftext|>', 7],
    ['no_such_encoding', 'hello world', 2],
    ['constructor', 'hello world', 2],
  ];
  for (const [encoding, text, tokens] of vectors) {
    test(`${encoding}: ${JSON.stringify(text)}`, async () =>
      assert.equal((await loadEncoding(encoding))(text), tokens));
  }

  const plans = sharedAssets('gpt-tokenizer', 'TestPlans.txt');
  test('agree with the published test plans', {
    skip: plans === null && 'the recorded vectors are not here',
  }, async () => {
    let checked = 0;
    for (const [, encoding = '', sample = '', encoded = ''] of readFileSync(plans as string, 'utf8').matchAll(
      /EncodingName: (\S+)\nSample: ([^]*?)\nEncoded: \[([^\]]*)\]/g,
    )) {
      if (encoding === 'p50k_edit') continue;
      const tokens = encoded.trim() === '' ? 0 : encoded.split(',').length;
      assert.equal((await loadEncoding(encoding))(sample), tokens, `${encoding}: ${sample}`);
      checked++;
    }
    assert.equal(checked, 249);
  });
});

describe('a request', () => {
  test('is its texts, 3 tokens a message, 1 a name, 3 to prime the reply', async () => {
    // hello = 1, user = 1, Ann = 1.
    assert.equal((await countRequest({ messages: [{ role: 'user', content: 'hello' }] })).inputTokens, 3 + 3 + 1 + 1);
    assert.equal(
      (await countRequest({ messages: [{ role: 'user', name: 'Ann', content: 'hello' }] })).inputTokens,
      3 + 3 + 1 + 1 + 1 + 1,
    );
    assert.equal((await countRequest({ messages: [] })).inputTokens, 3);
  });

  test('is as OpenAI counted its own example', async () => {
    // The example of OpenAI's cookbook on counting; gpt-4o and gpt-4 answered prompt_tokens 124 and 129.
    const messages = [
      {
        role: 'system',
        content: 'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.',
      },
      { role: 'system', name: 'example_user', content: 'New synergies will help drive top-line growth.' },
      { role: 'system', name: 'example_assistant', content: 'Things working well together will increase revenue.' },
      {
        role: 'system',
        name: 'example_user',
        content: "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
      },
      {
        role: 'system',
        name: 'example_assistant',
        content: "Let's talk later when we're less busy about how to do better.",
      },
      {
        role: 'user',
        content: "This late pivot means we don't have time to boil the ocean for the client deliverable.",
      },
    ];
    assert.equal((await countRequest({ messages }, 'o200k_base')).inputTokens, 124);
    assert.equal((await countRequest({ messages }, 'cl100k_base')).inputTokens, 129);
  });

  test('counts text parts, tool calls and tools, and no images', async () => {
    const base = (await countRequest({ messages: [{ role: 'user', content: 'hello' }] })).inputTokens as number;
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(10_000)}` } };
    assert.equal(
      (await countRequest({ messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }, image] }] }))
        .inputTokens,
      base,
    );
    const call = { id: 'call_1', type: 'function', function: { name: 'hello', arguments: 'hello' } };
    assert.equal(
      (await countRequest({ messages: [{ role: 'user', content: null, tool_calls: [call] }] })).inputTokens,
      base + 1,
    );
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];
    const count = await loadEncoding('o200k_base');
    assert.equal(
      (await countRequest({ messages: [{ role: 'user', content: 'hello' }], tools })).inputTokens,
      base + count(JSON.stringify(tools)),
    );
  });

  for (const body of ['', '{', '[]', 'null', '"text"', '{}', '{"messages":{}}', '{"messages":null}', '\u0000']) {
    test(`that is ${JSON.stringify(body)} is not countable`, async () =>
      assert.equal((await countRequest(body)).inputTokens, null));
  }
});

describe('a JSON reply', () => {
  test('is its content, refusal, reasoning and calls', async () => {
    assert.equal(await countResponse('{"choices":[{"message":{"role":"assistant","content":"hello world"}}]}'), 2);
    const message = {
      content: 'hello',
      reasoning_content: 'hello',
      reasoning: 'hello',
      refusal: 'hello',
      tool_calls: [{ function: { name: 'hello', arguments: 'hello' } }],
    };
    assert.equal(await countResponse(JSON.stringify({ choices: [{ message }, { message: { content: 'hello' } }] })), 6);
    assert.equal(await countResponse('{"choices":[]}'), 0);
  });
  test('that was cut counts as far as it came', async () => {
    const whole =
      '{"choices":[{"message":{"role":"assistant","content":"hello world, said \\"the\\u00e9 {model}\\", ' +
      'and went on","refusal":null}}]}';
    const count = await loadEncoding('o200k_base');
    assert.equal(await countResponse(whole.slice(0, whole.indexOf(', said'))), 2);
    assert.equal(await countResponse(whole.slice(0, whole.indexOf('e9 {'))), count('hello world, said "the'));
    assert.equal(
      await countResponse(whole.slice(0, whole.indexOf(',"refusal'))),
      count('hello world, said "theé {model}", and went on'),
    );
    assert.equal(await countResponse(whole.slice(0, 30)), null);
  });
  test('of which only the beginning was kept is scaled to its bytes', async () => {
    assert.equal(
      await countResponse(`{"choices":[{"message":{"content":"${'hello '.repeat(100)}`, { bytesTotal: 2 * (34 + 600) }),
      2 * 101,
    );
  });
  for (const body of ['', 'nonsense', '{"error":{"message":"no"}}', '[1]', '{"choices":"x"}', '<html>content</html>']) {
    test(`that is ${JSON.stringify(body)} is not countable`, async () => assert.equal(await countResponse(body), null));
  }
});

describe('a stream', () => {
  const event = (delta: object, index = 0): string => `data: ${JSON.stringify({ choices: [{ index, delta }] })}\n\n`;
  const count = (body: string, bytesTotal?: number): Promise<number | null> =>
    countResponse(body, { stream: true, ...(bytesTotal === undefined ? {} : { bytesTotal }) });

  test('is its deltas joined, whatever they were split into', async () => {
    assert.equal(
      await count(
        `${event({ role: 'assistant', content: '' })}${event({ content: 'hel' })}${event({ content: 'lo wor' })}${event({ content: 'ld' })}data: [DONE]\n\n`,
      ),
      2,
    );
    const calls = [
      { index: 0, function: { name: 'hello', arguments: '' } },
      { index: 0, function: { arguments: 'hel' } },
      { index: 0, function: { arguments: 'lo' } },
      { index: 1, function: { name: 'hello', arguments: 'hello' } },
      { index: 2, type: 'custom', custom: { name: 'hello', input: 'hel' } },
      { index: 2, custom: { input: 'lo' } },
    ];
    assert.equal(await count(calls.map((call) => event({ tool_calls: [call] })).join('')), 6);
    assert.equal(
      await count(
        `${event({ reasoning_content: 'hel' })}${event({ reasoning_content: 'lo' })}${event({ refusal: 'hello' })}`,
      ),
      2,
    );
    assert.equal(
      await count(`${event({ content: 'hel' }, 0)}${event({ content: 'hello' }, 1)}${event({ content: 'lo' }, 0)}`),
      2,
    );
  });
  test('counts the same with every line end, with comments, ids and data on several lines', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      assert.equal(
        await count(
          (
            `: keep-alive\n\nid: 1\nevent: x\n${event({ content: 'hello' })}data:{"choices":\ndata: ` +
            `[{"delta":{"content":" world"}}]}\n\n`
          ).replaceAll('\n', end),
        ),
        2,
      );
    }
  });
  test('that was cut counts its complete events only', async () => {
    const body = `${event({ content: 'hello' })}${event({ content: ' world' })}`;
    assert.equal(await count(body.slice(0, -1)), 2);
    assert.equal(await count(body.slice(0, -2)), 1);
    assert.equal(await count(body.slice(0, body.indexOf(' world'))), 1);
  });
  test('with a part that is not JSON counts the rest', async () => {
    assert.equal(await count(`data: {broken\n\n${event({ content: 'hello' })}data: 1\n\ndata: null\n\n`), 1);
  });
  test('of which only the beginning was kept is scaled to its bytes', async () => {
    const body = event({ content: 'hello' }).repeat(10);
    assert.equal(
      await count(body, encoder.encode(body).byteLength * 3),
      3 * (await loadEncoding('o200k_base'))('hello'.repeat(10)),
    );
  });
  test('without any event is not countable, and with an empty one counts 0', async () => {
    for (const body of ['', 'data: [DONE]\n\n', ': hm\n\n', 'data: {"error":{}}\n\n', '{"choices":[]}'])
      assert.equal(await count(body), null);
    assert.equal(await count(event({})), 0);
  });
});

describe('hostile input', () => {
  test('never throws', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    for (const body of [
      deep,
      `{"messages":${deep}}`,
      `{"messages":[{"content":${deep}}]}`,
      '{"messages":[null,1,"x",[],{"content":{"text":1}},{"tool_calls":[null,{"function":3}]}]}',
    ])
      await countRequest(body);
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.boolean(), async (json, stream) => {
        const body = encoder.encode(
          stream ? `data: {"choices":[${json}]}\n\n` : `{"choices":[${json}],"messages":[${json}]}`,
        );
        await countTokens({
          api: 'chat_completions',
          encoding: 'o200k_base',
          request: body,
          response: body,
          responseIsStream: stream,
          responseBytesTotal: 9,
          count: { input: true, output: true },
        });
      }),
      { numRuns: 300 },
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => void (await countResponse(bytes))),
      { numRuns: 200 },
    );
  });

  // A megabyte of one run takes minutes to hours uncut; the suite's time limit is what fails then.
  const megabyte = (unit: string): string => unit.repeat(Math.ceil(1_000_000 / encoder.encode(unit).byteLength));
  const runs = [
    ['a', megabyte('a'), 100_000],
    ['_', megabyte('_'), 5_000],
    ['spaces', megabyte(' '), 2_000],
    ['CJK', megabyte('語言模型'), 100_000],
    ['emoji', megabyte('😺'), 100_000],
    ['signs and marks', megabyte('_\u0301'), 100_000],
    ['slashes and line ends', megabyte('/\n'), 1_000],
    ['signs and emoji', megabyte('_😺'), 100_000],
  ] as const;
  for (const [name, text, atLeast] of runs) {
    test(`a megabyte of ${name} is counted`, { timeout: 60_000 }, async () => {
      const { inputTokens } = await countRequest({ messages: [{ role: 'user', content: text }] });
      assert.ok(inputTokens !== null && inputTokens > atLeast, `${inputTokens} tokens`);
    });
  }
});

describe('cutLongRuns', () => {
  // The pieces that the tokenizers themselves split text into; their length is what work grows with.
  const longestPiece = (text: string): number =>
    Math.max(
      0,
      ...[R50K_TOKEN_SPLIT_REGEX, CL100K_TOKEN_SPLIT_REGEX, O200K_TOKEN_SPLIT_REGEX].flatMap((split) =>
        [...text.matchAll(split)].map(([piece]) => piece.length),
      ),
    );
  const UNITS = [
    'a',
    'Z',
    '语',
    'é',
    '1',
    '٣',
    '_',
    '/',
    ' ',
    '\n',
    '\r',
    '😺',
    '\u0301',
    '。',
    '𝔘',
    '𝟘',
    '\ud800',
    '\udc00',
    '\u00a0',
  ];

  test('loses nothing, splits no character, and leaves no piece of more than two runs', () => {
    const stretch = fc
      .tuple(fc.array(fc.constantFrom(...UNITS), { minLength: 1, maxLength: 3 }), fc.nat({ max: 60 }))
      .map(([units, times]) => units.join('').repeat(times));
    fc.assert(
      fc.property(fc.array(stretch, { maxLength: 8 }), (stretches) => {
        const text = stretches.join('');
        const slices = cutLongRuns(text, 20);
        assert.equal(slices.join(''), text);
        for (const slice of slices) {
          assert.ok(slice.isWellFormed() || !text.isWellFormed());
          assert.ok(longestPiece(slice) <= 2 * 21 + 4, `${longestPiece(slice)} in ${JSON.stringify(slice)}`);
        }
      }),
      { numRuns: 1000 },
    );
  });
  test('leaves ordinary text whole, however long', () => {
    const text = 'The quick brown fox jumps over 13 lazy dogs. 语言模型的分词器，很快。\n'.repeat(2000);
    assert.deepEqual(cutLongRuns(text), [text]);
    const words = 'word\n'.repeat(2000);
    assert.deepEqual(cutLongRuns(words), [words]);
    assert.equal(cutLongRuns('a'.repeat(RUN_CHARACTERS_MAX)).length, 1);
    assert.equal(cutLongRuns('a'.repeat(RUN_CHARACTERS_MAX + 1)).length, 2);
  });
});
