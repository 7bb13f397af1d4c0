// The editor of a policy, of routing or of guardrails: edits the draft of a new version as JSON, and publishes it after
// a question. The caller adds what can be tried with the draft, and the table of versions.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Answer } from '../api.ts';
import { readDefinition, writeDefinition } from '../logic/definition-text.ts';
import { setParams } from '../state/address.ts';
import { useDraft } from '../state/drafts.ts';
import type { Load } from '../state/load.ts';
import { DefinitionField } from './definition-field.tsx';
import { Confirm, NAME_HINT, TextField } from './form.tsx';
import { Loading, RefusalNotice } from './loaded.tsx';
import { Card } from './page.tsx';
import { Changes } from './versions.tsx';

/** A published policy: its current version. */
interface Published<Definition> {
  readonly name: string;
  readonly version: number;
  readonly definition: Definition;
}

export interface Draft<Definition, Policy> {
  /** null while the policy is new. */
  readonly policy: Policy | null;
  readonly text: string;
  /** null while the text cannot be read. */
  readonly definition: Definition | null;
  readonly setDefinition: (definition: Definition) => void;
}

/** The version that a draft was made from; 0 for a new policy, so that none of its name is overwritten. */
interface Base {
  readonly version: number;
}

interface EditorProps<Definition, Policy> {
  /** The definition with which a new policy begins. */
  readonly skeleton: Definition;
  readonly note: string;
  /** A line beside the button that publishes. */
  readonly hintOf: (draft: Draft<Definition, Policy>) => string;
  /** What publishing will do, for the question before it. */
  readonly effectOf: (draft: Draft<Definition, Policy>, definition: Definition) => string;
  /** Sends a definition. The gateway says 409 if another version than `base` is the present one. */
  readonly publish: (name: string, definition: Definition, base: Base) => Promise<Answer<unknown>>;
  readonly onClose: () => void;
  readonly children: (draft: Draft<Definition, Policy>) => ComponentChildren;
}

interface PolicyEditorProps<Definition, Policy> extends EditorProps<Definition, Policy> {
  /** The published policy; nothing is loaded for a new one. */
  readonly load: Load<{ readonly data: Policy }>;
  readonly isNew: boolean;
  /** A version was published: here, or by somebody else. */
  readonly onNewVersion: () => void;
  readonly permission: string;
}

export function PolicyEditor<Definition extends object, Policy extends Published<Definition>>({
  load,
  isNew,
  permission,
  publish,
  onNewVersion,
  ...props
}: PolicyEditorProps<Definition, Policy>) {
  const policy = load.latest?.data ?? null;
  const reload = () => {
    load.reload();
    onNewVersion();
  };
  const notice = load.refusal !== null && (
    <RefusalNotice refusal={load.refusal} permission={permission} reload={load.reload} />
  );
  if (!isNew && policy === null) return notice || <Loading />;
  return (
    <>
      {notice}
      <Editor
        policy={policy}
        publish={async (name, definition, base) => {
          const answer = await publish(name, definition, base);
          if (!answer.ok && answer.refusal.status === CONFLICT) reload();
          return answer;
        }}
        onPublished={(name) => {
          reload();
          setParams({ policy: name });
        }}
        {...props}
      />
    </>
  );
}

const CONFLICT = 409;

/** What was typed, and the published policy that it was typed over. */
interface Typed<Policy> {
  readonly text: string;
  readonly over: Policy | null;
  /** It was published as it stands, and is shown until the new version is loaded. */
  readonly isPublished?: boolean;
}

/** The text in the editor. It follows the published policy until somebody types; then it stays. */
function useTyped<Definition extends object, Policy extends Published<Definition>>(
  policy: Policy | null,
  skeleton: Definition,
) {
  const [kept, setKept] = useState<Typed<Policy> | null>(null);
  const isOutdated = kept !== null && kept.over?.version !== policy?.version;
  const typed = kept?.isPublished && isOutdated ? null : kept;
  const base = typed === null ? policy : typed.over;
  const begin = writeDefinition(base?.definition ?? skeleton);
  const text = typed?.text ?? begin;
  const read = readDefinition<Definition>(text);
  const setText = (to: string) => setKept(to === begin ? null : { text: to, over: base });
  const draft: Draft<Definition, Policy> = {
    policy,
    text,
    definition: read.ok ? read.definition : null,
    setDefinition: (definition) => setText(writeDefinition(definition)),
  };
  return {
    text,
    read,
    draft,
    setText,
    /** The version that the draft was made from; null for a new policy. */
    base,
    isChanged: typed !== null && !typed.isPublished,
    isOutdated: typed !== null && isOutdated,
    undo: () => setKept(null),
    keepOver: () => setKept({ text, over: policy }),
    notePublished: () => setKept({ text, over: base, isPublished: true }),
  };
}

interface OpenedProps<Definition, Policy> extends EditorProps<Definition, Policy> {
  readonly policy: Policy | null;
  readonly onPublished: (name: string) => void;
}

function Editor<Definition extends object, Policy extends Published<Definition>>(
  props: OpenedProps<Definition, Policy>,
) {
  const { policy, skeleton, note, hintOf, effectOf, publish, onPublished, onClose, children } = props;
  const [name, setName] = useState(policy?.name ?? '');
  const typed = useTyped<Definition, Policy>(policy, skeleton);
  const { text, read, draft, base, isChanged } = typed;
  const [isConfirming, setConfirming] = useState(false);
  useDraft(isChanged || name !== (policy?.name ?? ''));
  return (
    <>
      <Card
        title={policy === null ? 'New policy' : `Policy ${policy.name}`}
        note={note}
        tools={
          <button type="button" class="quiet" onClick={onClose}>
            Close
          </button>
        }
      >
        {typed.isOutdated && <NewerVersion base={base} newer={policy} onKeep={typed.keepOver} onTake={typed.undo} />}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setConfirming(read.ok);
          }}
        >
          {policy === null && <TextField label="Name" value={name} onValue={setName} isRequired hint={NAME_HINT} />}
          <DefinitionField
            label="Definition"
            text={text}
            onText={typed.setText}
            problem={read.ok ? null : read.problem}
          />
          <div class="tools">
            <button
              type="submit"
              class="main"
              disabled={!read.ok || name.trim() === '' || (policy !== null && !isChanged)}
            >
              Publish
            </button>
            {isChanged && (
              <button type="button" onClick={typed.undo}>
                Undo the changes
              </button>
            )}
            <span class="note">{hintOf(draft)}</span>
          </div>
        </form>
      </Card>
      {children(draft)}
      {isConfirming && read.ok && (
        <Confirm
          title="Publish?"
          verb="Publish"
          send={() => publish(name.trim(), read.definition, { version: base?.version ?? 0 })}
          onDone={() => {
            typed.notePublished();
            onPublished(name.trim());
          }}
          onClose={() => setConfirming(false)}
        >
          {effectOf(draft, read.definition)}
          {base !== null && <Changes before={base.definition} after={read.definition} />}
        </Confirm>
      )}
    </>
  );
}

interface NewerVersionProps {
  readonly base: Published<object> | null;
  readonly newer: Published<object> | null;
  readonly onKeep: () => void;
  readonly onTake: () => void;
}

/** Said above a draft whose policy somebody else has changed. The draft stays until the person decides. */
function NewerVersion({ base, newer, onKeep, onTake }: NewerVersionProps) {
  if (base === null || newer === null) return null;
  // The button that is pressed goes away, so the focus moves to the text that it is about.
  const decide = (how: () => void) => (event: { readonly currentTarget: HTMLElement }) => {
    event.currentTarget.closest('section')?.querySelector('textarea')?.focus();
    how();
  };
  return (
    <div class="notice" role="alert">
      <strong>Changed by somebody else</strong>
      <p>
        Version {newer.version} has been published since this draft was begun from version {base.version}. A draft that
        you keep replaces it when you publish. It changed:
      </p>
      <Changes before={base.definition} after={newer.definition} />
      <button type="button" onClick={decide(onKeep)}>
        Keep the draft
      </button>{' '}
      <button type="button" onClick={decide(onTake)}>
        Drop it, take version {newer.version}
      </button>
    </div>
  );
}
