// `tollgate administrator`: adds, removes and lists the people who administer the whole installation, besides the
// holder of ADMIN_TOKEN.

import {
  addPlatformAdministrator,
  listPlatformAdministrators,
  removePlatformAdministrator,
} from '../storage/postgres/identity/platform-administrators.ts';
import { findUserByEmail } from '../storage/postgres/identity/tokens.ts';
import { type Command, type CommandContext, expectAction, parseArguments, requireOption } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, listAll } from './command/identity.ts';

export const administratorCommand: Command = {
  usage: ['tollgate administrator add|remove --user EMAIL', 'tollgate administrator list'],
  summary: 'Makes a person an administrator of the whole installation, ends that, or lists the administrators.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { user: { type: 'string' } });
  const action = expectAction(positionals, ['add', 'remove', 'list']);
  const email = action === 'list' ? '' : requireOption(values.user, 'user');
  const what = `platform administrator "${email}"`;
  const actor = commandActor(environment);
  await withDatabase(environment, async (postgres) => {
    if (action === 'list') {
      for await (const administrator of listAll((params) => listPlatformAdministrators(postgres, params), what))
        print(administrator.email);
    } else if (action === 'add') {
      expectDone(await addPlatformAdministrator(postgres, actor, email), what);
    } else {
      const { userId } = expectDone(await findUserByEmail(postgres, email), what);
      expectDone(await removePlatformAdministrator(postgres, actor, userId), what);
    }
  });
  if (action !== 'list') print(`${email} is ${action === 'add' ? 'now' : 'no longer'} a platform administrator`);
  return 0;
}
