// `tollgate guardrail`: lists and removes the platform's guardrail policies, assigns them, and tries one on a text.

import { randomInt } from 'node:crypto';
import { findInText, TRIED_TEXT_BYTES_MAX } from '../domain/guardrails/find-in-text.ts';
import { guardrailPolicyOf } from '../domain/guardrails/policy-definition.ts';
import type { AssignedGuardrails, GuardrailAssignments } from '../domain/guardrails/stored-policy.ts';
import { StartFault } from '../installation/start-fault.ts';
import { getAssignments, setAssignments } from '../storage/postgres/guardrails/assignments.ts';
import { getPolicy, listPolicies, removePolicy } from '../storage/postgres/guardrails/policies.ts';
import {
  type Command,
  type CommandContext,
  type OptionValues,
  requireOption,
  runAction,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization } from './command/identity.ts';
import { findScope, SCOPE_OPTIONS } from './command/scope.ts';

export const guardrailCommand: Command = {
  usage: [
    'tollgate guardrail list [--organization SLUG]',
    'tollgate guardrail assign --organization SLUG [--team SLUG | --key NAME|ID] --policies NAME,NAME|none',
    'tollgate guardrail test --policy NAME --text TEXT [--organization SLUG]',
    'tollgate guardrail remove --policy NAME',
    'tollgate guardrail probe --model MODEL [--samples 20] [--url URL] [--key K]',
  ],
  summary:
    "Lists guardrail policies and their assignments, or sets the platform's assignments. test shows what a " +
    'policy would find in a text, and calls nobody. Policies are made by a configuration file or over HTTP. ' +
    'probe asks a model through the gateway at --url (http://127.0.0.1:8080), with the key (--key or ' +
    'TOLLGATE_KEY), and shows how often it copies a placeholder verbatim.',
  run: (args, context) => runAction(args, context, OPTIONS, { list, assign, test, remove, probe }),
};

const OPTIONS = {
  ...SCOPE_OPTIONS,
  policy: { type: 'string' },
  policies: { type: 'string' },
  text: { type: 'string' },
  model: { type: 'string' },
  samples: { type: 'string', default: '20' },
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
} as const;

/** Each sample is a paid request. */
const SAMPLES_MAX = 1_000;

type Values = OptionValues<typeof OPTIONS>;

async function list({ organization }: Values, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const id = organization === undefined ? null : (await findOrganization(postgres, organization)).id;
    for (const { name, version, setBy, mode, isFloor } of expectDone(await listPolicies(postgres, id), 'policies')) {
      const notes = [mode, ...(isFloor ? ['floor'] : [])];
      print([name, `version ${version}`, setBy, ...notes].join('\t'));
    }
    if (id === null) return;
    for (const line of describe(expectDone(await getAssignments(postgres, id), 'assignments'))) print(line);
  });
  return 0;
}

function describe({ onUnavailable, platform, organization }: GuardrailAssignments): string[] {
  const lines = (setBy: string, { policies, teams, keys }: AssignedGuardrails) => [
    ...policies.map((name) => [name, 'organization', setBy].join('\t')),
    ...Object.entries(teams).flatMap(([team, names]) => names.map((name) => [name, `team ${team}`, setBy].join('\t'))),
    ...Object.entries(keys).flatMap(([key, names]) => names.map((name) => [name, `key ${key}`, setBy].join('\t'))),
  ];
  return [`on_unavailable\t${onUnavailable}`, ...lines('platform', platform), ...lines('organization', organization)];
}

async function assign(values: Values, { environment, print }: CommandContext): Promise<number> {
  const named = requireOption(values.policies, 'policies');
  const policies = named === 'none' ? [] : named.split(',');
  await withDatabase(environment, async (postgres) => {
    const { scope, words } = await findScope(postgres, values);
    const of =
      scope.kind === 'organization'
        ? { policies }
        : scope.kind === 'team'
          ? { teams: { [values.team ?? '']: policies } }
          : { keys: { [scope.keyId]: policies } };
    const params = { setBy: 'platform' as const, ...of };
    const found = await setAssignments(postgres, commandActor(environment), scope.organizationId, params);
    for (const line of describe(expectDone(found, words))) print(line);
  });
  return 0;
}

async function test(values: Values, { environment, print }: CommandContext): Promise<number> {
  const name = requireOption(values.policy, 'policy');
  const text = requireOption(values.text, 'text');
  if (Buffer.byteLength(text) > TRIED_TEXT_BYTES_MAX)
    throw new UsageFault(`--text: must be at most ${TRIED_TEXT_BYTES_MAX} bytes`);
  await withDatabase(environment, async (postgres) => {
    const { organization } = values;
    const organizationId = organization === undefined ? null : (await findOrganization(postgres, organization)).id;
    const found = expectDone(
      await getPolicy(postgres, { organizationId, name, version: null }),
      `guardrail policy "${name}"`,
    );
    const named = { id: name, name, version: found.version, organizationId };
    const policy = guardrailPolicyOf(named, found.definition, new Map());
    const tried = findInText([policy], { text, stage: 'input', api: 'chat_completions' });
    for (const { rule, entity, action, start, end } of tried.findings)
      print([rule, entity, action, `${start}-${end}`].join('\t'));
    for (const detector of tried.notAsked) print(`not asked\t${detector}`);
  });
  return 0;
}

async function remove(values: Values, { environment, print }: CommandContext): Promise<number> {
  const name = requireOption(values.policy, 'policy');
  const what = `guardrail policy "${name}"`;
  await withDatabase(environment, async (postgres) =>
    expectDone(await removePolicy(postgres, commandActor(environment), { organizationId: null, name }), what),
  );
  print(`${what} is removed`);
  return 0;
}

async function probe(values: Values, { environment, print }: CommandContext): Promise<number> {
  const model = requireOption(values.model, 'model');
  const key = values.key ?? environment['TOLLGATE_KEY'] ?? '';
  if (key === '') throw new UsageFault('--key is missing, and TOLLGATE_KEY is not set');
  const samples = Number(values.samples);
  if (!Number.isInteger(samples) || samples < 1 || samples > SAMPLES_MAX)
    throw new UsageFault(`--samples: must be a whole number from 1 to ${SAMPLES_MAX}`);
  if (!['http:', 'https:'].includes(URL.parse(String(values.url))?.protocol ?? ''))
    throw new UsageFault(`--url "${values.url}" is not an http:// or https:// address`);
  const { probePlaceholders } = await import('../connect/probe-placeholders.ts');
  const digits = () => String(randomInt(10 ** 12)).padStart(12, '0');
  const probed = await probePlaceholders({ url: String(values.url).replace(/\/$/, ''), key, model, samples, digits });
  if (!probed.ok) throw new StartFault(probed.reason);
  for (const [what, count] of Object.entries(probed.value))
    print([what, `${count} of ${samples}`, `${Math.round((100 * count) / samples)} %`].join('\t'));
  return 0;
}
