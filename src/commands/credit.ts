// `tollgate credit`: posts a deposit into an organization's wallet, or into a member's own.

import { formatUsdString } from '../domain/money/format.ts';
import { parseUsd } from '../domain/money/parse-usd.ts';
import { findMemberByEmail } from '../storage/postgres/identity/members.ts';
import { postDeposit } from '../storage/postgres/ledger/credits.ts';
import {
  type Command,
  type CommandContext,
  expectAction,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization } from './command/identity.ts';

export const creditCommand: Command = {
  usage: ['tollgate credit add --organization SLUG [--user EMAIL] --amount USD --reference TEXT'],
  summary:
    "Posts a deposit, with --user into that member's own wallet. The reference makes it safe to repeat: a " +
    'deposit with the same reference is posted once.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  user: { type: 'string' },
  amount: { type: 'string' },
  reference: { type: 'string' },
} as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  expectAction(positionals, ['add']);
  const slug = requireOption(values.organization, 'organization');
  const reference = requireOption(values.reference, 'reference');
  const amountText = requireOption(values.amount, 'amount');
  const amount = parseUsd(amountText);
  if (amount === null || amount <= 0n)
    throw new UsageFault(`--amount: must be dollars as a decimal above 0, such as 25.00, got "${amountText}"`);
  const made = await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const userId = values.user === undefined ? null : await findPayingUser(postgres, organizationId, values.user);
    return expectDone(
      await postDeposit(postgres, commandActor(environment), { organizationId, userId, amount, reference }),
      `deposit for "${slug}"`,
    );
  });
  const whose = values.user === undefined ? `"${slug}"` : `"${values.user}" in "${slug}"`;
  const what = made.repeated ? 'posted before, nothing changed' : `${formatUsdString(amount)} USD posted`;
  print(`${what}; balance of ${whose}: ${formatUsdString(made.balance)} USD`);
  return 0;
}

async function findPayingUser(
  postgres: Parameters<typeof findMemberByEmail>[0],
  organizationId: string,
  email: string,
): Promise<string> {
  return expectDone(await findMemberByEmail(postgres, { organizationId, teamId: null }, email), `member "${email}"`)
    .userId;
}
