// Guardrails: policies and what they found, with a try-out that changes and sends nothing.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, commandOf } from '../api.ts';
import { moment, whole } from '../logic/format.ts';
import { markedPieces } from '../logic/marked-pieces.ts';
import { Badge, Stat, Stats } from '../parts/figures.tsx';
import { Said, SelectField, useSubmit } from '../parts/form.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';
import { WindowTools } from '../parts/window-tools.tsx';
import { useRead } from '../state/load.ts';
import { windowQuery, zone } from '../state/view.ts';

const POLICIES = '/v1/admin/active-org/guardrails/policies';
const REPORT = '/v1/admin/active-org/guardrails/report';
type Policy = AnswerOf<typeof POLICIES>['data'][number];
type Found = AnswerOf<typeof REPORT>['data']['rows'][number];
type Tried = AnswerOf<'/v1/admin/active-org/guardrails/test', 'post'>;

const COLUMNS: readonly Column<Policy>[] = [
  {
    name: 'Policy',
    raw: ({ name }) => name,
    show: ({ name, version, set_by: by }) => (
      <>
        <span class="cell-main">{name}</span>
        <span class="note">
          version {version}, set by the {by}
        </span>
      </>
    ),
  },
  {
    name: 'Rules',
    raw: ({ definition }) => definition.rules.map(({ id }) => id).join(' '),
    show: ({ definition }) => (
      <span class="badges">
        {definition.rules.map(({ id, action, stage }) => (
          <Badge key={id} tone={action === 'block' ? 'bad' : 'plain'}>
            {id}: {action} {stage}
          </Badge>
        ))}
      </span>
    ),
  },
  { name: 'Mode', raw: ({ definition }) => definition.mode ?? 'enforce', isExtra: true },
  {
    name: 'Since',
    raw: ({ created_at: at }) => at,
    show: ({ created_at: at }) => moment(at, zone.value, false),
    isExtra: true,
  },
];

const FOUND_COLUMNS: readonly Column<Found>[] = [
  { name: 'Rule', raw: ({ policy, rule }) => `${policy} / ${rule}` },
  { name: 'Entity', raw: ({ entity }) => entity },
  { name: 'Done', raw: ({ action, stage }) => `${action} ${stage}` },
  { name: 'Model', raw: ({ model }) => model, isExtra: true },
  { name: 'Key', raw: ({ api_key: key, api_key_id: id }) => key ?? id, isExtra: true },
  numberColumn('Requests', ({ requests }) => requests, whole),
  numberColumn('Findings', ({ findings }) => findings, whole),
];

export function Guardrails() {
  const policies = useRead(POLICIES);
  const report = useRead(REPORT, { query: windowQuery.value });
  return (
    <Page
      title="Guardrails"
      lead="What is blocked, masked, cloaked or flagged in requests and replies."
      tools={<WindowTools withAudience={false} />}
      commands={[commandOf(POLICIES), commandOf(REPORT, { query: windowQuery.value })]}
    >
      <Loaded load={report} permission="org.admin">
        {({ data }) => (
          <Stats>
            <Stat name="Screened" value={whole(data.screened)} />
            <Stat name="Blocked" value={whole(data.blocked)} />
            <Stat name="Not scanned" value={whole(data.not_scanned.reduce((sum, { requests }) => sum + requests, 0))} />
          </Stats>
        )}
      </Loaded>
      <TryOut policies={policies.data?.data ?? []} />
      <ManagedList
        title="Policies"
        load={policies}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="org.admin"
        empty={
          <p>
            No policy. <code>tollgate guardrail</code> or a PUT to {POLICIES}/NAME makes one.
          </p>
        }
      />
      <ManagedList
        title="Found"
        load={report}
        rowsOf={({ data }) => data.rows}
        columns={FOUND_COLUMNS}
        permission="org.admin"
        empty="Nothing was found in this window."
      />
    </Page>
  );
}

function TryOut({ policies }: { readonly policies: readonly Policy[] }) {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [tried, setTried] = useState<{ readonly text: string; readonly answer: Tried } | null>(null);
  const { isBusy, refusal, run } = useSubmit<Tried>((answer) => setTried({ text, answer }));
  const policy = name || policies[0]?.name || '';
  return (
    <Card title="Try it" note="Nothing is kept, sent on or charged. Detectors that lie elsewhere are not asked.">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => call('post', '/v1/admin/active-org/guardrails/test', { body: { text, policy } }));
        }}
      >
        <label>
          <span class="unseen">Text to look at</span>
          <textarea
            rows={3}
            value={text}
            placeholder="Write to ada@example.com about card 4111 1111 1111 1111"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="filters try">
          <SelectField label="Policy" value={policy} onValue={setName} options={policies.map((one) => one.name)} />
          <button type="submit" disabled={isBusy || text === '' || policy === ''}>
            Look
          </button>
        </div>
      </form>
      <Said refusal={refusal} />
      {tried !== null && <Findings tried={tried} />}
    </Card>
  );
}

function Findings({ tried: { text, answer } }: { readonly tried: { readonly text: string; readonly answer: Tried } }) {
  const { findings } = answer.data;
  const columns: Column<(typeof findings)[number]>[] = [
    { name: 'Entity', raw: ({ entity }) => entity },
    { name: 'Rule', raw: ({ policy, rule }) => `${policy} / ${rule}` },
    {
      name: 'Action',
      raw: ({ action }) => action,
      show: ({ action }) => <Badge tone={action === 'block' ? 'bad' : 'warn'}>{action}</Badge>,
    },
  ];
  return (
    <div aria-live="polite">
      <p class="sample">
        {markedPieces(text, findings).map(({ piece, isFound }, index) =>
          isFound ? (
            <mark key={index} class="found">
              {piece}
            </mark>
          ) : (
            piece
          ),
        )}
      </p>
      {findings.length === 0 ? (
        <p class="note">Nothing was found.</p>
      ) : (
        <Table caption="Findings" columns={columns} rows={findings} />
      )}
    </div>
  );
}
