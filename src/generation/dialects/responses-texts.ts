// Says where the Responses dialect has text: in requests, whole replies, and the events of its stream (spec 4.2, 7.7).

import { JSON_SCHEMA_TEXTS, type Place, type Shape, type TextPlaces } from '../../domain/guardrails/text-places.ts';
import { TERMINAL_EVENTS } from './responses-events.ts';

const PART = {
  type: 'opaque',
  image_url: { shape: 'media' },
  file_data: 'base64',
  file_id: 'opaque',
  file_url: 'url',
  detail: 'opaque',
  input_audio: { shape: 'inline' },
  annotations: 'fragile',
  encrypted_content: 'opaque',
  logprobs: '[]',
} as const;

/** Members that repeat the request, and so its restored values. */
const ECHOED = {
  instructions: 'echo',
  tools: 'echo',
  tool_choice: 'echo',
  text: 'echo',
  metadata: 'echo',
  prompt: 'echo',
  user: 'echo',
  safety_identifier: 'echo',
  prompt_cache_key: 'echo',
} as const;

const EVENT = {
  type: 'opaque',
  item_id: 'opaque',
  call_id: 'opaque',
  output_index: { index: 0 },
  content_index: { index: 1 },
  summary_index: { index: 1 },
  obfuscation: 'opaque',
  partial_image_b64: 'opaque',
  annotation: 'fragile',
  logprobs: '[]',
} as const;

function deltaOf(lane: string, as: 'text' | 'fragile' | 'arguments'): Shape {
  return { members: { ...EVENT, delta: { lane, as } } };
}

/** The texts of an event that repeats the pieces before it and ends them. */
const REPEATED: Readonly<Record<string, Place>> = {
  ...EVENT,
  name: 'fragile',
  arguments: 'arguments',
  item: { shape: 'item' },
  part: { shape: 'part' },
};

const DELTAS: Readonly<Record<string, string>> = {
  'response.output_text.delta': 'text_delta',
  'response.refusal.delta': 'refusal_delta',
  'response.function_call_arguments.delta': 'arguments_delta',
  'response.mcp_call_arguments.delta': 'arguments_delta',
  'response.custom_tool_call_input.delta': 'input_delta',
  'response.code_interpreter_call_code.delta': 'code_delta',
  'response.audio.transcript.delta': 'transcript_delta',
  'response.audio.delta': 'audio_delta',
  'response.reasoning_text.delta': 'reasoning_delta',
  'response.reasoning_summary_text.delta': 'reasoning_delta',
};

const ENDS: Readonly<Record<string, string>> = {
  'response.output_text.done': 'done',
  'response.refusal.done': 'done',
  'response.function_call_arguments.done': 'done',
  'response.mcp_call_arguments.done': 'done',
  'response.custom_tool_call_input.done': 'done',
  'response.code_interpreter_call_code.done': 'done',
  'response.content_part.done': 'done',
  'response.output_item.done': 'done',
  'response.reasoning_text.done': 'reasoning_done',
  'response.reasoning_summary_text.done': 'reasoning_done',
  'response.reasoning_summary_part.done': 'reasoning_done',
};

const OVER: Readonly<Record<string, string>> = Object.fromEntries(TERMINAL_EVENTS.names.map((name) => [name, 'over']));

export const RESPONSES_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'event',
  shapes: {
    ...JSON_SCHEMA_TEXTS,
    request: {
      members: {
        model: 'opaque',
        input: { shape: 'item' },
        tools: { shape: 'tool' },
        tool_choice: { shape: 'tool' },
        text: { shape: 'text_format' },
        prompt: { shape: 'prompt' },
        previous_response_id: 'opaque',
        conversation: { shape: 'reference' },
        include: 'fragile',
        reasoning: 'fragile',
      },
    },
    reference: { members: { id: 'opaque' }, string: 'opaque' },
    item: {
      members: {
        type: 'opaque',
        id: 'opaque',
        call_id: 'opaque',
        role: 'opaque',
        status: 'opaque',
        phase: 'opaque',
        container_id: 'opaque',
        approval_request_id: 'opaque',
        encrypted_content: 'opaque',
        name: 'fragile',
        namespace: 'fragile',
        server_label: 'fragile',
        arguments: 'arguments',
        output: { shape: 'part' },
        content: { shape: 'part' },
      },
      byType: { reasoning: 'reasoning', image_generation_call: 'image_call' },
    },
    reasoning: {
      members: { type: 'opaque', id: 'opaque', status: 'opaque', encrypted_content: 'opaque' },
      otherwise: 'fragile',
      names: 'fragile',
    },
    image_call: { members: { type: 'opaque', id: 'opaque', status: 'opaque', result: 'opaque' } },
    part: { members: PART },
    media: { members: { url: 'url', detail: 'opaque' }, string: 'url' },
    inline: { members: { data: 'base64', format: 'opaque' } },
    tool: {
      members: {
        type: 'opaque',
        name: 'fragile',
        server_label: 'fragile',
        server_url: 'fragile',
        allowed_tools: 'fragile',
        connector_id: 'opaque',
        authorization: 'opaque',
        headers: 'opaque',
        vector_store_ids: 'opaque',
        container: 'opaque',
        parameters: { shape: 'schema' },
        tools: { shape: 'tool' },
      },
      string: 'fragile',
    },
    text_format: { members: { format: { shape: 'named_schema' }, verbosity: 'opaque' } },
    prompt: { members: { id: 'opaque', version: 'opaque', variables: { shape: 'variables' } } },
    variables: { members: {}, otherwise: { shape: 'part' }, names: 'fragile' },
    reply: {
      members: {
        ...ECHOED,
        id: 'opaque',
        object: 'opaque',
        status: 'opaque',
        model: 'opaque',
        previous_response_id: 'opaque',
        usage: 'opaque',
        output: { shape: 'item' },
        // The members of a page of a saved response's input items.
        data: { shape: 'item' },
        first_id: 'opaque',
        last_id: 'opaque',
      },
    },
    // The delta of an unknown event is a text that grows, as all deltas are.
    event: {
      members: { ...REPEATED, delta: { lane: 'delta', as: 'text' }, response: { shape: 'reply' } },
      byType: { ...DELTAS, ...ENDS, ...OVER },
    },
    over: { members: { ...REPEATED, response: { shape: 'reply' } }, ends: true },
    text_delta: deltaOf('text', 'text'),
    refusal_delta: deltaOf('refusal', 'text'),
    arguments_delta: deltaOf('arguments', 'arguments'),
    input_delta: deltaOf('input', 'text'),
    code_delta: deltaOf('code', 'text'),
    transcript_delta: deltaOf('transcript', 'text'),
    reasoning_delta: deltaOf('reasoning', 'fragile'),
    audio_delta: { members: { ...EVENT, delta: 'opaque' } },
    done: { members: REPEATED, ends: true },
    reasoning_done: { members: EVENT, otherwise: 'fragile', ends: true },
  },
};
