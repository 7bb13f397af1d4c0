// `tollgate token`: creates, revokes and lists people's access tokens.

import { createToken, findUserByEmail, listTokens, revokeToken } from '../storage/postgres/identity/tokens.ts';
import {
  type Command,
  type CommandContext,
  expectAction,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, listAll } from './command/identity.ts';

export const tokenCommand: Command = {
  usage: [
    'tollgate token create --user EMAIL --name NAME [--organization SLUG] [--days 30]',
    'tollgate token revoke --id ID',
    'tollgate token list --user EMAIL',
  ],
  summary:
    'Makes an access token and prints its id and, once, the token; revokes one, everywhere within a ' +
    'second; or lists the tokens of a person.',
  run,
};

const OPTIONS = {
  user: { type: 'string' },
  name: { type: 'string' },
  organization: { type: 'string' },
  days: { type: 'string' },
  id: { type: 'string' },
} as const;
const SECONDS_PER_DAY = 86_400;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const action = expectAction(positionals, ['create', 'revoke', 'list']);
  const actor = commandActor(environment);
  if (action === 'revoke') {
    const tokenId = requireOption(values.id, 'id');
    await withDatabase(environment, async (postgres) =>
      expectDone(await revokeToken(postgres, actor, { tokenId, userId: null }), `token "${tokenId}"`),
    );
    print(`token ${tokenId} is revoked`);
    return 0;
  }
  const email = requireOption(values.user, 'user');
  if (action === 'list') return list(email, { environment, print });
  const name = requireOption(values.name, 'name');
  const days = values.days ?? '30';
  if (!/^\d{1,3}$/.test(days) || Number(days) < 1 || Number(days) > 365)
    throw new UsageFault(`--days: must be from 1 to 365, got "${days}"`);
  const made = await withDatabase(environment, async (postgres, _, secrets) => {
    const { userId } = expectDone(await findUserByEmail(postgres, email), `user "${email}"`);
    const organizationId =
      values.organization === undefined ? null : (await findOrganization(postgres, values.organization)).id;
    const params = { userId, name, lifetimeSeconds: Number(days) * SECONDS_PER_DAY, organizationId };
    return expectDone(
      await createToken(postgres, await secrets(), actor, params),
      `organization "${values.organization}" for "${email}"`,
    );
  });
  print(`${made.id}\t${made.secret}`);
  return 0;
}

async function list(email: string, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const { userId } = expectDone(await findUserByEmail(postgres, email), `user "${email}"`);
    for await (const { id, name, prefix, expiresAtMs, revokedAtMs } of listAll(
      (params) => listTokens(postgres, { ...params, userId }),
      'tokens',
    )) {
      print(
        [id, name, prefix, revokedAtMs === null ? `expires ${new Date(expiresAtMs).toISOString()}` : 'revoked'].join(
          '\t',
        ),
      );
    }
  });
  return 0;
}
