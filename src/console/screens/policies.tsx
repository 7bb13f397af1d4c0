// Routing policies: their tiers and versions, and a preview of what a request would be routed to.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, commandOf } from '../api.ts';
import { moment, whole } from '../logic/format.ts';
import { Badge } from '../parts/figures.tsx';
import { Said, SelectField, useSubmit } from '../parts/form.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';
import { useRead } from '../state/load.ts';
import { me } from '../state/session.ts';
import { zone } from '../state/view.ts';

const PATH = '/v1/admin/routing/policies';
type Policy = AnswerOf<typeof PATH>['data'][number];
type Preview = AnswerOf<'/v1/admin/routing/preview', 'post'>;

const COLUMNS: readonly Column<Policy>[] = [
  {
    name: 'Policy',
    raw: ({ name }) => name,
    show: ({ name, version, created_at: at }) => (
      <>
        <span class="cell-main">{name}</span>
        <span class="note">
          version {version}, {moment(at, zone.value, false)}
        </span>
      </>
    ),
  },
  {
    name: 'Tiers, the cheapest first',
    raw: ({ definition }) => definition.tiers.map(({ name }) => name).join(' '),
    show: ({ definition }) => (
      <ol>
        {definition.tiers.map(({ name, models }) => (
          <li key={name}>
            <Badge>{name}</Badge> {models.map(({ id }) => id).join(', ')}
          </li>
        ))}
      </ol>
    ),
  },
  { name: 'Classifier', raw: ({ definition }) => definition.classifier.model, isExtra: true },
  {
    name: 'Floor',
    raw: ({ definition }) => definition.classifier.confidence_floor ?? null,
    show: ({ definition }) => definition.classifier.confidence_floor ?? '–',
    isNumber: true,
    isExtra: true,
  },
  numberColumn('Organizations', ({ organizations }) => organizations, whole),
];

export function Policies() {
  const policies = useRead(PATH);
  return (
    <Page
      title="Routing policies"
      lead="Which models serve service/auto. Every change makes a version, which each record names."
      commands={[commandOf(PATH), 'tollgate routing --help']}
    >
      <TryPolicy policies={policies.data?.data ?? []} />
      <ManagedList
        title="Policies"
        load={policies}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="platform.admin"
        empty="No policy: service/auto is an unknown model."
      />
    </Page>
  );
}

function TryPolicy({ policies }: { readonly policies: readonly Policy[] }) {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [seen, setSeen] = useState<Preview['data'] | null>(null);
  const { isBusy, refusal, run } = useSubmit<Preview>(({ data }) => setSeen(data));
  const policy = name || policies[0]?.name || '';
  const organizationId = me()?.organization_id ?? '';
  const body = {
    organization_id: organizationId,
    api: 'chat_completions' as const,
    body: JSON.stringify({ model: 'service/auto', messages: [{ role: 'user', content: text }] }),
    policy,
  };
  return (
    <Card
      title="Preview"
      note="The classifier is asked and paid by the service; no model serves, and nobody is charged."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => call('post', '/v1/admin/routing/preview', { body }));
        }}
      >
        <label>
          <span class="unseen">A message</span>
          <textarea
            rows={3}
            value={text}
            placeholder="A message, as somebody would write it"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="filters try">
          <SelectField label="Policy" value={policy} onValue={setName} options={policies.map((one) => one.name)} />
          <button type="submit" disabled={isBusy || text.trim() === '' || organizationId === ''}>
            Preview
          </button>
        </div>
      </form>
      <Said refusal={refusal} />
      {seen !== null && <Seen preview={seen} />}
    </Card>
  );
}

function Seen({ preview }: { readonly preview: Preview['data'] }) {
  const columns: Column<Preview['data']['candidates'][number]>[] = [
    { name: 'Tier', raw: ({ tier }) => tier },
    { name: 'Model', raw: ({ model }) => model },
    {
      name: 'Could serve',
      raw: ({ rejection }) => rejection,
      show: ({ rejection }) => (rejection === null ? 'yes' : rejection.replaceAll('_', ' ')),
    },
  ];
  return (
    <div aria-live="polite">
      <p>
        {preview.outcome === 'routed' ? 'It would be served by ' : `It would be ${preview.outcome}.`}
        {preview.model !== null && <strong>{preview.model}</strong>}
      </p>
      <Table caption="Candidates" columns={columns} rows={preview.candidates} />
    </div>
  );
}
