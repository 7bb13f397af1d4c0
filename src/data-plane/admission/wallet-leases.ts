// Credit that this process has borrowed from wallets: holds are taken from memory, never from a database on the warm path (DESIGN 4).
//
//   wallet (Postgres) --lease--> free --hold--> held --settle--> charge (leaves with the spool) + rest back to free
//                     <--return--
//
// What was leased is `free + held + charges not yet posted`; only `free` ever goes back while the process lives.

export type HoldFailure = 'insufficient_credit' | 'billing_frozen' | 'billing_unavailable';

/** The wallet's side of a lease, in Postgres. All amounts are pico-dollars. */
export interface LeaseStore {
  /** Lends `amount` if the wallet has it, else what it has if that is at least `minimum`, else nothing. */
  takeLease(walletId: string, amount: bigint, minimum: bigint): Promise<LeaseAnswer>;
  returnLease(walletId: string, amount: bigint): Promise<void>;
  /** Asks every process to hand back what it has free of this wallet. */
  recall(walletId: string): Promise<void>;
}

export interface LeaseAnswer {
  readonly granted: bigint;
  /** What the wallet has left to lend after this. */
  readonly available: bigint;
  /** What other processes hold of the wallet: only that can be recalled. */
  readonly leasedElsewhere: bigint;
  readonly frozen: boolean;
}

interface WalletLease {
  readonly walletId: string;
  free: bigint;
  held: bigint;
  /** How much to borrow next; follows what the wallet has left. */
  chunk: bigint;
  /** At the last borrowing other processes held some of the wallet. */
  recallable: boolean;
  refill: Promise<HoldFailure | null> | null;
  recall: Promise<void> | null;
  lastUsedMs: number;
}

/** A lease aims to cover this many requests like the present one: each borrowing is a round trip to the database. The number is a judgement, not measured. */
const HOLDS_PER_CHUNK = 1_024n;
const HOLDS_OF_FIRST_CHUNK = 8n;
/** No process borrows more than this part of what a wallet has left, so that the last of it is not stranded in one of them. */
const PART_OF_AVAILABLE = 8n;
const RECALL_ROUNDS = 3;
const RECALL_WAIT_MS = 60;
const IDLE_MS = 15_000;

export class WalletLeases {
  private readonly store: LeaseStore;
  private readonly nowMs: () => number;
  private readonly wallets = new Map<string, WalletLease>();

  constructor(store: LeaseStore, nowMs: () => number) {
    this.store = store;
    this.nowMs = nowMs;
  }

  /** Takes a hold from what is already leased; false when that does not suffice. Synchronous: the warm path. */
  tryHold(walletId: string, amount: bigint): boolean {
    const wallet = this.wallets.get(walletId);
    if (wallet === undefined || wallet.free < amount) return false;
    wallet.free -= amount;
    wallet.held += amount;
    wallet.lastUsedMs = this.nowMs();
    // Borrow ahead, so that the next requests find a warm lease.
    if (wallet.free < wallet.chunk / 4n && wallet.refill === null) void this.refill(wallet, amount, 1n);
    return true;
  }

  /** Takes a hold, borrowing from the wallet and recalling idle leases as needed; null on success. */
  async hold(walletId: string, amount: bigint): Promise<HoldFailure | null> {
    const wallet = this.walletOf(walletId);
    let rounds = 0;
    for (;;) {
      if (this.tryHold(walletId, amount)) return null;
      if (wallet.refill !== null) {
        await wallet.refill;
        continue;
      }
      const failure = await this.refill(wallet, amount, amount - wallet.free);
      if (failure === null) continue;
      if (failure !== 'insufficient_credit' || rounds === RECALL_ROUNDS || !wallet.recallable) return failure;
      rounds += 1;
      await this.recallOnce(wallet);
    }
  }

  private walletOf(walletId: string): WalletLease {
    let wallet = this.wallets.get(walletId);
    if (wallet === undefined) {
      wallet = { walletId, free: 0n, held: 0n, chunk: 0n, recallable: false, refill: null, recall: null, lastUsedMs: this.nowMs() };
      this.wallets.set(walletId, wallet);
    }
    return wallet;
  }

  /** One borrowing at a time for each wallet; the others wait for it and try again. */
  private refill(wallet: WalletLease, hold: bigint, minimum: bigint): Promise<HoldFailure | null> {
    const attempt = this.borrow(wallet, hold, minimum).finally(() => {
      wallet.refill = null;
    });
    wallet.refill = attempt;
    return attempt;
  }

  private async borrow(wallet: WalletLease, hold: bigint, minimum: bigint): Promise<HoldFailure | null> {
    const aim = hold * HOLDS_PER_CHUNK;
    // What the wallet has is not known before the first borrowing: that one is small.
    const ceiling = wallet.chunk === 0n ? hold * HOLDS_OF_FIRST_CHUNK : wallet.chunk;
    const amount = biggest(minimum, aim < ceiling ? aim : ceiling);
    try {
      const { granted, available, leasedElsewhere, frozen } = await this.store.takeLease(wallet.walletId, amount, minimum);
      wallet.free += granted;
      wallet.recallable = leasedElsewhere > 0n;
      const part = available / PART_OF_AVAILABLE;
      wallet.chunk = biggest(hold, aim < part ? aim : part);
      if (frozen) return 'billing_frozen';
      return granted >= minimum ? null : 'insufficient_credit';
    } catch {
      return 'billing_unavailable';
    }
  }

  private recallOnce(wallet: WalletLease): Promise<void> {
    wallet.recall ??= this.recallNow(wallet).finally(() => {
      wallet.recall = null;
    });
    return wallet.recall;
  }

  private async recallNow(wallet: WalletLease): Promise<void> {
    try {
      await this.giveBack(wallet.walletId);
      await this.store.recall(wallet.walletId);
    } catch {
      // The borrowing that follows meets the same store and says what is wrong.
    }
    await new Promise((resolve) => setTimeout(resolve, RECALL_WAIT_MS));
  }

  /** Ends a hold: `charge` leaves the lease with the execution's record, the rest is free again. */
  settle(walletId: string, held: bigint, charge: bigint): void {
    const wallet = this.walletOf(walletId);
    wallet.held -= held;
    wallet.free += held - charge;
  }

  /** Hands back what is free of a wallet: another process is short of it. */
  async giveBack(walletId: string): Promise<void> {
    const wallet = this.wallets.get(walletId);
    if (wallet === undefined || wallet.free === 0n) return;
    const amount = wallet.free;
    wallet.free = 0n;
    try {
      await this.store.returnLease(walletId, amount);
    } catch (fault) {
      // Whether the return reached Postgres is not known. Keeping the money out of `free` errs on the side of the wallet:
      // what was not returned stays in the lease and comes back when this process's epoch is closed.
      throw new Error(`lease of wallet ${walletId} could not be returned`, { cause: fault });
    }
  }

  /** Hands back leases that no request has used for a while; called from the coarse clock. */
  async giveBackIdle(): Promise<void> {
    const before = this.nowMs() - IDLE_MS;
    for (const wallet of this.wallets.values()) {
      if (wallet.lastUsedMs < before && wallet.held === 0n && wallet.refill === null) await this.giveBack(wallet.walletId);
    }
  }

  /** Hands back everything free; at the end of a process. */
  async giveBackAll(): Promise<void> {
    for (const walletId of this.wallets.keys()) await this.giveBack(walletId);
  }

  /** Sums over all wallets, for metrics. */
  totals(): { free: bigint; held: bigint } {
    let free = 0n;
    let held = 0n;
    for (const wallet of this.wallets.values()) {
      free += wallet.free;
      held += wallet.held;
    }
    return { free, held };
  }
}

function biggest(first: bigint, second: bigint): bigint {
  return first > second ? first : second;
}
