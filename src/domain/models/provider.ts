// A provider as plain data: where it is, whose key it takes, and how requests to it differ from the usual ones.

import type { ApiName } from './apis.ts';

export interface Provider {
  readonly id: string;
  /** Origin and optional path prefix; the dialect's path is appended, its /v1 only once. No trailing slash. */
  readonly baseUrl: string;
  /** The credential in clear, held in memory only; never logged. Empty where there is none. */
  readonly apiKey: string;
  readonly auth: ProviderAuth;
  /** Present if `apiKey` is a token, which expires. Absent: `apiKey` is a lasting key. */
  readonly token?: ProviderToken;
  /**
   * What happens to the provider call when the client disconnects: it is cancelled, or read on (within bounds) for its
   * usage.
   */
  readonly onDisconnect: 'cancel' | 'drain';
  /**
   * `shared`: any organization may refer to objects stored in the operator's account there (files, conversations,
   * containers). Absent: none may, since nobody knows which organization owns them.
   */
  readonly storedObjects?: 'shared';
  /** The timeouts that the operator has set; src/upstream/connection-limits.ts has the defaults of the others. */
  readonly timeouts?: ProviderTimeouts;
  /** Absent: requests to it are the usual ones. */
  readonly requests?: RequestSettings;
  /** The key is an organization's own, and its calls share no connection with others. Absent: the operator's. */
  readonly own?: {
    readonly keyId: string;
    /**
     * The organization influences the address, so the egress rules apply, and our own client calls it without a proxy.
     */
    readonly isGuarded: boolean;
  };
}

export interface ProviderToken {
  /** 0: there is no token. */
  readonly validUntilMs: number;
  /** From this time on, the next token is overdue. */
  readonly overdueFromMs: number;
}

/** The token of a provider as it is configured; a real one is obtained later. */
export const NO_TOKEN: ProviderToken = { validUntilMs: 0, overdueFromMs: 0 };

/** Whether the provider can be called at all: if it takes a token, it needs one that is still valid. */
export function isCallable({ token }: Provider, nowMs: number): boolean {
  return token === undefined || nowMs < token.validUntilMs;
}

/**
 * How the credential is sent to a provider: `bearer`, `none` (not at all, for servers such as those on the same
 * machine), or the name of the header that is the key, such as `x-api-key`.
 */
export type ProviderAuth = string;

export interface ProviderTimeouts {
  readonly connectMs?: number;
  /** From the end of the request to the reply's status line. */
  readonly firstByteMs?: number;
  /** Between two chunks of the reply; also the longest time that a client may take to read none of it. */
  readonly idleMs?: number;
  /** The whole of a call, reply included. */
  readonly totalMs?: number;
}

/** The names of a chat completion's limit on output (spec 4.1). */
export const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens'] as const;
export type OutputLimit = (typeof OUTPUT_LIMITS)[number];

/** How requests to a provider differ from the usual ones of the APIs that it serves. */
export interface RequestSettings {
  /** The preset that these came from; null: they were written out. */
  readonly preset: string | null;
  /** Sent with every request, in the place of the client's own of the same name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parameters of every request's query, in the place of the client's own of the same name. */
  readonly query: Readonly<Record<string, string>>;
  /** Headers of the client that are not sent to this provider. In lower case. */
  readonly dropHeaders: readonly string[];
  /** The output limits of a chat completion that this provider ignores. Absent: none. */
  readonly ignores?: readonly OutputLimit[];
  readonly apis: Readonly<Partial<Record<ApiName, ApiSettings>>>;
  /** Path after the base URL of a GET that proves the key and costs nothing; null: the usual list of models. */
  readonly verifyPath: string | null;
  /** The provider has no such GET: obtaining a token is proof enough. */
  readonly isVerifiedByToken: boolean;
  /** The address of a proxy, or `none`; absent: what the environment says. */
  readonly proxy?: string;
  /** The version of HTTP; 2 only if the configuration says so. */
  readonly http: 1 | 2;
  readonly tls?: TlsSettings;
  /** How this provider says that it refuses a key, beside the wordings that are known for every provider. */
  readonly errors: readonly KeyRefusalWording[];
}

/** Paths of PEM files on the machine that a gateway runs on. */
export interface TlsSettings {
  /** Authorities that are trusted beside the usual ones. */
  readonly ca?: string;
  /** The certificate by which the provider knows this gateway, and its key. */
  readonly cert?: string;
  readonly key?: string;
}

/** How requests on one API differ. Templates have `{model}`, the provider's name of the model, and `{path}`. */
export interface ApiSettings {
  /**
   * The path after the base URL, instead of the API's usual path. `{path}` stands for the usual path without its
   * `/v1/`.
   */
  readonly path?: string;
  /** The same for requests that ask for a stream. */
  readonly pathStream?: string;
  /**
   * Members of the JSON body that replace `model`; if empty, `model` is removed. Absent: only its value is replaced.
   */
  readonly insteadOfModel?: Readonly<Record<string, string>>;
}

/** How a reply says that it refuses the key of its call. */
export interface KeyRefusalWording {
  readonly status: 400 | 403;
  /** `word`: `text` is a complete code, type, status or reason. `message`: `text` is the beginning of the message. */
  readonly in: 'word' | 'message';
  readonly text: string;
}
