// The APIs that answer with one JSON document and are priced by their input. A row says what differs: the path, which
// requests are refused, the input tokens and the answer.

import { UNSCOPED } from '../directives.ts';
import { seedFrom } from '../generated-text.ts';
import { allStrings, countTokens, type Json } from '../json-fields.ts';
import { scriptedCall } from '../reply-script.ts';
import { wrongCounts } from '../wrong-counts.ts';
import { type Api, type ApiExample, type CallRequest, emptyTally, type Planned } from './api.ts';
import { invalid, modelError, NOT_JSON, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';

interface InputApi {
  /** The API's name in the log, and its scope of directives. */
  readonly name: string;
  readonly path: string;
  readonly idPrefix: string;
  /** Returns the input of the request, which is searched for directives. */
  readonly inputOf: (request: Json) => unknown;
  /** Reads the request, or returns why it is refused. */
  readonly read: (request: Json) => InputReply | (Planned & { readonly ok: false });
  readonly example: ApiExample;
}

interface InputReply {
  readonly tokens: number;
  /** Returns the document without its usage; called when the reply is due. */
  readonly document: () => Json;
}

const INPUT_APIS: readonly InputApi[] = [
  // Vectors of length one, of 16 numbers or `dimensions`, derived from their input; as base64 of 32-bit floats, too.
  {
    name: 'embeddings',
    path: '/v1/embeddings',
    idPrefix: 'embd-',
    inputOf: ({ input }) => input,
    read: embed,
    example: {
      request: (input) => ({ input }),
      reply: { data: [{ embedding: [0], index: 0 }], usage: { prompt_tokens: 5, total_tokens: 5 } },
    },
  },
];

export const INPUT_ROUTES = INPUT_APIS.map((row) => ({ method: 'POST', path: row.path, api: apiOf(row) }));

function apiOf({ name, idPrefix, inputOf, read, example }: InputApi): Api {
  return {
    name,
    family: 'openai',
    idPrefix,
    scopes: [UNSCOPED, name],
    unauthenticated: OPENAI_UNAUTHENTICATED,
    readText: ({ json }) => (json === null ? '' : allStrings(inputOf(json)).join('\n')),
    plan: (request) => plan(request, read),
    renderError: renderOpenaiError,
    example,
  };
}

function plan(request: CallRequest, read: InputApi['read']): Planned {
  const { json, directives } = request;
  if (json === null) return invalid(NOT_JSON);
  const error = modelError(json);
  if (error !== null) return { ok: false, error };
  const found = read(json);
  if ('ok' in found) return found;
  const { tokens, document } = found;
  const fault = directives.usage;
  const usage =
    fault === null
      ? { prompt_tokens: tokens, total_tokens: tokens }
      : wrongCounts(fault, { counts: ['prompt_tokens'], total: 'total_tokens' });
  const whole = (): string => {
    const reply: Json = { ...document(), model: json.model, ...(fault === 'none' ? {} : { usage }) };
    return `${JSON.stringify(reply, null, 2)}${' '.repeat(directives.bytes)}\n`;
  };
  const script = {
    tally: { ...emptyTally(), promptTokens: tokens },
    generated: {},
    reportsUsage: fault !== 'none',
    pauses: 0,
    stream: null,
    whole,
  };
  return { ok: true, plan: scriptedCall(request, script) };
}

const DIMENSIONS_DEFAULT = 16;
const DIMENSIONS_MAX = 4_096;
const INPUTS_MAX = 2_048;

function embed(request: Json): ReturnType<InputApi['read']> {
  const inputs = inputsOf(request.input);
  if (inputs === null || inputs.length === 0 || inputs.length > INPUTS_MAX)
    return invalid("'$.input' is invalid. Please check the API reference.");
  const dimensions = request.dimensions ?? DIMENSIONS_DEFAULT;
  if (typeof dimensions !== 'number' || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS_MAX)
    return invalid("Invalid value for 'dimensions'.", 'dimensions');
  const { encoding_format: format = 'float' } = request;
  if (format !== 'float' && format !== 'base64')
    return invalid("Invalid value for 'encoding_format': expected 'float' or 'base64'.", 'encoding_format');
  const document = (): Json => {
    const data = inputs.map((input, index) => {
      const vector = vectorOf(input, dimensions);
      return {
        object: 'embedding',
        index,
        embedding: format === 'float' ? Array.from(vector) : Buffer.from(vector.buffer).toString('base64'),
      };
    });
    return { object: 'list', data };
  };
  return { tokens: inputs.reduce((sum, input) => sum + tokensOf(input), 0), document };
}

type Input = string | readonly number[];

/**
 * The inputs of a text, a list of texts, the tokens of one text, or a list of such lists; null: `input` is none of
 * these.
 */
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
