// Asks a provider for its list of models, with their limits. The date of the same reply shows the provider's clock.

import { Buffer } from 'node:buffer';
import type { Provider } from '../domain/models/provider.ts';
import type { UpstreamCall } from './call.ts';
import type { UpstreamFault } from './call-connection.ts';
import { providerCredential } from './credential.ts';
import { type ReplyHeaders, replyHeader } from './http1/reply-head.ts';
import type { Providers } from './providers.ts';
import type { ReplyHandler } from './reply-handler.ts';
import { ASKING_HEADERS } from './verify-provider.ts';

export interface ProviderModel {
  readonly id: string;
  /** null: the list does not say. */
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
}

export interface ModelList {
  /** null: there is no list to read. */
  readonly models: readonly ProviderModel[] | null;
  /** The provider's clock, to the second; null: it does not say. */
  readonly clockMs: number | null;
  /** Why there is no list, as the rest of a sentence that begins with "the provider"; null: there is one. */
  readonly reason: string | null;
}

const LISTING_MS = 10_000;
/** Lists of hundreds of models have less than a tenth of this. */
const LIST_BYTES_MAX = 16_777_216;
/** The path of the list, also for a provider whose key is verified by another path; a /v1 of that one stays. */
const USUAL_PATH = '/models';

/** Never rejects. */
export function listModels(provider: Provider, through: Providers): Promise<ModelList> {
  // Vertex AI has no list of models, which is why its keys are verified by their token.
  if (provider.requests?.isVerifiedByToken === true)
    return Promise.resolve({ models: null, clockMs: null, reason: 'has no list of its models' });
  const { promise, resolve } = Promise.withResolvers<ModelList>();
  const reading = new Reading(resolve);
  const timer = setTimeout(() => reading.onTimeout(), LISTING_MS);
  try {
    reading.call = through.call(
      withListPath(provider),
      {
        method: 'GET',
        api: 'verify',
        path: '/v1/models',
        // Anthropic's list has pages; others may refuse a parameter that they do not know.
        query: provider.auth === 'x-api-key' ? 'limit=1000' : '',
        providerModel: '',
        streamed: false,
        credential: providerCredential(provider),
        headers: ASKING_HEADERS,
        body: null,
        keyRefusals: 'as_reply',
      },
      reading,
    );
  } catch (error) {
    resolve({ models: null, clockMs: null, reason: `cannot be called: ${(error as Error).message}` });
  }
  return promise.finally(() => clearTimeout(timer));
}

function withListPath(provider: Provider): Provider {
  const { requests } = provider;
  const path = requests?.verifyPath ?? null;
  if (requests === undefined || path === null || path.endsWith(USUAL_PATH)) return provider;
  const listPath = path.startsWith('/v1/') ? `/v1${USUAL_PATH}` : USUAL_PATH;
  return { ...provider, requests: { ...requests, verifyPath: listPath } };
}

class Reading implements ReplyHandler {
  call: UpstreamCall | null = null;
  private readonly tell: (list: ModelList) => void;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private status = 0;
  private clockMs: number | null = null;

  constructor(tell: (list: ModelList) => void) {
    this.tell = tell;
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    const date = Date.parse(replyHeader(headers, 'date') ?? '');
    this.clockMs = Number.isNaN(date) ? null : date;
    if (status < 200 || status >= 300) this.giveUp(`answers ${status} to the request for its models`);
  }

  onReplyData(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.bytes > LIST_BYTES_MAX) this.giveUp('has a list of models that is too long to read');
    else this.chunks.push(Buffer.from(chunk));
  }

  onReplyPause(): void {
    // Nothing is passed on before the end.
  }

  onReplyEnd(): void {
    const models = readList(Buffer.concat(this.chunks).toString('utf8'));
    this.tell({
      models,
      clockMs: this.clockMs,
      reason: models === null ? 'answers the request for its models with something else' : null,
    });
  }

  onKeyRefused(): void {
    this.giveUp('does not accept the key');
  }

  onReplyFault(fault: UpstreamFault, error?: Error): void {
    const detail = error === undefined ? fault : error.message;
    this.tell({ models: null, clockMs: this.clockMs, reason: `gave no list of its models (${detail})` });
  }

  onTimeout(): void {
    this.call?.abort();
    const reason = `did not list its models within ${LISTING_MS / 1000} seconds`;
    this.tell({ models: null, clockMs: this.clockMs, reason });
  }

  private giveUp(reason: string): void {
    this.call?.discard();
    this.tell({ models: null, clockMs: this.clockMs, reason });
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** Nearly all providers answer `{ data: [...] }`, some a bare list; Gemini's own API and Cohere's have `models`. */
function readList(text: string): readonly ProviderModel[] | null {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return null;
  }
  const { data, models } = (typeof root === 'object' && root !== null ? root : {}) as Fields;
  const list = [root, data, models].find(Array.isArray) as readonly unknown[] | undefined;
  return list?.flatMap(readModel) ?? null;
}

function readModel(found: unknown): ProviderModel[] {
  if (typeof found !== 'object' || found === null) return [];
  const fields = found as Fields;
  const id = fields['id'] ?? fields['name'];
  if (typeof id !== 'string') return [];
  const top = (fields['top_provider'] ?? {}) as Fields;
  return [
    {
      // Gemini calls them models/gemini-...
      id: id.replace(/^models\//, ''),
      contextLength: firstCount(CONTEXT_FIELDS, fields),
      maxOutputTokens: firstCount(OUTPUT_FIELDS, top) ?? firstCount(OUTPUT_FIELDS, fields),
    },
  ];
}

const CONTEXT_FIELDS = [
  'context_length',
  'context_window',
  'max_context_length',
  'max_model_len',
  'max_input_tokens',
  'inputTokenLimit',
];
const OUTPUT_FIELDS = ['max_completion_tokens', 'max_output_tokens', 'outputTokenLimit', 'max_tokens'];

function firstCount(names: readonly string[], fields: Fields): number | null {
  const found = names.map((name) => fields[name]).find((value) => Number.isSafeInteger(value) && Number(value) > 0);
  return found === undefined ? null : Number(found);
}
