// What differs between the request formats: code outside a dialect's own files asks for this, and for an API by its
// name only where one has what no other has (CONTRIBUTING, "Add a dialect").

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

/** What betas in a header let a model read and write. In tokens; 0: not named. */
export interface BetaCeilings {
  readonly context: number;
  readonly output: number;
}

/** What a request may cost at most, as far as its own fields say. */
export interface RequestBounds {
  readonly streamed: boolean;
  /** The client's own limit on output tokens, per answer; null when it set none. */
  readonly outputTokensMax: number | null;
  /** The limits that it is the larger one of. Absent where its field has one name alone, or the request sets none. */
  readonly outputLimits?: Readonly<Partial<Record<OutputLimit, number>>>;
  /** How many answers were asked for. */
  readonly answers: number;
  /** In the Responses dialect alone. */
  readonly saved?: SavedResponseFields;
  /** Admission refuses a billed organization with this; for others the request is the provider's to judge. */
  readonly refusalIfBilled?: Refusal | null;
  /** What only the terms of a deployment's price can say the cost of. Absent, as nearly always: nothing. */
  readonly named?: NamedCosts;
  /** The plain service tier that the request names, which counts where a deployment has another default. */
  readonly plainTier?: string;
  /** The provider may search, and read what it finds as input. */
  readonly maySearch?: boolean;
  /** Tools that the provider runs and that some prices have a price for. Absent, as nearly always: none. */
  readonly calls?: readonly CallBound[];
  /** Some of the input is to be written to a cache that lives for an hour. */
  readonly asksForHourCache?: boolean;
  /** The model reads a text or a question at a time: its context does not bound the tokens of the whole. */
  readonly isReadInParts?: boolean;
  /** Input that a provider adds to what the request says of its tools. Absent: it lists none. */
  readonly toolPromptTokens?: number;
  /** A header lets the model read or write so much. */
  readonly betaCeilings?: BetaCeilings;
}

/** What a request names that has a price only at some deployments; a billed organization is served by these alone. */
export interface NamedCosts {
  readonly items: readonly NamedCost[];
  /** As the details of a reply that does not say what it was served with. */
  readonly details: UsageDetails;
}

/** How often a tool may be called. */
export interface CallBound {
  readonly tool: string;
  /** By the request; null: it does not say. */
  readonly max: number | null;
  /** The request is served, too, where nothing bounds it, and by those who have no price for it. */
  readonly isOptional: boolean;
}

export interface NamedCost {
  readonly kind: VariationKind | 'calls' | 'audio';
  readonly name: string;
  /** What a billed organization is told where no deployment has a price for it. */
  readonly refusal: Refusal;
}

/**
 * What ties a Responses request to responses that the provider keeps (spec 4.2). Read, never judged: that is the
 * provider's.
 */
export interface SavedResponseFields {
  /** The reply comes at once and without usage; the response is fetched later. */
  readonly background: boolean;
  /** null: not said, which the dialect takes for yes. */
  readonly store: boolean | null;
  readonly previousResponseId: string | null;
  readonly conversationId: string | null;
}

/** The provider keeps the reply, for its caller to refer to. */
export function isStored({ saved }: RequestBounds): boolean {
  return saved !== undefined && saved.store !== false;
}

/** What `CaptureBuffer` keeps of a reply. Of a short one both parts are all of it. */
export interface KeptReply {
  readonly beginning: Buffer;
  readonly end: Buffer;
  /** A document that is longer than the beginning with its short values alone, as far as it came. */
  readonly condensed?: Buffer | null;
  /** The reply broke off, so its last line or bracket may be missing. */
  readonly cut: boolean;
  /** The caller needs to know whether the reply names the plain service tier, speed or region, or none. */
  readonly tellsPlain?: boolean;
  /** The caller needs the cost that the reply reports. */
  readonly tellsCost?: boolean;
  /** The request named a cache that lives for an hour: so do writes of which the reply does not say how long. */
  readonly asksForHourCache?: boolean;
}

/** Sees every chunk of a reply pass; for a stream it tells how far it is. */
export interface ReplyWatch {
  feed(chunk: Buffer): StreamProgress | undefined;
  /** Name of the event that ended a stream. */
  readonly endedBy?: string | null;
}

/** By what the caller may refer to a reply that the provider keeps, and to the items of it. */
export interface StoredReplyIds {
  readonly responseId: string | null;
  readonly itemIds: readonly string[];
}

export const NOT_STORED: StoredReplyIds = { responseId: null, itemIds: [] };

/** Finds the ids while a reply that the provider keeps passes. */
export interface StoredReplyWatch {
  /** The next bytes of a stream. */
  feed(chunk: Buffer): void;
  /** Once the reply is over. */
  read(reply: KeptReply): StoredReplyIds;
}

/** What a request names and asks for, read from whichever form its body has. */
export interface ReadRequest {
  /** As the client wrote it. */
  readonly requestedModel: string;
  /** Where the model's value lies in the body: what is exchanged. */
  readonly modelAt: { readonly start: number; readonly end: number };
  readonly bounds: RequestBounds;
}

/** Reads requests that come as multipart/form-data. */
export interface FormReader {
  read(form: ScannedForm, body: Buffer): ReadRequest | Refusal;
  /** How a form that cannot be read is refused. */
  refuse(fault: FormFault): Refusal;
}

/** What names a stored object beside the keys that do so in every dialect (find-stored-objects.ts). */
export interface StoredObjectFields {
  /** Of the outermost object. */
  readonly fields: readonly ControlKey[];
  /** What these name may add input of unknown length, and items of `input` may stand for stored ones. */
  readonly addInput: boolean;
}

export interface Dialect {
  readonly api: ApiName;
  /** Of its route, and on the provider, where it is appended to the base URL. */
  readonly path: string;
  /** The form of its refusals (spec 7). */
  readonly envelope: EnvelopeName;
  /** For the OpenAPI document alone; no request reads it. */
  readonly description: DialectDescription;
  /** The field named in a `not_safely_billable` refusal: what the client should set. */
  readonly outputLimitField: string;
  /** How a request is made cheaper, as a half sentence. Absent: by a lower output limit. */
  readonly cheaper?: string;
  /** Where its requests and replies have text that guardrails screen. */
  readonly texts: TextPlaces;
  /** Where else its requests name what a provider stores. Absent: nowhere. null: nothing in them names any. */
  readonly storedObjects?: StoredObjectFields | null;
  /** Where a request's input stands: what to shorten when it is too long for a limit. */
  readonly inputField: string;
  /** False where a request costs nothing: there is nothing to bound, to hold or to rate. */
  readonly charged: boolean;
  /** What is priced: tokens, or each image of the reply (spec 8). */
  readonly unit: 'tokens' | 'images';
  /** Input tokens that a provider adds to what the body says; part of the hold's bound. */
  readonly overheadTokens: number;
  /** Absent where only JSON is accepted. */
  readonly form?: FormReader;
  /** A look at the body once it is admitted, where the dialect checks more than its control fields. */
  readonly check?: (
    body: Buffer,
    workers: Pick<WorkerPool, 'run'>,
    model: Model,
  ) => Refusal | null | Promise<Refusal | null>;
  /** Under a limit on tokens: a request that has no bound for another reason than its output limit (spec 7.5). */
  readonly refuseUnbounded?: (request: ScannedBody) => Refusal | null;
  /** Reads the control fields; a refusal where one of them has the wrong type. */
  readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal;
  /** The bounds with what the request's headers say beside its body. Absent where no header says anything. */
  readonly readHeaders?: (bounds: RequestBounds, headerValues: (name: string) => readonly string[]) => RequestBounds;
  /**
   * Usage as the provider reported it; null when it reported none. Counts are as written, unchecked: `checkUsage`
   * decides whether they can be used. A count that is missing, as the output's where a Messages stream broke off, is
   * null.
   */
  readUsage(reply: KeptReply, watch?: ReplyWatch | null, clientLeft?: boolean): Usage | null;
  /**
   * Where a request uses nothing itself and answers how much another would: the input tokens that its reply tells, null
   * where it tells none. They are recorded (spec 2.1), and never rated, held or limited.
   */
  readonly readCountedTokens?: (reply: KeptReply) => number | null;
  /** What the reply says outside of its usage object that its cost depends on; null: nothing. */
  readonly readDetails?: (reply: KeptReply, bounds: RequestBounds) => UsageDetails | null;
  /**
   * Whether the reply says that it ended at its limit on output tokens; false where it does not say why it ended.
   * Absent where replies have no such limit. `endedBy`: the name of the event that ended a stream.
   */
  readonly isTruncated?: (reply: KeptReply, endedBy: string | null) => boolean;
  /** The names of events that end a stream without an answer. Absent: the dialect's failing event has no name. */
  readonly failingEvents?: readonly string[];
  /** Whether a stream's last event, which has no name of its own, tells that it failed. Absent: its name tells. */
  readonly endsInFailure?: (end: Buffer) => boolean;
  /** Where providers keep replies. */
  readonly watchStoredReply?: () => StoredReplyWatch;
  /** A watcher for one stream's end, as clients of this dialect understand it. */
  watchStreamEnd(): StreamEnd;
  /**
   * Whether a stream that the provider ended without the dialect's last event is whole all the same, by its last bytes.
   * Absent: never. Popular clients take a clean end for success, so one that is not whole must not have one.
   */
  readonly isWholeWithoutEnd?: (end: Buffer) => boolean;
  /**
   * The event by which a stream that has begun tells that it failed, so that clients neither take it for complete nor
   * ask again; `refusal`: as the route writes it, `beginning`: of the stream. Absent: the refusal as an event's data.
   */
  readonly failedEvent?: (refusal: string, beginning: Buffer) => string;
  /** Where more than a stream's end is to be watched: instead of `watchStreamEnd`, for whole replies too. */
  readonly watchReply?: (isStream: boolean, answers: number) => ReplyWatch;
}
