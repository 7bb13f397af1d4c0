// Inference keys: creating, rotating and revoking them. A secret is shown once.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, curlCommand } from '../api.ts';
import { quoted, relativeTime } from '../logic/format.ts';
import { lastDaysOf } from '../logic/last-days.ts';
import { DialogForm, SecretOnce } from '../parts/dialog-form.tsx';
import { Badge, LoadingFigure } from '../parts/figures.tsx';
import { SelectField, TextField } from '../parts/form.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { OVERLAP_DEFAULT, OverlapField } from '../parts/overlap-field.tsx';
import { ActionButton, Page } from '../parts/page.tsx';
import { type Column, momentColumn, NamedCell } from '../parts/table.tsx';
import { now } from '../state/clock.ts';
import { useRead } from '../state/load.ts';
import { useAll, usePages } from '../state/pages.ts';
import { may, tollgateCommands } from '../state/session.ts';
import { zone } from '../state/view.ts';

type Team = AnswerOf<'/v1/admin/active-org/teams'>['data'][number];
type Key = AnswerOf<'/v1/admin/active-org/keys'>['data'][number];

/** The last day on which each key was used, by the key's id. */
type LastDays = ReadonlyMap<string, string> | 'coming' | 'not known';

const columnsWith = (lastDays: LastDays): readonly Column<Key>[] => [
  { name: 'Name', raw: ({ name }) => name, show: ({ name }) => <NamedCell>{name}</NamedCell> },
  { name: 'Prefix', raw: ({ prefix }) => prefix, show: ({ prefix }) => <code>{prefix}…</code>, isExtra: true },
  { name: 'State', raw: ({ revoked_at: at }) => at, show: (key) => <KeyState of={key} /> },
  {
    name: 'Last use',
    raw: ({ id }) => (typeof lastDays === 'string' ? null : (lastDays.get(id) ?? null)),
    show: ({ id }) =>
      lastDays === 'coming' ? (
        <LoadingFigure />
      ) : lastDays === 'not known' ? (
        'not known now'
      ) : (
        (lastDays.get(id) ?? 'not in 30 days')
      ),
  },
  { name: 'Payer', raw: ({ payer }) => payer, isExtra: true },
  {
    name: 'Models',
    raw: ({ allowed_models: models }) => models?.join(' ') ?? 'all',
    show: ({ allowed_models: models }) => models?.join(', ') ?? 'all',
    isExtra: true,
  },
  momentColumn('Created', ({ created_at: at }) => at),
];

function KeyState({ of: key }: { readonly of: Key }) {
  if (key.revoked_at !== null) return <Badge>revoked</Badge>;
  if (key.expires_at !== null && new Date(key.expires_at) < now.value) return <Badge tone="warn">expired</Badge>;
  if (key.previous_secret_until !== null && new Date(key.previous_secret_until) > now.value)
    return <Badge tone="warn">old secret ends {relativeTime(key.previous_secret_until, now.value.getTime())}</Badge>;
  return <Badge tone="good">active</Badge>;
}

/** Administrators see all keys of the organization, other members their own. */
export function Keys() {
  const all = may('org.admin');
  const [path, one] = all
    ? (['/v1/admin/active-org/keys', '/v1/admin/active-org/keys/{keyId}'] as const)
    : (['/v1/me/keys', '/v1/me/keys/{keyId}'] as const);
  const load = usePages<Key>(path, { limit: 100 });
  const lastDays = useLastDays(all);
  const [dialog, setDialog] = useState<'new' | Key | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const shown = (made: { readonly data: { readonly secret: string } }) => {
    setDialog(null);
    setSecret(made.data.secret);
    load.reload();
  };
  return (
    <Page
      title="Keys"
      lead="Clients send requests with an inference key. A key can read its own usage only, and cannot change anything."
      tools={<ActionButton isMain name="New key" onClick={() => setDialog('new')} />}
      commands={[
        curlCommand(path),
        curlCommand(path, { body: { name: 'my-client' } }, 'post'),
        ...tollgateCommands('key list'),
      ]}
    >
      <ManagedList
        title={all ? 'Keys of the organization' : 'Your keys'}
        load={load}
        rowsOf={({ data }) => data}
        columns={columnsWith(lastDays)}
        permission={all ? 'org.admin' : 'inference'}
        empty={<p>No key yet. A client needs one to send requests.</p>}
        actions={(key) =>
          key.revoked_at === null && (
            <button type="button" class="small" onClick={() => setDialog(key)}>
              Rotate
            </button>
          )
        }
        removal={{
          verb: 'Revoke',
          ask: ({ name }) => `${quoted(name)} stops working everywhere within a second, and cannot be restored.`,
          send: ({ id }) => call('delete', one, { pathParameters: { keyId: id } }),
          isFor: ({ revoked_at: at }) => at === null,
        }}
      />
      {dialog === 'new' && <NewKey path={path} onDone={shown} onClose={() => setDialog(null)} />}
      {dialog !== null && dialog !== 'new' && (
        <RotateKey path={one} of={dialog} onDone={shown} onClose={() => setDialog(null)} />
      )}
      {secret !== null && <SecretOnce title="The key" secret={secret} onClose={() => setSecret(null)} />}
    </Page>
  );
}

/** From the report by day, which without dates covers the last 30 days. */
function useLastDays(isForAll: boolean): LastDays {
  const path = isForAll ? '/v1/admin/active-org/usage/daily' : '/v1/usage/me/daily';
  const { data, refusal } = useRead(path, { query: { group_by: 'api_key', time_zone: zone.value } });
  if (data === null) return refusal === null ? 'coming' : 'not known';
  return lastDaysOf(data.data);
}

interface KeyDialogProps {
  readonly onDone: (made: { readonly data: { readonly secret: string } }) => void;
  readonly onClose: () => void;
}

type KeysPath = '/v1/admin/active-org/keys' | '/v1/me/keys';

function NewKey({ path, onDone, onClose }: KeyDialogProps & { readonly path: KeysPath }) {
  const [name, setName] = useState('');
  const [team, setTeam] = useState('');
  const [models, setModels] = useState('');
  const isForAll = path === '/v1/admin/active-org/keys';
  const teams = useAll<Team>(isForAll ? '/v1/admin/active-org/teams' : null).latest?.data ?? [];
  const allowed = models.split(/[\s,]+/).filter((model) => model !== '');
  const body = {
    name: name.trim(),
    ...(team === '' ? {} : { team_id: team }),
    ...(allowed.length === 0 ? {} : { allowed_models: allowed }),
  };
  return (
    <DialogForm
      title="New key"
      verb="Create"
      send={() => call('post', path, { body })}
      onDone={onDone}
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        onValue={setName}
        isRequired
        hint="What uses the key, such as the name of a service."
      />
      {teams.length > 0 && (
        <SelectField
          label="Team"
          value={team}
          onValue={setTeam}
          options={[{ id: '', name: 'None' }, ...teams.map(({ id, display_name: shown }) => ({ id, name: shown }))]}
        />
      )}
      <TextField
        label="Models"
        value={models}
        onValue={setModels}
        hint="Only these, separated by commas. Empty: all."
      />
    </DialogForm>
  );
}

interface RotateProps extends KeyDialogProps {
  readonly path: '/v1/admin/active-org/keys/{keyId}' | '/v1/me/keys/{keyId}';
  readonly of: Key;
}

function RotateKey({ path, of: key, onDone, onClose }: RotateProps) {
  const [overlap, setOverlap] = useState(OVERLAP_DEFAULT);
  const send = () =>
    call('post', `${path}/rotate` as '/v1/me/keys/{keyId}/rotate', {
      pathParameters: { keyId: key.id },
      body: { overlap_seconds: Number(overlap) },
    });
  return (
    <DialogForm title={`Rotate ${quoted(key.name)}`} verb="Rotate" send={send} onDone={onDone} onClose={onClose}>
      <OverlapField label="The old secret works for" value={overlap} onValue={setOverlap} />
    </DialogForm>
  );
}
