// Provides the comparison of a configuration file with the catalog to the control plane: a worker reads the file, and a
// transaction that is rolled back applies it.

import type { CatalogCheck, CheckedCatalog } from '../../control-plane/catalog/check-catalog.ts';
import type { CheckFileInput } from '../../domain/configuration/check-file-task.ts';
import type { Configuration } from '../../domain/configuration/configuration.ts';
import { type Difference, describeDifference } from '../../domain/configuration/difference.ts';
import { namesIn } from '../../domain/configuration/interpolation.ts';
import type { WithoutEnvironment } from '../../domain/configuration/parse-without-environment.ts';
import { begunFlag } from '../../platform/begun-flag.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { ConfigurationConflict } from '../../storage/postgres/apply/application.ts';
import { applyConfiguration } from '../../storage/postgres/apply/apply-configuration.ts';
import { readStoredNames } from '../../storage/postgres/apply/stored-names.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

/** Each check holds the lock of the catalog for some tenths of a second. */
const CHECKS = { underWayMax: 1, waitingMax: 4, waitMsMax: 10_000 } as const;
const WORK_MS = 3_000;
/** How long a check waits for a thread to become free, or to start on a busy machine. */
const WAIT_MS = 5_000;

interface CheckParts {
  readonly postgres: Postgres;
  readonly secrets: InstallationSecrets;
  readonly workers: Pick<WorkerPool, 'run'>;
}

export function createCatalogCheck(parts: CheckParts): CatalogCheck {
  const checks = new FairQueue(CHECKS);
  return (check) => checks.run(() => checkFile(parts, check), { kind: 'store_busy' } as const);
}

async function checkFile(
  parts: CheckParts,
  { text, variables: given, prune }: Parameters<CatalogCheck>[0],
): ReturnType<CatalogCheck> {
  const variables = [...new Set(namesIn(text))].filter((name) => !Object.hasOwn(given, name));
  const begun = begunFlag();
  const stored = await readStoredNames(parts.postgres);
  const input: CheckFileInput = { text, variables: given, stored, begun };
  const read = await parts.workers.run<WithoutEnvironment>('check-file', input, {
    bytes: Buffer.byteLength(text),
    deadlineMs: WAIT_MS + WORK_MS,
    work: { begun, deadlineMs: WORK_MS },
  });
  if (!read.ok) return { kind: 'store_busy' };
  const { mistakes, configuration } = read.value;
  const nothing = { differences: [], warnings: [], variables };
  if (configuration !== null) return { ...nothing, ...(await compare(parts, configuration, prune)) };
  const unread = `it can be compared once its variables are given: ${variables.join(', ')}`;
  return { ...nothing, mistakes: mistakes.length === 0 ? [unread] : mistakes };
}

type Compared = Pick<CheckedCatalog, 'mistakes'> & Partial<CheckedCatalog>;

async function compare(
  { postgres, secrets }: CheckParts,
  configuration: Configuration,
  prune: boolean,
): Promise<Compared> {
  const sections = configuration.sections.filter((name) => name !== 'organizations' && name !== 'guardrails');
  const catalog = { ...configuration, sections, organizations: [], guardrails: [] };
  try {
    const { differences, warnings } = await applyConfiguration(postgres, catalog, secrets, { dryRun: true, prune });
    return { mistakes: [], warnings, differences: differences.map(withoutKeys).filter(isDifferent).map(show) };
  } catch (fault) {
    if (fault instanceof ConfigurationConflict) return { mistakes: fault.message.split('\n') };
    throw fault;
  }
}

/** Leaves keys out: a difference has hashes of sealed keys, which differ even where the key is the same. */
function withoutKeys(found: Difference): Difference {
  const { before, after } = found;
  if (before?.['api_key'] === undefined || after?.['api_key'] === undefined) return found;
  return { ...found, after: { ...after, api_key: before['api_key'] } };
}

function isDifferent(found: Difference): boolean {
  return found.before === null || found.after === null || describeDifference(found).length > 1;
}

function show(found: Difference): CheckedCatalog['differences'][number] {
  const { kind, id, before, after } = found;
  const [, ...lines] = describeDifference(found);
  const change = before === null ? 'added' : after === null ? 'removed' : 'changed';
  return { kind, id, change, lines: lines.map((line) => line.trim()) };
}
