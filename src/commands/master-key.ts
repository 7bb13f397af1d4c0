// `tollgate master-key`: shows under which master keys the stored secrets are, so that an unused key can be removed.

import { masterKeysOf } from '../storage/postgres/installation-secrets.ts';
import { countSealedSecrets } from '../storage/postgres/sealed-secrets.ts';
import { createSecretBox } from '../storage/postgres/secret-box.ts';
import { type Command, type CommandContext, expectAction, parseArguments } from './command/command.ts';
import { withDatabase } from './command/database.ts';

export const masterKeyCommand: Command = {
  usage: ['tollgate master-key status'],
  summary:
    'Counts the stored secrets by the master key that encrypts them: the present key, one of ' +
    'MASTER_KEY_PREVIOUS, or a key that is not given. Exit code 0 if all are under the present key.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { positionals } = parseArguments(args, {});
  expectAction(positionals, ['status']);
  return withDatabase(environment, async (postgres, config) => {
    const keys = masterKeysOf(config);
    const idOf = (current: Buffer): string => createSecretBox({ current, previous: [] }).keyId;
    const names = new Map([
      ...keys.previous.map((key) => [idOf(key), 'previous'] as const),
      [idOf(keys.current), 'present'] as const,
    ]);
    const counts = await countSealedSecrets(postgres);
    for (const { words, keyId, count } of counts)
      print([keyId, names.get(keyId) ?? 'not given', String(count), words].join('\t'));
    const others = counts.filter(({ keyId }) => names.get(keyId) !== 'present');
    print(
      others.length === 0
        ? 'every secret is under the present master key: MASTER_KEY_PREVIOUS is not needed'
        : 'not all are under the present master key: jobs moves them every five minutes ("tollgate reconcile ' +
            'rewrap-secrets" does it now)',
    );
    return others.length === 0 ? 0 : 1;
  });
}
