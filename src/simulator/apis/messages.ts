// The Messages API: a whole JSON body or its stream of blocks, thinking with signatures, and input counts that exclude
// cached tokens.

import { seedFrom } from '../generated-text.ts';
import { countTokens, firstWhole, isObject, type Json, objectsIn } from '../json-fields.ts';
import { derivedId, isBrokenSeal, makeSeal } from '../made-up.ts';
import { type AnswerPart, answerPieces, answerText, type PlannedAnswer, planAnswer } from '../planned-answer.ts';
import { type ReplyScript, type Round, type StreamScript, scriptedCall } from '../reply-script.ts';
import { chooseToolCalls } from '../tool-calls.ts';
import { wrongCounts } from '../wrong-counts.ts';
import { ANTHROPIC_UNAUTHENTICATED, anthropicError, refusalOf, renderAnthropicError } from './anthropic-errors.ts';
import { type Api, type CallRequest, type CallTally, emptyTally, type Planned } from './api.ts';
import { messageTexts, readToolChoice, readTools, readTurns } from './message-content.ts';
import { TEXT_SCOPES } from './scopes.ts';

/** How much thinking there is if the request asks for it and no directive sets the amount. */
const THINKING_TOKENS_DEFAULT = 8;
const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const;

export const messages: Api = {
  name: 'messages',
  family: 'anthropic',
  idPrefix: 'msg_',
  scopes: [...TEXT_SCOPES, 'messages'],
  unauthenticated: ANTHROPIC_UNAUTHENTICATED,
  readText: ({ json }) => messageTexts(json).join('\n'),
  plan,
  renderError: renderAnthropicError,
  example: {
    request: (content) => ({ messages: [{ role: 'user', content }], max_tokens: 5 }),
    reply: {
      id: 'm',
      type: 'message',
      content: [{ type: 'text', text: 'ok' }],
      usage: { input_tokens: 40, output_tokens: 3 },
    },
  },
};

function plan(request: CallRequest): Planned {
  const { json } = request;
  const error = refusalOf(request, ['model', 'messages', 'max_tokens']);
  if (error !== null || json === null) return { ok: false, error: error ?? ANTHROPIC_UNAUTHENTICATED };
  if (firstWhole(json.max_tokens) === null)
    return { ok: false, error: anthropicError(400, 'max_tokens: must be greater than or equal to 1') };
  const changed = brokenSignature(json);
  if (changed !== null)
    return { ok: false, error: anthropicError(400, `${changed}: Invalid \`signature\` in \`thinking\` block`) };
  return { ok: true, plan: scriptedCall(request, new Message(request, json)) };
}

/** The place of a thinking block that came back with a changed signature. */
function brokenSignature(json: Json): string | null {
  for (const [index, { content }] of objectsIn(json.messages).entries()) {
    const blocks = Array.isArray(content) ? content : [];
    const block = blocks.findIndex(
      (found: unknown) =>
        isObject(found) &&
        found.type === 'thinking' &&
        typeof found.signature === 'string' &&
        isBrokenSeal(found.signature),
    );
    if (block !== -1) return `messages.${index}.content.${block}`;
  }
  return null;
}

class Message implements ReplyScript, StreamScript {
  readonly tally: CallTally;
  readonly generated: { readonly completionTokens: number };
  readonly reportsUsage: boolean;
  readonly pauses: number;
  readonly stream: StreamScript | null;
  private readonly request: CallRequest;
  private readonly json: Json;
  private readonly answer: PlannedAnswer;
  private readonly seed: number;
  private events = 0;

  constructor(request: CallRequest, json: Json) {
    const { directives } = request;
    this.request = request;
    this.json = json;
    this.seed = seedFrom(request.body);
    this.answer = planAnswer({
      directives,
      limit: firstWhole(json.max_tokens),
      thinkingTokens: directives.reasoning ?? (asksForThinking(json) ? THINKING_TOKENS_DEFAULT : 0),
      toolCalls: chooseToolCalls({
        turns: readTurns(json),
        tools: readTools(json),
        choice: readToolChoice(json.tool_choice),
        directives,
      }),
    });
    this.generated = { completionTokens: this.answer.tokens };
    this.pauses = this.answer.tokens;
    this.stream = json.stream === true ? this : null;
    this.reportsUsage = directives.usage !== 'none';
    const promptTokens = countTokens(messageTexts(json));
    const cachedTokens = Math.min(directives.cached, promptTokens);
    this.tally = {
      ...emptyTally(),
      promptTokens,
      cachedTokens,
      cacheWriteTokens: Math.min(directives.cacheWrite, promptTokens - cachedTokens),
    };
  }

  whole(): string {
    const content = this.answer.parts.map((part, index) =>
      this.block(part, index, answerText(part, this.seed, this.request.directives)),
    );
    const usage = {
      ...this.inputCounts(),
      ...cacheKinds(this.tally.cacheWriteTokens),
      output_tokens: this.answer.tokens,
      ...PLACE,
    };
    return JSON.stringify({ ...this.head(), content, ...this.ending(), ...this.usageField(usage) });
  }

  *opening(): Generator<string> {
    const ending = { stop_reason: null, stop_sequence: null, stop_details: null };
    const usage = { ...this.inputCounts(), ...cacheKinds(this.tally.cacheWriteTokens), output_tokens: 1, ...PLACE };
    yield this.event('message_start', {
      message: { ...this.head(), content: [], ...ending, ...this.usageField(usage) },
    });
  }

  *rounds(): Generator<Round> {
    for (const [index, part] of this.answer.parts.entries()) {
      yield {
        pieces: [this.event('content_block_start', { index, content_block: this.block(part, index, '') })],
        counted: false,
      };
      if (index === 0) yield { pieces: ['event: ping\ndata: {"type": "ping"}\n\n'], counted: false };
      // Anthropic starts a tool's input with an empty delta.
      if (part.kind === 'tool_call')
        yield { pieces: [this.delta(index, { type: 'input_json_delta', partial_json: '' })], counted: false };
      yield* this.pieces(part, index);
      if (part.kind === 'thinking')
        yield {
          pieces: [this.delta(index, { type: 'signature_delta', signature: this.signature() })],
          counted: false,
        };
      yield { pieces: [this.event('content_block_stop', { index })], counted: false };
    }
  }

  *closing(): Generator<string> {
    this.tally.usageSent = this.reportsUsage;
    yield this.event('message_delta', {
      delta: this.ending(),
      ...this.usageField({ ...this.inputCounts(), output_tokens: this.answer.tokens }),
    });
    if (!this.request.directives.noDone) yield this.event('message_stop', {});
  }

  *error(): Generator<string> {
    yield this.event('error', { error: { details: null, type: 'overloaded_error', message: 'Overloaded' } });
  }

  private *pieces(part: AnswerPart, index: number): Generator<Round> {
    if (part.kind === 'thinking' && this.omitsThinking()) return;
    for (const { text, counted } of answerPieces(part, this.seed, this.request.directives)) {
      const delta =
        part.kind === 'thinking'
          ? { type: 'thinking_delta', thinking: text }
          : part.kind === 'text'
            ? { type: 'text_delta', text }
            : { type: 'input_json_delta', partial_json: text };
      yield { pieces: [this.delta(index, delta)], counted };
    }
  }

  /** A content block with `text`; at the start of a stream it is empty. */
  private block(part: AnswerPart, index: number, text: string): Json {
    switch (part.kind) {
      case 'thinking':
        return {
          type: 'thinking',
          thinking: this.omitsThinking() ? '' : text,
          signature: text === '' ? '' : this.signature(),
        };
      case 'text':
        return { type: 'text', text };
      case 'tool_call': {
        const id = derivedId('toolu_', this.request.id, String(index));
        return {
          type: 'tool_use',
          id,
          name: part.call.name,
          input: text === '' ? {} : parsedInput(text),
          caller: { type: 'direct' },
        };
      }
    }
  }

  private head(): Json {
    return { model: this.json.model, id: this.request.id, type: 'message', role: 'assistant' };
  }

  private ending(): Json {
    return { stop_reason: STOP_REASONS[this.answer.finish], stop_sequence: null, stop_details: null };
  }

  /** Unlike OpenAI's counts, these three add up to the prompt. */
  private inputCounts(): Json {
    const { promptTokens, cachedTokens, cacheWriteTokens } = this.tally;
    return {
      input_tokens: promptTokens - cachedTokens - cacheWriteTokens,
      cache_creation_input_tokens: cacheWriteTokens,
      cache_read_input_tokens: cachedTokens,
    };
  }

  private usageField(honest: Json): Json {
    const { usage } = this.request.directives;
    if (usage === 'none') return {};
    return {
      usage:
        usage === null ? honest : { ...honest, ...wrongCounts(usage, { counts: ['input_tokens', 'output_tokens'] }) },
    };
  }

  private delta(index: number, delta: Json): string {
    return this.event('content_block_delta', { index, delta });
  }

  /** Anthropic pads its events with spaces inside the object, as recordings show. */
  private event(type: string, fields: Json): string {
    const event = JSON.stringify({ type, ...fields });
    this.events += 1;
    return `event: ${type}\ndata: ${event.slice(0, -1)}${' '.repeat((this.events * 7) % 16)}}\n\n`;
  }

  private signature(): string {
    return makeSeal(String(this.seed));
  }

  private omitsThinking(): boolean {
    return isObject(this.json.thinking) && this.json.thinking.display === 'omitted';
  }
}

const PLACE = { service_tier: 'standard', inference_geo: 'not_available' };

function cacheKinds(written: number): Json {
  return { cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 } };
}

function asksForThinking(json: Json): boolean {
  return isObject(json.thinking) && (json.thinking.type === 'enabled' || json.thinking.type === 'adaptive');
}

function parsedInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // Cut off by the output limit, or arguments that were asked for and are no JSON.
  }
}
