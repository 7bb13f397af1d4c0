// POST /v1/embeddings: vectors of length one, derived from their input, as numbers or as base64 of 32-bit floats.

import { UNSCOPED } from '../directives.ts';
import { seedFrom } from '../generated-text.ts';
import { allStrings, countTokens, type Json } from '../json-fields.ts';
import { scriptedCall } from '../reply-script.ts';
import { wrongCounts } from '../wrong-counts.ts';
import { type Api, type CallRequest, emptyTally, type Planned } from './api.ts';
import { invalid, modelError, NOT_JSON, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';

const DIMENSIONS_DEFAULT = 16;
const DIMENSIONS_MAX = 4_096;
const INPUTS_MAX = 2_048;

export const embeddings: Api = {
  name: 'embeddings',
  family: 'openai',
  idPrefix: 'embd-',
  scopes: [UNSCOPED, 'embeddings'],
  unauthenticated: OPENAI_UNAUTHENTICATED,
  readText: ({ json }) => allStrings(json?.input).join('\n'),
  plan,
  renderError: renderOpenaiError,
};

function plan(request: CallRequest): Planned {
  const { json, directives } = request;
  if (json === null) return invalid(NOT_JSON);
  const error = modelError(json);
  if (error !== null) return { ok: false, error };
  const inputs = inputsOf(json.input);
  if (inputs === null || inputs.length === 0 || inputs.length > INPUTS_MAX)
    return invalid("'$.input' is invalid. Please check the API reference.");
  const dimensions = json.dimensions ?? DIMENSIONS_DEFAULT;
  if (typeof dimensions !== 'number' || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS_MAX)
    return invalid("Invalid value for 'dimensions'.", 'dimensions');
  const { encoding_format: format = 'float' } = json;
  if (format !== 'float' && format !== 'base64')
    return invalid("Invalid value for 'encoding_format': expected 'float' or 'base64'.", 'encoding_format');
  const promptTokens = inputs.reduce((sum, input) => sum + tokensOf(input), 0);
  const fault = directives.usage;
  const usage =
    fault === null
      ? { prompt_tokens: promptTokens, total_tokens: promptTokens }
      : wrongCounts(fault, { counts: ['prompt_tokens'], total: 'total_tokens' });
  const whole = (): string => {
    const data = inputs.map((input, index) => {
      const vector = vectorOf(input, dimensions);
      return {
        object: 'embedding',
        index,
        embedding: format === 'float' ? Array.from(vector) : Buffer.from(vector.buffer).toString('base64'),
      };
    });
    const reply: Json = { object: 'list', data, model: json.model, ...(fault === 'none' ? {} : { usage }) };
    return `${JSON.stringify(reply, null, 2)}${' '.repeat(directives.bytes)}\n`;
  };
  const script = {
    tally: { ...emptyTally(), promptTokens },
    generated: {},
    reportsUsage: fault !== 'none',
    pauses: 0,
    stream: null,
    whole,
  };
  return { ok: true, plan: scriptedCall(request, script) };
}

type Input = string | readonly number[];

/** `input` is a text, a list of texts, the tokens of one text, or a list of such lists; null: it is none of these. */
function inputsOf(input: unknown): readonly Input[] | null {
  if (typeof input === 'string') return input === '' ? null : [input];
  if (!Array.isArray(input)) return null;
  if (isTokens(input)) return input.length === 0 ? [] : [input as number[]];
  const parts = input as unknown[];
  const isOfOneKind = parts.every((part) => typeof part === 'string') || parts.every(isTokens);
  return isOfOneKind ? (parts as Input[]) : null;
}

function isTokens(value: unknown): boolean {
  return Array.isArray(value) && value.every((token) => Number.isInteger(token) && token >= 0);
}

function tokensOf(input: Input): number {
  return typeof input === 'string' ? countTokens([input]) : input.length;
}

function vectorOf(input: Input, dimensions: number): Float32Array {
  let state = seedFrom(Buffer.from(JSON.stringify(input)));
  const numbers = Array.from({ length: dimensions }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  const length = Math.hypot(...numbers) || 1;
  return Float32Array.from(numbers, (number) => number / length);
}
