// The replies of a scripted provider in a loop of tools, in three dialects and in pieces that cut everything: thinking,
// signed where the dialect signs it, then a call or a text.

import type { ScriptedReply } from './fake-upstream.ts';

type Json = Readonly<Record<string, unknown>>;

export interface LoopReply {
  /** The id of its message: agents take equal ids for the same message. Absent: the same in every reply. */
  readonly id?: string;
  /** null: there is no thinking. */
  readonly thinking: string | null;
  readonly says:
    | { readonly text: string }
    | { readonly tool: string; readonly callId: string; readonly arguments: string };
}

export type RenderLoopReply = (reply: LoopReply) => ScriptedReply;

/** The signature of thinking in Messages; Responses encrypts it instead. */
export const SIGNATURE = 'c2lnbmVk';
export const SEAL = 'c2VhbGVk';
const MODEL = 'small';
const OUTPUT_TOKENS = 9;

/** Short pieces, so that every placeholder is cut. */
const piecesOf = (text: string): string[] => text.match(/.{1,3}/gs) ?? [];

function stream(events: readonly Json[], isNamed: boolean, end = ''): ScriptedReply {
  const body = events.map((data) => {
    const name = isNamed ? `event: ${String(data['type'])}\n` : '';
    return `${name}data: ${JSON.stringify(data)}\n\n`;
  });
  return { headers: [['content-type', 'text/event-stream']], body: body.join('') + end, framing: 'chunked' };
}

export function chatReply({ thinking, says }: LoopReply): ScriptedReply {
  const chunk = (delta: Json, finish: string | null = null): Json => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: MODEL,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const call = (fields: Json): Json => chunk({ tool_calls: [{ index: 0, ...fields }] });
  const thoughts = piecesOf(thinking ?? '').map((text) => chunk({ reasoning_content: text }));
  const said =
    'text' in says
      ? [...piecesOf(says.text).map((content) => chunk({ content })), chunk({}, 'stop')]
      : [
          chunk({ content: 'Asking' }),
          call({ id: says.callId, type: 'function', function: { name: says.tool, arguments: '' } }),
          ...piecesOf(says.arguments).map((piece) => call({ function: { arguments: piece } })),
          chunk({}, 'tool_calls'),
        ];
  return stream([chunk({ role: 'assistant', content: '' }), ...thoughts, ...said], false, 'data: [DONE]\n\n');
}

export function messagesReply({ id = 'm', thinking, says }: LoopReply): ScriptedReply {
  const start = {
    type: 'message_start',
    message: {
      id,
      type: 'message',
      role: 'assistant',
      model: MODEL,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 9, output_tokens: 1 },
    },
  };
  let index = -1;
  const block = (first: Json, deltas: readonly Json[]): Json[] => {
    index += 1;
    return [
      { type: 'content_block_start', index, content_block: first },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ];
  };
  const thoughts =
    thinking === null
      ? []
      : block({ type: 'thinking', thinking: '', signature: '' }, [
          ...piecesOf(thinking).map((text) => ({ type: 'thinking_delta', thinking: text })),
          { type: 'signature_delta', signature: SIGNATURE },
        ]);
  const said =
    'text' in says
      ? block(
          { type: 'text', text: '' },
          piecesOf(says.text).map((text) => ({ type: 'text_delta', text })),
        )
      : block(
          { type: 'tool_use', id: says.callId, name: says.tool, input: {} },
          piecesOf(says.arguments).map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
        );
  const end = [
    {
      type: 'message_delta',
      delta: { stop_reason: 'text' in says ? 'end_turn' : 'tool_use', stop_sequence: null },
      usage: { output_tokens: OUTPUT_TOKENS },
    },
    { type: 'message_stop' },
  ];
  return stream([start, ...thoughts, ...said, ...end], true);
}

export function responsesReply({ thinking, says }: LoopReply): ScriptedReply {
  const output: Json[] = [];
  const response = (status: string): Json => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: MODEL,
    status,
    output: [...output],
    usage: { input_tokens: 9, output_tokens: OUTPUT_TOKENS, total_tokens: 9 + OUTPUT_TOKENS },
  });
  const events: Json[] = [{ type: 'response.created', response: response('in_progress') }];
  const item = (begun: Json, whole: Json, within: readonly Json[]): void => {
    const place = { output_index: output.length };
    events.push({ type: 'response.output_item.added', ...place, item: begun });
    events.push(...within.map((event) => ({ ...event, ...place, item_id: whole['id'] })));
    events.push({ type: 'response.output_item.done', ...place, item: whole });
    output.push(whole);
  };
  if (thinking !== null) item(...reasoningItem(thinking));
  item(...('text' in says ? messageItem(says.text) : callItem(says)));
  events.push({ type: 'response.completed', response: response('completed') });
  return stream(
    events.map((event, sequence) => ({ ...event, sequence_number: sequence })),
    true,
  );
}

/** An item at its beginning, at its end, and the events in between. */
type ItemEvents = readonly [begun: Json, whole: Json, within: readonly Json[]];

function reasoningItem(text: string): ItemEvents {
  const item = { id: 'rs_1', type: 'reasoning', encrypted_content: SEAL };
  const part = { type: 'summary_text', text };
  const event = (type: string, fields: Json): Json => ({ type: `response.${type}`, summary_index: 0, ...fields });
  return [
    { ...item, summary: [] },
    { ...item, summary: [part] },
    [
      event('reasoning_summary_part.added', { part: { type: 'summary_text', text: '' } }),
      ...piecesOf(text).map((delta) => event('reasoning_summary_text.delta', { delta })),
      event('reasoning_summary_text.done', { text }),
      event('reasoning_summary_part.done', { part }),
    ],
  ];
}

function messageItem(text: string): ItemEvents {
  const item = { id: 'msg_1', type: 'message', role: 'assistant' };
  const part = { type: 'output_text', text, annotations: [] };
  const event = (type: string, fields: Json): Json => ({ type: `response.${type}`, content_index: 0, ...fields });
  return [
    { ...item, status: 'in_progress', content: [] },
    { ...item, status: 'completed', content: [part] },
    [
      event('content_part.added', { part: { ...part, text: '' } }),
      ...piecesOf(text).map((delta) => event('output_text.delta', { delta })),
      event('output_text.done', { text }),
      event('content_part.done', { part }),
    ],
  ];
}

function callItem({ tool, callId, arguments: args }: Extract<LoopReply['says'], { tool: string }>): ItemEvents {
  const item = { id: `fc_${callId}`, type: 'function_call', call_id: callId, name: tool };
  return [
    { ...item, status: 'in_progress', arguments: '' },
    { ...item, status: 'completed', arguments: args },
    [
      ...piecesOf(args).map((delta) => ({ type: 'response.function_call_arguments.delta', delta })),
      { type: 'response.function_call_arguments.done', arguments: args },
    ],
  ];
}
