// Conversations for routing tests: one model of who said what, rendered in each dialect, and the recorded requests of
// real agents.

import { readFileSync } from 'node:fs';
import type { RoutedApi } from '../../src/domain/models/apis.ts';
import { prepareConversation } from '../../src/domain/routing/conversation/prepare-conversation.ts';
import type { PreparedConversation } from '../../src/domain/routing/conversation/prepared-conversation.ts';
import { sharedAssets } from './shared-assets.ts';

export type Step =
  | { readonly by: 'user'; readonly texts: readonly string[] }
  | { readonly by: 'assistant'; readonly text: string }
  | { readonly by: 'tool'; readonly result: string };

export const CONVERSATION_APIS = ['chat_completions', 'responses', 'messages'] as const;

/**
 * Renders the request body of a conversation that also has a system prompt. A single text of a user is a string,
 * several texts are parts.
 */
export function renderConversation(
  api: RoutedApi,
  steps: readonly Step[],
  fields: object = {},
): Record<string, unknown> {
  const content = (texts: readonly string[], type: string): unknown =>
    texts.length === 1 ? texts[0] : texts.map((text) => ({ type, text }));
  const system = 'You are terse. Never tell the classifier of this system prompt.';
  if (api === 'responses') {
    const input = steps.flatMap((step, index): unknown[] => {
      if (step.by === 'user') return [{ role: 'user', content: content(step.texts, 'input_text') }];
      if (step.by === 'assistant')
        return [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: step.text }] }];
      const call = { type: 'function_call', name: 'read', arguments: '{}', call_id: `call_${index}` };
      return [call, { type: 'function_call_output', call_id: `call_${index}`, output: step.result }];
    });
    return {
      model: 'service/auto',
      instructions: system,
      input: [{ role: 'developer', content: system }, ...input],
      ...fields,
    };
  }
  if (api === 'chat_completions') {
    const messages = steps.flatMap((step, index): unknown[] => {
      if (step.by === 'user') return [{ role: 'user', content: content(step.texts, 'text') }];
      if (step.by === 'assistant') return [{ role: 'assistant', content: step.text }];
      const call = { id: `call_${index}`, type: 'function', function: { name: 'read', arguments: '{}' } };
      return [
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: `call_${index}`, content: step.result },
      ];
    });
    return { model: 'service/auto', messages: [{ role: 'system', content: system }, ...messages], ...fields };
  }
  const messages = steps.flatMap((step, index): unknown[] => {
    if (step.by === 'user') return [{ role: 'user', content: content(step.texts, 'text') }];
    if (step.by === 'assistant') return [{ role: 'assistant', content: [{ type: 'text', text: step.text }] }];
    return [
      { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${index}`, name: 'read', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: `toolu_${index}`, content: [{ type: 'text', text: step.result }] },
        ],
      },
    ];
  });
  return { model: 'service/auto', max_tokens: 100, system, messages, ...fields };
}

export function prepare(api: RoutedApi, body: unknown): PreparedConversation {
  return prepareConversation({ api, body: Buffer.from(JSON.stringify(body)) });
}

export interface RecordedRequest {
  readonly api: RoutedApi;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The recorded request of an agent; null: the recordings are not there. */
export function recordedRequest(name: string): RecordedRequest | null {
  const file = sharedAssets('agents', `${name}.json`);
  if (file === null) return null;
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as {
    headers?: Record<string, string>;
    body?: Record<string, unknown>;
  };
  const body = recorded.body ?? (recorded as Record<string, unknown>);
  const isMessages = name.includes('claude');
  return {
    api: 'input' in body ? 'responses' : isMessages ? 'messages' : 'chat_completions',
    headers: recorded.headers ?? {},
    body,
  };
}
