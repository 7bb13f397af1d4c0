// Worker task: counts the tokens of a request and of its reply with the model's tokenizer, where the provider reported
// no usage. It runs off the event loop because a tokenizer takes 100 ms to load and milliseconds to run. It never
// throws: what cannot be counted is null.

import { APIS } from '../src/domain/models/apis.ts';
import type { CountTokensInput, CountTokensOutput } from '../src/domain/usage/count-tokens-task.ts';
import type { CountableDialect, CountableText } from '../src/domain/usage/countable-text.ts';
import { isWithinFirstEvent } from '../src/domain/usage/event-payloads.ts';
import { cutLongRuns } from '../src/domain/usage/long-runs.ts';
import { bodyTellsFailure } from '../src/domain/usage/told-failure.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export type { CountTokensInput, CountTokensOutput };

type CountTokens = (text: string) => number;
type CountWith = (text: string, options: { readonly disallowedSpecial: Set<string> }) => number;

/** Each encoding is loaded at its first use, because it takes about 125 ms and 100 MB. */
const ENCODINGS: Readonly<Record<string, () => Promise<{ countTokens: CountWith }>>> = {
  o200k_base: () => import('gpt-tokenizer/encoding/o200k_base'),
  cl100k_base: () => import('gpt-tokenizer/encoding/cl100k_base'),
  p50k_base: () => import('gpt-tokenizer/encoding/p50k_base'),
  r50k_base: () => import('gpt-tokenizer/encoding/r50k_base'),
};
const DEFAULT_ENCODING = 'o200k_base';

const NO_TEXTS: CountableText = { texts: [], formatTokens: 0 };

/**
 * Text that spells a special token, such as <|endoftext|>, is text: a caller writing it must be neither refused nor
 * undercounted.
 */
const AS_PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

export default async function countTokens(input: CountTokensInput): Promise<CountTokensOutput> {
  const count = await loadEncoding(input.encoding);
  if (input.begun !== undefined) tellBegun(input.begun);
  return {
    inputTokens: input.count.input === false ? null : attempt(() => countRequest(input, count)),
    outputTokens: input.count.output ? attempt(() => countResponse(input, count)) : null,
    tellsFailure: input.count.output && tellsFailure(input),
  };
}

function tellsFailure({ response, responseIsStream, responseIsCut = false }: CountTokensInput): boolean {
  return bodyTellsFailure(decode(response), !responseIsStream && !responseIsCut);
}

/** The count of one text in an encoding, exact unless it has a run longer than a slice. */
export async function loadEncoding(encoding: string): Promise<CountTokens> {
  const name = Object.hasOwn(ENCODINGS, encoding) ? encoding : DEFAULT_ENCODING;
  const load = ENCODINGS[name] as () => Promise<{ countTokens: CountWith }>;
  const { countTokens: countWith } = await load();
  return (text) => {
    let tokens = 0;
    for (const slice of cutLongRuns(text)) tokens += countWith(slice, AS_PLAIN_TEXT);
    return tokens;
  };
}

function countRequest({ api, request, count: { input } }: CountTokensInput, count: CountTokens): number | null {
  const text = APIS[api].countable.requestText(decode(request));
  const tokens = countText(text, count);
  if (text === null || tokens === null || input !== 'at_most') return tokens;
  const textBytes = text.texts.reduce((bytes, part) => bytes + Buffer.byteLength(part), 0);
  return tokens + Math.max(0, request.byteLength - textBytes);
}

function countResponse(input: CountTokensInput, count: CountTokens): number | null {
  const body = decode(input.response);
  const dialect = APIS[input.api].countable;
  const text = input.responseIsStream ? textOfStream(dialect, body, input) : dialect.responseText(body);
  const tokens = countText(text, count);
  const keptBytes = input.response.byteLength;
  if (tokens === null || input.responseBytesTotal <= keptBytes) return tokens;
  // The kept beginning of the reply contains no text yet, so it does not allow an estimate of the rest.
  if (tokens === 0) return null;
  // Invalid UTF-8 decodes to more bytes than it had, so `leadBytes` could exceed the kept bytes.
  const leadBytes = Math.min(text?.leadBytes ?? 0, keptBytes - 1);
  return Math.round(tokens * ((input.responseBytesTotal - leadBytes) / (keptBytes - leadBytes)));
}

function textOfStream(
  dialect: CountableDialect,
  body: string,
  { responseIsCut = false }: CountTokensInput,
): CountableText | null {
  return responseIsCut && isWithinFirstEvent(body) ? NO_TEXTS : dialect.streamText(body);
}

function countText(text: CountableText | null, count: CountTokens): number | null {
  return text === null ? null : text.texts.reduce((tokens, part) => tokens + count(part), text.formatTokens);
}

/** A reply can be cut inside a character. The rest of that character decodes to a replacement character. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function attempt(count: () => number | null): number | null {
  try {
    return count();
  } catch {
    return null;
  }
}
