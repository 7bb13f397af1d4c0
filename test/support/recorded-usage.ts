// Finds the usage of a recorded reply by parsing all of it as plain JSON. It shares no code with the gateway, so that
// the two can be compared.

export type RecordedFormat = 'chat' | 'responses' | 'messages' | 'count_tokens' | 'responses_sub';

/** Input includes all cached parts, and output includes reasoning, as the domain counts them. */
export interface ExpectedUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cachedTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
}

type Counts = Readonly<Record<string, number | null | undefined>>;

interface UsageObject {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly total_tokens?: number;
  readonly prompt_cache_hit_tokens?: number;
  readonly cached_tokens?: number;
  readonly prompt_tokens_details?: Counts | null;
  readonly completion_tokens_details?: Counts | null;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly input_tokens_details?: Counts | null;
  readonly output_tokens_details?: Counts | null;
  readonly cache_read_input_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
}

/** Any JSON document in a reply, of any format. */
export interface RecordedDocument {
  readonly type?: string;
  readonly object?: string;
  readonly id?: string;
  readonly error?: unknown;
  readonly choices?: readonly {
    readonly message?: unknown;
    readonly delta?: unknown;
    readonly usage?: UsageObject | null;
  }[];
  readonly usage?: UsageObject | null;
  readonly x_groq?: { readonly usage?: UsageObject | null };
  readonly message?: { readonly usage?: UsageObject | null };
  readonly response?: { readonly id?: string; readonly usage?: UsageObject | null };
}

/** The JSON documents of a body: the body itself, or the data of its events. */
export function readDocuments(body: Buffer, stream: boolean): RecordedDocument[] {
  const texts = stream ? readEvents(body) : [body.toString('utf8')];
  return texts.map(parseDocument).filter((document) => document !== null);
}

function readEvents(body: Buffer): string[] {
  const lines = body.toString('utf8').split(/\r\n|\n|\r/);
  return lines.filter((line) => line.startsWith('data:')).map((line) => line.slice('data:'.length).trim());
}

/**
 * null: `[DONE]`, or text that is no JSON. One fixture was written by hand and lacks a closing brace at the end of two
 * events.
 */
export function parseDocument(text: string): RecordedDocument | null {
  for (const candidate of [text, `${text}}`]) {
    try {
      const value: unknown = JSON.parse(candidate);
      return typeof value === 'object' && value !== null ? value : null;
    } catch {
      // The second attempt adds the brace.
    }
  }
  return null;
}

export function expectUsage(format: RecordedFormat, body: Buffer, stream: boolean): ExpectedUsage | null {
  const documents = readDocuments(body, stream);
  if (format === 'chat') return expectChatUsage(documents);
  if (format === 'messages') return expectMessagesUsage(documents, stream);
  if (format === 'count_tokens') return null;
  const terminal = stream ? documents.findLast((document) => document.response?.usage)?.response : documents[0];
  const usage = terminal?.usage;
  if (!usage) return null;
  return inclusive({
    input: usage.input_tokens,
    cached: usage.input_tokens_details?.['cached_tokens'],
    cacheWrite: usage.input_tokens_details?.['cache_write_tokens'],
    output: usage.output_tokens,
    reasoning: usage.output_tokens_details?.['reasoning_tokens'],
    total: usage.total_tokens,
  });
}

/** The last usage object that is not null: providers that repeat it do so cumulatively. */
function expectChatUsage(documents: readonly RecordedDocument[]): ExpectedUsage | null {
  const usages = documents.map(
    (document) => document.usage ?? document.x_groq?.usage ?? document.choices?.[0]?.usage ?? null,
  );
  const usage = usages.findLast((found) => found !== null);
  if (!usage) return null;
  return inclusive({
    input: usage.prompt_tokens,
    cached: usage.prompt_tokens_details?.['cached_tokens'] ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
    cacheWrite: usage.prompt_tokens_details?.['cache_write_tokens'],
    output: usage.completion_tokens,
    reasoning: usage.completion_tokens_details?.['reasoning_tokens'],
    total: usage.total_tokens,
  });
}

function inclusive(counts: Counts): ExpectedUsage {
  const { input = null, output = null, total = null } = counts;
  const [cached = null, cacheWrite = null, reasoning = null] = [
    counts['cached'],
    counts['cacheWrite'],
    counts['reasoning'],
  ];
  // xAI counts reasoning beside the completion: only then do the three make the total.
  const beside =
    reasoning !== null && reasoning > 0 && input !== null && output !== null && total === input + output + reasoning;
  // Azure's Grok reports more cached tokens than input, so the cached tokens are not part of the input.
  const cachedBeside = input !== null && (cached ?? 0) > input;
  return {
    inputTokens: input,
    outputTokens: beside ? output + reasoning : output,
    cachedTokens: cachedBeside ? null : cached,
    cacheWriteTokens: cachedBeside ? null : cacheWrite,
    reasoningTokens: reasoning !== null && !beside && reasoning > (output ?? 0) ? null : reasoning,
  };
}

function expectMessagesUsage(documents: readonly RecordedDocument[], stream: boolean): ExpectedUsage | null {
  const whole = documents[0]?.usage ?? null;
  const first = documents.find((document) => document.type === 'message_start')?.message?.usage ?? null;
  const last = documents.findLast((document) => document.type === 'message_delta')?.usage ?? null;
  const usage = stream ? { ...first, ...last } : whole;
  if (usage === null || usage.input_tokens === undefined) return null;
  const cached = usage.cache_read_input_tokens ?? null;
  const cacheWrite = usage.cache_creation_input_tokens ?? null;
  return {
    inputTokens: usage.input_tokens + (cached ?? 0) + (cacheWrite ?? 0),
    outputTokens: usage.output_tokens ?? null,
    cachedTokens: cached,
    cacheWriteTokens: cacheWrite,
    reasoningTokens: usage.output_tokens_details?.['thinking_tokens'] ?? null,
  };
}
