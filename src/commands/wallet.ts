// `tollgate wallet`: shows the wallets of an organization, and freezes or unfreezes one.

import { formatUsdString } from '../domain/money/format.ts';
import type { PayerWallet } from '../domain/money/payer-wallet.ts';
import { StartFault } from '../installation/start-fault.ts';
import { listMembers } from '../storage/postgres/identity/members.ts';
import { freezeWallet, listWallets } from '../storage/postgres/ledger/payer-wallets.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { type Command, type CommandContext, expectAction, parseArguments, requireOption } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, listAll } from './command/identity.ts';

export const walletCommand: Command = {
  usage: [
    'tollgate wallet list --organization SLUG',
    'tollgate wallet freeze|unfreeze --organization SLUG [--user EMAIL]',
  ],
  summary:
    "Shows an organization's wallets; stops one from paying for requests, on every gateway within a second, or " +
    'ends that.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { organization: { type: 'string' }, user: { type: 'string' } });
  const action = expectAction(positionals, ['list', 'freeze', 'unfreeze']);
  const slug = requireOption(values.organization, 'organization');
  await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const emails = await readEmails(postgres, organizationId);
    const ownerOf = ({ userId }: PayerWallet): string => (userId === null ? slug : (emails.get(userId) ?? userId));
    const wallets: PayerWallet[] = [];
    for await (const wallet of listAll((params) => listWallets(postgres, { ...params, organizationId }), slug))
      wallets.push(wallet);
    if (action === 'list') {
      for (const wallet of wallets) print(`${ownerOf(wallet)}: ${describe(wallet)}`);
      return;
    }
    const email = values.user?.toLowerCase();
    const wallet = wallets.find(({ userId }) =>
      email === undefined ? userId === null : emails.get(userId ?? '')?.toLowerCase() === email,
    );
    if (wallet === undefined) throw new StartFault(`"${values.user}" has no wallet in "${slug}"`);
    const params = { organizationId, walletId: wallet.id, frozen: action === 'freeze' };
    const changed = expectDone(await freezeWallet(postgres, commandActor(environment), params), 'wallet');
    print(`${ownerOf(wallet)}: ${describe(changed)}`);
  });
  return 0;
}

async function readEmails(postgres: Postgres, organizationId: string): Promise<ReadonlyMap<string, string>> {
  const emails = new Map<string, string>();
  const members = listAll((params) => listMembers(postgres, { ...params, organizationId, teamId: null }), 'members');
  for await (const { userId, email } of members) emails.set(userId, email);
  return emails;
}

function describe({ balance, held, lent, frozen }: PayerWallet): string {
  const parts = `${formatUsdString(held)} held by open requests, ${formatUsdString(lent)} lent to gateways`;
  const money = `balance ${formatUsdString(balance)} USD, of it ${parts}`;
  return frozen ? `frozen; ${money}` : money;
}
