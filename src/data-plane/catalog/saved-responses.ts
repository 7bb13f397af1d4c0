// Which provider keeps which response, and whose it is: what the operations on saved responses and continuations go by (spec 4.2, 5.4).

import type { Clock } from '../../platform/clock.ts';
import { OrganizationQueues } from '../admission/organization-queues.ts';

export interface SavedResponse {
  readonly provider: string;
  /** Public id of the model that produced it. */
  readonly model: string;
  /** What a continuation carries along; null where it was not reported. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Responses belong to the organization and payer of the request that created them. */
export interface ResponseOwner {
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** `foreign`: somebody else's. `unknown`: not created through this installation, as far as it remembers. */
export type SavedResponseAnswer = SavedResponse | 'foreign' | 'unknown';

export type FindSavedResponse = (owner: ResponseOwner, responseId: string) => Promise<SavedResponseAnswer>;

const REMEMBERED_MAX = 20_000;
/** A response that another process relayed a moment ago may still be on its way from its spool. */
const WAIT_MAX_MS = 400;
const ASK_AGAIN_MS = 60;
/** A store that does not answer in this time is away: a request must not wait for a connection's own timeouts. */
const STORE_DEADLINE_MS = 2_000;
/**
 * An id that nobody here made is asked for again and again until WAIT_MAX_MS: ids that a client makes up must not take
 * the store's connections from everybody. An id that is there takes about a millisecond.
 */
const LOOK_UPS = { underWayMax: 8, waitingMax: 100, waitMsMax: STORE_DEADLINE_MS } as const;

export class SavedResponses {
  private readonly findSaved: FindSavedResponse;
  private readonly clock: Clock;
  private readonly remembered = new Map<string, SavedResponse>();
  private readonly lookUps = new OrganizationQueues(LOOK_UPS);

  constructor(findSaved: FindSavedResponse, clock: Clock) {
    this.findSaved = findSaved;
    this.clock = clock;
  }

  /** A response that this process has just relayed. */
  remember(owner: ResponseOwner, responseId: string, saved: SavedResponse): void {
    if (this.remembered.size >= REMEMBERED_MAX) {
      const oldest = this.remembered.keys().next().value;
      if (oldest !== undefined) this.remembered.delete(oldest);
    }
    this.remembered.set(keyOf(owner, responseId), saved);
  }

  /** Throws when the store cannot be asked. `busy`: the organization has too many look-ups under way. */
  async find(owner: ResponseOwner, responseId: string): Promise<SavedResponseAnswer | 'busy'> {
    const known = this.remembered.get(keyOf(owner, responseId));
    return known ?? this.lookUps.run(owner.organizationId, () => this.findInStore(owner, responseId), 'busy');
  }

  private async findInStore(owner: ResponseOwner, responseId: string): Promise<SavedResponseAnswer> {
    const key = keyOf(owner, responseId);
    const startedAtMs = this.clock.monotonicMs();
    for (;;) {
      const known = this.remembered.get(key);
      if (known !== undefined) return known;
      const answer = await this.findInTime(owner, responseId);
      if (answer !== 'unknown' || this.clock.monotonicMs() - startedAtMs >= WAIT_MAX_MS) return answer;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  private async findInTime(owner: ResponseOwner, responseId: string): Promise<SavedResponseAnswer> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${STORE_DEADLINE_MS} ms`)), STORE_DEADLINE_MS);
    });
    try {
      return await Promise.race([this.findSaved(owner, responseId), late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function keyOf(owner: ResponseOwner, responseId: string): string {
  return `${owner.organizationId}\0${owner.walletId ?? ''}\0${responseId}`;
}
