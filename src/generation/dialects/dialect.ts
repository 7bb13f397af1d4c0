// Defines what differs between the request formats. Code outside a dialect's own files uses this interface, and tests
// for an API by name only where that API has something no other has (CONTRIBUTING, "Add a dialect").

import type { TextPlaces } from '../../domain/guardrails/text-places.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import type { Model } from '../../domain/models/catalog.ts';
import type { VariationKind } from '../../domain/models/price.ts';
import type { OutputLimit } from '../../domain/models/provider.ts';
import type { EnvelopeName } from '../../domain/refusals/choose-envelope.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage, UsageDetails } from '../../domain/usage/usage.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { FormFault, ScannedForm } from '../request/multipart-scan.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import type { ControlKey } from '../request/scan/scanned-keys.ts';
import type { ScannedBody } from '../request/scanned-body.ts';
import type { StreamEnd, StreamProgress } from '../sse/stream-end.ts';
import type { DialectDescription } from './description.ts';

/** How many tokens betas in a header let a model read and write; 0: no such beta is named. */
export interface BetaCeilings {
  readonly context: number;
  readonly output: number;
}

/** The request's own fields that bound its cost. */
export interface RequestBounds {
  readonly streamed: boolean;
  /** The client's own limit on output tokens, per answer; null: it set none. */
  readonly outputTokensMax: number | null;
  /**
   * The limits of which `outputTokensMax` is the largest. Absent when the field has only one name, or the request sets
   * no limit.
   */
  readonly outputLimits?: Readonly<Partial<Record<OutputLimit, number>>>;
  /** How many answers were asked for. */
  readonly answers: number;
  /** Only in the Responses dialect. */
  readonly saved?: SavedResponseFields;
  /** Admission refuses a billed organization with this. For others the provider judges the request. */
  readonly refusalIfBilled?: Refusal | null;
  /** What only some deployments' prices cover. Absent, as nearly always: nothing. */
  readonly namedCosts?: NamedCosts;
  /** The default service tier, if the request names it: that matters where a deployment has another default. */
  readonly plainTier?: string;
  /** The provider may search, and its findings count as input. */
  readonly maySearch?: boolean;
  /** Tools that the provider runs and whose calls may have a price. Absent, as nearly always: none. */
  readonly calls?: readonly CallBound[];
  /** Some of the input is to be cached for an hour. */
  readonly asksForHourCache?: boolean;
  /** The model reads one text or question at a time, so its context does not bound the tokens of the whole request. */
  readonly isReadInParts?: boolean;
  /** Input tokens that the provider adds for the request's tools. Absent: it lists none. */
  readonly toolPromptTokens?: number;
  /** How much a header lets the model read or write. */
  readonly betaCeilings?: BetaCeilings;
}

/** What a request names that only some deployments have a price for. A billed organization is served by these alone. */
export interface NamedCosts {
  readonly items: readonly NamedCost[];
  /** The same as usage details, for a reply that does not say how it was served. */
  readonly details: UsageDetails;
}

/** How often a tool may be called. */
export interface CallBound {
  readonly tool: string;
  /** The request's limit; null: it sets none. */
  readonly max: number | null;
  /** The request is served even if nothing bounds the calls, and by deployments without a price for them. */
  readonly isOptional: boolean;
}

export interface NamedCost {
  readonly kind: VariationKind | 'calls' | 'audio';
  readonly name: string;
  /** The refusal for a billed organization when no deployment has a price for it. */
  readonly refusal: Refusal;
}

/**
 * The fields that tie a Responses request to responses stored at the provider (spec 4.2). They are read here; only the
 * provider judges them.
 */
export interface SavedResponseFields {
  /** The provider replies at once and without usage; the client fetches the response later. */
  readonly background: boolean;
  /** null: absent, which means true in this dialect. */
  readonly store: boolean | null;
  readonly previousResponseId: string | null;
  readonly conversationId: string | null;
}

/** Whether the provider stores the reply, so that the caller can refer to it later. */
export function isStored({ saved }: RequestBounds): boolean {
  return saved !== undefined && saved.store !== false;
}

/** The parts of a reply that `CaptureBuffer` keeps. For a short reply both parts are the whole reply. */
export interface KeptReply {
  readonly beginning: Buffer;
  readonly end: Buffer;
  /** A document that is longer than `beginning`, reduced to its short values, as far as it came. */
  readonly condensed?: Buffer | null;
  /** The reply broke off, so its last line or bracket may be missing. */
  readonly cut: boolean;
  /** The caller must know whether the reply names the default service tier, speed or region, or none. */
  readonly needsPlainNames?: boolean;
  /** The caller needs the cost that the reply reports. */
  readonly needsCost?: boolean;
  /** The request asked for an hour's cache, so cache writes for which the reply gives no time count as that. */
  readonly asksForHourCache?: boolean;
}

/** Watches every chunk of a reply; for a stream, `feed` returns how far it is. */
export interface ReplyWatch {
  feed(chunk: Buffer): StreamProgress | undefined;
  /** The name of the event that ended a stream. */
  readonly endedBy?: string | null;
}

/** The ids by which the caller may refer to a stored reply and its items. */
export interface StoredReplyIds {
  readonly responseId: string | null;
  readonly itemIds: readonly string[];
}

export const NOT_STORED: StoredReplyIds = { responseId: null, itemIds: [] };

/** Finds these ids while a stored reply passes. */
export interface StoredReplyWatch {
  /** Takes the next bytes of a stream. */
  feed(chunk: Buffer): void;
  /** To be called once the reply is over. */
  read(reply: KeptReply): StoredReplyIds;
}

/** What a request names and asks for, read from its JSON or form. */
export interface ReadRequest {
  /** The name as the client wrote it. */
  readonly requestedModel: string;
  /** Where the model's value is in the body; it is the part that is replaced. */
  readonly modelAt: { readonly start: number; readonly end: number };
  readonly bounds: RequestBounds;
}

/** Reads requests that come as multipart/form-data. */
export interface FormReader {
  read(form: ScannedForm, body: Buffer): ReadRequest | Refusal;
  /** The refusal of a form that cannot be read. */
  refuse(fault: FormFault): Refusal;
}

/**
 * The fields of one dialect that name stored objects, beside the keys that do so in every dialect
 * (find-stored-objects.ts).
 */
export interface StoredObjectFields {
  /** Fields of the outermost object. */
  readonly fields: readonly ControlKey[];
  /** The named objects may add input of unknown length, and items of `input` may stand for stored ones. */
  readonly addInput: boolean;
}

export interface Dialect {
  readonly api: ApiName;
  /** The path of the route, and at the provider, where it is appended to the base URL. */
  readonly path: string;
  /** The format of its refusals (spec 7). */
  readonly envelope: EnvelopeName;
  /** Used only for the OpenAPI document, not for requests. */
  readonly description: DialectDescription;
  /** The field named in a `not_safely_billable` refusal: what the client should set. */
  readonly outputLimitField: string;
  /** How a request can be made cheaper, as a clause. Absent: by a lower output limit. */
  readonly cheaper?: string;
  /** Where requests and replies have text that guardrails screen. */
  readonly texts: TextPlaces;
  /**
   * Further fields of requests that name stored objects. Absent: none. null: requests cannot name stored objects at
   * all.
   */
  readonly storedObjects?: StoredObjectFields | null;
  /** The field with a request's input, which a client should shorten if the request is too long for a limit. */
  readonly inputField: string;
  /** False: requests cost nothing, so nothing is bounded, held or rated. */
  readonly charged: boolean;
  /** What is priced: tokens, or each image of the reply (spec 8). */
  readonly unit: 'tokens' | 'images';
  /** Input tokens that a provider adds to what the body says; part of the hold's bound. */
  readonly overheadTokens: number;
  /** Absent: only JSON is accepted. */
  readonly form?: FormReader;
  /** Checks the body of an admitted request beyond its control fields. Absent: there is nothing to check. */
  readonly check?: (
    body: Buffer,
    workers: Pick<WorkerPool, 'run'>,
    model: Model,
  ) => Refusal | null | Promise<Refusal | null>;
  /**
   * Under a limit on tokens: the refusal of a request that has no bound for another reason than its output limit (spec
   * 7.5).
   */
  readonly refuseUnbounded?: (request: ScannedBody) => Refusal | null;
  /** Reads the control fields; a refusal when one of them has the wrong type. */
  readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal;
  /** Adds to the bounds what the request's headers say. Absent: no header matters. */
  readonly readHeaders?: (bounds: RequestBounds, headerValues: (name: string) => readonly string[]) => RequestBounds;
  /**
   * Usage as the provider reported it; null: it reported none. Counts are unchecked: `checkUsage` decides whether they
   * can be used. A count that is missing, such as the output's when a Messages stream broke off, is null.
   */
  readUsage(reply: KeptReply, watch?: ReplyWatch | null, clientLeft?: boolean): Usage | null;
  /**
   * For a dialect whose requests use nothing and count another request's tokens: the input tokens that the reply gives,
   * null when it gives none. They are recorded (spec 2.1), and never rated, held or limited.
   */
  readonly readCountedTokens?: (reply: KeptReply) => number | null;
  /** What the reply says, outside its usage object, that its cost depends on; null: nothing. */
  readonly readDetails?: (reply: KeptReply, bounds: RequestBounds) => UsageDetails | null;
  /**
   * Whether the reply says that it ended at its limit on output tokens; false when it gives no reason. Absent: replies
   * have no such limit. `endedBy`: the name of the event that ended a stream.
   */
  readonly isTruncated?: (reply: KeptReply, endedBy: string | null) => boolean;
  /** The names of events that end a stream without an answer. Absent: the dialect's failing event has no name. */
  readonly failingEvents?: readonly string[];
  /** Whether a stream's last event reports a failure. Absent: the event's name says so (`failingEvents`). */
  readonly endsInFailure?: (end: Buffer) => boolean;
  /** Makes a watcher for a stored reply's ids. Absent: providers do not store replies. */
  readonly watchStoredReply?: () => StoredReplyWatch;
  /** Makes a watcher for one stream's end, as clients of this dialect understand it. */
  watchStreamEnd(): StreamEnd;
  /**
   * Whether a stream that the provider ended without the dialect's last event is complete all the same, judged by its
   * last bytes. Absent: never. Popular clients take a clean end for success, so an incomplete stream must not have one.
   */
  readonly isWholeWithoutEnd?: (end: Buffer) => boolean;
  /**
   * Makes the event that reports the failure of a stream that has begun, so that clients neither take the stream for
   * complete nor ask again. `refusal`: as the route writes it; `beginning`: of the stream. Absent: the refusal is sent
   * as an event's data.
   */
  readonly failedEvent?: (refusal: string, beginning: Buffer) => string;
  /** Makes a watcher for more than a stream's end, used instead of `watchStreamEnd` and for whole replies, too. */
  readonly watchReply?: (isStream: boolean, answers: number) => ReplyWatch;
}
