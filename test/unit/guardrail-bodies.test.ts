// Whole bodies that are screened: the same is found however JSON spells it, only what was found changes, placeholders
// become their values again, and what is signed, named or encoded stays as it is.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { DecodedText } from '../../src/domain/guardrails/decoded-text.ts';
import { RestorableValues } from '../../src/domain/guardrails/placeholders.ts';
import type { Rule } from '../../src/domain/guardrails/policy.ts';
import { type Cloaking, type ScreenedWhole, screenWhole } from '../../src/domain/guardrails/screen-whole.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { embeddings } from '../../src/generation/dialects/embeddings.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { applyEdits } from '../../src/generation/request/edits.ts';
import { agentRequests } from '../support/agent-requests.ts';
import { howMany } from '../support/at-length.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';

const RUNS = howMany({ short: 300, long: 20_000 });
const SCOPES = { key: Buffer.alloc(32, 3), apiKeyId: 'key', conversation: '' };
const NO_CLOAKING: Cloaking = { scopes: null, values: null };
function compiled(rules: readonly Rule[], onFailure: 'refuse' | 'pass' = 'refuse'): CompiledPolicy {
  const found = compilePolicy([policyOf(rules, { onFailure })], 'chat_completions');
  assert.ok(found !== null);
  return found;
}

const MASK = compiled([ruleOf({ action: 'mask', label: '[x]', detect: ['email', 'card'], words: ['Falcon'] })]);
const CLOAK = compiled([
  ruleOf({ action: 'cloak', stages: ['input'], detect: ['email', 'card', 'phone'], words: ['Öl "x"', 'C:\\a'] }),
]);

function screened(
  dialect: Dialect,
  stage: 'input' | 'output',
  text: string | Buffer,
  rules: CompiledPolicy,
  cloaking = NO_CLOAKING,
): { found: ScreenedWhole; text: string } {
  const body = Buffer.from(text);
  const found = screenWhole(rules, { stage, body, places: dialect.texts, parts: null }, cloaking);
  return { found, text: Buffer.concat(applyEdits(body, found.edits)).toString() };
}

const TEXT = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'ada@acme.test',
        'Ada@Acme.test',
        '4111 1111 1111 1111',
        'Falcon',
        '+49 30 901820',
        'Öl "x"',
        'C:\\a',
      ),
      fc.constantFrom(' ', '\n', '"', '\\', '@', '/', 'TG', 'TGE123456789012', '😀', '\u0000', '{', 'n'),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

/** As JSON, with any of its characters written as escapes. */
function spelt(value: unknown, bits: readonly boolean[]): string {
  let at = 0;
  return JSON.stringify(value).replace(/"(?:[^"\\]|\\.)*"/g, (string) => {
    const text = JSON.parse(string) as string;
    const characters = Array.from(text, (character) => {
      at += 1;
      const plain = JSON.stringify(character).slice(1, -1);
      if (bits[at % Math.max(1, bits.length)] !== true) return plain === '/' ? '\\/' : plain;
      return character
        .split('')
        .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
        .join('');
    });
    // Names of fields are known by their plain spelling.
    return /^[a-z_]+$/.test(text) ? string : `"${characters.join('')}"`;
  });
}

const chatOf = (content: string, args: unknown) => ({
  model: 'm',
  messages: [
    { role: 'user', content },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: JSON.stringify(args) } }],
    },
  ],
});

describe('a screened body', () => {
  for (const [dialect, result] of [
    [chatCompletions, (content: string) => ({ messages: [{ role: 'tool', tool_call_id: 'a', content }] })],
    [responses, (output: string) => ({ input: [{ type: 'function_call_output', call_id: 'a', output }] })],
    [
      messages,
      (content: string) => ({
        messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] }],
      }),
    ],
  ] as const) {
    test(`${dialect.api}: results of tools that are JSON are read as such`, () => {
      const given = JSON.stringify({
        lines: 'a\n4111 1111 1111 1111\nFalcon\tada@acme.test',
        id: 4_111_111_111_111_111,
      });
      const { text, found } = screened(dialect, 'input', JSON.stringify(result(given)), MASK);
      assert.ok(text.includes(JSON.stringify('{"lines":"a\\n[x]\\n[x]\\t[x]","id":[x]}').slice(1, -1)), text);
      assert.equal(
        found.report.findings?.reduce((sum, { count }) => sum + count, 0),
        4,
      );
    });
  }

  test('what only begins as JSON does is a text', () => {
    for (const given of ['[1] to ada@acme.test', '{a} C:\\new Falcon {b}', '"Falcon" is "it"', '{"a": "Falcon'])
      assert.deepEqual(
        screened(chatCompletions, 'input', JSON.stringify(chatOf(given, {})), MASK).found.report.findings?.length,
        1,
        given,
      );
  });

  test('a name that is spelt with escapes is the same name', () => {
    const args = JSON.stringify('{"a":"x\\n4111 1111 1111 1111"}');
    const { text } = screened(
      chatCompletions,
      'input',
      `{"messages":[{"function_call":{"argument\\u0073":${args}}}]}`,
      MASK,
    );
    assert.ok(text.includes('x\\\\n[x]'), text);
  });

  test('what stands behind its JSON is said not to have been screened', () => {
    const { found } = screened(chatCompletions, 'output', '{"choices":[]} {"choices":[{"text":"Falcon"}]}', MASK);
    assert.deepEqual(found.report.not_scanned, ['malformed']);
  });

  test('the same is found and written, however it is spelt', () => {
    fc.assert(
      fc.property(TEXT, TEXT, fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), (content, value, bits) => {
        const request = chatOf(content, { value, n: [1] });
        const plain = screened(chatCompletions, 'input', JSON.stringify(request), MASK);
        const other = screened(chatCompletions, 'input', spelt(request, bits), MASK);
        assert.deepEqual(JSON.parse(other.text), JSON.parse(plain.text));
        assert.deepEqual(other.found.report, plain.found.report);
      }),
      { numRuns: RUNS },
    );
  });

  test('placeholders become their values again', () => {
    fc.assert(
      fc.property(TEXT, TEXT, (content, value) => {
        const request = chatOf(content, { value });
        const sent = screened(chatCompletions, 'input', JSON.stringify(request), CLOAK, {
          scopes: SCOPES,
          values: null,
        });
        const reply = {
          choices: (JSON.parse(sent.text) as typeof request).messages.map((message, index) => ({ index, message })),
        };
        const values = new RestorableValues(sent.found.restorable);
        const got = screened(chatCompletions, 'output', JSON.stringify(reply), CLOAK, { scopes: null, values });
        const expected = { choices: request.messages.map((message, index) => ({ index, message })) };
        assert.deepEqual(JSON.parse(got.text), expected);
      }),
      { numRuns: RUNS },
    );
  });

  test('decoded text leads back to the bytes that spell it', () => {
    fc.assert(
      fc.property(TEXT, fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), (text, bits) => {
        const source = Buffer.from(spelt([`${text}A`], bits).slice(2, -2));
        const decoded = new DecodedText();
        decoded.decode(source, 0, source.length);
        const bytes = Buffer.from(`${text}A`.toWellFormed());
        assert.ok(decoded.bytes.subarray(0, decoded.length).equals(bytes));
        let at = 0;
        for (const character of `${text}A`.toWellFormed()) {
          const end = at + Buffer.byteLength(character);
          const raw = source.toString('utf8', decoded.sourceStart(at), decoded.sourceAfter(end));
          assert.equal((JSON.parse(`"${raw}"`) as string).toWellFormed(), character);
          at = end;
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('a name is masked so that no two become one; a number in the place of a string', () => {
    const body = {
      messages: [{ content: 'x' }],
      metadata: { 'a@acme.test': 1, 'b@acme.test': 2, card: 4111111111111111 },
    };
    const { text } = screened(chatCompletions, 'input', JSON.stringify(body), MASK);
    assert.deepEqual((JSON.parse(text) as typeof body).metadata, { '[x]#1': 1, '[x]#2': 2, card: '[x]' });
    const inArguments = screened(
      chatCompletions,
      'input',
      JSON.stringify(chatOf('', { card: 4111111111111111 })),
      MASK,
    ).text;
    assert.ok(inArguments.includes(JSON.stringify(JSON.stringify({ card: '[x]' }))));
  });

  test('what is signed, named or encoded is not rewritten: it is told, or refused', () => {
    const mail = 'ada@acme.test';
    const body = JSON.stringify({
      model: mail,
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: `to ${mail}`, signature: mail },
            { type: 'redacted_thinking', data: mail },
            { type: 'tool_use', id: mail, name: 'send', input: {} },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'YWRhQGFjbWUudGVzdA==' } },
          ],
        },
      ],
    });
    const rules = [ruleOf({ action: 'mask', detect: ['email'] })];
    const passed = screened(messages, 'input', body, compiled(rules, 'pass'));
    assert.equal(passed.text, body);
    assert.deepEqual([passed.found.report.action, passed.found.report.unrewritten], ['flagged', 1]);
    assert.notEqual(screened(messages, 'input', body, compiled(rules, 'refuse')).found.blocked, null);
  });

  test('what only claims to be base64 is a text, which is not rewritten; so are settings', () => {
    const chat = (part: object) => ({ messages: [{ role: 'user', content: [part] }] });
    const asked = (part: object) => ({ input: [{ role: 'user', content: [part] }] });
    const document = (source: object) => chat({ type: 'document', source: { type: 'base64', ...source } });
    const bodies = (data: string) =>
      [
        [chatCompletions, chat({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } })],
        [chatCompletions, chat({ type: 'file', file: { file_data: data } })],
        [chatCompletions, chat({ type: 'file', file: { file_data: `data:application/pdf;base64,${data}` } })],
        [chatCompletions, chat({ type: 'input_audio', input_audio: { data, format: 'wav' } })],
        [responses, asked({ type: 'input_file', file_data: data })],
        [messages, document({ media_type: 'text/plain', data })],
      ] as const;
    for (const [dialect, body] of bodies('to ada@acme.test'))
      assert.equal(screened(dialect, 'input', JSON.stringify(body), MASK).found.blocked?.entity, 'email');
    // Digits alone are base64, and cost nothing but a search.
    for (const [dialect, body] of bodies('4111111111111111AAAA/+=='))
      assert.deepEqual(screened(dialect, 'input', JSON.stringify(body), MASK).found.report, {
        action: 'none',
        not_scanned: ['attachment'],
      });
    for (const [dialect, body] of [
      [chatCompletions, { tool_choice: 'ada@acme.test' }],
      [responses, { reasoning: { effort: 'ada@acme.test' } }],
      [messages, { thinking: { type: 'enabled', note: 'ada@acme.test' } }],
      [embeddings, { input: 'x', encoding_format: ['ada@acme.test'] }],
    ] as const)
      assert.equal(screened(dialect, 'input', JSON.stringify(body), MASK).found.blocked?.entity, 'email');
  });

  test('a part of a form that is JSON is read as such', () => {
    const body = Buffer.from('{"to":"ada\\u0040acme.test","n":"\\n4111 1111 1111 1111"}');
    const parts = [{ name: 'extra', start: 0, end: body.length }];
    const found = screenWhole(MASK, { stage: 'input', body, places: chatCompletions.texts, parts }, NO_CLOAKING);
    assert.equal(Buffer.concat(applyEdits(body, found.edits)).toString(), '{"to":"[x]","n":"\\n[x]"}');
  });

  test('a page of what a saved response was asked has the items of one', () => {
    const image = 'data:image/png;base64,4111111111111111';
    const items = [
      { type: 'message', id: 'msg_4111111111111111', content: [{ type: 'input_text', text: 'ada@acme.test' }] },
      { type: 'message', id: 'msg_2', content: [{ type: 'input_image', image_url: image }] },
      { type: 'reasoning', id: 'rs_1', encrypted_content: 'gAAA 4111111111111111', summary: [] },
    ];
    const page = { object: 'list', data: items, first_id: '4111111111111111', last_id: 'rs_1', has_more: false };
    const { text, found } = screened(responses, 'output', JSON.stringify(page), MASK);
    assert.equal(text, JSON.stringify(page).replace('ada@acme.test', '[x]'));
    assert.deepEqual(found.report.not_scanned, ['attachment']);
  });

  test('JSON in a string of JSON in arguments is still JSON, and what is spelt in it a third time is not found', () => {
    const argumentsOf = (said: string): string => JSON.stringify({ body: `{"to":"Bob","said":"${said}"}` });
    const replyOf = (said: string) => ({
      choices: [{ message: { tool_calls: [{ function: { name: 'send', arguments: argumentsOf(said) } }] } }],
    });
    const saidOf = (reply: string): string => {
      const { choices } = JSON.parse(reply) as ReturnType<typeof replyOf>;
      const called = choices[0]?.message.tool_calls[0]?.function.arguments ?? '';
      const { body } = JSON.parse(called) as { body: string };
      return (JSON.parse(body) as { said: string }).said;
    };
    const masked = (said: string): string =>
      saidOf(screened(chatCompletions, 'output', JSON.stringify(replyOf(said)), MASK).text);
    assert.equal(masked('a\\n4111 1111 1111 1111\\tada@acme.test, Falcon'), 'a\n[x]\t[x], [x]');
    assert.equal(masked('a\\u000aada\\u0040acme.test'), 'a\nada@acme.test');
  });

  test('tokens are a text that cannot be read, and count as not screened', () => {
    const report = (input: unknown) =>
      screened(embeddings, 'input', JSON.stringify({ model: 'm', input, dimensions: 256 }), MASK).found.report;
    for (const tokens of [
      [1, 2],
      [[1], [2]],
    ])
      assert.deepEqual(report(tokens).not_scanned, ['tokens']);
    assert.deepEqual(report(['a text', 'Falcon']).not_scanned, undefined);
    assert.equal(report(['a text', 'Falcon']).action, 'masked');
  });

  test('an object that names two types is read as either', () => {
    const body =
      '{"messages":[{"role":"user","content":[{"type":"redacted_thinking","data":"Falcon","type":"text"}]}]}';
    assert.ok(
      screened(messages, 'input', body, compiled([ruleOf({ action: 'block', words: ['Falcon'] })])).found.blocked !==
        null,
    );
  });

  test('logprobs of a text that was changed are left out', () => {
    const reply = (content: string): string =>
      JSON.stringify({
        choices: [{ index: 0, logprobs: { content: [{ token: 'Fal' }, { token: 'con' }] }, message: { content } }],
      });
    assert.ok(screened(chatCompletions, 'output', reply('a Falcon'), MASK).text.includes('"logprobs":null'));
    assert.ok(screened(chatCompletions, 'output', reply('a hawk'), MASK).text.includes('"token":"Fal"'));
  });

  test('the requests of agents: every string of a name that no table knows is screened', () => {
    for (const { url, body, name } of agentRequests()) {
      const dialect = url.includes('responses') ? responses : url.includes('chat') ? chatCompletions : messages;
      const planted = JSON.stringify({ ...body, unknown: { deep: ['Falcon'] } });
      const { found } = screened(dialect, 'input', planted, MASK);
      assert.ok(
        found.report.findings?.some(({ entity }) => entity === 'words'),
        name,
      );
    }
  });
});
