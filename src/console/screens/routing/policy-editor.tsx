// The editor of a routing policy: its definition, a replay and a preview of the draft, publishing, and its versions.

import { useState } from 'preact/hooks';
import { type BodyOf, call } from '../../api.ts';
import { whole } from '../../logic/format.ts';
import { type Draft, PolicyEditor } from '../../parts/policy-editor.tsx';
import type { Column } from '../../parts/table.tsx';
import { Versions } from '../../parts/versions.tsx';
import { useRead } from '../../state/load.ts';
import {
  type RoutingDefinition as Definition,
  type RoutingHistory as History,
  ROUTING_POLICY,
} from '../../state/policies.ts';
import { PolicyPreview } from './policy-preview.tsx';
import { PolicyReplay } from './policy-replay.tsx';

const PATH = ROUTING_POLICY;
type Version = History['versions'][number];

const COLUMNS: readonly Column<Version>[] = [
  { name: 'Tiers', raw: ({ definition }) => definition.tiers.map(({ name }) => name).join(', ') },
  { name: 'Classifier', raw: ({ definition }) => definition.classifier.model, isExtra: true },
];

const VERSIONS_NOTE = 'Each record names the version that routed it. Publish an earlier version again to return to it.';

/** The first draft where no policy exists yet. */
const SKELETON: Definition = {
  classifier: { model: '' },
  tiers: [
    { name: 'light', description: 'Simple questions, short texts.', models: [{ id: '' }] },
    { name: 'strong', description: 'Hard problems, long work.', models: [{ id: '' }] },
  ],
};

interface EditorProps {
  /** null for a new policy. */
  readonly name: string | null;
  /** The first draft of a new policy; null if no other policy exists. */
  readonly template: Definition | null;
  readonly onNewVersion: () => void;
  readonly onClose: () => void;
}

export function RoutingPolicyEditor({ name, template, onNewVersion, onClose }: EditorProps) {
  const load = useRead(name === null ? null : PATH, { pathParameters: { policyName: name ?? '' } });
  /** The text of the draft that was replayed last. */
  const [replayed, setReplayed] = useState<string | null>(null);
  return (
    <PolicyEditor<Definition, History>
      load={load}
      isNew={name === null}
      permission="platform.admin"
      skeleton={template ?? SKELETON}
      note="The fields are those of the configuration file, in JSON. A draft has no effect until it is published."
      hintOf={({ text }) => (replayed === text ? 'Replayed as it stands.' : 'Replay it before you publish it.')}
      effectOf={(draft) => effectOf(draft, replayed === draft.text)}
      publish={(policyName, definition, base) =>
        call('put', PATH, {
          pathParameters: { policyName },
          body: { ...definition, ...base } as BodyOf<typeof PATH, 'put'>,
        })
      }
      onNewVersion={onNewVersion}
      onClose={onClose}
    >
      {({ policy, text, definition, setDefinition }) => (
        <>
          <PolicyReplay definition={definition} onReplayed={() => setReplayed(text)} />
          <PolicyPreview definition={definition} />
          {policy !== null && (
            <Versions
              history={policy}
              columns={COLUMNS}
              note={VERSIONS_NOTE}
              onTake={(version) => setDefinition(version.definition)}
            />
          )}
        </>
      )}
    </PolicyEditor>
  );
}

function effectOf({ policy }: Draft<Definition, History>, isReplayed: boolean): string {
  const effect =
    policy === null
      ? 'It is the first version. It takes effect once an organization uses the policy.'
      : `Version ${policy.version + 1} takes effect for ${organizations(policy.organizations)} within a second.`;
  return isReplayed ? effect : `${effect} It was not replayed as it stands.`;
}

function organizations(count: number): string {
  return count === 1 ? '1 organization' : `${whole(count)} organizations`;
}
