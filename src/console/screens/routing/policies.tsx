// The list of routing policies with their tiers, and the editor of the one that is open.

import { type AnswerOf, call, curlCommand } from '../../api.ts';
import { moment, orNone, whole } from '../../logic/format.ts';
import { Badge } from '../../parts/figures.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import { ActionButton, Page } from '../../parts/page.tsx';
import { type Column, NamedCell, numberColumn } from '../../parts/table.tsx';
import { EditButton } from '../../parts/versions.tsx';
import { useRead } from '../../state/load.ts';
import { NEW_POLICY, openedPolicy, openPolicy } from '../../state/policies.ts';
import { autoModel } from '../../state/session.ts';
import { zone } from '../../state/view.ts';
import { RoutingPolicyEditor } from './policy-editor.tsx';

const PATH = '/v1/admin/routing/policies';
type Policy = AnswerOf<typeof PATH>['data'][number];

const COLUMNS: readonly Column<Policy>[] = [
  {
    name: 'Policy',
    raw: ({ name }) => name,
    show: ({ name, version, created_at: at }) => (
      <NamedCell note={`version ${version}, ${moment(at, zone.value, false)}`}>{name}</NamedCell>
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
  numberColumn('Confidence floor', ({ definition }) => definition.classifier.confidence_floor, orNone, {
    isExtra: true,
  }),
  numberColumn('Organizations', ({ organizations }) => organizations, whole),
];

export function Policies() {
  const policies = useRead(PATH);
  const opened = openedPolicy.value;
  return (
    <Page
      title="Routing policies"
      lead={`Which models serve ${autoModel()}. Every change is a new version, and each record names its version.`}
      tools={<ActionButton isMain name="New policy" onClick={() => openPolicy(NEW_POLICY)} />}
      commands={[curlCommand(PATH), 'tollgate routing replay --policy FILE --days 7', 'tollgate apply FILE']}
    >
      <ManagedList
        title="Policies"
        load={policies}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="platform.admin"
        empty={`No policy: ${autoModel()} is an unknown model.`}
        actions={({ name }) => <EditButton name={name} />}
        removal={{
          verb: 'Remove',
          ask: ({ name }) => `The policy “${name}” is removed; its versions stay for the records that name them.`,
          send: ({ name, version }) =>
            call('delete', `${PATH}/{policyName}`, { pathParameters: { policyName: name }, query: { version } }),
          isFor: ({ organizations }) => organizations === 0,
        }}
      />
      {opened !== undefined && policies.latest !== null && (
        <RoutingPolicyEditor
          key={opened}
          name={opened === NEW_POLICY ? null : opened}
          template={policies.latest.data[0]?.definition ?? null}
          onNewVersion={policies.reload}
          onClose={() => openPolicy(null)}
        />
      )}
    </Page>
  );
}
