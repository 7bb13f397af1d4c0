// The in-memory model of what migrations 0003, 0004, 0046 and 0047 and the statements of jobs do in SQL: wallets,
// leases, epochs, the ledger, generations and cursors.

import type { RecoveredCall } from '../../src/domain/quotas/lease.ts';
import type { ExecutionRecord, TerminalRecord } from '../../src/records/execution-record.ts';
import { grantedOf, isOver, type LastCall, ModelLimits, NO_CALL, nextCall } from './model-limits.ts';
import { DatabaseFault, FENCED, RAISED, Table, UNIQUE_VIOLATION } from './model-tables.ts';

export interface WalletRow {
  readonly id: string;
  readonly balance: bigint;
  readonly leased: bigint;
  readonly frozen: boolean;
}

export interface EpochRow {
  readonly epoch: number;
  readonly fenced: boolean;
  readonly returned: boolean;
}

export interface LeaseRow extends LastCall {
  readonly epoch: number;
  readonly walletId: string;
  readonly outstanding: bigint;
}

/** An execution. It is open while `terminal` is null. */
export interface GenerationRow {
  readonly id: string;
  readonly epoch: number;
  readonly walletId: string | null;
  readonly authorizedAmount: bigint | null;
  readonly billingStatus: string;
  readonly charge: bigint | null;
  readonly start: ExecutionRecord;
  readonly terminal: TerminalRecord | null;
}

interface TransferRow {
  readonly reference: string;
  readonly kind: string;
  readonly amount: bigint;
}

interface AccountRow {
  readonly name: string;
  readonly total: bigint;
}

interface CursorRow {
  readonly epoch: number;
  readonly segment: number;
  readonly posted: number;
  readonly facts: number;
}

export interface Posted {
  readonly settled: number;
  readonly skipped: readonly string[];
}

export class ModelBooks {
  /** The undo steps of the running transaction. */
  readonly undo: (() => void)[] = [];
  readonly wallets = new Table<WalletRow>(this.undo, ({ balance, leased }) =>
    leased < 0n ? 'wallets_leased_check' : balance < leased ? 'wallets_never_overspent' : null,
  );
  readonly epochs = new Table<EpochRow>(this.undo);
  readonly leases = new Table<LeaseRow>(this.undo, ({ outstanding }) =>
    outstanding < 0n ? 'leases_outstanding_check' : null,
  );
  readonly generations = new Table<GenerationRow>(this.undo);
  readonly transfers = new Table<TransferRow>(this.undo);
  readonly accounts = new Table<AccountRow>(this.undo);
  readonly cursors = new Table<CursorRow>(this.undo, ({ posted, facts }) =>
    facts > posted ? 'spool_cursors_check' : null,
  );
  readonly limits: ModelLimits;
  private epochsMade = 0;

  constructor(newId: () => string) {
    this.limits = new ModelLimits(this.undo, newId, (epoch) => this.epochs.get(`${epoch}`)?.fenced !== false);
  }

  commit(): void {
    this.undo.length = 0;
  }

  rollBack(): void {
    for (const undo of this.undo.splice(0).reverse()) undo();
  }

  openWallet(id: string): void {
    this.wallets.set(id, { id, balance: 0n, leased: 0n, frozen: false });
  }

  deposit(walletId: string, amount: bigint, reference: string): void {
    this.transfer(`deposit:${walletId}:${reference}`, 'deposit', 'deposits', `wallet ${walletId}`, amount);
    this.changeWallet(walletId, { balance: this.wallet(walletId).balance + amount });
  }

  freeze(walletId: string, frozen: boolean): void {
    this.changeWallet(walletId, { frozen });
  }

  registerEpoch(): number {
    this.epochsMade += 1;
    const epoch = this.epochsMade;
    this.epochs.set(`${epoch}`, { epoch, fenced: false, returned: false });
    return epoch;
  }

  takeLease(
    epoch: number,
    walletId: string,
    amount: bigint,
    minimum: bigint,
    call: number | null = null,
  ): { granted: bigint; available: bigint; leasedElsewhere: bigint; frozen: boolean } {
    if (amount < 0n || minimum < 0n || minimum > amount)
      throw new DatabaseFault(RAISED, 'take_lease: need 0 <= minimum <= amount');
    const wallet = this.wallet(walletId);
    if (this.epochs.get(`${epoch}`)?.fenced !== false)
      throw new DatabaseFault(FENCED, `take_lease: epoch ${epoch} is fenced`);
    const lease = this.leases.get(`${epoch}/${walletId}`);
    const own = lease?.outstanding ?? 0n;
    const available = wallet.balance - wallet.leased;
    const granted = wallet.frozen || isOver(lease, call) ? 0n : grantedOf(available, amount, minimum);
    if (granted > 0n) {
      this.changeWallet(walletId, { leased: wallet.leased + granted });
      const lent = { epoch, walletId, outstanding: own + granted };
      this.leases.set(`${epoch}/${walletId}`, { ...lent, ...nextCall(lease, call, granted) });
    }
    return { granted, available: available - granted, leasedElsewhere: wallet.leased - own, frozen: wallet.frozen };
  }

  returnLease(epoch: number, walletId: string, amount: bigint, call: number | null = null): void {
    const lease = this.leases.get(`${epoch}/${walletId}`);
    if (this.epochs.get(`${epoch}`)?.fenced !== false || isOver(lease, call)) return;
    if (amount < 0n) throw new DatabaseFault(RAISED, 'return_lease: negative amount');
    this.changeWallet(walletId, { leased: this.wallet(walletId).leased - amount });
    if (lease === undefined)
      throw new DatabaseFault(RAISED, `return_lease: epoch ${epoch} holds nothing of wallet ${walletId}`);
    this.leases.set(`${epoch}/${walletId}`, {
      ...lease,
      outstanding: lease.outstanding - amount,
      ...nextCall(lease, call, 0n),
    });
  }

  recoverLease(epoch: number, walletId: string, call: number): RecoveredCall {
    if (this.epochs.get(`${epoch}`)?.fenced !== false)
      throw new DatabaseFault(FENCED, `recover_lease: epoch ${epoch} is fenced`);
    const lease = this.leases.get(`${epoch}/${walletId}`) ?? { epoch, walletId, outstanding: 0n, ...NO_CALL };
    if (lease.lastCall === call && lease.lastGranted !== null)
      return { isDone: true, granted: lease.lastGranted, grantId: walletId };
    if (lease.lastCall < call) this.leases.set(`${epoch}/${walletId}`, { ...lease, lastCall: call, lastGranted: null });
    return { isDone: false };
  }

  postedOffset(epoch: number, segment: number): number {
    return this.cursors.get(`${epoch}/${segment}`)?.posted ?? 0;
  }

  /** Moves the cursor and returns true; returns false, and moves nothing, if the cursor is not at `from`. */
  moveCursor(epoch: number, segment: number, from: number, to: number): boolean {
    if (this.postedOffset(epoch, segment) !== from) return false;
    const facts = this.cursors.get(`${epoch}/${segment}`)?.facts ?? 0;
    this.cursors.set(`${epoch}/${segment}`, { epoch, segment, posted: to, facts });
    return true;
  }

  advanceFacts(epoch: number, segment: number, facts: number): void {
    const cursor = this.cursors.get(`${epoch}/${segment}`);
    if (cursor !== undefined)
      this.cursors.set(`${epoch}/${segment}`, { ...cursor, facts: Math.max(cursor.facts, facts) });
  }

  deleteCursors(epoch: number): void {
    for (const cursor of this.cursors.values())
      if (cursor.epoch === epoch) this.cursors.delete(`${epoch}/${cursor.segment}`);
  }

  post(epoch: number, records: readonly ExecutionRecord[]): Posted {
    const terminals = new Map<string, TerminalRecord>();
    for (const record of records)
      if (record.type === 'terminal' && !terminals.has(record.id)) terminals.set(record.id, record);
    const opened = records.filter(({ type, id }) => type === 'admitted' && this.generations.get(id) === undefined);
    for (const record of opened) this.generations.set(record.id, openRow(epoch, record));
    const settled: TerminalRecord[] = [];
    for (const terminal of terminals.values()) {
      const stored = this.generations.get(terminal.id);
      if (stored !== undefined && (stored.terminal !== null || stored.epoch !== epoch)) continue;
      // The fields of the start stay as the first record had them.
      const start = stored?.start ?? terminal;
      this.generations.set(terminal.id, { ...closedRow(epoch, terminal), walletId: start.walletId, start });
      settled.push(terminal);
    }
    this.charge(epoch, settled);
    return {
      settled: settled.length,
      skipped: [...terminals.keys()].filter((id) => !settled.some((one) => one.id === id)),
    };
  }

  private charge(epoch: number, settled: readonly TerminalRecord[]): void {
    const charges = new Map<string, bigint>();
    const spendings = new Map<string, bigint>();
    let [charged, owed] = [0n, 0n];
    for (const { id } of settled) {
      const row = this.generations.get(id) as GenerationRow;
      const { charge, walletId, terminal } = row;
      if (walletId !== null) charged += charge ?? 0n;
      if (charge !== null && charge > 0n && walletId !== null) {
        if (this.wallets.get(walletId) !== undefined) {
          owed += charge;
          this.transfer(`charge:${id}`, 'charge', `wallet ${walletId}`, 'revenue', charge);
        }
        charges.set(walletId, (charges.get(walletId) ?? 0n) + charge);
      }
      const suspense = BigInt(terminal?.suspense ?? 0);
      if (suspense > 0n) this.transfer(`suspense:${id}`, 'suspense', 'unbilled_usage', 'suspense', suspense);
      const use = BigInt(terminal?.budgetUse ?? 0);
      if (use > 0n) for (const pool of terminal?.budgets ?? []) spendings.set(pool, (spendings.get(pool) ?? 0n) + use);
    }
    let [updated, held] = [0, 0];
    for (const [walletId, total] of charges) {
      const wallet = this.wallets.get(walletId);
      if (wallet === undefined) continue;
      updated += 1;
      this.changeWallet(walletId, { balance: wallet.balance - total, leased: wallet.leased - total });
      const lease = this.leases.get(`${epoch}/${walletId}`);
      if (lease === undefined) continue;
      held += 1;
      this.leases.set(`${epoch}/${walletId}`, { ...lease, outstanding: lease.outstanding - total });
    }
    for (const [pool, total] of spendings) this.limits.spend(epoch, pool, total);
    if (charged !== owed || updated !== charges.size || held !== charges.size)
      throw new DatabaseFault(RAISED, `epoch ${epoch}: a posting does not add up`);
  }

  fence(epoch: number): void {
    const row = this.epochs.get(`${epoch}`);
    if (row !== undefined) this.epochs.set(`${epoch}`, { ...row, fenced: true });
  }

  /** Releases everything that an epoch has leased from wallets, except the holds of its open executions. */
  private releaseLeases(epoch: number): bigint {
    let returned = 0n;
    for (const lease of this.leases.values()) {
      if (lease.epoch !== epoch) continue;
      const { walletId } = lease;
      const rest = lease.outstanding - this.heldByOpen(epoch, walletId);
      const amount = rest > 0n ? rest : 0n;
      returned += amount;
      this.changeWallet(walletId, { leased: this.wallet(walletId).leased - amount });
      this.leases.set(`${epoch}/${walletId}`, { ...lease, outstanding: lease.outstanding - amount });
    }
    return returned;
  }

  closeLeases(epoch: number): bigint {
    const returned = this.releaseLeases(epoch);
    for (const lease of this.leases.values())
      if (lease.epoch === epoch && lease.outstanding === 0n) this.leases.delete(`${epoch}/${lease.walletId}`);
    return returned;
  }

  private heldByOpen(epoch: number, walletId: string): bigint {
    let held = 0n;
    for (const row of this.generations.values()) {
      if (row.epoch === epoch && row.walletId === walletId && row.billingStatus === 'pending')
        held += row.authorizedAmount ?? 0n;
    }
    return held;
  }

  markReturned(epoch: number): void {
    const row = this.epochs.get(`${epoch}`);
    if (row !== undefined) this.epochs.set(`${epoch}`, { ...row, returned: true });
  }

  /** The closed epochs that still have leases. */
  closedWithLeases(): string[] {
    const epochs = new Set([...this.leases.values()].map(({ epoch }) => `${epoch}`));
    return [...epochs].filter((epoch) => this.epochs.get(epoch)?.returned === true);
  }

  /** Cancels open executions of closed epochs. */
  resolve(nowMs: number, max: number): { record: TerminalRecord }[] {
    const open = this.generations
      .values()
      .filter((row) => row.terminal === null && this.epochs.get(`${row.epoch}`)?.returned === true);
    const resolved = open.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(0, max);
    for (const row of resolved) this.generations.set(row.id, cancelledRow(row, nowMs));
    return resolved.map(({ id }) => ({ record: this.generations.get(id)?.terminal as TerminalRecord }));
  }

  killedOf(epoch: number): TerminalRecord[] {
    const killed = this.generations
      .values()
      .filter((row) => row.epoch === epoch && row.terminal?.outcome === 'process_killed');
    return killed.sort((one, other) => (one.id < other.id ? -1 : 1)).map(({ terminal }) => terminal as TerminalRecord);
  }

  account(name: string): bigint {
    return this.accounts.get(name)?.total ?? 0n;
  }

  private transfer(reference: string, kind: string, from: string, to: string, amount: bigint): void {
    if (this.transfers.get(reference) !== undefined)
      throw new DatabaseFault(UNIQUE_VIOLATION, `the transfer ${reference} is there`);
    this.transfers.set(reference, { reference, kind, amount });
    this.accounts.set(from, { name: from, total: this.account(from) - amount });
    this.accounts.set(to, { name: to, total: this.account(to) + amount });
  }

  wallet(id: string): WalletRow {
    const wallet = this.wallets.get(id);
    if (wallet === undefined) throw new DatabaseFault(RAISED, `no wallet ${id}`);
    return wallet;
  }

  private changeWallet(id: string, change: Partial<WalletRow>): void {
    this.wallets.set(id, { ...this.wallet(id), ...change });
  }
}

function openRow(epoch: number, start: ExecutionRecord): GenerationRow {
  const authorizedAmount = start.authorizedAmount === null ? null : BigInt(start.authorizedAmount);
  return {
    id: start.id,
    epoch,
    walletId: start.walletId,
    authorizedAmount,
    billingStatus: 'pending',
    charge: null,
    start,
    terminal: null,
  };
}

function closedRow(epoch: number, terminal: TerminalRecord): GenerationRow {
  const charge = terminal.charge === null ? null : BigInt(terminal.charge);
  return { ...openRow(epoch, terminal), billingStatus: terminal.billingStatus, charge, terminal };
}

function cancelledRow(row: GenerationRow, endedAtMs: number): GenerationRow {
  const charge = row.walletId === null ? null : 0n;
  const billingStatus = row.walletId === null ? 'not_billed' : 'cancelled';
  const { type: _, ...start } = row.start;
  const terminal: TerminalRecord = {
    type: 'terminal',
    ...start,
    endedAtMs,
    outcome: 'process_killed',
    status: null,
    errorCode: 'process_killed',
    usage: null,
    usageSource: null,
    billingStatus,
    ratedCost: null,
    charge: charge === null ? null : '0',
    suspense: '0',
    latencyMs: Math.max(0, endedAtMs - start.admittedAtMs),
    ttftMs: null,
    responseBytes: 0,
  };
  return { ...row, billingStatus, charge, terminal };
}
