// `tollgate epoch`: lists the processes that still hold money, and abandons one whose machine and spool are gone for
// ever.

import { join } from 'node:path';
import type { OpenEpoch } from '../domain/jobs/job-run.ts';
import { formatUsdString } from '../domain/money/format.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { abandonEpoch, listEveryOpenEpoch } from '../storage/postgres/ledger/lost-epochs.ts';
import { listEpochs } from '../storage/spool/spool-directory.ts';
import {
  type Command,
  type CommandContext,
  expectPositionals,
  parseArguments,
  requireOption,
  takeAction,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor } from './command/identity.ts';

export const epochCommand: Command = {
  usage: ['tollgate epoch list', 'tollgate epoch abandon EPOCH --machine NAME [--force]'],
  summary:
    'Lists the processes that hold money. abandon: gives up a process whose machine and spool are gone for ever. ' +
    'Its leases return, and its open requests are cancelled; charges that only its spool had are lost.',
  run,
};

/** An epoch that had a posting this recently is not gone. */
const SILENT_MS = 600_000;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    machine: { type: 'string' },
    force: { type: 'boolean', default: false },
  });
  const [action, others] = takeAction(positionals, ['list', 'abandon']);
  const [text = ''] = expectPositionals(others, action === 'list' ? [] : ['EPOCH']);
  await withDatabase(environment, async (postgres, { dataDirectory }) => {
    const epochs = await listEveryOpenEpoch(postgres);
    if (action === 'list') {
      for (const epoch of epochs) print(describe(epoch));
      return;
    }
    const found = epochs.find(({ epoch }) => String(epoch) === text);
    if (found === undefined) throw new StartFault(`there is no open epoch "${text}"`);
    const machine = requireOption(values.machine, 'machine');
    refuse(found, { machine, force: values.force, spoolDirectory: join(dataDirectory, 'spool') });
    const { returned, resolved } = await abandonEpoch(postgres, commandActor(environment), {
      epoch: found.epoch,
      machine,
      nowMs: systemClock.nowMs(),
    });
    print(
      `epoch ${found.epoch} of ${machine} is closed: ${formatUsdString(returned)} USD ` +
        `returned, ${resolved.length} open executions cancelled`,
    );
  });
  return 0;
}

function refuse(
  { epoch, machine, lastPostedAtMs }: OpenEpoch,
  given: { machine: string; force: boolean; spoolDirectory: string },
): void {
  if (given.machine !== machine)
    throw new StartFault(`epoch ${epoch} is one of "${machine}", not of "${given.machine}"`);
  if (listEpochs(given.spoolDirectory).includes(epoch)) {
    throw new StartFault(
      `epoch ${epoch} has its spool here (${given.spoolDirectory}): jobs ships it and closes the epoch by ` +
        `itself once its process has ended`,
    );
  }
  if (!given.force && lastPostedAtMs !== null && systemClock.nowMs() - lastPostedAtMs < SILENT_MS) {
    throw new StartFault(
      `epoch ${epoch} had a posting in the last ten minutes, so it does not look gone; use --force if it is`,
    );
  }
}

function describe({ epoch, machine, kind, pid, startedAtMs, lastPostedAtMs, leased, pending }: OpenEpoch): string {
  const posted = lastPostedAtMs === null ? 'nothing posted' : `last posted ${moment(lastPostedAtMs)}`;
  return (
    `${epoch}  ${machine}  ${kind} ${pid}  since ${moment(startedAtMs)}  ${posted}  ` +
    `holds ${formatUsdString(leased)} USD  ${pending} pending`
  );
}

function moment(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ');
}
