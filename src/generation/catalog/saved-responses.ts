// Finds which provider stores a response and its items, and who owns them: for the operations on saved responses and
// for continuations (spec 4.2, 5.4).

import { isKeptResponseId } from '../../domain/stored-objects/kept-ids.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import { OrganizationQueues } from '../admission/organization-queues.ts';

/** Where a response is stored. */
export interface StoredAt {
  readonly provider: string;
  /** The organization's own key in whose account the response is; null: it is in the operator's account. */
  readonly ownKeyId: string | null;
}

export interface SavedResponse extends StoredAt {
  /** Public id of the model that produced it. */
  readonly model: string;
  /** Input tokens that a continuation adds; null: not reported. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** An item of a response, to which a later request may refer. */
export interface SavedItem extends StoredAt {
  readonly responseId: string;
  /** Output tokens of the whole response; null: not reported. */
  readonly outputTokens: number | null;
}

/** Responses belong to the organization and payer of the request that created them. */
export interface SavedResponseOwner {
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** `foreign`: another owner's. `unknown`: not created through this installation, as far as it remembers. */
export type SavedResponseAnswer = SavedResponse | 'foreign' | 'unknown';

/**
 * Why an id has no answer at the moment. `unavailable`: the organization has too many look-ups under way, or the store
 * cannot be asked. `unposted`: the id was not found, and not everything that processes have recorded is posted yet.
 */
export type NotAnswered = 'unavailable' | 'unposted';

export interface SavedResponseStore {
  findResponse(owner: SavedResponseOwner, responseId: string): Promise<SavedResponseAnswer>;
  /** The owner's items among these, by their ids. */
  findItems(owner: SavedResponseOwner, itemIds: readonly string[]): Promise<ReadonlyMap<string, SavedItem>>;
  /**
   * Resolves to true once everything that any process recorded before the call can be found; false: not within
   * `limitMs`.
   */
  postingPassed(limitMs: number): Promise<boolean>;
}

const REMEMBERED_MAX = 20_000;
/** A response has only a few items. */
const ITEMS_REMEMBERED_MAX = 40_000;
/** A response that another process relayed a moment ago may not be posted yet. */
const POSTING_WAIT_MS = 3_000;
/**
 * A store that does not answer in this time counts as away: a request must not wait for the timeouts of a connection.
 */
const STORE_DEADLINE_MS = 2_000;
/**
 * These limits keep made-up ids from taking the store's four connections from other requests. Nobody waits for postings
 * in this queue, and an id that exists is found in about a millisecond.
 */
const LOOK_UPS = { underWayMax: 2, waitingMax: 100, waitMsMax: STORE_DEADLINE_MS } as const;

export class SavedResponses {
  private readonly store: SavedResponseStore;
  private readonly onStoreFault: (fault: unknown) => void;
  private readonly remembered = new BoundedMap<string, SavedResponse>(REMEMBERED_MAX);
  private readonly rememberedItems = new BoundedMap<string, SavedItem>(ITEMS_REMEMBERED_MAX);
  private readonly lookUps = new OrganizationQueues(LOOK_UPS);

  /** `onStoreFault` is told why the store could not be asked. */
  constructor(store: SavedResponseStore, onStoreFault: (fault: unknown) => void = () => undefined) {
    this.store = store;
    this.onStoreFault = onStoreFault;
  }

  /** Remembers a response that this process has just relayed. */
  remember(owner: SavedResponseOwner, responseId: string, saved: SavedResponse): void {
    this.remembered.set(keyOf(owner, responseId), saved);
  }

  rememberItem(owner: SavedResponseOwner, itemId: string, item: SavedItem): void {
    this.rememberedItems.set(keyOf(owner, itemId), item);
  }

  /** Never rejects. Only ids that may be stored (kept-ids.ts) can be found. */
  async find(owner: SavedResponseOwner, responseId: string): Promise<SavedResponseAnswer | NotAnswered> {
    if (!isKeptResponseId(responseId)) return 'unknown';
    const key = keyOf(owner, responseId);
    const known = (): SavedResponse | undefined => this.remembered.get(key);
    return known() ?? this.lookUp(owner, known, () => this.store.findResponse(owner, responseId));
  }

  /** Like `find`, for several items. `unknown`: at least one item is not known to be the owner's. */
  async findItems(
    owner: SavedResponseOwner,
    itemIds: readonly string[],
  ): Promise<readonly SavedItem[] | 'unknown' | NotAnswered> {
    const known = (): readonly SavedItem[] | undefined => {
      const items = itemIds.flatMap((itemId) => this.rememberedItems.get(keyOf(owner, itemId)) ?? []);
      return items.length === itemIds.length ? items : undefined;
    };
    return known() ?? this.lookUp(owner, known, () => this.askForItems(owner, itemIds));
  }

  private async askForItems(
    owner: SavedResponseOwner,
    itemIds: readonly string[],
  ): Promise<readonly SavedItem[] | 'unknown'> {
    const found = await this.store.findItems(owner, itemIds);
    const items: SavedItem[] = [];
    for (const itemId of itemIds) {
      const item = found.get(itemId) ?? this.rememberedItems.get(keyOf(owner, itemId));
      if (item === undefined) return 'unknown';
      items.push(item);
    }
    // Every request of a conversation refers to the same items.
    for (const [itemId, item] of found) this.rememberItem(owner, itemId, item);
    return items;
  }

  private async lookUp<Found, Answer>(
    owner: SavedResponseOwner,
    known: () => Found | undefined,
    ask: () => Promise<Answer>,
  ): Promise<Found | Answer | NotAnswered> {
    try {
      return await this.findInStore(owner, known, ask);
    } catch (fault) {
      this.onStoreFault(fault);
      return 'unavailable';
    }
  }

  /** An id that is not found is looked up again once everything that was recorded before is posted. */
  private async findInStore<Found, Answer>(
    owner: SavedResponseOwner,
    known: () => Found | undefined,
    ask: () => Promise<Answer>,
  ): Promise<Found | Answer | NotAnswered> {
    const look = async (): Promise<Found | Answer> => known() ?? withDeadline(ask(), STORE_DEADLINE_MS);
    const askOnce = (): Promise<Found | Answer | 'unavailable'> =>
      this.lookUps.run(owner.organizationId, look, 'unavailable');
    let answer: Found | Answer | NotAnswered = await askOnce();
    if (answer === 'unknown') {
      const passed = await withDeadline(this.store.postingPassed(POSTING_WAIT_MS), POSTING_WAIT_MS + STORE_DEADLINE_MS);
      answer = passed ? await askOnce() : (known() ?? 'unposted');
    }
    // Sockets are read first, so that no provider is called for a client that left during the wait.
    await socketsRead();
    return answer;
  }
}

function keyOf(owner: SavedResponseOwner, responseId: string): string {
  return `${owner.organizationId}\0${owner.walletId ?? ''}\0${responseId}`;
}
