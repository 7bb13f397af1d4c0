// `tollgate byok`: shows or sets what the platform allows an organization to do with its own provider keys.

import { feeSchema } from '../domain/configuration/schema/own-key-schema.ts';
import { formatUsdString } from '../domain/money/format.ts';
import type { ByokFee, ByokGrant, ByokSettings } from '../domain/own-keys/byok-settings.ts';
import { allKinds } from '../domain/own-keys/key-kinds.ts';
import { loadCatalog } from '../storage/postgres/catalog/catalog-store.ts';
import { getByokSettings, setByokGrant } from '../storage/postgres/own-keys/byok-settings.ts';
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

export const byokCommand: Command = {
  usage: [
    'tollgate byok set --organization SLUG [--enabled yes|no] [--kinds KIND,KIND|all] [--custom-base-url yes|no] ' +
      '[--fee-percent PERCENT|--fee-per-request USD|--no-fee] [--credentials-max COUNT]',
    'tollgate byok show --organization SLUG',
  ],
  summary:
    'Sets or shows what the platform allows an organization to do with its own provider keys. Settings that are ' +
    'not named stay.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  enabled: { type: 'string' },
  kinds: { type: 'string' },
  'custom-base-url': { type: 'string' },
  'fee-percent': { type: 'string' },
  'fee-per-request': { type: 'string' },
  'no-fee': { type: 'boolean', default: false },
  'credentials-max': { type: 'string' },
} as const;

type Values = ReturnType<typeof parseArguments<typeof OPTIONS>>['values'];

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const action = expectAction(positionals, ['set', 'show']);
  const slug = requireOption(values.organization, 'organization');
  const grant = action === 'set' ? grantOf(values) : null;
  const settings = await withDatabase(environment, async (postgres, _, openSecrets) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const what = `own keys of "${slug}"`;
    if (grant === null) return expectDone(await getByokSettings(postgres, organizationId), what);
    if (grant.kinds != null) refuseUnknownKind(grant.kinds, await loadCatalog(postgres, (await openSecrets()).box));
    return expectDone(await setByokGrant(postgres, commandActor(environment), { ...grant, organizationId }), what);
  });
  for (const line of linesOf(settings)) print(line);
  return 0;
}

function grantOf(values: Values): Partial<ByokGrant> {
  const { kinds, 'credentials-max': count } = values;
  if (count !== undefined && !/^(\d{1,3}|1000)$/.test(count))
    throw new UsageFault(`--credentials-max: must be a whole number of at most 1000, got "${count}"`);
  const fee = feeOf(values);
  const grant: Partial<ByokGrant> = {
    ...yesOrNo('enabled', values.enabled, (enabled) => ({ enabled })),
    ...yesOrNo('custom-base-url', values['custom-base-url'], (customBaseUrl) => ({ customBaseUrl })),
    ...(kinds === undefined ? {} : { kinds: kinds === 'all' ? null : kinds.split(',') }),
    ...(fee === undefined ? {} : { fee }),
    ...(count === undefined ? {} : { credentialsMax: Number(count) }),
  };
  if (Object.keys(grant).length === 0) throw new UsageFault('there is nothing to set');
  return grant;
}

function yesOrNo<T extends object>(name: string, text: string | undefined, make: (is: boolean) => T): T | undefined {
  if (text === undefined) return undefined;
  if (text !== 'yes' && text !== 'no') throw new UsageFault(`--${name}: must be yes or no, got "${text}"`);
  return make(text === 'yes');
}

/** undefined: the fee stays as it is. */
function feeOf(values: Values): ByokFee | null | undefined {
  const { 'fee-percent': percent, 'fee-per-request': amount, 'no-fee': isFree } = values;
  if ([percent !== undefined, amount !== undefined, isFree].filter(Boolean).length > 1)
    throw new UsageFault('--fee-percent, --fee-per-request and --no-fee exclude one another');
  if (isFree) return null;
  if (percent === undefined && amount === undefined) return undefined;
  const read = feeSchema.safeParse(percent === undefined ? { per_request: amount } : { percent });
  if (!read.success)
    throw new UsageFault(
      `--fee-${percent === undefined ? 'per-request' : 'percent'}: ${read.error.issues[0]?.message}`,
    );
  return read.data;
}

function refuseUnknownKind(kinds: readonly string[], catalog: Parameters<typeof allKinds>[0]): void {
  const known = new Set(allKinds(catalog).map(({ name }) => name));
  const unknown = kinds.find((kind) => !known.has(kind));
  if (unknown !== undefined)
    throw new UsageFault(`--kinds: there is no kind "${unknown}", only ${[...known].join(', ')}`);
}

function linesOf({ enabled, kinds, customBaseUrl, fee, credentialsMax }: ByokSettings): readonly string[] {
  return [
    `enabled\t${enabled ? 'yes' : 'no'}`,
    `kinds\t${kinds === null ? 'all' : kinds.join(',')}`,
    `custom base url\t${customBaseUrl ? 'yes' : 'no'}`,
    `fee\t${showFee(fee)}`,
    `credentials\tat most ${credentialsMax}`,
  ];
}

function showFee(fee: ByokFee | null): string {
  if (fee === null) return 'none';
  return fee.kind === 'percent'
    ? `${(fee.basisPoints / 100).toFixed(2)} %`
    : `${formatUsdString(fee.amount)} a request`;
}
