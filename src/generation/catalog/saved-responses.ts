// Which provider stores which response and its items, and who owns them: for the operations on saved responses and for
// continuations (spec 4.2, 5.4).

import { BoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { socketsRead } from '../../platform/tick.ts';
import { OrganizationQueues } from '../admission/organization-queues.ts';

export interface SavedResponse {
  readonly provider: string;
  /** Public id of the model that produced it. */
  readonly model: string;
  /** Input tokens that a continuation adds; null: not reported. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** An item of a response, to which a later request may refer. */
export interface SavedItem {
  readonly provider: string;
  readonly responseId: string;
  /** Output tokens of the whole response; null: not reported. */
  readonly outputTokens: number | null;
}

/** Responses belong to the organization and payer of the request that created them. */
export interface ResponseOwner {
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** `foreign`: somebody else's. `unknown`: not created through this installation, as far as it remembers. */
export type SavedResponseAnswer = SavedResponse | 'foreign' | 'unknown';

export interface SavedResponseStore {
  findResponse(owner: ResponseOwner, responseId: string): Promise<SavedResponseAnswer>;
  /** The owner's items among these, by their ids. */
  findItems(owner: ResponseOwner, itemIds: readonly string[]): Promise<ReadonlyMap<string, SavedItem>>;
}

const REMEMBERED_MAX = 20_000;
/** A response has only a few items. */
const ITEMS_REMEMBERED_MAX = 40_000;
/** A response that another process relayed a moment ago may not be posted yet. */
const WAIT_MAX_MS = 400;
const ASK_AGAIN_MS = 60;
/** A store that does not answer in this time is away: a request must not wait for the timeouts of a connection. */
const STORE_DEADLINE_MS = 2_000;
/**
 * An unknown id is looked up repeatedly until WAIT_MAX_MS. These limits keep made-up ids from taking the store's
 * connections from other requests. An id that exists is found in about a millisecond.
 */
const LOOK_UPS = { underWayMax: 8, waitingMax: 100, waitMsMax: STORE_DEADLINE_MS } as const;

export class SavedResponses {
  private readonly store: SavedResponseStore;
  private readonly clock: Clock;
  private readonly remembered = new BoundedMap<string, SavedResponse>(REMEMBERED_MAX);
  private readonly rememberedItems = new BoundedMap<string, SavedItem>(ITEMS_REMEMBERED_MAX);
  private readonly lookUps = new OrganizationQueues(LOOK_UPS);

  constructor(store: SavedResponseStore, clock: Clock) {
    this.store = store;
    this.clock = clock;
  }

  /** Remembers a response that this process has just relayed. */
  remember(owner: ResponseOwner, responseId: string, saved: SavedResponse): void {
    this.remembered.set(keyOf(owner, responseId), saved);
  }

  rememberItem(owner: ResponseOwner, itemId: string, item: SavedItem): void {
    this.rememberedItems.set(keyOf(owner, itemId), item);
  }

  /** Throws when the store cannot be asked. `busy`: the organization has too many look-ups under way. */
  async find(owner: ResponseOwner, responseId: string): Promise<SavedResponseAnswer | 'busy'> {
    const key = keyOf(owner, responseId);
    const known = (): SavedResponse | undefined => this.remembered.get(key);
    return (
      known() ??
      this.lookUps.run(
        owner.organizationId,
        () => this.findInStore(known, () => this.store.findResponse(owner, responseId)),
        'busy',
      )
    );
  }

  /** As `find`, for several items. `unknown`: at least one of them is not known to be the owner's. */
  async findItems(
    owner: ResponseOwner,
    itemIds: readonly string[],
  ): Promise<readonly SavedItem[] | 'unknown' | 'busy'> {
    const known = (): readonly SavedItem[] | undefined => {
      const items = itemIds.flatMap((itemId) => this.rememberedItems.get(keyOf(owner, itemId)) ?? []);
      return items.length === itemIds.length ? items : undefined;
    };
    return (
      known() ??
      this.lookUps.run(
        owner.organizationId,
        () => this.findInStore(known, () => this.askForItems(owner, itemIds)),
        'busy',
      )
    );
  }

  private async askForItems(
    owner: ResponseOwner,
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

  private async findInStore<Found, Answer>(
    known: () => Found | undefined,
    ask: () => Promise<Answer>,
  ): Promise<Found | Answer> {
    const startedAtMs = this.clock.monotonicMs();
    for (;;) {
      const found = known();
      if (found !== undefined) return found;
      const answer = await withDeadline(ask(), STORE_DEADLINE_MS);
      if (answer !== 'unknown' || this.clock.monotonicMs() - startedAtMs >= WAIT_MAX_MS) {
        // Whoever left meanwhile is known to have left before anybody is called for them.
        await socketsRead();
        return answer;
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}

function keyOf(owner: ResponseOwner, responseId: string): string {
  return `${owner.organizationId}\0${owner.walletId ?? ''}\0${responseId}`;
}
