// A planned response: its body, and the events by which a stream builds it, in OpenAI's order and numbering.

import { directivesOf } from '../directives.ts';
import { type Json, objectsIn } from '../json-fields.ts';
import { derivedId, makeSeal } from '../made-up.ts';
import { type AnswerPart, answerPieces, answerText, type PlannedAnswer } from '../planned-answer.ts';
import type { ReplyScript, Round, StreamScript } from '../reply-script.ts';
import type { CallRequest, CallTally } from './api.ts';
import { type ResponseState, renderResponse } from './response-object.ts';
import type { ResponseStore } from './response-store.ts';

const FAILURE = { code: 'server_error', message: 'The server had an error while processing your request.' };
const OBFUSCATION = 'aT3kVb9QzR5mXw1L';

export interface ResponsePlan {
  readonly request: CallRequest;
  readonly json: Json;
  readonly store: ResponseStore;
  readonly answer: PlannedAnswer;
  readonly tally: CallTally;
  readonly seed: number;
  readonly inputItems: readonly Json[];
}

export class ResponseScript implements ReplyScript, StreamScript {
  readonly tally: CallTally;
  readonly generated: { readonly completionTokens: number };
  readonly reportsUsage: boolean;
  readonly pauses: number;
  readonly stream: StreamScript | null;
  private readonly plan: ResponsePlan;
  private readonly background: boolean;
  private readonly obfuscates: boolean;
  private sequence = 0;

  constructor(plan: ResponsePlan) {
    const { json, answer } = plan;
    this.plan = plan;
    this.background = json.background === true;
    this.stream = json.stream === true ? this : null;
    this.tally = plan.tally;
    this.generated = { completionTokens: answer.tokens };
    // A background response is returned before there is any usage to report.
    this.reportsUsage = plan.request.directives.usage !== 'none' && (this.stream !== null || !this.background);
    this.pauses = this.background ? 0 : answer.tokens;
    this.obfuscates = objectsIn([json.stream_options])[0]?.include_obfuscation !== false;
  }

  whole(): string {
    this.keep();
    return `${JSON.stringify(this.render(this.background ? 'queued' : 'final'), null, 2)}\n`;
  }

  *opening(): Generator<string> {
    if (this.background) this.keep();
    const begun = this.render(this.background ? 'queued' : 'in_progress');
    yield this.event('response.created', { response: begun });
    if (this.background) yield this.event('response.queued', { response: begun });
    yield this.event('response.in_progress', { response: this.render('in_progress') });
  }

  *rounds(): Generator<Round> {
    for (const [index, part] of this.plan.answer.parts.entries()) {
      if (part.kind === 'thinking') yield* this.reasoningRounds(part, index);
      else if (part.kind === 'text') yield* this.textRounds(part, index);
      else yield* this.toolCallRounds(part, index);
    }
  }

  *closing(): Generator<string> {
    this.keep();
    if (this.plan.request.directives.noDone) return;
    const response = this.render('final');
    this.tally.usageSent = this.reportsUsage;
    yield this.event(this.plan.answer.finish === 'length' ? 'response.incomplete' : 'response.completed', {
      response,
    });
  }

  *error(): Generator<string> {
    yield this.event('error', { error: { type: 'server_error', ...FAILURE, param: null } });
    yield this.event('response.failed', {
      response: { ...this.render('in_progress'), status: 'failed', error: FAILURE },
    });
  }

  /** Reasoning is not streamed token by token; only its summary can be. */
  private *reasoningRounds(part: AnswerPart, index: number): Generator<Round> {
    const { request, seed } = this.plan;
    const item = this.item(part, index, 'completed');
    yield this.uncounted('response.output_item.added', { output_index: index, item: { ...item, summary: [] } });
    const [summary] = objectsIn(item.summary);
    const place = { item_id: item.id, output_index: index, summary_index: 0 };
    if (summary !== undefined)
      yield this.uncounted('response.reasoning_summary_part.added', {
        ...place,
        part: { type: 'summary_text', text: '' },
      });
    if (summary !== undefined) {
      for (const { text } of answerPieces(part, seed, request.directives)) {
        yield {
          pieces: [this.event('response.reasoning_summary_text.delta', { ...place, ...this.delta(text) })],
          counted: true,
        };
      }
      yield this.uncounted('response.reasoning_summary_text.done', { ...place, text: summary.text });
      yield this.uncounted('response.reasoning_summary_part.done', { ...place, part: summary });
    }
    yield this.uncounted('response.output_item.done', { output_index: index, item });
  }

  private *textRounds(part: AnswerPart, index: number): Generator<Round> {
    const { request, seed } = this.plan;
    const item = this.item(part, index, 'completed');
    const [whole] = objectsIn(item.content);
    const place = { item_id: item.id, output_index: index, content_index: 0 };
    yield this.uncounted('response.output_item.added', {
      output_index: index,
      item: { ...item, status: 'in_progress', content: [] },
    });
    yield this.uncounted('response.content_part.added', { ...place, part: { ...whole, text: '' } });
    for (const { text, counted } of answerPieces(part, seed, request.directives)) {
      yield {
        pieces: [this.event('response.output_text.delta', { ...place, ...this.delta(text), logprobs: [] })],
        counted,
      };
    }
    yield this.uncounted('response.output_text.done', { ...place, text: whole?.text, logprobs: [] });
    yield this.uncounted('response.content_part.done', { ...place, part: whole });
    yield this.uncounted('response.output_item.done', { output_index: index, item });
  }

  private *toolCallRounds(part: AnswerPart, index: number): Generator<Round> {
    const { request, seed } = this.plan;
    const item = this.item(part, index, 'completed');
    const custom = item.type === 'custom_tool_call';
    const field = custom ? 'input' : 'arguments';
    const events = custom ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
    const place = { item_id: item.id, output_index: index };
    yield this.uncounted('response.output_item.added', {
      output_index: index,
      item: { ...item, status: 'in_progress', [field]: '' },
    });
    for (const { text, counted } of answerPieces(part, seed, request.directives)) {
      yield { pieces: [this.event(`${events}.delta`, { ...place, ...this.delta(text) })], counted };
    }
    const name = custom ? {} : { name: item.name };
    yield this.uncounted(`${events}.done`, { ...place, ...name, [field]: item[field] });
    yield this.uncounted('response.output_item.done', { output_index: index, item });
  }

  private uncounted(type: string, fields: Json): Round {
    return { pieces: [this.event(type, fields)], counted: false };
  }

  private event(type: string, fields: Json): string {
    const event = { type, ...fields, sequence_number: this.sequence };
    this.sequence += 1;
    return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
  }

  /** OpenAI pads its deltas so that an observer of sizes cannot guess words. */
  private delta(delta: string): Json {
    return this.obfuscates
      ? { delta, obfuscation: OBFUSCATION.slice(Math.min(delta.length, OBFUSCATION.length - 1)) }
      : { delta };
  }

  private item(part: AnswerPart, index: number, status: 'completed' | 'incomplete'): Json {
    const { request, seed, json } = this.plan;
    const id = (prefix: string): string => derivedId(prefix, request.id, String(index));
    const text = answerText(part, seed, request.directives);
    switch (part.kind) {
      case 'thinking': {
        const wanted = objectsIn([json.reasoning])[0]?.summary;
        const sealed = Array.isArray(json.include) && json.include.includes('reasoning.encrypted_content');
        const summary = typeof wanted === 'string' ? [{ type: 'summary_text', text }] : [];
        return {
          id: id('rs_'),
          type: 'reasoning',
          ...(sealed ? { encrypted_content: makeSeal(String(seed)) } : {}),
          summary,
        };
      }
      case 'text': {
        const content = [{ type: 'output_text', annotations: [], logprobs: [], text }];
        return { id: id('msg_'), type: 'message', status, content, role: 'assistant' };
      }
      case 'tool_call': {
        const { name, kind } = part.call;
        if (kind === 'custom')
          return { id: id('ctc_'), type: 'custom_tool_call', status, call_id: id('call_'), input: text, name };
        return { id: id('fc_'), type: 'function_call', status, arguments: text, call_id: id('call_'), name };
      }
    }
  }

  private output(): Json[] {
    const { parts, finish } = this.plan.answer;
    return parts.map((part, index) =>
      this.item(part, index, finish === 'length' && index === parts.length - 1 ? 'incomplete' : 'completed'),
    );
  }

  private render(state: ResponseState): Json {
    const { request, json, answer, tally } = this.plan;
    return renderResponse({ request, json, answer, tally, state, output: state === 'final' ? this.output() : [] });
  }

  private keep(): void {
    const { request, json, store, answer, tally, inputItems } = this.plan;
    if ((json.store === false && !this.background) || store.find(request.id, request.caller) !== null) return;
    const delayMs = request.directives.delayMs ?? request.defaultDelayMs;
    store.keep({
      id: request.id,
      caller: request.caller,
      render: (state) => this.render(state),
      inputItems,
      contextTokens: tally.promptTokens + answer.tokens,
      background: this.background,
      finishedAtMs: performance.now() + (this.background ? delayMs * answer.tokens : 0),
      directives: directivesOf('saved', JSON.stringify(inputItems)),
      bytes: request.body.length * 2 + 4096,
    });
  }
}
