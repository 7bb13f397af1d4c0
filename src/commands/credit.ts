// `tollgate credit`: puts credit into an organization's wallet.

import { formatUsdString } from '../domain/money/format.ts';
import { parseUsd } from '../domain/money/parse-usd.ts';
import { deposit, findOrganizationWallet } from '../storage/postgres/credits.ts';
import { StartFault } from '../supervisor/start-fault.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, requireOption, UsageFault } from './command.ts';
import { withDatabase } from './database.ts';

export const creditCommand: Command = {
  usage: ['tollgate credit add --organization SLUG --amount USD --reference TEXT'],
  summary: 'Posts a deposit. The reference makes it safe to repeat: the same one is posted once.',
  run,
};

const OPTIONS = { organization: { type: 'string' }, amount: { type: 'string' }, reference: { type: 'string' } } as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action] = expectPositionals(positionals, ['add']);
  if (action !== 'add') throw new UsageFault(`unknown action "${action}"`);
  const organization = requireOption(values.organization, 'organization');
  const reference = requireOption(values.reference, 'reference');
  const amountText = requireOption(values.amount, 'amount');
  const amount = parseUsd(amountText);
  if (amount === null || amount <= 0n) throw new UsageFault(`--amount: must be dollars as a decimal above 0, such as 25.00, got "${amountText}"`);
  const result = await withDatabase(environment, async (postgres) => {
    const walletId = await findOrganizationWallet(postgres, organization);
    if (walletId === null) throw new StartFault(`there is no organization "${organization}"`);
    return deposit(postgres, { walletId, amount, reference });
  });
  if (!result.ok) throw new StartFault(`the reference "${reference}" was used before for another amount; nothing was posted`);
  print(
    `${result.repeated ? 'posted before, nothing changed' : `${formatUsdString(amount)} USD posted`}; balance of "${organization}": ${formatUsdString(result.balance)} USD`,
  );
  return 0;
}
