// What a provider's API differs in from the one that it imitates, as data: addresses, the key's header, error bodies,
// and the objects of its replies.

import type { ProviderError } from '../apis/api.ts';
import type { Dress } from '../dressed-text.ts';

export interface KeyRefusal {
  readonly status: number;
  /** Shows of the key what the provider shows. */
  readonly body: (key: string) => unknown;
}

export interface ProviderShape {
  /** Whole host names; null: it has none. */
  readonly hosts: RegExp | null;
  readonly auth: 'bearer' | 'x-api-key' | 'api-key' | null;
  /** By base path: what lies below it, as below the usual /v1. */
  readonly below: Readonly<Record<string, readonly string[]>>;
  /** Paths with the model in them, and the usual ones that they stand for. */
  readonly templates?: Readonly<Record<string, string>>;
  /** Parameters that an address must have, once. */
  readonly query?: Readonly<Record<string, RegExp>>;
  /** How it refuses keys; the first one is also for a request without a key. */
  readonly refusals: readonly KeyRefusal[];
  /** Its errors on APIs in OpenAI's form; absent: OpenAI's. */
  readonly error?: (error: ProviderError) => unknown;
  /** By the API's name in the log; absent: as the imitated API has it. */
  readonly dress?: Readonly<Record<string, Dress>>;
  /** Streams of Chat Completions end with the usage, whether it was asked for or not. */
  readonly tellsUsageUnasked?: true;
  /** The version that is usually the header `anthropic-version` is a member of the body. */
  readonly versionInBody?: true;
  /** Written before a stream's first event. */
  readonly streamOpening?: string;
}
