// Guardrails: policies, whom they screen and what they found, with a try-out and an editor.

import { type AnswerOf, call, commandOf } from '../api.ts';
import { moment, whole } from '../logic/format.ts';
import { Badge, Stat, Stats } from '../parts/figures.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, numberColumn } from '../parts/table.tsx';
import { WindowTools } from '../parts/window-tools.tsx';
import { params, setParams } from '../state/address.ts';
import { type Load, useRead } from '../state/load.ts';
import { windowQuery, zone } from '../state/view.ts';
import { GuardrailEditor } from './guardrail-editor.tsx';
import { TryOut } from './guardrail-try-out.tsx';
import { Adder } from './people.tsx';

const POLICIES = '/v1/admin/active-org/guardrails/policies';
const ASSIGNMENTS = '/v1/admin/active-org/guardrails/assignments';
/** Stands in the address where a policy's name does. No policy can be called so. */
const NEW = '+';
const REPORT = '/v1/admin/active-org/guardrails/report';
type Policy = AnswerOf<typeof POLICIES>['data'][number];
type Found = AnswerOf<typeof REPORT>['data']['rows'][number];

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
  const edited = params.value['policy'];
  return (
    <Page
      title="Guardrails"
      lead="What is blocked, masked, cloaked or flagged in requests and replies."
      tools={
        <>
          <Adder name="New policy" onClick={() => open(NEW)} />
          <WindowTools withAudience={false} />
        </>
      }
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
      <PolicyList policies={policies} edited={edited} />
      {edited === undefined ? (
        <TryOut title="Try it" policies={policies.data?.data ?? []} />
      ) : (
        <GuardrailEditor
          key={edited}
          name={edited === NEW ? null : edited}
          onPublished={(name) => {
            policies.again();
            open(name);
          }}
          onClose={() => open(null)}
        />
      )}
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

function open(name: string | null): void {
  setParams({ policy: name });
}

interface ListProps {
  readonly policies: Load<AnswerOf<typeof POLICIES>>;
  readonly edited: string | undefined;
}

/** Whom they screen: everybody of the organization is switched here. */
function PolicyList({ policies, edited }: ListProps) {
  const assigned = useRead(ASSIGNMENTS);
  const everybody = assigned.data?.data.organization.policies ?? [];
  const byPlatform = [...(assigned.data?.data.floor ?? []), ...(assigned.data?.data.platform.policies ?? [])];
  const toggle = (name: string) => {
    const names = everybody.includes(name) ? everybody.filter((one) => one !== name) : [...everybody, name];
    void call('put', ASSIGNMENTS, { body: { policies: names } }).then(assigned.again);
  };
  return (
    <ManagedList
      title="Policies"
      load={policies}
      rowsOf={({ data }) => data}
      columns={[...COLUMNS, whomColumn(everybody, byPlatform)]}
      permission="org.admin"
      empty="No policy yet. A new one screens nobody before it is switched on."
      actions={({ name, set_by: by }) => (
        <>
          {assigned.data !== null && !byPlatform.includes(name) && (
            <button type="button" class="small" onClick={() => toggle(name)}>
              {everybody.includes(name) ? 'Switch off' : 'Switch on'}
            </button>
          )}{' '}
          {by === 'organization' && (
            <button type="button" class="small" aria-pressed={name === edited} onClick={() => open(name)}>
              Edit
            </button>
          )}
        </>
      )}
      removal={{
        verb: 'Remove',
        ask: ({ name }) => `The policy “${name}” is removed. One that screens somebody is not.`,
        send: ({ name, version }) =>
          call('delete', `${POLICIES}/{policyName}`, { at: { policyName: name }, query: { version } }),
        isFor: ({ name, set_by: by }) => by === 'organization' && !everybody.includes(name),
      }}
    />
  );
}

/** Teams and keys have more of their own, which the command and the API set. */
function whomColumn(everybody: readonly string[], byPlatform: readonly string[]): Column<Policy> {
  return {
    name: 'Screens',
    raw: ({ name }) => (byPlatform.includes(name) || everybody.includes(name) ? 'everybody' : ''),
    show: ({ name }) =>
      byPlatform.includes(name) ? (
        <Badge>everybody, by the platform</Badge>
      ) : everybody.includes(name) ? (
        <Badge tone="good">everybody</Badge>
      ) : (
        '–'
      ),
  };
}
