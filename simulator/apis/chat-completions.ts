// Chat Completions as a provider speaks it: a whole JSON body or one chunk a token, with OpenAI's order of chunks and its usage rules.

import type { UsageFault } from '../directives.ts';
import { generateTokens, seedFrom } from '../generated-text.ts';
import type { ReplySocket } from '../reply-socket.ts';
import type { Api, CallPlan, CallRequest, CallTally, ProviderError } from './api.ts';
import { isKnownModel } from './models.ts';

const TOKENS_DEFAULT = 24;
const CHOICES_MAX = 8;
const CREATED = 1_700_000_000; // Fixed: a reply depends on its request alone, but for its id.

type Json = Readonly<Record<string, unknown>>;

export const chatCompletions: Api = { name: 'chat_completions', readText, plan, renderError };

function readText(json: Json): string {
  return messageTexts(json).join('\n');
}

function plan(request: CallRequest): { ok: true; plan: CallPlan } | { ok: false; error: ProviderError } {
  const { json } = request;
  if (json === null) return invalid('We could not parse the JSON body of your request.', null);
  if (typeof json.model !== 'string') return invalid('you must provide a model parameter', null);
  if (!isKnownModel(json.model)) {
    const message = `The model \`${json.model}\` does not exist or you do not have access to it.`;
    return { ok: false, error: { status: 404, message, type: 'invalid_request_error', param: null, code: 'model_not_found' } };
  }
  if (!Array.isArray(json.messages)) return invalid("Missing required parameter: 'messages'.", 'messages');
  const completion = new Completion(request, json, json.model);
  return { ok: true, plan: completion };
}

function invalid(message: string, param: string | null): { ok: false; error: ProviderError } {
  return { ok: false, error: { status: 400, message, type: 'invalid_request_error', param, code: null } };
}

function renderError(error: ProviderError): string {
  const { message, type, param, code } = error;
  return `${JSON.stringify({ error: { message, type, param, code } }, null, 2)}\n`;
}

/** One planned completion: all that the reply will say is known before its first byte. */
class Completion implements CallPlan {
  readonly tally: CallTally;
  readonly #request: CallRequest;
  readonly #model: string;
  readonly #stream: boolean;
  readonly #includeUsage: boolean;
  readonly #choices: number;
  readonly #tokens: number;
  readonly #finishReason: 'stop' | 'length';
  readonly #seed: number;

  constructor(request: CallRequest, json: Json, model: string) {
    const wanted = request.directives.tokens ?? TOKENS_DEFAULT;
    const limit = firstWhole(json.max_completion_tokens, json.max_tokens) ?? Number.POSITIVE_INFINITY;
    const options = isObject(json.stream_options) ? json.stream_options : {};
    this.#request = request;
    this.#model = model;
    this.#stream = json.stream === true;
    this.#includeUsage = options.include_usage === true && request.directives.usage !== 'none';
    this.#choices = Math.min(Math.max(firstWhole(json.n) ?? 1, 1), CHOICES_MAX);
    this.#tokens = Math.min(wanted, limit);
    this.#finishReason = wanted > limit ? 'length' : 'stop';
    this.#seed = seedFrom(request.body);
    const promptTokens = countPromptTokens(json);
    const cachedTokens = Math.min(request.directives.cached, promptTokens);
    this.tally = { promptTokens, cachedTokens, completionTokens: 0, usageSent: false };
  }

  async send(reply: ReplySocket, headers: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#stream ? this.#sendStream(reply, headers) : this.#sendWhole(reply, headers);
  }

  async #sendWhole(reply: ReplySocket, headers: Readonly<Record<string, string>>): Promise<boolean> {
    const { directives } = this.#request;
    const body = this.#renderWhole();
    await reply.pause((directives.delayMs ?? this.#request.defaultDelayMs) * this.#tokens);
    reply.start(200, { ...headers, 'content-type': 'application/json', 'content-length': body.length });
    const breakAfter = directives.cutAfter ?? directives.stallAfter;
    if (breakAfter !== null) {
      await reply.write(body.subarray(0, Math.min(breakAfter, body.length - 1)));
      if (directives.cutAfter !== null) await reply.cut({ reset: false });
      else await reply.stall();
      return false;
    }
    await reply.write(body);
    this.tally.completionTokens = this.#reportedTokens();
    this.tally.usageSent = directives.usage !== 'none';
    return reply.end();
  }

  #renderWhole(): Buffer {
    const choices = Array.from({ length: this.#choices }, (_, index) => {
      const tokens = generateTokens(this.#seed + index);
      let content = '';
      for (let count = 0; count < this.#tokens; count += 1) content += tokens.next().value;
      content += 'x'.repeat(this.#request.directives.bytes);
      const message = { role: 'assistant', content, refusal: null, annotations: [] };
      return { index, message, logprobs: null, finish_reason: this.#finishReason };
    });
    const { usage } = this.#request.directives;
    const body = {
      id: this.#request.id,
      object: 'chat.completion',
      created: CREATED,
      model: this.#model,
      choices,
      ...(usage === 'none' ? {} : { usage: this.#usage() }),
      service_tier: 'default',
      system_fingerprint: 'fp_sim',
    };
    return Buffer.from(`${JSON.stringify(body, null, 2)}\n`);
  }

  async #sendStream(reply: ReplySocket, headers: Readonly<Record<string, string>>): Promise<boolean> {
    reply.start(200, { ...headers, 'content-type': 'text/event-stream; charset=utf-8' });
    const all = Array.from({ length: this.#choices }, (_, index) => index);
    const opening = { role: 'assistant', content: '', refusal: null };
    for (const index of all) await reply.write(this.#chunk([choice(index, opening, null)]));
    if (!(await this.#sendTokens(reply, all))) return false;
    for (const index of all) await reply.write(this.#chunk([choice(index, {}, this.#finishReason)]));
    this.tally.completionTokens = this.#reportedTokens();
    if (this.#includeUsage) {
      this.tally.usageSent = true;
      await reply.write(this.#chunk([], this.#usage()));
    }
    if (!this.#request.directives.noDone) await reply.write('data: [DONE]\n\n');
    return reply.end();
  }

  /** The tokens, one chunk each; false when the caller left or a fault ended the stream. */
  async #sendTokens(reply: ReplySocket, all: readonly number[]): Promise<boolean> {
    const { directives } = this.#request;
    const delayMs = directives.delayMs ?? this.#request.defaultDelayMs;
    const sources = all.map((index) => generateTokens(this.#seed + index));
    for (let count = 0; count < this.#tokens; count += 1) {
      if (await this.#breaksAt(count, reply)) return false;
      await reply.pause(delayMs);
      for (const [index, source] of sources.entries()) {
        if (reply.closed) return false;
        const token = source.next().value;
        this.tally.completionTokens += 1;
        await reply.write(this.#chunk([choice(index, { content: token }, null)]));
      }
    }
    if (await this.#breaksAt(this.#tokens, reply)) return false;
    if (directives.bytes > 0) await reply.write(this.#chunk([choice(0, { content: 'x'.repeat(directives.bytes) }, null)]));
    if (directives.invalidUtf8) await this.#sendInvalidUtf8(reply);
    return !reply.closed;
  }

  /** Carries out a fault that is due after `count` tokens. */
  async #breaksAt(count: number, reply: ReplySocket): Promise<boolean> {
    const { cutAfter, stallAfter, endAfter, errorAfter } = this.#request.directives;
    if (count === stallAfter) await reply.stall();
    else if (count === cutAfter) await reply.cut({ reset: false });
    else if (count === endAfter) await reply.end();
    else if (count === errorAfter) {
      const error = { message: 'The server had an error while processing your request.', type: 'server_error', param: null, code: null };
      await reply.write(`data: ${JSON.stringify({ error })}\n\n`);
      await reply.end();
    } else return false;
    return true;
  }

  async #sendInvalidUtf8(reply: ReplySocket): Promise<void> {
    const [before, after] = this.#chunk([choice(0, { content: '<invalid>' }, null)]).split('<invalid>');
    await reply.write(Buffer.concat([Buffer.from(before ?? ''), Buffer.from([0xff, 0xc3, 0x28]), Buffer.from(after ?? '')]));
  }

  #chunk(choices: readonly object[], usage: object | null = null): string {
    const body = {
      id: this.#request.id,
      object: 'chat.completion.chunk',
      created: CREATED,
      model: this.#model,
      service_tier: 'default',
      system_fingerprint: 'fp_sim',
      choices,
      // OpenAI writes `usage: null` on the other chunks of a stream that was asked for usage, and nothing on those of one that was not.
      ...(this.#includeUsage ? { usage } : {}),
    };
    return `data: ${JSON.stringify(body)}\n\n`;
  }

  #reportedTokens(): number {
    return this.#tokens * this.#choices + this.#request.directives.reasoning;
  }

  #usage(): object {
    const { promptTokens, cachedTokens } = this.tally;
    const { reasoning, cacheWrite, usage } = this.#request.directives;
    const completionTokens = this.#reportedTokens();
    const honest = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0, ...(cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {}) },
      completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
    };
    return usage === null ? honest : { ...honest, ...wrongCounts(usage) };
  }
}

/** Counts as a broken or hostile provider writes them. */
function wrongCounts(fault: UsageFault): object {
  switch (fault) {
    case 'negative':
      return { prompt_tokens: -1000, completion_tokens: -1000, total_tokens: -2000 };
    case 'huge':
      return { prompt_tokens: 9_007_199_254_740_991, completion_tokens: 9_007_199_254_740_991, total_tokens: 9_007_199_254_740_991 };
    case 'string':
      return { prompt_tokens: '10', completion_tokens: 'many', total_tokens: '20' };
    case 'float':
      return { prompt_tokens: 1.5, completion_tokens: 2.5, total_tokens: 4 };
    case 'null_counts':
      return { prompt_tokens: null, completion_tokens: null, total_tokens: null };
    case 'none':
      return {};
  }
}

function choice(index: number, delta: object, finishReason: string | null): object {
  return { index, delta, logprobs: null, finish_reason: finishReason };
}

/** The written rule: one token for every four begun bytes of all message text, at least one. */
function countPromptTokens(json: Json): number {
  const bytes = messageTexts(json).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.max(1, Math.ceil(bytes / 4));
}

function messageTexts(json: Json): string[] {
  if (!Array.isArray(json.messages)) return [];
  return json.messages.flatMap((message: unknown) => (isObject(message) ? contentTexts(message.content) : []));
}

function contentTexts(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []));
}

function firstWhole(...values: unknown[]): number | null {
  const found = values.find((value) => typeof value === 'number' && Number.isInteger(value) && value > 0);
  return typeof found === 'number' ? found : null;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
