// Describes as data how a provider's API differs from the API that it imitates: addresses, the key's header, error
// bodies, and the objects of its replies.

import type { ProviderError } from '../apis/api.ts';
import type { RewriteDocument } from '../document-rewrite.ts';

export interface KeyRefusal {
  readonly status: number;
  /** Quotes as much of the key as the provider does. */
  readonly body: (key: string) => unknown;
}

export interface ProviderShape {
  /** Matches whole host names; null: the provider has none of its own. */
  readonly hosts: RegExp | null;
  readonly auth: 'bearer' | 'x-api-key' | 'api-key' | null;
  /** For each base path, the paths below it, written as below the usual /v1. */
  readonly below: Readonly<Record<string, readonly string[]>>;
  /** Paths that contain the model, and the usual paths that they stand for. */
  readonly templates?: Readonly<Record<string, string>>;
  /** Query parameters that an address must have exactly once. */
  readonly query?: Readonly<Record<string, RegExp>>;
  /** The ways in which it refuses keys; the first is also used for a request without a key. */
  readonly refusals: readonly KeyRefusal[];
  /** Renders its errors on APIs in OpenAI's form; absent: as OpenAI does. */
  readonly error?: (error: ProviderError) => unknown;
  /** Rewrites replies, by the API's name in the log; absent: as the imitated API has them. */
  readonly rewrites?: Readonly<Record<string, RewriteDocument>>;
  /** Streams of Chat Completions end with the usage even if it was not requested. */
  readonly tellsUsageUnasked?: true;
  /** The version, usually the header `anthropic-version`, is a member of the body. */
  readonly versionInBody?: true;
  /** Written before a stream's first event. */
  readonly streamOpening?: string;
}
