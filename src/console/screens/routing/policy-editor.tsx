// The editor of a routing policy: its definition, a replay and a preview of the draft, publishing, and its versions.

import { useState } from 'preact/hooks';
import { type BodyOf, call } from '../../api.ts';
import { readDefinition, writeDefinition } from '../../logic/definition-text.ts';
import { whole } from '../../logic/format.ts';
import { DefinitionField } from '../../parts/definition-field.tsx';
import { Confirm, TextField } from '../../parts/form.tsx';
import { Loading, RefusalNotice } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import type { Column } from '../../parts/table.tsx';
import { Changes, Versions } from '../../parts/versions.tsx';
import { useDraft } from '../../state/drafts.ts';
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

const VERSIONS_NOTE = 'Records name the version that routed them. An earlier one is published again as a new one.';

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
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

export function PolicyEditor({ name, template, onPublished, onClose }: EditorProps) {
  const load = useRead(name === null ? null : PATH, { pathParameters: { policyName: name ?? '' } });
  if (load.refusal !== null) return <RefusalNotice refusal={load.refusal} permission="platform.admin" />;
  if (name !== null && load.data === null) return <Loading />;
  const history = load.data?.data ?? null;
  // With the key the editor starts anew from each version that is published.
  return (
    <Editing
      key={history?.version ?? 0}
      history={history}
      begin={history?.definition ?? template ?? SKELETON}
      onPublished={(published) => {
        load.reload();
        onPublished(published);
      }}
      onClose={onClose}
    />
  );
}

interface EditingProps {
  readonly history: History | null;
  readonly begin: Definition;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

function Editing({ history, begin, onPublished, onClose }: EditingProps) {
  const [name, setName] = useState(history?.name ?? '');
  const [text, setText] = useState(writeDefinition(begin));
  const [isConfirming, setConfirming] = useState(false);
  const [replayed, setReplayed] = useState<string | null>(null);
  const read = readDefinition<Definition>(text);
  const isChanged = history === null || text !== writeDefinition(history.definition);
  useDraft(text !== writeDefinition(history?.definition ?? begin) || name !== (history?.name ?? ''));
  return (
    <>
      <Card
        title={history === null ? 'New policy' : `Policy ${history.name}`}
        note="As the configuration file has it, in JSON. Nothing holds before it is published."
        tools={
          <button type="button" class="quiet" onClick={onClose}>
            Close
          </button>
        }
      >
        {history === null && (
          <TextField label="Name" value={name} onValue={setName} isRequired hint="Small letters, digits and dashes." />
        )}
        <DefinitionField label="Definition" text={text} onText={setText} problem={read.ok ? null : read.problem} />
        <div class="tools">
          <button
            type="button"
            class="main"
            disabled={!read.ok || !isChanged || name.trim() === ''}
            onClick={() => setConfirming(true)}
          >
            Publish
          </button>
          {history !== null && isChanged && (
            <button type="button" onClick={() => setText(writeDefinition(history.definition))}>
              Undo the changes
            </button>
          )}
          <span class="note">{replayed === text ? 'Replayed as it stands.' : 'Replay it before you publish it.'}</span>
        </div>
      </Card>
      <PolicyReplay definition={read.ok ? read.definition : null} onReplayed={() => setReplayed(text)} />
      <PolicyPreview definition={read.ok ? read.definition : null} />
      {history !== null && (
        <Versions
          history={history}
          columns={COLUMNS}
          note={VERSIONS_NOTE}
          onTake={({ definition }) => setText(writeDefinition(definition))}
        />
      )}
      {isConfirming && read.ok && (
        <Confirm
          title="Publish?"
          verb="Publish"
          send={() => publish(name.trim(), read.definition, history?.version ?? null)}
          onDone={() => onPublished(name.trim())}
          onClose={() => setConfirming(false)}
        >
          {history === null
            ? 'It is the first version, and holds once an organization routes by it.'
            : `Version ${history.version + 1} holds for ${organizations(history.organizations)} within a second.`}
          {replayed === text ? '' : ' It was not replayed as it stands.'}
          {history !== null && <Changes before={history.definition} after={read.definition} />}
        </Confirm>
      )}
    </>
  );
}

function organizations(count: number): string {
  return count === 1 ? '1 organization' : `${whole(count)} organizations`;
}

/** `version` is the one that the draft was made from. If somebody has published a newer one, the gateway says 409. */
function publish(policyName: string, definition: Definition, version: number | null) {
  const body = { ...definition, ...(version === null ? {} : { version }) } as BodyOf<typeof PATH, 'put'>;
  return call('put', PATH, { pathParameters: { policyName }, body });
}
