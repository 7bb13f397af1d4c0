// The page of guardrail policies, for an organization's own and for the platform's: what was found, the policies, the
// editor of one, and a try-out. The caller passes the list of policies, since the two differ in whom a policy screens.

import type { ComponentChildren } from 'preact';
import { call, curlCommand } from '../../api.ts';
import { spaced, whole } from '../../logic/format.ts';
import { Badge, Stat, Stats } from '../../parts/figures.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { ManagedList, type Removal } from '../../parts/managed-list.tsx';
import { ActionButton, Page } from '../../parts/page.tsx';
import { type Column, momentColumn, NamedCell, numberColumn } from '../../parts/table.tsx';
import { WindowTools } from '../../parts/window-tools.tsx';
import { type Load, useRead } from '../../state/load.ts';
import {
  type GuardrailOwner,
  type GuardrailPolicies,
  type GuardrailPolicy,
  type GuardrailReport,
  NEW_POLICY,
  openedPolicy,
  openPolicy,
} from '../../state/policies.ts';
import { windowQuery } from '../../state/view.ts';
import { GuardrailEditor } from './guardrail-editor.tsx';
import { TryOut } from './guardrail-try-out.tsx';

type Found = GuardrailReport['data']['rows'][number];

export const POLICY_COLUMNS: readonly Column<GuardrailPolicy>[] = [
  {
    name: 'Policy',
    raw: ({ name }) => name,
    show: ({ name, version, set_by: by }) => (
      <NamedCell note={`version ${version}, set by the ${by}`}>{name}</NamedCell>
    ),
  },
  {
    name: 'Rules',
    raw: ({ rules }) => rules.map(({ id }) => id).join(' '),
    show: ({ rules, rule_count: count }) => (
      <span class="badges">
        {rules.map(({ id, action, stage }) => (
          <Badge key={id} tone={action === 'block' ? 'bad' : 'plain'}>
            {id}: {action} {stage}
          </Badge>
        ))}
        {count > rules.length && <Badge>{whole(count - rules.length)} more</Badge>}
      </span>
    ),
  },
  { name: 'Mode', raw: ({ mode }) => mode, isExtra: true },
  momentColumn('Since', ({ created_at: at }) => at),
];

const FOUND_COLUMNS: readonly Column<Found>[] = [
  { name: 'Rule', raw: ({ policy, rule }) => `${policy} / ${rule}` },
  { name: 'Entity', raw: ({ entity }) => entity },
  { name: 'Action', raw: ({ action, stage }) => `${action} ${stage}` },
  { name: 'Model', raw: ({ model }) => model, isExtra: true },
  { name: 'Key', raw: ({ api_key: key, api_key_id: id }) => key ?? id, isExtra: true },
  numberColumn('Requests', ({ requests }) => requests, whole),
  numberColumn('Findings', ({ findings }) => findings, whole),
];

/** The removal of a policy. The gateway refuses it while the policy screens somebody. */
export function policyRemoval({ paths }: GuardrailOwner): Removal<GuardrailPolicy> {
  return {
    verb: 'Remove',
    ask: ({ name }) => `The policy “${name}” is removed. A policy that screens somebody cannot be removed.`,
    send: ({ name, version }) =>
      call('delete', paths.policy, { pathParameters: { policyName: name }, query: { version } }),
  };
}

interface GuardrailPageProps {
  readonly owner: GuardrailOwner;
  readonly title: string;
  readonly lead: string;
  /** `tollgate` commands that show the same. */
  readonly commands: readonly string[];
  /** Renders the policies with whom they screen. */
  readonly list: (policies: Load<GuardrailPolicies>) => ComponentChildren;
}

export function GuardrailPage({ owner, title, lead, commands, list }: GuardrailPageProps) {
  const { permission, paths } = owner;
  const policies = useRead(paths.policies);
  const report = useRead(paths.report, { query: windowQuery.value });
  const opened = openedPolicy.value;
  return (
    <Page
      title={title}
      lead={lead}
      tools={
        <>
          <ActionButton isMain name="New policy" onClick={() => openPolicy(NEW_POLICY)} />
          <WindowTools withScope={false} />
        </>
      }
      commands={[curlCommand(paths.policies), curlCommand(paths.report, { query: windowQuery.value }), ...commands]}
    >
      <Loaded load={report} permission={permission}>
        {({ data }) => (
          <Stats>
            <Stat name="Screened" value={whole(data.screened)} />
            <Stat name="Blocked" value={whole(data.blocked)} />
            {/* These are not added up, because one request may be counted under several reasons. */}
            {data.not_scanned.length === 0 && <Stat name="Not scanned" value={whole(0)} />}
            {data.not_scanned.map(({ reason, requests }) => (
              <Stat key={reason} name="Not scanned" value={whole(requests)} note={spaced(reason)} />
            ))}
          </Stats>
        )}
      </Loaded>
      {list(policies)}
      {opened === undefined ? (
        // Without a policy there is nothing to try out.
        (policies.latest?.data ?? []).length > 0 && (
          <TryOut title="Try it" owner={owner} policies={policies.latest?.data ?? []} />
        )
      ) : (
        <GuardrailEditor
          key={opened}
          owner={owner}
          name={opened === NEW_POLICY ? null : opened}
          onNewVersion={policies.reload}
          onClose={() => openPolicy(null)}
        />
      )}
      <ManagedList
        title="Found"
        load={report}
        rowsOf={({ data }) => data.rows}
        columns={FOUND_COLUMNS}
        permission={permission}
        empty="Nothing was found in this window."
      />
    </Page>
  );
}
