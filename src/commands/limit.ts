// `tollgate limit`: sets, removes and lists the limits that the platform sets on an organization, or on a team, member
// or key in it.

import type { UsageLimit } from '../domain/configuration/configuration.ts';
import type { CurrentLimit } from '../domain/identity/current-limit.ts';
import type { SetLimit } from '../domain/identity/limits.ts';
import { formatUsdString } from '../domain/money/format.ts';
import { parseUsd } from '../domain/money/parse-usd.ts';
import {
  BUDGET_WINDOWS,
  type BudgetWindow,
  COUNTED_KINDS,
  type CountedKind,
  LIMIT_KINDS,
} from '../domain/quotas/limit-kinds.ts';
import { NOT_FOUND } from '../storage/postgres/identity/change.ts';
import { changeLimits, listLimits, listLimitsBelow, listLimitsOfScope } from '../storage/postgres/identity/limits.ts';
import { readCurrentLimits } from '../storage/postgres/limits/current-limits.ts';
import {
  type Command,
  type CommandContext,
  chooseAction,
  type OptionValues,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone } from './command/identity.ts';
import { findScopeOrMember, SCOPE_OPTIONS } from './command/scope.ts';

export const limitCommand: Command = {
  usage: [
    'tollgate limit set --organization SLUG [--team SLUG | --user EMAIL | --key NAME|ID] --kind KIND ' +
      '[--model ID] --limit NUMBER',
    'tollgate limit set --organization SLUG [--team SLUG | --user EMAIL | --key NAME|ID] --kind budget ' +
      '--window hour|day|week|month [--model ID] --limit USD',
    'tollgate limit remove --organization SLUG [--team SLUG | --user EMAIL | --key NAME|ID] --kind KIND ' +
      '[--window WINDOW] [--model ID]',
    'tollgate limit list|current --organization SLUG [--team SLUG | --user EMAIL | --key NAME|ID]',
  ],
  summary:
    "Sets or removes the platform's limits on use, or lists them with the organization's own; for an " +
    'organization also those on its teams, members and keys. current: what is used, lent and left of each. ' +
    `KIND: ${LIMIT_KINDS.join(', ')}.`,
  run,
};

const OPTIONS = {
  ...SCOPE_OPTIONS,
  user: { type: 'string' },
  kind: { type: 'string' },
  window: { type: 'string' },
  model: { type: 'string' },
  limit: { type: 'string' },
} as const;

type Values = OptionValues<typeof OPTIONS>;

/** Identifies a limit: a scope has at most one of each. */
type Name = ({ readonly kind: CountedKind } | { readonly kind: 'budget'; readonly window: BudgetWindow }) & {
  readonly model?: string;
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const perform = chooseAction(positionals, { set, remove, list, current });
  requireOption(values.organization, 'organization');
  return perform(values, context);
}

async function set(values: Values, { environment, print }: CommandContext): Promise<number> {
  const limit = readLimit(values);
  await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScopeOrMember(postgres, values);
    const next = (before: readonly UsageLimit[]) => [...before.filter((one) => render(one) !== render(limit)), limit];
    printAll(
      expectDone(await changeLimits(postgres, commandActor(environment), scope, { setBy: 'platform', next }), words)
        .items,
      print,
    );
  });
  return 0;
}

async function remove(values: Values, { environment, print }: CommandContext): Promise<number> {
  const name = render(readName(values));
  await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScopeOrMember(postgres, values);
    const next = (before: readonly UsageLimit[]) =>
      before.some((one) => render(one) === name) ? before.filter((one) => render(one) !== name) : NOT_FOUND;
    printAll(
      expectDone(
        await changeLimits(postgres, commandActor(environment), scope, { setBy: 'platform', next }),
        `limit "${name}" on ${words}`,
      ).items,
      print,
    );
  });
  return 0;
}

async function list(values: Values, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScopeOrMember(postgres, values);
    const own = expectDone(await listLimits(postgres, scope), words).items;
    const below = scope.kind === 'organization' ? await listLimitsBelow(postgres, scope.organizationId) : [];
    if (own.length > 0 || below.length === 0) printAll(own, print);
    for (const { limit, setBy, scope: whose } of below) print(`${describe({ ...limit, setBy })}\t${whose}`);
  });
  return 0;
}

async function current(values: Values, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScopeOrMember(postgres, values);
    const limits = expectDone(await listLimitsOfScope(postgres, scope), words);
    for (const limit of await readCurrentLimits(postgres, { limits })) print(describeStanding(limit));
    if (limits.length === 0) print('no limits');
  });
  return 0;
}

function readName({ kind: given, window, model }: Values): Name {
  const ofModel = model === undefined ? {} : { model };
  const kind = requireOption(given, 'kind');
  if (kind === 'budget') {
    const got = window === undefined ? '' : `, got "${window}"`;
    const found = BUDGET_WINDOWS.find((one) => one === window);
    if (found === undefined) throw new UsageFault(`--window: a budget needs one of ${BUDGET_WINDOWS.join(', ')}${got}`);
    return { kind, window: found, ...ofModel };
  }
  const counted = COUNTED_KINDS.find((one) => one === kind);
  if (counted === undefined) throw new UsageFault(`--kind: must be one of ${LIMIT_KINDS.join(', ')}, got "${kind}"`);
  if (window !== undefined) throw new UsageFault('--window: only a budget has one');
  return { kind: counted, ...ofModel };
}

function readLimit(values: Values): UsageLimit {
  const name = readName(values);
  const text = requireOption(values.limit, 'limit');
  if (name.kind === 'budget') {
    const limit = parseUsd(text);
    if (limit === null) throw new UsageFault(`--limit: must be dollars as a decimal, such as 25.00, got "${text}"`);
    return { ...name, limit };
  }
  if (!/^\d{1,15}$/.test(text)) throw new UsageFault(`--limit: must be a whole number, got "${text}"`);
  return { ...name, limit: BigInt(text) };
}

function render(name: Name): string {
  const ofAll = name.kind === 'budget' ? `${name.kind} ${name.window}` : name.kind;
  return name.model === undefined ? ofAll : `${ofAll} ${name.model}`;
}

function printAll(limits: readonly SetLimit[], print: CommandContext['print']): void {
  for (const limit of limits) print(describe(limit));
  if (limits.length === 0) print('no limits');
}

function describe(limit: SetLimit): string {
  const amount = limit.kind === 'budget' ? `${formatUsdString(limit.limit)} USD` : limit.limit;
  return `${render(limit)}\t${amount}\tset by ${limit.setBy}`;
}

function describeStanding({ kind, window, model, setBy, amount, used, lent, remaining }: CurrentLimit): string {
  const name = [kind, window, model].filter((part) => part !== null).join(' ');
  const written = (quantity: bigint) => (kind === 'budget' ? formatUsdString(quantity) : `${quantity}`);
  const unit = kind === 'budget' ? ' USD' : '';
  const atGateways = lent === 0n ? '' : `, ${written(lent)} lent`;
  const standing = `used ${written(used)} of ${written(amount)}${unit}${atGateways}, ${written(remaining)} left`;
  return `${name}\t${standing}\tset by ${setBy}`;
}
