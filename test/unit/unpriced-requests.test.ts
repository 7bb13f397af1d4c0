// What billed organizations are refused because it has no price, dialect by dialect; and that real clients, coding
// agents above all, are not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unpricedDetail } from '../../src/domain/settlement/rate-usage.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect, RequestBounds } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { agentRequests } from '../support/agent-requests.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const scanner = new RequestScanner();

function boundsOf(dialect: Dialect, body: string): RequestBounds {
  const bytes = Buffer.from(body);
  const bounds = dialect.readBounds(scanner.scan(bytes), bytes);
  assert.ok(!('kind' in bounds), body);
  return bounds;
}

/** The field that is named in the refusal; null: nothing is refused. */
function refusedField(dialect: Dialect, body: string): string | null {
  const { refusalIfBilled, namedCosts } = boundsOf(dialect, body);
  // Where no deployment has a price for it.
  const refusal = refusalIfBilled ?? namedCosts?.items[0]?.refusal ?? null;
  if (refusal === null) return null;
  assert.equal(refusal.kind, 'not_safely_billable');
  assert.ok(refusal.reason !== undefined && refusal.advice !== undefined, 'it says why, and what to do');
  return refusal.field;
}

describe('how often a request lets a tool of the provider be called', () => {
  const SEARCH_TYPE = '"type": "web_search_20250305"';
  const [LONG, HALF] = ['x'.repeat(70_000), 'x'.repeat(40_000)];
  const callsOf = (tools: string, dialect: Dialect = messages) =>
    boundsOf(dialect, `{"model": "m", "max_tokens": 9, "tools": ${tools}}`).calls?.map(({ tool, max }) => [tool, max]);

  for (const [tools, ...calls] of [
    [`[{${SEARCH_TYPE}, "max_uses": 5}]`, ['web_search', 5]],
    [`[{"max_uses" :5 , "name": "web_search", ${SEARCH_TYPE} }]`, ['web_search', 5]],
    [`[ {"a": {"max_uses": 1}, "b": [{}, "}{\\"["], "max_uses": 2.5, ${SEARCH_TYPE}} ]`, ['web_search', 3]],
    [`[{${SEARCH_TYPE}}]`, ['web_search', null]],
    [`[{${SEARCH_TYPE}, "max_uses": 0}]`, ['web_search', 0]],
    [`[{${SEARCH_TYPE}, "max_uses": 1e400}]`, ['web_search', Number.MAX_SAFE_INTEGER]],
    ...['-1', '"5"', 'null', 'true', '[5]', '{"a": 5}'].map(
      (value) => [`[{${SEARCH_TYPE}, "max_uses": ${value}}]`, ['web_search', null]] as const,
    ),
    [
      `[{${SEARCH_TYPE}, "max_uses": 5}, {"name": "${LONG}", "max_uses": 9}, {${SEARCH_TYPE}, "max_uses": 3},
        {"type": "web_fetch_20250910"}]`,
      ['web_search', 5],
      ['web_search', 3],
      ['web_fetch', null],
    ],
    [`[{"name": "mine", "max_uses": 9, "tools": [{"max_uses": 2, ${SEARCH_TYPE}}]}]`, ['web_search', 2]],
    [`[{${SEARCH_TYPE}, "allowed_domains": ["${HALF}"], "max_uses": 5}]`, ['web_search', 5]],
  ] as const)
    test(`${tools.length < 100 ? tools : `${tools.length} bytes`}: ${JSON.stringify(calls)}`, () =>
      assert.deepEqual(callsOf(tools), calls));

  for (const [name, tools] of [
    ['too long before its type', `[{"allowed_domains": ["${LONG}"], ${SEARCH_TYPE}, "max_uses": 5}]`],
    ['too long behind its type', `[{${SEARCH_TYPE}, "allowed_domains": ["${LONG}"], "max_uses": 5}]`],
    ['too long behind its bound', `[{${SEARCH_TYPE}, "max_uses": 5, "allowed_domains": ["${LONG}"]}]`],
    ['too long, of quotes that begin before what is read', `[{"name": "${'\\"'.repeat(40_000)}", ${SEARCH_TYPE}}]`],
    ['too long for one of two', `[{${SEARCH_TYPE}, "allowed_domains": ["${HALF}"]}, {${SEARCH_TYPE}}]`],
    ['bounded twice', `[{${SEARCH_TYPE}, "max_uses": 1, "max_uses": 5}]`],
    ['bounded by a key with escapes', `[{${SEARCH_TYPE}, "max\\u005fuses": 5}]`],
  ] as const)
    test(`is not read where the tool is ${name}`, () => {
      const body = `{"model": "m", "max_tokens": 9, "tools": ${tools}}`;
      assert.deepEqual(callsOf(tools), []);
      assert.equal(boundsOf(messages, body).refusalIfBilled?.kind, 'not_safely_billable');
    });

  test('is found without parsing the tools beside it', (context) => {
    const parse = context.mock.method(JSON, 'parse');
    const others = '{"name": "mine"}, '.repeat(10_000);
    assert.deepEqual(callsOf(`[${others}{${SEARCH_TYPE}, "max_uses": 5}]`), [['web_search', 5]]);
    for (const { arguments: called } of parse.mock.calls) assert.ok(called[0].length < 1_000);
  });
});

const tool = (type: string): string =>
  `"tools": [{"type": "function", "name": "mine"}, {"type": "${type}", "name": "x"}]`;

/** Members of a body, and the field that billed organizations are refused for; null: none. */
const ROWS: readonly (readonly [Dialect, string, string | null])[] = [
  ...[chatCompletions, responses].flatMap((dialect) =>
    (
      [
        ['"service_tier": "priority"', 'service_tier'],
        ['"service_tier": "flex"', 'service_tier'],
        ['"service_tier": "scale"', 'service_tier'],
        ['"service_tier": "\\u0070riority"', 'service_tier'],
        ['"service_tier": ["priority"]', 'service_tier'],
        ['"service_tier": 5', 'service_tier'],
        ['"service_tier": "auto"', null],
        ['"service_tier": "default"', null],
        ['"service_tier": "\\u0064efault"', null],
        ['"service_tier": null', null],
        ['"speed": "fast"', 'speed'],
        ['"models": ["a", "b"]', 'models'],
        ['"models": []', null],
        ['"route": "fallback"', 'route'],
        ['"fallbacks": [{"model": "b"}]', 'fallbacks'],
        ['"provider": {"order": ["Azure"]}', 'provider'],
        ['"plugins": [{"id": "web"}]', 'plugins'],
        ['"preset": "mine"', 'preset'],
        ['"web_search_options": {}', 'web_search_options'],
        ['"search_parameters": {"mode": "on"}', 'search_parameters'],
        ['"enable_search": true', 'enable_search'],
        ['"enable_search": false', null],
        ['"modalities": ["text"]', null],
        ['"modalities": ["text", "audio"]', 'modalities'],
        ['"modalities": ["image"]', 'modalities'],
        ['"audio": {"voice": "alloy"}', 'audio'],
        ['"deferred": true', 'deferred'],
        ['"multi_agent": {"enabled": true, "max_concurrent_subagents": 1000}', 'multi_agent'],
        ['"multi_agent": true', 'multi_agent'],
        ['"multi_agent": {"enabled": false}', null],
        ['"compound_custom": {"tools": {"enabled_tools": ["web_search"]}}', 'compound_custom'],
        ['"web_search": {"enable": true}', 'web_search'],
        ['"web_search": false', null],
        [tool('custom'), null],
        [tool('mcp'), 'tools'],
        [tool('openrouter:web_search'), 'tools'],
        [tool('builtin_function'), 'tools'],
        ['"tools": [{"Type": "mcp"}]', 'tools'],
        ['"system": [{"cache_control": {"type": "ephemeral", "ttl": "1h"}}]', 'cache_control'],
        ['"metadata": {"service_tier": "priority", "speed": "fast"}', null],
      ] as const
    ).map(([members, field]) => [dialect, members, field] as const),
  ),
  ...['web_search', 'web_search_preview', 'file_search', 'code_interpreter'].map(
    (type) => [chatCompletions, tool(type), 'tools'] as const,
  ),
  ...[
    'web_search_preview',
    'web_search_2025_08_26',
    'file_search',
    'code_interpreter',
    'image_generation',
    'mcp',
    'shell',
    'x_search',
  ].map((type) => [responses, tool(type), 'tools'] as const),
  ...['web_search', 'namespace', 'tool_search', 'local_shell', 'apply_patch', 'computer'].map(
    (type) => [responses, tool(type), null] as const,
  ),
  [responses, `"tools": [{"type": "namespace", ${tool('function')}}]`, null],
  [responses, `"tools": [{"type": "namespace", ${tool('mcp')}}]`, 'tools'],
  [responses, `"input": [{"type": "tool_search_output", ${tool('code_interpreter')}}]`, 'tools'],
  [responses, `"tools": [${Array(40).fill('{"type":"namespace"}').join(',')}]`, 'tools'],
  [messages, '"service_tier": "auto"', null],
  [messages, '"service_tier": "standard_only"', null],
  [messages, '"service_tier": "priority"', 'service_tier'],
  [messages, '"speed": "fast"', 'speed'],
  [messages, '"speed": "standard"', null],
  [messages, '"inference_geo": "us"', 'inference_geo'],
  [messages, '"inference_geo": "global"', null],
  [messages, '"mcp_servers": [{"url": "https://x.test"}]', 'mcp_servers'],
  [messages, '"mcp_servers": []', null],
  [messages, '"container": "container_1"', 'container'],
  [messages, '"container": {"skills": []}', 'container'],
  [
    messages,
    '"context_management": {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]}',
    null,
  ],
  [
    messages,
    '"context_management": {"edits": [{"type": "clear_thinking_20251015"}, {"type": "compact_20260112"}]}',
    'context_management',
  ],
  [messages, '"context_management": {"edits": "all"}', 'context_management'],
  [messages, `"context_management": {"edits": [], "x": "${'y'.repeat(5_000)}"}`, 'context_management'],
  ...[
    'bash_20250124',
    'text_editor_20250728',
    'computer_20251124',
    'memory_20250818',
    'tool_search_tool_regex_20251119',
    'custom',
  ].map((type) => [messages, tool(type), null] as const),
  ...[
    'web_search_20250305',
    'web_fetch_20250910',
    'code_execution_20250825',
    'mcp_toolset',
    'advisor_20260301',
    'bash',
  ].map((type) => [messages, tool(type), 'tools'] as const),
  [messages, '"tools": [{"name": "mine", "input_schema": {"type": "object"}}]', null],
  // Its own refusal where the catalog has no price for it (admission.test.ts).
  [messages, '"system": [{"cache_control": {"type": "ephemeral", "ttl": "1h"}}]', null],
  [countTokens, '"service_tier": "priority", "tools": [{"type": "web_search_20250305"}]', null],
];

describe('what is refused for want of a price', () => {
  for (const [dialect, members, field] of ROWS) {
    test(`${dialect.api}: ${members.slice(0, 100)} ${field === null ? 'passes' : 'is refused'}`, () => {
      assert.equal(refusedField(dialect, `{"model": "m", ${members}}`), field);
    });
  }

  test('a search that passes is held for, and an hour of cache is known', () => {
    assert.equal(boundsOf(responses, `{${tool('web_search')}}`).maySearch, true);
    assert.equal(boundsOf(responses, `{${tool('custom')}}`).maySearch, undefined);
    assert.equal(boundsOf(messages, '{"system": [{"cache_control": {"ttl": "1h"}}]}').asksForHourCache, true);
  });
});

const FORMATS = [
  ['chat', chatCompletions],
  ['responses', responses],
  ['messages', messages],
] as const;

/** Recorded requests that ask for what has no price: each named, so that a new one is looked at. */
const REFUSED_RECORDINGS: readonly (readonly [part: string, field: string])[] = [
  ['chat_citations_with_openai_gpt-4o-mini-search-preview', 'web_search_options'],
  ['chat_web_search_with_openrouter', 'tools'],
  ['chat_code_execution_with_anthropic', 'tools'],
  ['chat_web_search_with_anthropic', 'tools'],
  ['test_anthropic_test_web_search', 'tools'],
];

/** Replies to requests for what has no price, which were recorded without their requests. */
const OF_TOOLS = ['-tool', 'anthropic-advisor', 'anthropic-compaction', 'anthropic-fallback'];

describe('real clients', {
  skip: sharedAssets() === null ? 'recordings are not beside this repository' : false,
}, () => {
  test('coding agents pass as they are', () => {
    const DIALECTS: Readonly<Record<string, Dialect>> = {
      '/v1/messages': messages,
      '/v1/messages/count_tokens': countTokens,
      '/v1/responses': responses,
      '/v1/chat/completions': chatCompletions,
    };
    let checked = 0;
    for (const { name, url, body } of agentRequests()) {
      const dialect = DIALECTS[url.split('?')[0] ?? ''];
      assert.ok(dialect, name);
      assert.equal(refusedField(dialect, JSON.stringify(body)), null, name);
      checked += 1;
    }
    assert.ok(checked >= 10, `${checked} bodies`);
  });

  for (const [format, dialect] of FORMATS) {
    test(`recorded ${format} requests pass, but for those that ask the provider to run tools`, () => {
      for (const { name, requestBody, path } of loadRecordedExchanges(format)) {
        if (requestBody === null || path.endsWith('count_tokens')) continue;
        const expected = REFUSED_RECORDINGS.find(([part]) => name.includes(part))?.[1] ?? null;
        assert.equal(refusedField(dialect, requestBody.toString()), expected, name);
      }
    });

    test(`recorded ${format} replies name nothing that has no price, but for those to such requests`, () => {
      const odd: string[] = [];
      for (const { name, requestBody, responseBody, status } of loadRecordedExchanges(format)) {
        if (status >= 300) continue;
        const kept = { beginning: responseBody, end: responseBody, cut: false };
        const bounds =
          requestBody === null
            ? { streamed: false, outputTokensMax: null, answers: 1 }
            : boundsOf(dialect, requestBody.toString());
        const details = { ...dialect.readUsage(kept)?.details, ...dialect.readDetails?.(kept, bounds) };
        const unpriced = unpricedDetail(details, null);
        const isRefused = (bounds.refusalIfBilled ?? bounds.namedCosts ?? null) !== null;
        if (unpriced !== null && !isRefused && bounds.maySearch !== true) odd.push(`${name}: ${unpriced}`);
      }
      const isOfTool = (line: string): boolean => OF_TOOLS.some((part) => line.includes(part));
      assert.deepEqual(
        odd.filter((line) => !isOfTool(line)),
        [],
      );
    });
  }
});
