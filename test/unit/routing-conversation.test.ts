// What auto routing reads in a conversation: whose words are human, which requests are one turn, which session they
// belong to, what binds them to a model.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { RoutedApi } from '../../src/domain/models/apis.ts';
import { sessionHash, sessionOf } from '../../src/domain/routing/conversation/session.ts';
import {
  CONVERSATION_APIS,
  prepare,
  recordedRequest,
  renderConversation,
  type Step,
} from '../support/conversations.ts';

const user = (...texts: string[]): Step => ({ by: 'user', texts });
const assistant = (text: string): Step => ({ by: 'assistant', text });
const tool = (result: string): Step => ({ by: 'tool', result });
const chat = (...messages: unknown[]): unknown => ({ model: 'service/auto', messages });
const textsOf = (...parts: unknown[]): readonly string[] =>
  prepare('messages', chat({ role: 'user', content: parts })).humanTexts;
const part = (text: string): unknown => ({ type: 'text', text });

const README = 'What is in the README of this project?';
const WRONG = 'That is wrong, look again';
const HELLO = 'Say hello to the gateway';
const STREAM = '@internal/server/api/ Fix the stream not close when client closed';
const CLAUDE_SESSION = 'f436fa95-0cf8-43c6-a51b-3777f512aff4';
const CODEX_SESSION = '01a1f8c4-ff93-7d61-8dc5-5bfac0b5097e';
const OPENCODE_SESSION = 'ses_e073c1089ffeTr87HMQ303Ic3T';

describe('the recorded requests of real agents', () => {
  const rows: readonly (readonly [string, readonly string[], string, 'header' | 'body' | 'opener'])[] = [
    ['claude-code-2.1-turn1-req1', [README], CLAUDE_SESSION, 'header'],
    ['claude-code-2.1-turn1-req2-toolresult', [README], CLAUDE_SESSION, 'header'],
    ['claude-code-2.1-turn2-correction', [README, WRONG], CLAUDE_SESSION, 'header'],
    ['axonhub-anthropic-claude-code.request', [STREAM], 'd0d6f453-651b-4e4e-8cc0-abb654b0ebdd', 'body'],
    ['codex-0.169-turn1-req1', [README], CODEX_SESSION, 'header'],
    ['codex-0.169-turn1-req2-toolresult', [README], CODEX_SESSION, 'header'],
    ['codex-0.169-turn2-correction', [README, WRONG], CODEX_SESSION, 'header'],
    ['opencode-1.18-main', [`"${HELLO}"`], OPENCODE_SESSION, 'header'],
    [
      'opencode-1.18-title-side-request',
      ['Generate a title for this conversation:', `"${HELLO}"`],
      OPENCODE_SESSION,
      'header',
    ],
    ['cline-3.0-openai-compatible', [HELLO], '', 'opener'],
  ];
  for (const [name, humanTexts, value, kind] of rows) {
    test(name, (t) => {
      const recorded = recordedRequest(name);
      if (recorded === null) return t.skip('no recordings here');
      const prepared = prepare(recorded.api, recorded.body);
      assert.deepEqual(prepared.humanTexts, humanTexts);
      assert.equal(prepared.isFollowUp, name.includes('turn2'), 'two messages before any answer are no follow-up');
      assert.deepEqual([prepared.reasoning, prepared.previousResponseId], ['none', null]);
      const session = sessionOf((header) => recorded.headers[header], prepared);
      assert.deepEqual(session, { kind, value: kind === 'opener' ? prepared.opener : value });
      if (kind === 'header' && !name.startsWith('opencode'))
        assert.deepEqual(
          sessionOf(() => undefined, prepared),
          { kind: 'body', value },
        );
      if (recorded.api === 'messages') assert.deepEqual(prepare('count_tokens', recorded.body), prepared);
    });
  }

  test('a tool loop is one turn, the next message another, and a side request of the session a third', (t) => {
    const turnOf = (name: string): string | null => {
      const recorded = recordedRequest(name);
      return recorded === null ? null : prepare(recorded.api, recorded.body).turn;
    };
    if (turnOf('opencode-1.18-main') === null) return t.skip('no recordings here');
    for (const agent of ['claude-code-2.1', 'codex-0.169']) {
      assert.equal(turnOf(`${agent}-turn1-req1`), turnOf(`${agent}-turn1-req2-toolresult`));
      assert.notEqual(turnOf(`${agent}-turn1-req1`), turnOf(`${agent}-turn2-correction`));
    }
    assert.notEqual(turnOf('opencode-1.18-main'), turnOf('opencode-1.18-title-side-request'));
  });
});

describe('whose words they are', () => {
  const rows: readonly (readonly [string, readonly unknown[], readonly string[]])[] = [
    ['plain text', [part('Hello')], ['Hello']],
    ['space around it', [part('\n  Hello \n')], ['Hello']],
    ['several parts', [part('One'), part(''), part('Two')], ['One\nTwo']],
    ['a reminder before, in the same text', [part('<system-reminder>\nsecret\n</system-reminder>\nHello')], ['Hello']],
    [
      'reminders before and after, without a line between',
      [part('<system-reminder>a</system-reminder> <system-reminder>b</system-reminder>Hello')],
      ['Hello'],
    ],
    ['a reminder after', [part('Hello\n\n  <system-reminder>secret</system-reminder>')], ['Hello']],
    [
      'a reminder that quotes another',
      [part('<system-reminder>a <system-reminder>b</system-reminder> secret</system-reminder>Hello')],
      ['Hello'],
    ],
    [
      'a reminder in a line',
      [
        part('Fix it <system-reminder>secret</system-reminder>now'),
        part('Go <SYSTEM-REMINDER>secret</SYSTEM-REMINDER>'),
      ],
      ['Fix it now\nGo'],
    ],
    [
      'an environment in a line and in lines',
      [part('Hello <env>secret</env>\n<env>\nWorking directory: secret\n</env>\nWhich one?')],
      ['Hello \n\nWhich one?'],
    ],
    ['nothing but both', [part('<env>secret</env><system-reminder>secret</system-reminder> <env>secret</env>')], []],
    [
      'a reminder about an environment',
      [part('a<system-reminder><env>secret</env> secret</system-reminder>b')],
      ['ab'],
    ],
    [
      'what is only named in a line',
      [part('What do <env> and <system-reminder> do, and <environment>x</environment>?')],
      ['What do <env> and <system-reminder> do, and <environment>x</environment>?'],
    ],
    [
      'other elements of agents that the user writes about',
      [part('What is <hook_prompt>x</hook_prompt>?')],
      ['What is <hook_prompt>x</hook_prompt>?'],
    ],
    ['one that never ends', [part('<system-reminder>\nHello')], ['<system-reminder>\nHello']],
    ['a tag with attributes', [part('Fix it\n<file_content path="a.ts">\nsecret\n</file_content>')], ['Fix it']],
    [
      'tags of their own',
      [part('<html>\n<task-list>Do</task-list>\n</html>')],
      ['<html>\n<task-list>Do</task-list>\n</html>'],
    ],
    ['a tag that begins like a known one', [part('<skill><skills>x</skill>Hello')], ['Hello']],
    [
      'a local command',
      [
        part('<command-name>/model</command-name>\n<command-args>x</command-args>'),
        part('<local-command-stdout>y</local-command-stdout>'),
      ],
      [],
    ],
    [
      'an interruption and what was said then',
      [part('[Request interrupted by user for tool use]'), part('Use the other file')],
      ['Use the other file'],
    ],
    ['an empty message as Claude Code writes it', [part('(no content)')], []],
    [
      'a summary of what went before',
      [part('This session is being continued from a previous conversation that ran out of context. Secret.')],
      [],
    ],
    [
      'a tool result beside a text',
      [{ type: 'tool_result', tool_use_id: 'a', content: 'secret' }, part('Go on')],
      ['Go on'],
    ],
    ['only a tool result', [{ type: 'tool_result', tool_use_id: 'a', content: [part('secret')] }], []],
    [
      'attachments',
      [
        { type: 'document', title: 'secret', context: 'secret', source: { type: 'text', data: 'secret' } },
        { type: 'image', text: 'secret' },
      ],
      [],
    ],
    [
      "Codex: the project's instructions",
      [part('# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nsecret\n</INSTRUCTIONS>')],
      [],
    ],
    [
      'Codex: an older environment',
      [
        part('<user_instructions>\n\nsecret\n\n</user_instructions>'),
        part('<environment_context>x</environment_context>'),
      ],
      [],
    ],
    [
      'Codex in an editor',
      [part('# Context from my IDE setup:\n\n## Open tabs:\n- secret\n\n## My request for Codex:\nFix it')],
      ['Fix it'],
    ],
    [
      'Cline: the first message',
      [part('<task>\nFix it\n</task>'), part('<environment_details>\nsecret\n</environment_details>')],
      ['Fix it'],
    ],
    [
      'Cline: both in one',
      [part('<task>\nFix it\n</task>\n\n<environment_details>\nsecret\n</environment_details>')],
      ['Fix it'],
    ],
    [
      'Cline: a result',
      [part("[read_file for 'a.ts'] Result:"), part('secret'), part('<environment_details>x</environment_details>')],
      [],
    ],
    ['Cline: a result in one', [part("[execute_command for 'ls -a'] Result:\nsecret")], []],
    [
      'Cline: a refused tool',
      [
        part("[write_to_file for 'a'] Result:"),
        part('The user denied this operation and provided the following feedback:\n<feedback>\nUse b\n</feedback>'),
      ],
      ['Use b'],
    ],
    [
      'Cline: an answered question',
      [part("[ask_followup_question for 'Which?'] Result:"), part('<answer>\nThe first\n</answer>')],
      ['The first'],
    ],
    [
      'Cline: its own complaint',
      [part('[ERROR] You did not use a tool in your previous response! Please retry with a tool use.')],
      [],
    ],
    ['a list that is no result', [part('[x] Result: it fails')], ['[x] Result: it fails']],
    [
      'opencode: an attached file',
      [part('Read this'), part('Called the Read tool with the following input: {"filePath":"a"}'), part('secret')],
      ['Read this'],
    ],
    [
      'opencode: an attached image',
      [
        part('Called the Read tool with the following input: {"filePath":"a.png"}'),
        { type: 'image', source: {} },
        part('What is it?'),
      ],
      ['What is it?'],
    ],
    ['Cursor', [part('<timestamp>now</timestamp>\n<user_query>\nFix it\n</user_query>')], ['Fix it']],
    ['Copilot', [part('<context>\nsecret\n</context>\n<userRequest>\nFix it\n</userRequest>')], ['Fix it']],
    ["a user's own elements", [part('Check this:\n<task>\na\n</task>')], ['Check this:\n<task>\na\n</task>']],
  ];
  for (const [name, parts, texts] of rows) test(name, () => assert.deepEqual(textsOf(...parts), texts));

  test("only the user's messages", () => {
    const others = ['system', 'developer', 'assistant', 'tool', 'function', 'User', null, 5].map((role) => ({
      role,
      content: 'secret',
    }));
    for (const api of ['chat_completions', 'messages'] as const)
      assert.deepEqual(prepare(api, chat(...others)).humanTexts, []);
    assert.deepEqual(prepare('responses', { input: others }).humanTexts, []);
    const items = [
      { type: 'function_call_output', role: 'user', output: 'secret', content: 'secret' },
      { type: 'message', role: 'user', content: 'Hello' },
    ];
    assert.deepEqual(prepare('responses', { instructions: 'secret', input: items }).humanTexts, ['Hello']);
    assert.deepEqual(prepare('responses', { input: 'Hello' }).humanTexts, ['Hello']);
  });

  test('the latest and two before it, shortened with favour for the latest', () => {
    const said = ['one', 'two ', 'three', 'four'].map((text) => text.padEnd(3000, '.'));
    const { humanTexts } = prepare(
      'chat_completions',
      renderConversation(
        'chat_completions',
        said.map((text) => user(text)),
      ),
    );
    assert.deepEqual(
      humanTexts.map((text) => [text.length, text.slice(0, 3)]),
      [
        [600, 'two'],
        [600, 'thr'],
        [2800, 'fou'],
      ],
    );
    const long = prepare('responses', { input: `head${'x'.repeat(100_000)}tail` }).humanTexts[0] ?? '';
    assert.deepEqual([long.length, long.slice(0, 4), long.slice(-4)], [4000, 'head', 'tail']);
  });

  test('cuts stand between characters, and half characters become whole ones', () => {
    for (const lead of ['', 'a']) {
      const [text = ''] = prepare('responses', { input: `${lead}${'\u{1f642}'.repeat(3000)}` }).humanTexts;
      assert.ok(text.length <= 4000 && text.isWellFormed() && !text.includes('\ufffd'));
    }
    assert.deepEqual(prepare('responses', { input: 'a\ud83db' }).humanTexts, ['a\ufffdb']);
  });
});

describe('turns', () => {
  const opening = [user('Please read the plan and tell me of it'), assistant('Done.')];
  for (const api of CONVERSATION_APIS) {
    const turn = (...steps: Step[]): string => prepare(api, renderConversation(api, steps)).turn;
    test(`${api}: equal through a tool loop, new with each message, whatever is cut before it`, () => {
      const loop = [user('Go on'), tool('a'), assistant('So far.'), tool('b')];
      const turns = loop.map((_, index) => turn(...opening, ...loop.slice(0, index + 1)));
      assert.equal(new Set(turns).size, 1);
      const again = turn(...opening, ...loop, assistant('Done.'), user('Go on'));
      assert.equal(new Set([turn(...opening), turns[0], again]).size, 3);
      assert.equal(turn(...loop.slice(0, 2)), turns[0], 'the history was cut before the message');
      assert.equal(turn(user('Another first message'), assistant('Done.'), ...loop), turns[0]);
      assert.notEqual(turn(user('Title it'), user('Go on')), turns[0], 'two messages in a row are one turn');
    });

    test(`${api}: the turn before it is named as it named itself, where the body shows it`, () => {
      const previous = (...steps: Step[]) => prepare(api, renderConversation(api, steps)).previousTurn;
      assert.equal(previous(user('a'), tool('x')), null);
      const second = [...opening, user('Go on'), tool('x'), assistant('So far.')];
      assert.equal(previous(...second, user('Go on')), turn(...opening, user('Go on')));
      assert.equal(previous(...second, user('Go on'), tool('x'), user('b')), turn(...second, user('Go on')));
      assert.equal(previous(user('Go on'), assistant('So far.'), user('b')), turn(...opening, user('Go on')));
    });

    test(`${api}: a follow-up comes after an answer`, () => {
      const isFollowUp = (...steps: Step[]): boolean => prepare(api, renderConversation(api, steps)).isFollowUp;
      assert.equal(isFollowUp(user('a')), false);
      assert.equal(isFollowUp(assistant('Welcome.'), user('a')), false);
      assert.equal(isFollowUp(user('a'), user('b')), false);
      assert.equal(isFollowUp(user('a'), tool('x'), user('b')), true);
      assert.equal(isFollowUp(...opening, user('b'), tool('x')), true);
    });
  }

  test('agents move their blocks and cache marks about: the turn stays', () => {
    const first = chat({
      role: 'user',
      content: [
        part('<system-reminder>a</system-reminder>'),
        { ...(part(README) as object), cache_control: { type: 'ephemeral' } },
      ],
    });
    const later = chat(
      { role: 'user', content: README },
      { role: 'assistant', content: [] },
      { role: 'user', content: [{ type: 'tool_result', content: 'x' }, part('<system-reminder>b</system-reminder>')] },
    );
    assert.equal(prepare('messages', first).turn, prepare('messages', later).turn);
  });

  test("an agent's own request at the end of a conversation belongs to the turn", () => {
    const before = renderConversation('messages', opening);
    const summary = 'Your task is to create a detailed summary of the conversation so far, paying close attention.';
    assert.equal(
      prepare('messages', renderConversation('messages', [...opening, user(summary)])).turn,
      prepare('messages', before).turn,
    );
  });

  test('an opener has 24 characters', () => {
    const opener = (text: string): string | null => prepare('responses', { input: text }).opener;
    assert.equal(opener('x'.repeat(23)), null);
    assert.equal(opener('\u{1f642}'.repeat(23)), null);
    assert.notEqual(opener('x'.repeat(24)), null);
    assert.notEqual(opener('\u{1f642}'.repeat(24)), null);
    assert.equal(opener(`  ${'x'.repeat(23)}  `), null);
    assert.notEqual(opener('x'.repeat(24)), opener('x'.repeat(25)));
    const first = (...texts: string[]): string =>
      prepare(
        'messages',
        renderConversation(
          'messages',
          texts.map((text) => user(text)),
        ),
      ).firstMessage;
    assert.equal(first('hi', 'a'), first('hi', 'b'));
    assert.notEqual(first('hi'), first('go'), 'known by any length, if only inside a session');
  });
});

test('conversations of one model read the same in every dialect', () => {
  const text = fc.oneof(
    { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '<system-reminder>x</system-reminder>',
        'a <task>',
        '<task>do it</task>',
        '(no content)',
        'y'.repeat(5000),
        '\ud800',
        '<skill>',
      ),
    },
  );
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.array(text, { minLength: 1, maxLength: 3 }).map((texts) => user(...texts)),
    text.map(assistant),
    text.map(tool),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      // Where a prompt stands differs: Responses has two places for it.
      const [one, ...others] = CONVERSATION_APIS.map((api) => ({
        ...prepare(api, renderConversation(api, steps)),
        instructions: null,
        textBytes: null,
      }));
      for (const other of others) assert.deepEqual(other, one);
      assert.ok(
        (one?.humanTexts.join('').length ?? 0) <= 4000 &&
          one?.humanTexts.every((human) => human.isWellFormed() && human !== ''),
      );
      assert.ok((one?.humanTexts.length ?? 0) <= 3);
    }),
  );
});

describe('the session in a body', () => {
  const rows: readonly (readonly [string, object, string | null])[] = [
    [
      'JSON in metadata.user_id',
      { metadata: { user_id: '{"device_id":"d","account_uuid":"","session_id":"s-1"}' } },
      's-1',
    ],
    ['user, account and session in one name', { metadata: { user_id: 'user_0af_account__session_s-2' } }, 's-2'],
    ['with an account', { metadata: { user_id: 'user_0af_account_b-1_session_s-3' } }, 's-3'],
    [
      'a bare name',
      { metadata: { user_id: 'd0d6f453-651b-4e4e-8cc0-abb654b0ebdd' } },
      'd0d6f453-651b-4e4e-8cc0-abb654b0ebdd',
    ],
    ['a cache key', { prompt_cache_key: 'key-1' }, 'key-1'],
    ['the conversation that the provider keeps', { conversation: 'conv_1', prompt_cache_key: 'key-1' }, 'conv_1'],
    ['as an object', { conversation: { id: 'conv_2' } }, 'conv_2'],
    ['the user id goes first', { prompt_cache_key: 'key-1', metadata: { user_id: 'u-1' } }, 'u-1'],
    [
      'JSON without a session: the cache key',
      { prompt_cache_key: 'key-1', metadata: { user_id: '{"device_id":"d"}' } },
      'key-1',
    ],
    ['JSON that is none', { metadata: { user_id: '{"session_id":' } }, null],
    ['an empty session', { metadata: { user_id: 'user_0af_account__session_' } }, null],
    ['space', { metadata: { user_id: '  ' }, prompt_cache_key: '' }, null],
    ['other types', { metadata: { user_id: { session_id: 'x' } }, prompt_cache_key: 5 }, null],
    ['too long to be a name', { prompt_cache_key: 'x'.repeat(513) }, null],
    ['the user of a request', { user: 'u-1', metadata: { session_id: 'x' } }, null],
  ];
  for (const [name, fields, session] of rows) {
    test(name, () => {
      const apis: readonly RoutedApi[] = [...CONVERSATION_APIS, 'count_tokens'];
      for (const api of apis)
        assert.equal(prepare(api, renderConversation(api, [user('a')], fields)).bodySession, session);
    });
  }
});

describe('the session of a request', () => {
  const prepared = { bodySession: 'body', opener: 'opened' };
  const lookup = (headers: Record<string, string>) => (name: string) => headers[name];
  const order = [
    'x-session-id',
    'x-claude-code-session-id',
    'thread-id',
    'session-id',
    'session_id',
    'x-session-affinity',
    'x-opencode-session',
    'x-conversation-id',
    'conversation_id',
    'x-thread-id',
    'thread_id',
    'x-amp-thread-id',
  ];

  test('headers in their order, then the body, then the opener', () => {
    for (const [index, name] of order.entries()) {
      const later = Object.fromEntries(order.slice(index).map((header) => [header, ` ${header} `]));
      assert.deepEqual(sessionOf(lookup(later), prepared), { kind: 'header', value: name });
    }
    assert.deepEqual(sessionOf(lookup({ 'x-session-id': ' ' }), prepared), { kind: 'body', value: 'body' });
    assert.deepEqual(sessionOf(lookup({}), { bodySession: null, opener: 'opened' }), {
      kind: 'opener',
      value: 'opened',
    });
    assert.equal(sessionOf(lookup({}), { bodySession: null, opener: null }), null);
  });

  test('a name for each request is no session', () => {
    const headers = { 'x-client-request-id': 'a', 'x-request-id': 'b', 'idempotency-key': 'c' };
    assert.equal(sessionOf(lookup(headers), { bodySession: null, opener: null }), null);
  });

  test('only a hash is kept, and each organization has its own', () => {
    const hash = sessionHash('org-1', { kind: 'header', value: 'body' });
    assert.equal(hash, sessionHash('org-1', { kind: 'body', value: 'body' }));
    assert.notEqual(hash, sessionHash('org-2', { kind: 'header', value: 'body' }));
    assert.notEqual(sessionHash('a', { kind: 'body', value: 'bc' }), sessionHash('ab', { kind: 'body', value: 'c' }));
    assert.match(hash, /^[\w-]{43}$/);
  });
});

describe('reasoning that binds to its model', () => {
  const said = (content: unknown, fields: object = {}): unknown =>
    chat({ role: 'user', content: 'a' }, { role: 'assistant', content, ...fields });
  const rows: readonly (readonly [string, RoutedApi, unknown, 'none' | 'signed'])[] = [
    ['a signed thought', 'messages', said([{ type: 'thinking', thinking: 't', signature: 's' }]), 'signed'],
    ['in a count', 'count_tokens', said([{ type: 'thinking', thinking: '', signature: 's' }]), 'signed'],
    ['a redacted one', 'messages', said([{ type: 'redacted_thinking', data: 'd' }]), 'signed'],
    ['one without a signature', 'messages', said([{ type: 'thinking', thinking: 't', signature: '' }]), 'none'],
    [
      "in the user's message",
      'messages',
      chat({ role: 'user', content: [{ type: 'thinking', signature: 's' }] }),
      'none',
    ],
    [
      'encrypted reasoning',
      'responses',
      { input: [{ type: 'reasoning', summary: [], encrypted_content: 'e' }] },
      'signed',
    ],
    ['an encrypted compaction', 'responses', { input: [{ type: 'compaction', encrypted_content: 'e' }] }, 'signed'],
    [
      'reasoning in the open',
      'responses',
      { input: [{ type: 'reasoning', summary: [], encrypted_content: null }] },
      'none',
    ],
    [
      "a router's encrypted details",
      'chat_completions',
      said('b', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'd' }] }),
      'signed',
    ],
    [
      "a router's signed blocks",
      'chat_completions',
      said('b', { thinking_blocks: [{ type: 'thinking', signature: 's' }] }),
      'signed',
    ],
    [
      'a signed call',
      'chat_completions',
      said(null, { tool_calls: [{ extra_content: { google: { thought_signature: 's' } } }] }),
      'signed',
    ],
    [
      'thoughts as text',
      'chat_completions',
      said('b', { reasoning_content: 't', reasoning_details: [{ type: 'reasoning.text', text: 't' }] }),
      'none',
    ],
  ];
  for (const [name, api, body, reasoning] of rows)
    test(name, () => assert.equal(prepare(api, body).reasoning, reasoning));
});

describe('the text of a body', () => {
  const rows: readonly [string, number, string, number][] = [
    ['words', 40_000, 'word '.repeat(8_000), 0],
    ['an encoded attachment', 40_000, `data:image/png;base64,${'iVBORw0K'.repeat(4_000)}==`, 32_002],
    ['the shorter of two', 40_000, `${'a'.repeat(1_023)} ${'b'.repeat(1_024)}`, 1_024],
    ['a small body', 100, 'a'.repeat(10_000), 0],
  ];
  for (const [title, bytes, text, encoded] of rows) {
    test(`${title}: without ${encoded} bytes`, () => {
      const body = { messages: [{ role: 'user', content: text }], padding: ' .'.repeat(bytes / 2) };
      const { textBytes } = prepare('chat_completions', body);
      assert.equal(textBytes, JSON.stringify(body).length - encoded);
    });
  }
});

test('the response that a request continues', () => {
  const previous = (api: RoutedApi, id: unknown): string | null =>
    prepare(api, { input: 'a', previous_response_id: id }).previousResponseId;
  assert.equal(previous('responses', 'resp_1'), 'resp_1');
  for (const id of [null, '', 5, undefined]) assert.equal(previous('responses', id), null);
  assert.equal(previous('chat_completions', 'resp_1'), null);
});
