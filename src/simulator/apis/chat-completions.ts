// The Chat Completions API: a whole JSON body or one chunk per token, with OpenAI's order of chunks and its rules for
// usage.

import { seedFrom } from '../generated-text.ts';
import { contentTexts, countTokens, firstWhole, isObject, type Json, objectsIn } from '../json-fields.ts';
import { derivedId } from '../made-up.ts';
import { type AnswerPart, answerPieces, answerText, type PlannedAnswer, planAnswer } from '../planned-answer.ts';
import { type ReplyScript, type Round, type StreamScript, scriptedCall } from '../reply-script.ts';
import { chooseToolCalls, type ToolChoice, type ToolDefinition, type Turn } from '../tool-calls.ts';
import { wrongCounts } from '../wrong-counts.ts';
import { type Api, type CallRequest, type CallTally, emptyTally, type Planned } from './api.ts';
import {
  answerInOneToken,
  asksForLogprobs,
  isJudgesQuestion,
  LOGPROBS_SCOPE,
  type LogprobReply,
  plainLogprobs,
} from './chat-logprobs.ts';
import { invalid, modelError, NOT_JSON, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';
import { TEXT_SCOPES } from './scopes.ts';

const CHAT_SCOPES = [...TEXT_SCOPES, 'chat_completions'];
const CHOICES_MAX = 8;
const CREATED = 1_700_000_000; // Fixed: a reply depends on its request alone, but for its id.

export const chatCompletions: Api = {
  name: 'chat_completions',
  family: 'openai',
  idPrefix: 'chatcmpl-',
  scopes: CHAT_SCOPES,
  // A router's question to a judge is not a conversation, so directives for the answering model do not apply to it.
  scopesOf: ({ json }) => (isJudgesQuestion(json) ? [LOGPROBS_SCOPE] : CHAT_SCOPES),
  unauthenticated: OPENAI_UNAUTHENTICATED,
  readText: ({ json }) => messageTexts(json).join('\n'),
  plan,
  renderError: renderOpenaiError,
  example: {
    request: (content) => ({ messages: [{ role: 'user', content }] }),
    reply: {
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 },
    },
  },
};

function plan(request: CallRequest): Planned {
  const { json } = request;
  if (json === null) return invalid(NOT_JSON);
  const error = modelError(json);
  if (error !== null) return { ok: false, error };
  if (!Array.isArray(json.messages)) return invalid("Missing required parameter: 'messages'.", 'messages');
  return { ok: true, plan: scriptedCall(request, new Completion(request, json)) };
}

/** A planned completion: everything that the reply will contain is known before its first byte. */
class Completion implements ReplyScript, StreamScript {
  readonly tally: CallTally;
  readonly generated: { readonly completionTokens: number };
  readonly reportsUsage: boolean;
  readonly pauses: number;
  readonly stream: StreamScript | null;
  private readonly request: CallRequest;
  private readonly json: Json;
  private readonly includeUsage: boolean;
  private readonly choices: readonly number[];
  private readonly answer: PlannedAnswer;
  private readonly seed: number;
  /** null: the request does not ask for an answer in one token. */
  private readonly oneToken: LogprobReply | null;

  constructor(request: CallRequest, json: Json) {
    const { directives } = request;
    const options = isObject(json.stream_options) ? json.stream_options : {};
    this.request = request;
    this.json = json;
    this.seed = seedFrom(request.body);
    this.choices = Array.from({ length: Math.min(firstWhole(json.n) ?? 1, CHOICES_MAX) }, (_, index) => index);
    this.oneToken = asksForLogprobs(json) ? answerInOneToken(json, directives.settings) : null;
    // Hidden reasoning is reported on top and may exceed the limit: a provider that ignores limits is a fault worth
    // simulating.
    this.answer = planAnswer({
      directives,
      limit: this.oneToken === null ? firstWhole(json.max_completion_tokens, json.max_tokens) : 1,
      thinkingTokens: 0,
      toolCalls: chooseToolCalls({
        turns: readTurns(json),
        tools: readTools(json),
        choice: readToolChoice(json.tool_choice),
        directives,
      }),
    });
    this.generated = { completionTokens: this.answer.tokens * this.choices.length + (directives.reasoning ?? 0) };
    this.pauses = this.answer.tokens;
    this.stream = json.stream === true ? this : null;
    this.includeUsage = options.include_usage === true && directives.usage !== 'none';
    this.reportsUsage = this.stream === null ? directives.usage !== 'none' : this.includeUsage;
    const promptTokens = countTokens(messageTexts(json));
    this.tally = {
      ...emptyTally(),
      promptTokens,
      cachedTokens: Math.min(directives.cached, promptTokens),
      cacheWriteTokens: directives.cacheWrite,
    };
  }

  whole(): string {
    const { directives } = this.request;
    const choices = this.choices.map((index) => {
      const text = this.answer.parts.find(({ kind }) => kind === 'text');
      const calls = this.toolCalls().map(({ part, call }) => ({
        ...call,
        function: { ...call.function, arguments: answerText(part, this.seed, directives) },
      }));
      const content =
        text === undefined ? null : (this.oneToken?.text ?? answerText(text, this.seed + index, directives));
      const logprobs = asksForLogprobs(this.json) ? (this.oneToken?.logprobs ?? plainLogprobs(content ?? '')) : null;
      const message = {
        role: 'assistant',
        content,
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
        refusal: null,
        annotations: [],
      };
      return { index, message, logprobs, finish_reason: this.answer.finish };
    });
    const usage = this.reportsUsage ? { usage: this.usage() } : {};
    return `${JSON.stringify({ ...this.frame('chat.completion'), choices, ...usage, ...TAIL }, null, 2)}\n`;
  }

  *opening(): Generator<string> {
    const content = this.answer.parts.some(({ kind }) => kind === 'text') ? '' : null;
    for (const index of this.choices)
      yield this.chunk([choice(index, { role: 'assistant', content, refusal: null }, null)]);
  }

  *rounds(): Generator<Round> {
    for (const part of this.answer.parts) {
      if (part.kind === 'text') yield* this.textRounds(part);
      else yield* this.toolCallRounds(part);
    }
  }

  *closing(): Generator<string> {
    for (const index of this.choices) yield this.chunk([choice(index, {}, this.answer.finish)]);
    if (this.includeUsage) {
      this.tally.usageSent = true;
      yield this.chunk([], this.usage());
    }
    if (!this.request.directives.noDone) yield 'data: [DONE]\n\n';
  }

  *error(): Generator<string> {
    const error = {
      message: 'The server had an error while processing your request.',
      type: 'server_error',
      param: null,
      code: null,
    };
    yield `data: ${JSON.stringify({ error })}\n\n`;
  }

  private *textRounds(part: AnswerPart): Generator<Round> {
    const { directives } = this.request;
    const sources = this.choices.map((index) => answerPieces(part, this.seed + index, directives));
    for (;;) {
      const pieces = sources.map((source) => source.next());
      const counted = pieces.some(({ done, value }) => done !== true && value.counted);
      // The text that directives add goes to the first choice only.
      const said = counted ? pieces : pieces.slice(0, 1);
      if (said.some(({ done }) => done === true)) return;
      yield {
        pieces: said.map(({ value }, index) =>
          this.chunk([choice(index, { content: value === undefined ? '' : value.text }, null)]),
        ),
        counted,
      };
    }
  }

  private *toolCallRounds(part: AnswerPart): Generator<Round> {
    const index = this.toolCalls().findIndex((candidate) => candidate.part === part);
    const begun = this.toolCalls()[index]?.call;
    const pieces = (delta: object): string[] =>
      this.choices.map((number) => this.chunk([choice(number, { tool_calls: [{ index, ...delta }] }, null)]));
    yield { pieces: pieces({ ...begun }), counted: false };
    for (const { text } of answerPieces(part, this.seed, this.request.directives))
      yield { pieces: pieces({ function: { arguments: text } }), counted: true };
  }

  private toolCalls(): {
    part: AnswerPart;
    call: { id: string; type: string; function: { name: string; arguments: string } };
  }[] {
    return this.answer.parts.flatMap((part) => {
      if (part.kind !== 'tool_call') return [];
      const id = derivedId('call_', this.request.id, String(this.answer.parts.indexOf(part)));
      return [{ part, call: { id, type: 'function', function: { name: part.call.name, arguments: '' } } }];
    });
  }

  private frame(object: string): Json {
    return { id: this.request.id, object, created: CREATED, model: this.json.model };
  }

  private chunk(choices: readonly object[], usage: object | null = null): string {
    // When a stream asks for usage, OpenAI writes `usage: null` on its other chunks; otherwise it writes nothing.
    const shown = this.includeUsage ? { usage } : {};
    return `data: ${JSON.stringify({ ...this.frame('chat.completion.chunk'), ...TAIL, choices, ...shown })}\n\n`;
  }

  private usage(): object {
    const { promptTokens, cachedTokens, cacheWriteTokens } = this.tally;
    const { reasoning, usage } = this.request.directives;
    const { completionTokens } = this.generated;
    const honest = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: {
        cached_tokens: cachedTokens,
        audio_tokens: 0,
        ...(cacheWriteTokens > 0 ? { cache_write_tokens: cacheWriteTokens } : {}),
      },
      completion_tokens_details: {
        reasoning_tokens: reasoning ?? 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    };
    return usage === null
      ? honest
      : { ...honest, ...wrongCounts(usage, { counts: ['prompt_tokens', 'completion_tokens'], total: 'total_tokens' }) };
  }
}

const TAIL = { service_tier: 'default', system_fingerprint: 'fp_sim' };

function choice(index: number, delta: object, finishReason: string | null): object {
  return { index, delta, logprobs: null, finish_reason: finishReason };
}

function messageTexts(json: Json | null): string[] {
  return objectsIn(json?.messages).flatMap((message) => contentTexts(message.content));
}

function readTurns(json: Json): Turn[] {
  return objectsIn(json.messages).map(({ role, content }) => ({
    role: role === 'user' ? 'user' : role === 'tool' || role === 'function' ? 'tool_result' : 'other',
    text: contentTexts(content).join('\n'),
  }));
}

function readTools(json: Json): ToolDefinition[] {
  return objectsIn(json.tools).flatMap((tool) => {
    const described = isObject(tool.function) ? tool.function : null;
    return typeof described?.name === 'string'
      ? [{ name: described.name, kind: 'function', schema: described.parameters }]
      : [];
  });
}

function readToolChoice(choice: unknown): ToolChoice {
  if (choice === 'none' || choice === 'required') return choice;
  if (isObject(choice) && isObject(choice.function) && typeof choice.function.name === 'string')
    return { name: choice.function.name };
  return 'auto';
}
