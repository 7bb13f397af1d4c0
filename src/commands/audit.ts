// `tollgate audit`: prints the audit log, newest first, one JSON object a line.

import { listAudit } from '../storage/postgres/identity/audit.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { findOrganization, listAll } from './command/identity.ts';

export const auditCommand: Command = {
  usage: ['tollgate audit [--organization SLUG] [--limit 100]'],
  summary: 'Prints who changed what, newest first, as JSON lines: of one organization, or of the whole installation.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { organization: { type: 'string' }, limit: { type: 'string' } });
  expectPositionals(positionals, []);
  const limit = values.limit ?? '100';
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new UsageFault(`--limit: must be a whole number above 0, got "${limit}"`);
  await withDatabase(environment, async (postgres) => {
    const organizationId =
      values.organization === undefined ? null : (await findOrganization(postgres, values.organization)).id;
    let left = Number(limit);
    for await (const { atMs, ...entry } of listAll(
      (params) => listAudit(postgres, { ...params, organizationId }),
      'audit log',
    )) {
      print(JSON.stringify({ at: new Date(atMs).toISOString(), ...entry }));
      left -= 1;
      if (left === 0) return;
    }
  });
  return 0;
}
