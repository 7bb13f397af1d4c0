// The editor of a policy, of routing or of guardrails: edits the draft of a new version as JSON, and publishes it after
// a question. The caller adds what can be tried with the draft, and the table of versions.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Answer } from '../api.ts';
import { readDefinition, writeDefinition } from '../logic/definition-text.ts';
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

/** Empty for a new policy. */
interface Base {
  readonly version?: number;
}

interface EditorProps<Definition, Policy> {
  /** The definition with which a new policy begins. */
  readonly skeleton: Definition;
  readonly note: string;
  /** A line beside the button that publishes. */
  readonly hintOf: (draft: Draft<Definition, Policy>) => string;
  /** What publishing will do, for the question before it. */
  readonly effectOf: (draft: Draft<Definition, Policy>, definition: Definition) => string;
  /** Sends a definition. `base` is the version that the draft was made from; the gateway says 409 if it is outdated. */
  readonly publish: (name: string, definition: Definition, base: Base) => Promise<Answer<unknown>>;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
  readonly children: (draft: Draft<Definition, Policy>) => ComponentChildren;
}

interface PolicyEditorProps<Definition, Policy> extends EditorProps<Definition, Policy> {
  /** The published policy; nothing is loaded for a new one. */
  readonly load: Load<{ readonly data: Policy }>;
  readonly isNew: boolean;
  readonly permission: string;
}

export function PolicyEditor<Definition extends object, Policy extends Published<Definition>>({
  load,
  isNew,
  permission,
  onPublished,
  ...props
}: PolicyEditorProps<Definition, Policy>) {
  if (load.refusal !== null) return <RefusalNotice refusal={load.refusal} permission={permission} />;
  if (!isNew && load.data === null) return <Loading />;
  const policy = load.data?.data ?? null;
  // With the key the editor starts anew from each version that is published.
  return (
    <Editor
      key={policy?.version ?? 0}
      policy={policy}
      onPublished={(name) => {
        load.reload();
        onPublished(name);
      }}
      {...props}
    />
  );
}

function Editor<Definition extends object, Policy extends Published<Definition>>(
  props: EditorProps<Definition, Policy> & { readonly policy: Policy | null },
) {
  const { policy, skeleton, note, hintOf, effectOf, publish, onPublished, onClose, children } = props;
  const begin = writeDefinition(policy?.definition ?? skeleton);
  const [name, setName] = useState(policy?.name ?? '');
  const [text, setText] = useState(begin);
  const [isConfirming, setConfirming] = useState(false);
  useDraft(text !== begin || name !== (policy?.name ?? ''));
  const read = readDefinition<Definition>(text);
  const draft = {
    policy,
    text,
    definition: read.ok ? read.definition : null,
    setDefinition: (definition: Definition) => setText(writeDefinition(definition)),
  };
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
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setConfirming(read.ok);
          }}
        >
          {policy === null && <TextField label="Name" value={name} onValue={setName} isRequired hint={NAME_HINT} />}
          <DefinitionField label="Definition" text={text} onText={setText} problem={read.ok ? null : read.problem} />
          <div class="tools">
            <button
              type="submit"
              class="main"
              disabled={!read.ok || name.trim() === '' || (policy !== null && text === begin)}
            >
              Publish
            </button>
            {text !== begin && (
              <button type="button" onClick={() => setText(begin)}>
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
          send={() => publish(name.trim(), read.definition, policy === null ? {} : { version: policy.version })}
          onDone={() => onPublished(name.trim())}
          onClose={() => setConfirming(false)}
        >
          {effectOf(draft, read.definition)}
          {policy !== null && <Changes before={policy.definition} after={read.definition} />}
        </Confirm>
      )}
    </>
  );
}
