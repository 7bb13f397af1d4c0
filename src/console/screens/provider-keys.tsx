// The organization's own provider keys: their state, order and use; adding, verifying, rotating and removing them.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, curlCommand } from '../api.ts';
import { dollars, quoted, spaced, whole } from '../logic/format.ts';
import { DialogForm, type DialogHandlers } from '../parts/dialog-form.tsx';
import { Badge, type Tone } from '../parts/figures.tsx';
import { FormRefusal, SelectField, TextField, useSubmit } from '../parts/form.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { OVERLAP_DEFAULT, OverlapField } from '../parts/overlap-field.tsx';
import { ActionButton, Page } from '../parts/page.tsx';
import { agoColumn, type Column, NamedCell, numberColumn } from '../parts/table.tsx';
import { WindowTools } from '../parts/window-tools.tsx';
import { useRead } from '../state/load.ts';
import { useAll } from '../state/pages.ts';
import { tollgateCommands } from '../state/session.ts';
import { period, windowQuery, zone } from '../state/view.ts';

const PATH = '/v1/admin/active-org/provider-credentials';
type Credential = AnswerOf<typeof PATH>['data'][number];
const USAGE = '/v1/admin/active-org/byok/usage';
type Use = AnswerOf<typeof USAGE>['data'][number];

const TONES: Readonly<Record<Credential['state'], Tone>> = {
  active: 'good',
  unverified: 'warn',
  cooling_down: 'warn',
  invalid: 'bad',
  secret_needed: 'bad',
  disabled: 'plain',
};

const COLUMNS: readonly Column<Credential>[] = [
  {
    name: 'Key',
    raw: ({ name }) => name,
    show: ({ name, kind, fingerprint }) => <NamedCell note={`${kind} · ${fingerprint}`}>{name}</NamedCell>,
  },
  {
    name: 'State',
    raw: ({ state }) => state,
    show: ({ state, state_reason: reason }) => (
      <>
        <Badge tone={TONES[state]}>{spaced(state)}</Badge>
        {reason !== null && <span class="note">{reason}</span>}
      </>
    ),
  },
  { name: 'Tried', raw: ({ place }) => place, show: ({ place }) => `${place} the service’s keys` },
  { name: 'Fallback', raw: ({ fallback }) => fallback, isExtra: true },
  agoColumn('Last use', ({ last_used_at: at }) => at),
];

/** Sorts keys in the order in which they are tried. The API lists them by creation, so that its pages are stable. */
function asTried(one: Credential, other: Credential): number {
  if (one.place !== other.place) return one.place === 'before' ? -1 : 1;
  return one.position - other.position || (one.id < other.id ? -1 : 1);
}

const USE_COLUMNS: readonly Column<Use>[] = [
  { name: 'Key', raw: ({ credential_name: name }) => name },
  numberColumn('Requests', ({ requests }) => requests, whole),
  numberColumn('Rated cost', ({ rated_cost: cost }) => cost, dollars),
  numberColumn('Fee', ({ fee }) => fee, dollars),
];

export function ProviderKeys() {
  const keys = useAll<Credential>(PATH);
  const [dialog, setDialog] = useState<'new' | Credential | null>(null);
  const verification = useSubmit<unknown>(() => keys.reload());
  const close = () => setDialog(null);
  const done = () => {
    close();
    keys.reload();
  };
  return (
    <Page
      title="Own provider keys"
      lead="Requests with these keys run under your own contracts with providers. Secrets are never shown again."
      tools={
        <>
          <ActionButton isMain name="Add a key" onClick={() => setDialog('new')} />
          <WindowTools withScope={false} />
        </>
      }
      commands={[
        curlCommand(PATH),
        curlCommand(USAGE, { query: windowQuery.value }),
        curlCommand('/v1/admin/active-org/byok/settings'),
        ...tollgateCommands('own-key list', 'byok show'),
      ]}
    >
      <FormRefusal refusal={verification.refusal} />
      <ManagedList
        title="Keys, in the order in which they are tried"
        load={keys}
        rowsOf={({ data }) => data.toSorted(asTried)}
        columns={COLUMNS}
        permission="org.admin"
        empty={<p>No own key. Every request uses the service’s keys.</p>}
        actions={(key) => (
          <>
            <button
              type="button"
              class="small"
              disabled={verification.isBusy}
              onClick={() =>
                void verification.run(() =>
                  call('post', `${PATH}/{credentialId}/verify`, { pathParameters: { credentialId: key.id } }),
                )
              }
            >
              Verify
            </button>
            <button type="button" class="small" onClick={() => setDialog(key)}>
              Rotate
            </button>
          </>
        )}
        removal={{
          verb: 'Remove',
          ask: ({ name }) => `${quoted(name)} serves no more requests, and its secret is deleted.`,
          send: ({ id }) => call('delete', `${PATH}/{credentialId}`, { pathParameters: { credentialId: id } }),
        }}
      />
      <KeyUse />
      {dialog === 'new' && <NewCredential onDone={done} onClose={close} />}
      {dialog !== null && dialog !== 'new' && <RotateCredential of={dialog} onDone={done} onClose={close} />}
    </Page>
  );
}

function KeyUse() {
  const use = useRead(USAGE, { query: windowQuery.value });
  const { start, end } = period.value;
  return (
    <ManagedList
      title="Use"
      note={`From ${start} to ${end}, ${zone.value}.`}
      load={use}
      rowsOf={({ data }) => data}
      columns={USE_COLUMNS}
      permission="org.admin"
      empty="No own key has served a request in this window."
    />
  );
}

function NewCredential({ onDone, onClose }: DialogHandlers) {
  const templates = useRead('/v1/admin/active-org/byok-templates').latest?.data ?? [];
  const [kind, setKind] = useState('');
  const [name, setName] = useState('');
  const [secret, setSecret] = useState('');
  const [baseUrl, setBaseUrl] = useState('');
  const [settings, setSettings] = useState<Readonly<Record<string, string>>>({});
  const template = templates.find((one) => one.kind === kind) ?? templates[0];
  const body = {
    kind: template?.kind ?? '',
    name: name.trim(),
    secret,
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(baseUrl.trim() === '' ? {} : { base_url: baseUrl.trim() }),
  };
  return (
    <DialogForm
      title="Add a provider key"
      verb="Verify and add"
      send={() => call('post', PATH, { body })}
      onDone={onDone}
      onClose={onClose}
    >
      <SelectField
        label="Provider"
        value={template?.kind ?? ''}
        onValue={setKind}
        options={templates.map((one) => one.kind)}
      />
      <TextField label="Name" value={name} onValue={setName} isRequired />
      <TextField label="Secret" type="password" value={secret} onValue={setSecret} isRequired />
      {template?.needs_base_url && (
        <TextField label="Address" type="url" value={baseUrl} onValue={setBaseUrl} isRequired />
      )}
      {template?.settings.map((setting) => (
        <TextField
          key={setting.name}
          label={spaced(setting.name)}
          value={settings[setting.name] ?? ''}
          onValue={(value) => setSettings({ ...settings, [setting.name]: value })}
          isRequired={setting.required}
        />
      ))}
    </DialogForm>
  );
}

/** The gateway verifies the new secret with the provider first. If the provider refuses it, nothing changes. */
function RotateCredential({ of: key, onDone, onClose }: DialogHandlers & { readonly of: Credential }) {
  const [secret, setSecret] = useState('');
  const [overlap, setOverlap] = useState(OVERLAP_DEFAULT);
  const send = () =>
    call('post', `${PATH}/{credentialId}/rotate`, {
      pathParameters: { credentialId: key.id },
      body: { secret, verify: true, overlap_seconds: Number(overlap) },
    });
  return (
    <DialogForm
      title={`Rotate ${quoted(key.name)}`}
      verb="Verify and rotate"
      send={send}
      onDone={onDone}
      onClose={onClose}
    >
      <TextField label="New secret" type="password" value={secret} onValue={setSecret} isRequired />
      <OverlapField label="Keep the old secret as a fallback for" value={overlap} onValue={setOverlap} />
    </DialogForm>
  );
}
