// POST /v1/systemone: typed questions about a state, checked and refused like the real service does;
// systemone-answers.ts makes the answers.

import { UNSCOPED } from '../directives.ts';
import { seedFrom } from '../generated-text.ts';
import { allStrings, isObject, type Json } from '../json-fields.ts';
import { INVALID_UTF8, scriptedCall } from '../reply-script.ts';
import { wrongCounts } from '../wrong-counts.ts';
import { type Api, type CallRequest, emptyTally, type Planned, type ProviderError } from './api.ts';
import { isKnownModel } from './models.ts';
import { answerQuestions, countOutcomes, type Question, renderWithDecimals } from './systemone-answers.ts';

const OPTIONS_MAX = 255;
const LEVELS_MIN = 2;
const LEVELS_MAX = 10;
/** The context limits of jev-1.13 in its tokens: for the state with all questions, and with the longest question. */
const CONTEXT_TOKENS_MAX = 64_000;
const QUESTION_CONTEXT_TOKENS_MAX = 32_000;
/** Measured overhead on top of the content's tokens. */
const OVERHEAD_TOKENS = 270;
const ALIAS_VERSION = '1.13.0';
const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'authentication_error',
  429: 'rate_limit_error',
  503: 'model_unavailable',
  529: 'overloaded_error',
};

export const systemone: Api = {
  name: 'systemone',
  family: 'typesafe',
  idPrefix: 'systemone-',
  scopes: [UNSCOPED, 'systemone'],
  unauthenticated: refuse(403, 'Must supply an API key! Check your request and try again.', 'authentication_error')
    .error,
  readText: ({ json }) => (json === null ? '' : [...allStrings(json.state), ...allStrings(json.questions)].join('\n')),
  plan,
  renderError,
  example: {
    request: (state) => ({
      state,
      questions: { q: { type: 'choice', instructions: 'Is it?', criteria: { yes: null, no: null } } },
    }),
    reply: {
      model: 'judge-1',
      answers: { q: { type: 'choice', choice: 'yes' } },
      usage: { input_tokens: 40, output_tokens: 3 },
    },
  },
};

function plan(request: CallRequest): Planned {
  const { json, directives } = request;
  const checked = checkRequest(json);
  if (!checked.ok) return checked;
  const { state, questions, model } = checked;
  const stateTokens = tokensOf(state);
  const questionTokens = Object.values(questions).map(tokensOf);
  const all = stateTokens + questionTokens.reduce((sum, tokens) => sum + tokens, 0);
  if (all > CONTEXT_TOKENS_MAX || stateTokens + Math.max(0, ...questionTokens) > QUESTION_CONTEXT_TOKENS_MAX) {
    return refuse(400, `Too many tokens: ${all}. State and questions must fit the context.`, 'max_tokens_exceeded');
  }
  const promptTokens = OVERHEAD_TOKENS + all;
  const outputTokens = Object.values(questions).reduce((sum, question) => sum + 8 + 4 * countOutcomes(question), 0);
  const wrong =
    directives.usage === null ? {} : wrongCounts(directives.usage, { counts: ['input_tokens', 'output_tokens'] });
  const usage =
    directives.usage === 'none' ? {} : { usage: { input_tokens: promptTokens, output_tokens: outputTokens, ...wrong } };
  const plan = scriptedCall(request, {
    tally: { ...emptyTally(), promptTokens },
    generated: { completionTokens: outputTokens },
    reportsUsage: directives.usage !== 'none',
    pauses: 1,
    stream: null,
    whole() {
      const answers = answerQuestions(questions, {
        settings: directives.settings,
        state,
        seed: seedFrom(request.body),
      });
      const body = renderWithDecimals({ model: versionOf(model), answers, ...usage });
      const note = directives.invalidUtf8 ? `,"note":"${INVALID_UTF8}"` : '';
      return `${body.slice(0, -1)}${' '.repeat(directives.bytes)}${note}}`;
    },
  });
  return { ok: true, plan };
}

type Checked = {
  readonly ok: true;
  readonly model: string;
  readonly state: unknown;
  readonly questions: Readonly<Record<string, Question>>;
};

function checkRequest(json: Json | null): Checked | (Planned & { ok: false }) {
  if (json === null)
    return unprocessable({ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error', input: {} });
  for (const name of ['model', 'state', 'questions']) {
    if (json[name] === undefined)
      return unprocessable({ type: 'missing', loc: ['body', name], msg: 'Field required', input: json });
  }
  if (typeof json.model !== 'string')
    return unprocessable({
      type: 'string_type',
      loc: ['body', 'model'],
      msg: 'Input should be a valid string',
      input: json.model,
    });
  if (typeof json.state === 'number' || typeof json.state === 'boolean') {
    return unprocessable({
      type: 'string_type',
      loc: ['body', 'state'],
      msg: 'Input should be a valid string',
      input: json.state,
    });
  }
  if (!isObject(json.questions))
    return unprocessable({
      type: 'dict_type',
      loc: ['body', 'questions'],
      msg: 'Input should be a valid dictionary',
      input: json.questions,
    });
  for (const [id, question] of Object.entries(json.questions)) {
    const error = checkQuestion(id, question);
    if (error !== null) return { ok: false, error };
  }
  if (!isKnownModel(json.model)) return refuse(400, `Unknown model: ${json.model}`, 'api_usage_error');
  return {
    ok: true,
    model: json.model,
    state: json.state,
    questions: json.questions as Readonly<Record<string, Question>>,
  };
}

function checkQuestion(id: string, question: unknown): ProviderError | null {
  const at = ['body', 'questions', id];
  const wrong = (found: Json): ProviderError => unprocessable(found).error;
  if (!isObject(question))
    return wrong({ type: 'dict_type', loc: at, msg: 'Input should be a valid dictionary', input: question });
  const { type, criteria } = question;
  if (type === undefined)
    return wrong({
      type: 'union_tag_not_found',
      loc: at,
      msg: "Unable to extract tag using discriminator 'type'",
      input: question,
    });
  if (type !== 'noul' && type !== 'choice' && type !== 'score') {
    const msg =
      `Input tag ${JSON.stringify(type)} found using 'type' does not match any of the expected tags: ` +
      `'noul', 'choice', 'score'`;
    return wrong({ type: 'union_tag_invalid', loc: at, msg, input: question });
  }
  const loc = [...at, type, 'criteria'];
  if (type === 'noul') {
    if (criteria === undefined || criteria === null || isObject(criteria)) return null;
    return wrong({ type: 'dict_type', loc, msg: 'Input should be a valid dictionary', input: criteria });
  }
  if (criteria === undefined) return wrong({ type: 'missing', loc, msg: 'Field required', input: question });
  if (type === 'choice') {
    if (!isObject(criteria))
      return wrong({ type: 'dict_type', loc, msg: 'Input should be a valid dictionary', input: criteria });
    const message = `Too many choices. Must have at most ${OPTIONS_MAX} choices.`;
    return Object.keys(criteria).length <= OPTIONS_MAX ? null : { ...problem(400, message), body: { detail: message } };
  }
  if (!Array.isArray(criteria))
    return wrong({ type: 'list_type', loc, msg: 'Input should be a valid list', input: criteria });
  const [bound, word] = criteria.length < LEVELS_MIN ? [LEVELS_MIN, 'at least'] : [LEVELS_MAX, 'at most'];
  if (criteria.length >= LEVELS_MIN && criteria.length <= LEVELS_MAX) return null;
  const msg = `List should have ${word} ${bound} items after validation, not ${criteria.length}`;
  return wrong({ type: word === 'at least' ? 'too_short' : 'too_long', loc, msg, input: criteria });
}

/** A 422 as a FastAPI service writes it: `detail` is a list of mistakes with their places. */
function unprocessable(found: Json): Planned & { ok: false } {
  return { ok: false, error: { ...problem(422, String(found.msg)), body: { detail: [found] } } };
}

function refuse(status: number, message: string, errorType: string): Planned & { ok: false } {
  return { ok: false, error: { ...problem(status, message), body: { detail: { error_type: errorType, message } } } };
}

function problem(status: number, message: string): ProviderError {
  return { status, message, type: ERROR_TYPES[status] ?? 'api_usage_error', param: null, code: null };
}

/** `detail` is an object, unless `[[sim: status=... detail=string]]` asks for one of the service's other forms. */
function renderError(error: ProviderError): string {
  const { status, message, form } = error;
  if (error.body !== undefined) return JSON.stringify(error.body);
  if (form === 'string') return JSON.stringify({ detail: message });
  if (form === 'array')
    return JSON.stringify({ detail: [{ type: 'value_error', loc: ['body'], msg: message, input: {} }] });
  return JSON.stringify({ detail: { error_type: problem(status, message).type, message } });
}

/** The fixed rule: one token for every two started bytes, about twice what a GPT tokenizer counts. */
function tokensOf(value: unknown): number {
  return Math.ceil(Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value)) / 2);
}

/** `jev-latest` and `typesafe/jev-latest` are answered by `jev-1.13.0`. */
function versionOf(model: string): string {
  return model.endsWith('-latest')
    ? `${model.slice(model.lastIndexOf('/') + 1, -'-latest'.length)}-${ALIAS_VERSION}`
    : model;
}
