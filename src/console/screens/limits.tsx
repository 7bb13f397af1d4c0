// The limits and budgets of the organization, a team, a member or a key: what is used, lent and left, and setting them.

import { useState } from 'preact/hooks';
import { type AnswerOf, addressOf, type BodyOf, call, curlCommand } from '../api.ts';
import { DialogForm } from '../parts/dialog-form.tsx';
import { SelectField, TextField } from '../parts/form.tsx';
import {
  amountColumn,
  kindColumn,
  kindInWords,
  type Limit,
  MAXIMUM,
  RESETS,
  USED,
  USED_SHARE,
} from '../parts/limit-columns.tsx';
import { Loading } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { ActionButton, Page } from '../parts/page.tsx';
import type { Column } from '../parts/table.tsx';
import { params, setParams } from '../state/address.ts';
import { useRead } from '../state/load.ts';
import { useAll } from '../state/pages.ts';
import { tollgateCommands } from '../state/session.ts';

const PATH = '/v1/admin/active-org/limits';

/** The organization, team, member or key that has the limits. */
interface LimitTarget {
  /** The value in the address, such as `team:ID`; empty for the organization. */
  readonly id: string;
  readonly name: string;
  readonly path: string;
}

const ORGANIZATION: LimitTarget = { id: '', name: 'The organization', path: PATH };

type OwnLimit = BodyOf<typeof PATH, 'put'>['limits'][number];

const COLUMNS: readonly Column<Limit>[] = [
  kindColumn(({ model }) => model),
  { name: 'Set by', raw: ({ set_by: by }) => by, isExtra: true },
  USED,
  USED_SHARE,
  amountColumn('Lent', ({ lent }) => lent, { isExtra: true }),
  amountColumn('Left', ({ remaining }) => remaining),
  MAXIMUM,
  RESETS,
];

export function Limits() {
  const { targets, isLoading } = useTargets();
  const asked = params.value['of'];
  const found = asked === undefined ? ORGANIZATION : (targets.find(({ id }) => id === asked) ?? targetIn(asked));
  if (isLoading) return <Loading />;
  const target = found ?? ORGANIZATION;
  // With the key each target gets a component of its own, so that the limits of one are never sent to another.
  return <LimitsOf key={target.id} target={target} targets={targets} />;
}

function LimitsOf({ target, targets }: { readonly target: LimitTarget; readonly targets: readonly LimitTarget[] }) {
  const path = target.path as typeof PATH;
  const current = useRead(`${path}/current` as const);
  const set = useRead(path);
  const [isOpen, setOpen] = useState(false);
  const own = (set.data?.data.limits ?? []).filter((limit) => limit.set_by === 'organization').map(bodyOf);
  const replace = (limits: readonly OwnLimit[]) => call('put', path, { body: { limits: [...limits] } });
  const reload = () => {
    current.reload();
    set.reload();
  };
  return (
    <Page
      title="Limits and budgets"
      lead="Limits apply to all gateways together. Lent amounts are with a gateway, for current and coming requests."
      tools={set.data !== null && <ActionButton isMain name="New limit" onClick={() => setOpen(true)} />}
      commands={[curlCommand(`${path}/current`), curlCommand(path), ...tollgateCommands('limit current')]}
    >
      {targets.length > 1 && (
        <div class="filters">
          <SelectField
            label="Limits of"
            value={target.id}
            onValue={(id) => setParams({ of: id })}
            options={targets.some(({ id }) => id === target.id) ? targets : [...targets, target]}
          />
        </div>
      )}
      <ManagedList
        title={target.name}
        load={{ ...current, reload }}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="org.admin"
        empty={<p>There is no limit. A budget prevents surprises: start with one per month.</p>}
        removal={{
          verb: 'Remove',
          ask: (limit) => `The limit “${kindInWords(limit)}” is removed on every gateway at once.`,
          send: (limit) => replace(own.filter((one) => !isSame(one, limit))),
          isFor: ({ set_by: by }) => set.data !== null && by === 'organization',
        }}
      />
      {isOpen && (
        <NewLimit
          of={target.name}
          send={(limit) => replace([...own.filter((one) => !isSame(one, limit)), limit])}
          onDone={() => {
            setOpen(false);
            reload();
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </Page>
  );
}

/** The organization, its teams and members, and its keys that are not revoked. */
function useTargets(): { readonly targets: readonly LimitTarget[]; readonly isLoading: boolean } {
  const teams = useAll<AnswerOf<'/v1/admin/active-org/teams'>['data'][number]>('/v1/admin/active-org/teams');
  const members = useAll<AnswerOf<'/v1/admin/active-org/members'>['data'][number]>('/v1/admin/active-org/members');
  const keys = useAll<AnswerOf<'/v1/admin/active-org/keys'>['data'][number]>('/v1/admin/active-org/keys');
  const targets = [
    ORGANIZATION,
    ...(teams.data?.data ?? []).map(({ id, display_name: name }) => below('team', id, name)),
    ...(members.data?.data ?? []).map(({ user_id: id, email }) => below('member', id, email)),
    ...(keys.data?.data ?? []).flatMap(({ id, name, revoked_at: at }) => (at === null ? [below('key', id, name)] : [])),
  ];
  // Once each listing is there or refused, the page, and what is typed on it, stays while they are loaded again.
  return { targets, isLoading: [teams, members, keys].some(({ data, refusal }) => data === null && refusal === null) };
}

const KIND_NAMES = { team: 'Team', member: 'Member', key: 'Key' } as const;

function below(kind: keyof typeof KIND_NAMES, id: string, name: string): LimitTarget {
  return {
    id: `${kind}:${id}`,
    name: `${KIND_NAMES[kind]} ${name}`,
    path: addressOf(`/v1/admin/active-org/${kind}s/{id}/limits`, { pathParameters: { id } }),
  };
}

/** The team, member or key that a link names, where the choice does not offer it. */
function targetIn(asked: string): LimitTarget | undefined {
  const [, kind, id] = /^(team|member|key):([\w-]+)$/.exec(asked) ?? [];
  return kind === undefined || id === undefined ? undefined : below(kind as keyof typeof KIND_NAMES, id, id);
}

/** A limit without `set_by`, which the gateway sets itself. */
function bodyOf(limit: OwnLimit & { readonly set_by: unknown }): OwnLimit {
  const { set_by: setBy, ...sent } = limit;
  return setBy === undefined ? limit : (sent as OwnLimit);
}

interface Identity {
  readonly kind: string;
  readonly window?: string | null;
  readonly model?: string | null;
}

function isSame(one: Identity, other: Identity): boolean {
  const [window, model] = [one.window ?? null, one.model ?? null];
  return one.kind === other.kind && window === (other.window ?? null) && model === (other.model ?? null);
}

const KINDS = [
  'budget per month',
  'budget per week',
  'budget per day',
  'budget per hour',
  'requests per minute',
  'tokens per minute',
  'concurrent requests',
];

interface NewLimitProps {
  readonly of: string;
  readonly send: (limit: OwnLimit) => ReturnType<typeof call<typeof PATH, 'put'>>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function NewLimit({ of: target, send, onDone, onClose }: NewLimitProps) {
  const [kind, setKind] = useState(KINDS[0] ?? '');
  const [amount, setAmount] = useState('');
  const [model, setModel] = useState('');
  const isBudget = kind.startsWith('budget');
  const limit = {
    ...(isBudget
      ? { kind: 'budget', window: kind.split(' ').at(-1), limit: amount.trim() }
      : { kind: kind.replaceAll(' ', '_'), limit: Number(amount) }),
    ...(model.trim() === '' ? {} : { model: model.trim() }),
  } as OwnLimit;
  return (
    <DialogForm title={`New limit: ${target}`} verb="Save" send={() => send(limit)} onDone={onDone} onClose={onClose}>
      <SelectField label="Kind" value={kind} onValue={setKind} options={KINDS} />
      <TextField
        label={isBudget ? 'Dollars' : 'How many'}
        value={amount}
        onValue={setAmount}
        isRequired
        hint={isBudget ? 'Such as 250.00. Requests that would exceed it are refused.' : undefined}
      />
      <TextField label="Only for the model" value={model} onValue={setModel} hint="Empty: all models together." />
    </DialogForm>
  );
}
