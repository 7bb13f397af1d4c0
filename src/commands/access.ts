// `tollgate access`: sets and shows which models the platform lets an organization, a team or a key use. All three
// lists must allow a request, and the organization's own lists as well.

import type { AllowedModels, ModelAccess } from '../domain/identity/model-access.ts';
import { getModelAccess, setModelAccess } from '../storage/postgres/identity/model-access.ts';
import {
  type Command,
  type CommandContext,
  expectAction,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone } from './command/identity.ts';
import { findScope, SCOPE_OPTIONS } from './command/scope.ts';

export const accessCommand: Command = {
  usage: [
    'tollgate access set --organization SLUG [--team SLUG | --key NAME|ID] --models ID,ID',
    'tollgate access clear --organization SLUG [--team SLUG | --key NAME|ID]',
    'tollgate access show --organization SLUG [--team SLUG | --key NAME|ID]',
  ],
  summary:
    'Restricts an organization, team or key to the models that the platform names; removes that restriction; or ' +
    "shows it, with the organization's own.",
  run,
};

const OPTIONS = { ...SCOPE_OPTIONS, models: { type: 'string' } } as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const action = expectAction(positionals, ['set', 'clear', 'show']);
  requireOption(values.organization, 'organization');
  if (action !== 'set' && values.models !== undefined)
    throw new UsageFault(`--models: goes with set, not with ${action}`);
  const models = action === 'set' ? parseModels(requireOption(values.models, 'models')) : null;
  const access = await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScope(postgres, values);
    const result =
      action === 'show'
        ? await getModelAccess(postgres, scope)
        : await setModelAccess(postgres, commandActor(environment), scope, { setBy: 'platform', models });
    return expectDone(result, words);
  });
  printAccess(access, print);
  return 0;
}

/** Also parses the models of `tollgate key`. */
export function parseModels(text: string): readonly string[] {
  const models = text.split(',').map((id) => id.trim());
  if (models.includes(''))
    throw new UsageFault(`--models: must be ids of models with commas between them, got "${text}"`);
  return models;
}

function printAccess(
  { allowedModels, allowedModelsSetBy: { platform, organization } }: ModelAccess,
  print: CommandContext['print'],
): void {
  print(`allowed\t${renderModels(allowedModels)}`);
  print(`set by platform\t${renderModels(platform)}`);
  print(`set by organization\t${renderModels(organization)}`);
}

function renderModels(models: AllowedModels): string {
  if (models === null) return 'every model';
  return models.length === 0 ? 'no model' : models.join(',');
}
