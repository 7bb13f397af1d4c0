// Faults to plant in the code under simulation. Each loses, doubles or overspends money, and the simulation must find
// it.

import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface Mutation {
  readonly name: string;
  /** The path from the repository's root. */
  readonly file: string;
  /** Text that the file contains exactly once. */
  readonly find: string;
  readonly replace: string;
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'the client sees the end before its record is written',
    file: 'test/simulation/simulated-request.ts',
    find: '    execution.end(',
    replace: '    this.end(this.clientGone ? "left" : answer);\n    execution.end(',
  },
  {
    name: 'a record that the spool refused counts as written',
    file: 'src/generation/execution/record-journal.ts',
    find: 'this.tell(owner, index < count && ',
    replace: 'this.tell(owner, index <= count && ',
  },
  {
    name: 'what an execution held is released though its end could not be recorded',
    file: 'src/generation/execution/execution.ts',
    find: "    this.admission.release('unrecorded');",
    replace: '    this.admission.release({ charge: 0n, budgetUse: 0n, tokens: 0 });',
  },
  {
    name: 'the charge is released as well as the rest of the hold',
    file: 'src/generation/admission/admission.ts',
    find: '      return use.charge;',
    replace: '      return 0n;',
  },
  {
    name: 'what was requested is returned when the answer is lost',
    file: 'src/generation/admission/leases/lease-calls.ts',
    find: "if (answer === 'lost') lease.loseCall({ call, returned: null });",
    replace: "if (answer === 'lost') lease.addPendingReturn(lease.quota.key, request.minimum);",
  },
  {
    name: 'a return is repeated when its answer was lost',
    file: 'src/generation/admission/leases/lease-calls.ts',
    find: "      if (result === 'done') lease.refusals.forgetLast();\n",
    replace: "      if (result !== 'done') lease.addPendingReturn(grantId, amount);\n      if (result === 'done') {}\n",
  },
  {
    name: 'money is forgotten after it was returned, not before',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: '    this.grant.available = kept;\n',
    replace: '    this.grant.available = available - kept > 100_000n ? available : kept;\n',
  },
  {
    name: 'grants of rates and budgets do not expire',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: 'validForMs === null ? Number.POSITIVE_INFINITY : sentAtMs + validForMs;',
    replace: 'validForMs === null ? Number.POSITIVE_INFINITY : sentAtMs + validForMs * 100;',
  },
  {
    name: 'requests that are over return their share of the minute',
    file: 'src/generation/admission/admission.ts',
    find: "    case 'requests_per_minute':\n      return amount;",
    replace: "    case 'requests_per_minute':\n      return 0n;",
  },
  {
    name: 'rates in minutes of the clock instead of any 60 seconds',
    file: 'test/simulation/model-limits.ts',
    find: '    let load = shared.reduce((sum, cell) => sum + cell, 0);',
    replace:
      '    let load = shared.reduce((sum, cell, index) => sum + (second - COUNTED + index >= second - (second % 60) ? cell : 0), 0);',
  },
  {
    name: 'a failed sync is forgotten, and the descriptor believed again',
    file: 'src/storage/spool/spool-writer.ts',
    find: '    this.unsynced.failSync();\n    this.distrusted = true;',
    replace: '    this.unsynced.failSync();',
  },
  {
    name: 'what a failed sync lost is not written anew',
    file: 'src/storage/spool/unsynced-runs.ts',
    find: '    this.written = [...this.syncing, ...this.written];',
    replace: '    this.written = [...this.written];',
  },
  {
    name: 'a torn record stays in the middle of a segment',
    file: 'src/storage/spool/spool-writer.ts',
    find: '      this.files.ftruncate(this.fd, this.segmentBytes + wholeBytes);',
    replace: '      // Not cut.',
  },
  {
    name: 'the memory of records is used again before a sync has covered them',
    file: 'src/storage/spool/free-batches.ts',
    find: '    batch.continueBehind();',
    replace: '    batch.clear();',
  },
  {
    name: 'a frame refers to what only an earlier one has',
    file: 'src/records/record-codec.ts',
    find: 'private readonly callers = new Dictionary(CALLER);',
    replace: 'private readonly callers = (globalThis.sharedDictionary ??= new Dictionary(CALLER));',
  },
  {
    name: 'the second record that shares something refers to something else',
    file: 'src/records/record-codec.ts',
    find: 'isSame(entry.values, values)) return entry.number;',
    replace: 'isSame(entry.values, values)) return 0;',
  },
  {
    name: 'a spool gets its name without the directory being synced',
    file: 'src/storage/spool/spool-writer.ts',
    find: '  renameSync(partial, directory);\n  syncDirectory(options.directory);',
    replace: '  renameSync(partial, directory);',
  },
  {
    name: 'an epoch is closed before all of its spool is posted',
    file: 'jobs/shipping/posting-shipping.ts',
    find: 'if (!epoch.fullyPosted || epoch.settled) return false;',
    replace: 'if (epoch.settled) return false;',
  },
  {
    name: 'a living process is taken for dead',
    file: 'src/storage/spool/spool-directory.ts',
    find: 'const ended = isClosed || !isAlive(owner);',
    replace: 'const ended = isClosed || isAlive(owner);',
  },
  {
    name: 'a batch that the cursor does not admit is taken for posted',
    file: 'src/storage/postgres/ledger/post-executions.ts',
    find: "  if (!row.moved) return { status: 'already_posted', postedOffset: await readCursor(client, epoch, segment) };",
    replace: '',
  },
  {
    name: 'the cursor is moved in a transaction of its own',
    file: 'src/storage/postgres/ledger/post-executions.ts',
    find: '(POST, values);',
    replace:
      '(POST, [epoch, "[]", segment, fromOffset, toOffset, "[]", "[]"]);\n  if (rows[0]?.moved) rows[0] = (await client.query(POST, [epoch, asJson(told), segment, toOffset, toOffset, "[]", "[]"])).rows[0];',
  },
  {
    name: 'segments are removed before they are in the facts',
    file: 'jobs/shipping/shipped-epoch.ts',
    find: 'return size !== undefined && this.cursor(segment).facts >= size;',
    replace: 'return size !== undefined;',
  },
  {
    name: 'an execution is settled again by a later record',
    file: 'test/simulation/model-books.ts',
    find: '      if (stored !== undefined && (stored.terminal !== null || stored.epoch !== epoch)) continue;',
    replace: '      if (stored !== undefined && stored.epoch !== epoch) continue;',
  },
  {
    name: 'a revocation is not heard',
    file: 'src/gateway/generation/lease-store.ts',
    find: "  const [key = '', epoch] = payload.split(' ');",
    replace: "  const [key = '', epoch] = ` ${payload}`.split(' ');",
  },
  {
    name: 'what a waiting request has found is returned when it is revoked',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: '    this.returnAvailable(this.reserved);',
    replace: '    this.returnAvailable();',
  },
  {
    name: 'a directory that is there is taken for certain',
    file: 'src/storage/spool/durable-file.ts',
    find: '  if (existsSync(path)) return syncForeignDirectory(above);',
    replace: '  if (existsSync(path)) return;',
  },
  {
    name: 'a spool that another jobs process removed is looked for again and again',
    file: 'jobs/shipping/local-spools.ts',
    find: '    this.dropRemoved(listed);',
    replace: '',
  },
  {
    name: 'a lost call is not asked about again unless somebody waits',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: 'this.pendingReturns.size > 0 || this.lostCall !== null || this',
    replace: 'this.pendingReturns.size > 0 || this',
  },
  {
    name: 'a call that comes after it was found not done is carried out',
    file: 'test/simulation/model-limits.ts',
    find: 'call !== null && lease.lastCall >= call;',
    replace: 'call !== null && lease.lastCall > call;',
  },
  {
    name: 'what a lost call did not take back is forgotten',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: 'if (returned !== null) this.addPendingReturn(returned.grantId, returned.amount);',
    replace: '',
  },
  {
    name: 'what a lost call was granted is forgotten',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: '    } else if (recovered.granted > 0n) this.addPendingReturn(recovered.grantId, recovered.granted);',
    replace: '    }',
  },
  {
    name: 'the rest of a hold stays held',
    file: 'src/generation/admission/leases/quota-lease.ts',
    find: '    if (isPresent) this.grant.available += rest;',
    replace: '    if (isPresent) this.grant.available += rest / 2n;',
  },
];

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Loads the module with the fault in it from now on. Call it before importing anything that imports the module. */
export function plant({ name, file, find, replace }: Mutation): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.startsWith('file:') || fileURLToPath(url) !== `${ROOT}${file}`) return loaded;
      const source = Buffer.from(loaded.source as Uint8Array).toString();
      if (source.split(find).length !== 2) throw new Error(`${file} has not exactly one place for "${name}"`);
      return { ...loaded, source: source.replace(find, () => replace) };
    },
  });
}
